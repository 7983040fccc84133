"""Diagnostics of a failed agent run: its last steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import WebDataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.hooks.webdata import WebDataHook

_MAX_STEPS = 20
_MAX_LENGTH = 200
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
        "The last %d of %d steps of agent run %s (all: WebDataHook(...).agent_trace(%r)):%s",
        min(len(events), _MAX_STEPS),
        len(events),
        job_id,
        job_id,
        "".join(f"\n  {_line(event)}" for event in events[-_MAX_STEPS:]),
    )


def suggest_question(hook: WebDataHook, job_id: str, log: Any) -> None:
    """Log the call that asks the service why a job or its pages failed, if the server can answer it."""
    settings = hook.get_settings()
    if "ask" not in settings.client.server.lacks:
        log.error(
            "To ask the service why, call WebDataHook(%r).ask('Why did this job fail?', job_id=%r).text()",
            settings.conn_id,
            job_id,
        )


def _line(event: Mapping[str, Any]) -> str:
    told = " ".join(str(event[name]) for name in _TOLD if event.get(name) is not None)
    # Page content may contain line breaks: keep the event on one line.
    line = " ".join(f"{event.get('occurredAt') or ''} {event['type']} {told}".split())
    return line if len(line) <= _MAX_LENGTH else f"{line[:_MAX_LENGTH]}..."
