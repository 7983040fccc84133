# SPDX-License-Identifier: Apache-2.0
"""XCom `failure`: the reason why an attempt failed, for the task's tab in Airflow's UI."""

from __future__ import annotations

import re
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout
from jinja2 import TemplateError

from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.error_codes import CODES
from airflow_provider_webdata.common.links import error_link
from airflow_provider_webdata.common.remedies import folded, sentence
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.common.url_secrets import without_secrets
from airflow_provider_webdata.hooks.masking import masked

_MAX_MESSAGE = 1000
_MAX_FIX = 300
_MAX_REASONS = 5
_MAX_REASON = 200
_ENDING = re.compile(r" \((WD-\d{3})\)\.\nSee \S+\Z")


def failure_report(error: BaseException, explained: CodedError | None) -> dict[str, Any]:
    """Return `message`, `code`, `fix`, and `link` of an error; without a code, only the message.

    If there are any, `reasons` has the first failed pages, searches, or calls, and `accepted_with` the arguments that
    would have accepted the failure. `inspect_first` is true if `fix` must precede a clear. Secrets are masked as in
    logs, and long texts are truncated.

    :param explained: the last coded error that the run explained: Airflow's exceptions contain only its text.
    """
    text = str(error)
    coded = error if isinstance(error, CodedError) else explained
    if coded is None or not coded.help_code or str(coded) != text:
        return _uncoded(error, text)
    code, fix = coded.help_code, coded.advice or sentence(coded.remedy)
    link = error_link(code)
    message = text.removesuffix(f" ({code}).\nSee {link}").removesuffix(folded(fix)).rstrip()
    report = {**_masked({"message": _flowing(message), "fix": fix}), "code": code, "link": link}
    facts = {
        "reasons": _reasons(coded),
        "accepted_with": dict(coded.accepted_with),
        "inspect_first": coded.inspect_first,
    }
    return {**report, **{name: fact for name, fact in facts.items() if fact}}


def _reasons(error: CodedError) -> list[dict[str, Any]]:
    return [
        {
            name: part if part is None or type(part) is int else _clean(str(part), _MAX_REASON)
            for name, part in reason.items()
        }
        for reason in error.reasons[:_MAX_REASONS]
    ]


def _uncoded(error: BaseException, text: str) -> dict[str, Any]:
    if not isinstance(error, (AirflowException, AirflowTaskTimeout, TemplateError)):
        # The text of any other error may contain a page's content.
        return {"message": f"{type(error).__name__}: see the task's log"}
    if (ending := _ENDING.search(text)) is None:
        return _masked({"message": text or type(error).__name__})
    # The message of a trigger contains its next step.
    code = ending[1]
    report = {
        **_masked({"message": _flowing(text[: ending.start()])}),
        "code": code,
        "link": error_link(code),
    }
    return {**report, "inspect_first": True} if code in CODES and CODES[code].inspect_first else report


def _flowing(message: str) -> str:
    """Return a message with the line breaks of its list only: a page breaks lines itself."""
    return re.sub(r"\n(?! )", " ", message)


def _masked(texts: dict[str, str]) -> dict[str, Any]:
    longest = {"message": _MAX_MESSAGE, "fix": _MAX_FIX}
    return {name: _clean(text, longest[name]) for name, text in texts.items()}


def _clean(text: str, most: int) -> Any:
    return storable(_cut(masked(without_secrets(text)), most))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
