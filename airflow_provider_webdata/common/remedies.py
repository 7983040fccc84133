# SPDX-License-Identifier: Apache-2.0
"""The text of errors: message, next step, code, and the address of the section about the code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_provider_webdata.common.clean_text import cleaned
from airflow_provider_webdata.common.error_codes import CODES
from airflow_provider_webdata.common.links import error_link

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BILLED = ", which is billed"
"""Part of remedies that a server without billing makes wrong."""

LOST = "check the service before you repeat the call"
"""The remedy for a lost response."""

REMEDIES: Mapping[str, str] = {code: known.remedy for code, known in CODES.items()}
"""The next step for each code, as the rest of a sentence."""

_OF_NO_CONNECTION = frozenset(
    {
        *("WD-001", "WD-002", "WD-003", "WD-004", "WD-005", "WD-006", "WD-007", "WD-008", "WD-009", "WD-013"),
        *("WD-014", "WD-027", "WD-060", "WD-064", "WD-065", "WD-069"),
    }
)
"""Codes of errors that do not depend on the connection, or whose message names it."""

MAX_LINE = 170
"""Maximum length of a line of an error. A log view shows about 160 characters, without the error's class."""

_CODED = re.compile(r"(.*) \((WD-\d{3})\)", re.DOTALL)


def advice_for(code: str, remedy: str, conn_id: str, bills: Callable[[], bool] = lambda: True) -> str:
    """Return the next step after an error of a connection's call; empty if there is none.

    :param remedy: the error's remedy, as the rest of a sentence.
    :param bills: returns whether the connection's server bills calls.
    """
    if _BILLED in remedy and not bills():
        remedy = remedy.replace(_BILLED, "")
    if not remedy or code in _OF_NO_CONNECTION:
        return sentence(remedy)
    return f"Connection {conn_id!r}: {remedy}"


def with_ending(text: str, code: str, advice: str) -> str:
    """Return an error's text with its next step, its code, and the address of its section, each on a new line."""
    ending = f"({code}).\nSee {error_link(code)}"
    # Airflow builds an error again from its whole text, of which the error then makes one line.
    if text.endswith(ending):
        return text
    if text.endswith(one_line := ending.replace("\n", " ")):
        text = text.removesuffix(one_line).rstrip()
        if not advice or not text.endswith(advice):
            return f"{folded(text)} {ending}"
        text = text.removesuffix(advice).rstrip()
    text = text.removesuffix(f" ({code})")
    # The dots of `limit=...` stand for a value.
    if not text.endswith("..."):
        text = text.removesuffix(".")
    if advice:
        # A list of problems ends with the last problem, and a question with its mark.
        stop = "" if "\n" in text or text.endswith(("?", "!", "…", "...")) else "."
        return f"{folded(text)}{stop}\n{folded(advice)} {ending}"
    return f"{folded(text)} {ending}"


def folded(text: str, most: int = MAX_LINE) -> str:
    """Return a text whose lines are broken between sentences where they are too long for a log.

    :param most: maximum number of characters of a line. A longer sentence is not broken.
    """
    lines = []
    for line in text.split("\n"):
        while len(line) > most:
            if (end := line.rfind(". ", 0, most)) < 0 and (end := line.find(". ", most)) < 0:
                break
            lines.append(line[: end + 1])
            line = line[end + 2 :]
        lines.append(line)
    return "\n".join(lines)


def advised(text: str, conn_id: str, remedy: str | None = None) -> str:
    """Return an error message reported by a trigger, as clean text, with the next step and the address of its section.

    :param text: a message that ends with a code; any other text gets neither.
    :param remedy: the next step. Default: that of the code.
    """
    if (coded := _CODED.fullmatch(text)) is None:
        return cleaned(text)
    code = coded[2]
    return with_ending(cleaned(coded[1]), code, advice_for(code, remedy or REMEDIES.get(code, ""), conn_id))


def sentence(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]
