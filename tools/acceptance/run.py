# SPDX-License-Identifier: Apache-2.0
"""The acceptance run: all cases, one after the other, and the removal of what they made."""

from __future__ import annotations

import contextlib
import re
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.endpoints import JOBS, label_of
from airflow_provider_webdata.api.errors import (
    EntitlementError,
    GoneError,
    NotFoundError,
    UnsupportedError,
    WebDataError,
)
from airflow_provider_webdata.api.servers import SELF_HOSTED
from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.remedies import REMEDIES, sentence
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.states.jobs import TERMINAL_JOB_STATES
from tools.acceptance.report import Result
from tools.acceptance.watch import Record, Watch

if TYPE_CHECKING:
    from airflow_provider_webdata.common.job_kinds import JobKind
    from tools.acceptance.site import Site
    from webdata_sandbox.testing.local_inbox import LocalInbox

PATIENCE = 180
"""Seconds to wait for a job. A self-hosted server may take a minute to begin one."""
_NOT_FOUND = re.compile(r": HTTP 404(, \w+)?: not found\.?( |$)", re.IGNORECASE)
"""A 404 that names no object."""
_NAMES_LACK = "The server does not support this call: "
_KINDS: dict[str, Any] = {f"start_{kind}": kind for kind in JOBS}


class NotRunError(Exception):
    """The operation cannot run here; the message is the reason."""


@dataclass
class Run:
    """What the cases share.

    :param name: unique in the account; names of what the run creates begin with it.
    :param home: the Airflow home.
    :param inbox: receives deliveries, if the server can reach it.
    :param poll_seconds: interval between two polls of a job.
    """

    watch: Watch
    site: Site
    home: Path
    inbox: LocalInbox | None = None
    poll_seconds: float = 2.0
    hook: WebDataHook = field(default_factory=WebDataHook)
    name: str = field(default_factory=lambda: f"acceptance-{uuid.uuid4()}")

    @property
    def folder(self) -> Path:
        """Folder for the files of the operators."""
        return self.home / self.name

    def known(self, endpoint: str, read: Callable[[Any], str | None], made_up: str | None = None) -> str:
        """Return an id from the last response of an endpoint.

        If the server lacks the endpoint, this is a made-up id, so that the dependent call shows that it is missing too.

        :param made_up: a valid id. None: a random UUID.
        :raises NotRunError: there is no such response.
        """
        answer = self.watch.last.get(endpoint)
        if answer is not None and (found := read(answer)):
            return found
        if self._is_lacking(endpoint):
            self.watch.record.unknown_id = endpoint
            return made_up or str(uuid.uuid4())
        raise NotRunError(f"needs a result of {endpoint}")

    def _is_lacking(self, endpoint: str) -> bool:
        """Return whether the server reported the endpoint, or one that is missing for the same reason, as missing."""
        lacks, lacking = SELF_HOSTED.lacks, self.watch.lacking
        reasons = {lacks[name] for name in lacking if name in lacks}
        return endpoint in lacking or lacks.get(endpoint) in reasons

    def ended(self, kind: JobKind, job_id: str) -> Any:
        """Wait for the end of a job and return its state."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            state = self.hook.job_status(kind, job_id)
            if state.status in TERMINAL_JOB_STATES:
                return state
            time.sleep(self.poll_seconds)
        raise TimeoutError(f"the {kind} {job_id} did not end within {PATIENCE} s")

    def check_ended(self, monitor_id: str, check_id: str) -> None:
        """Wait for the end of a check."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.hook.get_monitor_check(monitor_id, check_id, limit=1).finished_at:
                return
            time.sleep(self.poll_seconds)
        raise TimeoutError(f"check {check_id} did not end within {PATIENCE} s")

    def deliveries(self) -> LocalInbox:
        """Return the inbox.

        :raises NotRunError: the server cannot reach this machine.
        """
        if self.inbox is None:
            raise NotRunError("needs WEBHOOK_URL, at which the server reaches this machine")
        return self.inbox


@dataclass(frozen=True)
class Case:
    """How an operation is tried.

    :param operation: see `Result`.
    :param perform: calls it, and returns a remark or None.
    :param of_plan: only some plans of the hosted service include it.
    """

    operation: str
    perform: Callable[[Run], str | None]
    of_plan: bool = False


