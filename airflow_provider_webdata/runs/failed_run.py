"""Diagnostics of a failed job: the last steps of an agent run, and the service's explanation."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowTaskTimeout

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.hooks.explanation import QUESTION, explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_webdata.hooks.webdata import WebDataHook

_MOST_STEPS = 20
_LONGEST = 200
# Omits tool output and the agent's comments: page content does not belong in a log.
_TOLD = ("toolName", "parameters", "outcome", "error", "reason")


def log_last_steps(hook: WebDataHook, job_id: str, log: Any) -> None:
    """Log the last steps of an agent run, on a best-effort basis."""

    try:
        with hook.optional() as own:
            events = [event.to_wire() for event in own.agent_trace(job_id).events]
    except WebDataError as error:
        log.info("The steps of agent run %s are unavailable: %s", job_id, error.brief())
        return
    log.info(
        "The last %d of %d steps of agent run %s (for all steps, call WebDataHook(...).agent_trace(%r)):%s",
        min(len(events), _MOST_STEPS),
        len(events),
        job_id,
        job_id,
        "".join(f"\n  {_line(event)}" for event in events[-_MOST_STEPS:]),
    )


def explain_failure(hook: WebDataHook, job_id: str, error: str, log: Any, push: Callable[..., None]) -> None:
    """Ask the service why a job failed, if the connection allows it; log the answer and push XCom `explanation`.

    :param error: the job's outcome, which is sent to the service.
    :param push: pushes XComs by name.
    """
    try:
        if not hook.get_settings().ask_on_failure:
            suggest_explanation(hook, job_id, log)
            return
        with hook.optional() as own:
            answer = explanation(own, job_id, f"{QUESTION} {error}")
        log.info("The service's explanation of job %s: %s", job_id, answer)
        push(explanation=answer)
    except (Exception, AirflowTaskTimeout) as problem:  # noqa: BLE001
        # Only the job's failure may fail the task.
        log.info("The service did not explain why job %s failed: %s", job_id, brief(problem))


def suggest_explanation(hook: WebDataHook, job_id: str, log: Any) -> None:
    """Log the command that asks the service why a job or its pages failed, if the server can answer it."""
    settings = hook.get_settings()
    if "ask" not in settings.client.server.lacks:
        log.error(
            "To ask the service why, run: airflow webdata explain %s --conn-id %s",
            job_id,
            shlex.quote(settings.conn_id),
        )


def _line(event: Mapping[str, Any]) -> str:
    told = " ".join(str(event[name]) for name in _TOLD if event.get(name) is not None)
    # Page content may contain line breaks: keep the event on one line.
    line = " ".join(f"{event.get('occurredAt') or ''} {event['type']} {told}".split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
