"""XCom `failure`: the reason why an attempt failed, for the task's tab in Airflow's UI."""

from __future__ import annotations

from typing import Any

from airflow.sdk import log

from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.links import error_link
from airflow_provider_webdata.common.remedies import sentence
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.common.url_secrets import without_secrets

FAILURE = "failure"
"""XCom key of the report."""

_MAX_MESSAGE = 2000
_MAX_FIX = 1000


def failure_report(error: BaseException, explained: CodedError | None) -> dict[str, Any]:
    """Return `message`, `code`, `fix`, and `link` of an error; without a code, only the message.

    Secrets are masked as in logs, and long texts are truncated.

    :param explained: the last coded error that the run explained: Airflow's exceptions contain only its text.
    """
    text = str(error)
    coded = error if isinstance(error, CodedError) else explained
    if coded is None or not coded.help_code or str(coded) != text:
        return _masked({"message": f"{type(error).__name__}: {text}" if text else type(error).__name__})
    code, fix = coded.help_code, coded.advice or sentence(coded.remedy)
    link = error_link(code)
    message = text.removesuffix(f" ({code}). See {link}").removesuffix(fix).rstrip()
    return {**_masked({"message": message, "fix": fix}), "code": code, "link": link}


def _masked(texts: dict[str, str]) -> dict[str, Any]:
    masked = log.mask_logs(None, "", {name: without_secrets(text) for name, text in texts.items()})
    longest = {"message": _MAX_MESSAGE, "fix": _MAX_FIX}
    return {name: storable(_cut(str(text), longest[name])) for name, text in masked.items()}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