def results(run: Run, cases: Sequence[Case], reasons: dict[str, str]) -> Iterator[Result]:
    """Run each case and yield its result; then yield the operations that have no case."""
    for case in cases:
        run.watch.record = record = Record()
        began = time.monotonic()
        outcome, reason = _outcome(run, case)
        yield Result(
            case.operation,
            outcome,
            reason,
            time.monotonic() - began,
            record.credits,
            max(record.reserved, 0),
            record.differences.lists(),
            record.differences.summary(),
        )
    for operation, why in reasons.items():
        yield Result(operation, "not run", why)


def _outcome(run: Run, case: Case) -> tuple[Any, str]:
    watch, record = run.watch, run.watch.record
    if watch.is_stopped():
        return "not run", "interrupted"
    try:
        remark = case.perform(run) or ""
    except NotRunError as error:
        return "not run", str(error)
    except KeyboardInterrupt:
        watch.stopped = True
        return "not run", "interrupted"
    except Exception as error:  # noqa: BLE001 - any error of an operation is its result
        if watch.is_stopped():
            return "not run", "interrupted"
        if record.refused:
            return "not run", record.refused
        return _judged(run, case, error)
    return ("ok", remark) if not record.refused else ("not run", record.refused)


def _judged(run: Run, case: Case, error: Exception) -> tuple[Any, str]:
    """Tell a missing operation from a failure. A task's error has only the text of the call's error."""
    text, server = trimmed(str(error)), run.watch.server
    if server.kind != "hosted":
        named = " ".join(str(error).split()).partition(_NAMES_LACK)[2]
        for ending in (". Connection '", f". {sentence(REMEDIES[UnsupportedError.help_code])}"):
            named = named.partition(ending)[0]
        if named:
            return "lacks", trimmed(named)
        if run.watch.record.is_not_found and (endpoint := run.watch.record.unknown_id):
            # The path exists, but no object that it could name; or neither does.
            return "lacks", SELF_HOSTED.lacks.get(endpoint, f"it has no {label_of(endpoint)}")
        if getattr(error, "status", None) == HTTPStatus.NOT_FOUND and _NOT_FOUND.search(text):
            # The object exists, as another call showed, so that the path does not.
            return "lacks", "it has no such operation"
        if run.watch.record.is_unsupported:
            return "failed", f"the error does not name what the server lacks: {text}"
    if case.of_plan and isinstance(error, EntitlementError):
        return "lacks", f"the plan of this team: {text}"
    return "failed", f"{type(error).__name__}: {text}"


def clean_up(run: Run) -> list[str]:
    """Remove what the run made and has not removed; return what could not be removed."""
    watch = run.watch
    watch.cleaning, watch.record = True, Record()
    left = [text for made in [*watch.made] if (text := _removed(run.hook, *made)) is not None]
    if "create_monitor" in watch.tried and "create_monitor" not in watch.lacking:
        # The response to a creation may have been lost.
        left += _removed_by_name(run)
    return left


def _removed(hook: WebDataHook, name: str, identity: str) -> str | None:
    remove: dict[str, Callable[[str], Any]] = {
        "create_monitor": hook.delete_monitor,
        "open_session": hook.close_session,
        "interact_with_scrape": hook.stop_scrape_interaction,
    }
    try:
        if name in remove:
            remove[name](identity)
        else:
            hook.cancel_job(_KINDS[name], identity)
    except (NotFoundError, GoneError):
        return None
    except WebDataError as error:
        return f"{name} {identity}: {trimmed(str(error))}"
    return None


def _removed_by_name(run: Run) -> list[str]:
    try:
        monitors = [
            monitor for monitor in run.hook.iter_monitors() if (monitor.name or "").startswith(run.name)
        ]
    except WebDataError as error:
        return [f"monitors whose names begin with {run.name}, if any: {trimmed(str(error))}"]
    return [
        text for monitor in monitors if (text := _removed(run.hook, "create_monitor", monitor.id)) is not None
    ]


@contextlib.contextmanager
def stoppable(watch: Watch) -> Iterator[None]:
    """Let SIGINT and SIGTERM end the run."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def stop(*_: object) -> None:
        # The task runner treats an interrupt as a failure of the task, so it is also remembered.
        watch.stopped = True
        raise KeyboardInterrupt

    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
