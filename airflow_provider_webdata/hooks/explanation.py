"""The service's explanation of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api.errors import trimmed
from airflow_provider_webdata.common.secret_text import without_secrets

if TYPE_CHECKING:
    from airflow_provider_webdata.hooks.webdata import WebDataHook

QUESTION = "Why did this job fail, and what must be changed?"

_LONGEST_QUESTION = 2000


def explanation(hook: WebDataHook, job_id: str, question: str) -> str:
    """Ask the service about a job. Takes up to 65 seconds. No secret of the connection is sent or returned.

    :param question: the question; its first 2,000 characters are sent.
    :return: the answer on one line of at most 2,000 characters, without control characters.
    :raises WebDataError: the service does not answer.
    """
    secrets = [*hook.get_settings().secrets()]
    answer = hook.ask(trimmed(without_secrets(question, secrets), _LONGEST_QUESTION), job_id=job_id)
    return without_secrets(answer.text(), secrets)
