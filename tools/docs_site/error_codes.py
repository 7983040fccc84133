# SPDX-License-Identifier: Apache-2.0
"""The sections about error codes in docs/errors.md, from the table of codes and the classes of errors."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSensorTimeout

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.error_codes import CODES
from airflow_provider_webdata.common.remedies import sentence
from tools.docs_site.docstrings import docstring_of
from tools.docs_site.rendering import prose
from tools.docs_site.subjects import PACKAGE, DescriptionError

_SOURCES = Path(__file__).parents[2] / PACKAGE
_OF_NO_TASK = {"inbox_server", "airflow_db"}
_FAIL_NO_TASK = {"MediaError", "OptionError"}
_VERDICTS = {"never": "fails immediately", "later": "reschedules", "unknown": "retries"}


def sections() -> str:
    """Return the sections of docs/errors.md, one per code.

    :raises DescriptionError: no class has a code of the table, or no code of the table is that of a class.
    """
    by_code: dict[str, list[type[CodedError]]] = {}
    for kind in error_classes():
        by_code.setdefault(kind.help_code, []).append(kind)
    if by_code.keys() != CODES.keys():
        raise DescriptionError(f"common/error_codes.py: {', '.join(sorted(by_code.keys() ^ CODES.keys()))}")
    return "\n\n".join(_section(code, by_code[code]) for code in CODES)


def error_classes() -> list[type[CodedError]]:
    """Return the errors with a code; the class that declares a code is before those that inherit it."""
    for file in sorted(_SOURCES.rglob("*.py")):
        if re.search(r"^class \w+\([^)]*Error\b", file.read_text(encoding="utf-8"), re.MULTILINE):
            path = file.relative_to(_SOURCES.parent).with_suffix("")
            importlib.import_module(".".join(path.parts).removesuffix(".__init__"))
    found = [kind for kind in dict.fromkeys(_below(CodedError)) if kind.help_code and kind.__name__[0] != "_"]
    return sorted(found, key=lambda kind: ("help_code" not in vars(kind), kind.__name__))


def _below(kind: type[CodedError]) -> Iterator[type[CodedError]]:
    for below in kind.__subclasses__():
        if below.__module__.startswith(f"{PACKAGE}."):
            yield below
            yield from _below(below)


def reaction(kind: type[CodedError]) -> str:
    """Return what Airflow does after an error of a class, as the rest of a sentence."""
    if _OF_NO_TASK & {*kind.__module__.split(".")} or kind.__name__ in _FAIL_NO_TASK:
        return "no task fails"
    if issubclass(kind, WebDataError):
        return _VERDICTS[kind.verdict]
    if issubclass(kind, AirflowException):
        final = issubclass(kind, (AirflowFailException, AirflowSensorTimeout))
    else:
        final = not issubclass(kind, OSError)
    return "fails immediately" if final else "retries"


def _section(code: str, kinds: list[type[CodedError]]) -> str:
    known, names = CODES[code], ", ".join(f"`{kind.__name__}`" for kind in kinds)
    summary = prose(docstring_of(kinds[0]).summary, "")
    meaning = f"{summary[:1].lower()}{summary[1:]}" if re.match(r"[A-Z][a-z]* ", summary) else summary
    # Angle brackets would be HTML.
    fix = f"{sentence(known.remedy)}.".replace("<", "\\<")
    return "\n".join(
        [
            f"### {code}\n",
            f"{names}: {f'{meaning} {known.cause}'.rstrip()}\n",
            f"- **Fix:** {f'{fix} {known.details}'.rstrip()}",
            f"- **Airflow:** {reaction(kinds[0])}{known.airflow}.",
        ]
    )
