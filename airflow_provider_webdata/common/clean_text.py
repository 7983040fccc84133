# SPDX-License-Identifier: Apache-2.0
"""Text from outside as logs and errors show it: on one line, bounded, without control characters and secrets."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from airflow_provider_webdata.common.url_secrets import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TEXT = 4000
"""Maximum number of characters of a text in a log or an error."""

# Terminal escape sequences, then control characters, bidirectional marks, and lone surrogates.
_CONTROLS = (
    r"\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


class OwnLines(str):
    """Text of several lines, each of which is clean."""

    __slots__ = ()


def one_line(text: str) -> str:
    """Return a text on one line, without control characters and terminal escape sequences."""
    return " ".join(_controls().sub("", text).split())


def cleaned(text: str) -> str:
    """Return a text as a log shows it. A longer one loses its middle, so that its end stays."""
    text = without_secrets(one_line(text))
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT // 2]}…{text[1 - MAX_TEXT // 2 :]}"


def trimmed(text: str, limit: int = 500) -> str:
    """Return a text as a log shows it, cut at `limit` characters."""
    text = without_secrets(one_line(text))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def own_lines(texts: Iterable[str], start: str = "\n  ") -> OwnLines:
    """Return texts, each on a separate line that begins with `start`, and the text's indentation."""
    return OwnLines("".join(f"{start}{' ' * _indentation(text)}{cleaned(text)}" for text in texts))


def _indentation(text: str) -> int:
    return min(len(text) - len(text.lstrip(" ")), 40)


@cache
def _controls() -> re.Pattern[str]:
    # DAG files import this module, and seldom need it.
    return re.compile(_CONTROLS)
