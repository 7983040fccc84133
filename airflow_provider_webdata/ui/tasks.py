# SPDX-License-Identifier: Apache-2.0
"""The provider's tasks for the pages: waits as text, started jobs, and results."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from airflow_provider_webdata.airflow_db.tasks import (
    OPERATOR_PREFIX,
    STARTED,
    StoredTask,
    StoredWait,
    TaskName,
    stored_task,
    waits_until,
)
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS
from airflow_provider_webdata.common.links import error_link
from airflow_provider_webdata.common.xcom_keys import (
    CREDITS,
    FAILURE,
    INCOMPLETE,
    PREVIEW,
    QUALITY,
    QUALITY_REJECTED,
)
from airflow_provider_webdata.results.files.formats import rejected_url
from airflow_provider_webdata.states.credits import Credits, report, restarted
from airflow_provider_webdata.states.jobs import name_of
from airflow_provider_webdata.states.shortfalls import Shortfall, shortfalls
from airflow_provider_webdata.ui.previews import total
from airflow_provider_webdata.waiting.policy import TIMEOUT_MARGIN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from airflow_provider_webdata.airflow_db.tasks import Happened
    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.states.task_record import Started, TaskRecord

WAITS_SHOWN = 50
"""Maximum number of late waits on a page. The trigger arguments of each must be decrypted."""

_KINDS = {f"WebData{kind.title().replace('_', '')}Operator": kind for kind in ALL_JOB_KINDS}
_IDS = ("job_id", "monitor_id", "check_id")
_AWAITED = {
    "check_id": "check {}",
    "job_id": "job {}",
    "monitor_id": "the next check of monitor {}",
    "key": "a delivery with key {}",
}
_SUBJECTS = ("name", "query", "url", "prompt")
_FACTS = (
    *_IDS,
    INCOMPLETE,
    *(CREDITS, "credits_used", "path", "count", "bytes"),
    *("changes", "validation", QUALITY, QUALITY_REJECTED, PREVIEW, FAILURE),
)
"""Keys of the XComs that the pages show, in addition to the return value."""
ATTENTION_KEYS = (*_IDS, INCOMPLETE, FAILURE, "path", QUALITY_REJECTED)
"""Keys of the XComs that say why a task needs a person."""
_LIVE_STATES = (
    "running",
    "deferred",
    "up_for_retry",
    "up_for_reschedule",
    "queued",
    "scheduled",
    "restarting",
    None,
)
_DIGITS = 10
_CODE = re.compile(r"WD-\d{3}")
# Any task may push an XCom of that name: no command is shown that a shell could read as more than one.
_COMMAND = re.compile(r"`(airflow (?:webdata(?: [\w./:=@-]+)+|db migrate))`")
_NO_REASON = (
    "No reason was recorded: the worker may have died, the task may have been stopped, or it pushes no XComs. "
    "See the log."
)


def map_index_of(text: str) -> int:
    """Parse the index of a mapped task. Return -1 for other text."""
    return int(text) if text.isdecimal() and len(text) < _DIGITS else -1


@dataclass(frozen=True)
class WaitingTask:
    """The event that a task waits for.

    :param task: the task.
    :param conn_id: its connection.
    :param what: the event, as text.
    :param how: the way of waiting, such as `by webhook`.
    :param since: start of the wait.
    :param until: deadline of the wait; None: unknown.
    :param arguments: the trigger's arguments; empty without one.
    """

    task: TaskName
    conn_id: str
    what: str
    how: str
    since: datetime
    until: datetime | None
    arguments: Mapping[str, Any] = field(repr=False)

    @property
    def is_late(self) -> bool:
        """Whether its deadline has passed."""
        return self.until is not None and self.until < datetime.now(timezone.utc)


class Failure(NamedTuple):
    """The reason why an attempt failed, from the XCom `failure`.

    :param message: error message, or a text for an attempt without the XCom.
    :param fix: next step; empty if unknown.
    :param code: error code; empty if it has none.
    :param link: address of the section about the code; empty if it has none.
    :param command: command to run; empty if the next step has none.
    :param accepted_with: arguments that would have accepted the failure.
    :param inspect_first: whether the next step must precede a clear.
    """

    message: str
    fix: str = ""
    code: str = ""
    link: str = ""
    command: str = ""
    accepted_with: Mapping[str, Any] = {}
    inspect_first: bool = False


class Rejected(NamedTuple):
    """Results that were not published because they failed conditions.

    :param conditions: number of failed conditions.
    :param path: path of the output, which is unchanged; empty if the results are in XCom.
    """

    conditions: int
    path: str

    @property
    def rejected_path(self) -> str:
        """Path of the rejected results."""
        return rejected_url(self.path)


@dataclass(frozen=True)
class TaskSummary:
    """A task instance, of this provider or any other.

    :param name: key of the task instance.
    :param state: Airflow's state.
    :param operator: class name of the operator.
    :param label: rendered `map_index_template` of a mapped task, or its index; empty if not mapped.
    :param started: start time; None before the start.
    :param ended: end time; None before the end.
    :param conn_id: connection of the task; None for tasks of other providers, loads, and tasks that were not rendered.
    :param operation: kind of the task's job, if any.
    :param ids: known ones of `job_id`, `monitor_id`, and `check_id`.
    :param subject: name, query, URL, or prompt in the task's arguments; empty if none.
    :param wait: current wait of the task, if any.
    :param pushed: small XComs of the task, by key.
    :param arguments: rendered arguments of the operator.
    :param record: what the task remembers, if it was read.
    """

    name: TaskName
    state: str | None
    operator: str | None
    label: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    conn_id: str | None = None
    operation: JobKind | None = None
    ids: Mapping[str, str] = field(default_factory=dict)
    subject: str = ""
    wait: WaitingTask | None = None
    pushed: Mapping[str, Any] = field(default_factory=dict, repr=False)
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    record: TaskRecord | None = field(default=None, repr=False)

    @property
    def is_ours(self) -> bool:
        """Whether the task is one of this provider."""
        return self.conn_id is not None or (self.operator or "").startswith(OPERATOR_PREFIX)

    @property
    def credits(self) -> float | None:
        """Credits reported by the task, or in its record: Airflow deletes the XComs of each attempt."""
        credits = self.pushed.get("credits")
        if credits is None and self.record is not None and self.record.credits != Credits():
            return float(report(restarted(self.record.credits))["used"])
        used = credits.get("used") if isinstance(credits, dict) else self.fact("credits_used")
        return used if is_number(used) else None

    @property
    def count(self) -> float | None:
        """Number of results that the task reported or returned."""
        count = self.fact("count")
        if count is None:
            count = total(self.pushed.get("return_value"))
        return count if is_number(count) else None

    @property
    def failure(self) -> Failure | None:
        """The reason why the last attempt failed; None if the task has not failed."""
        if self.state not in ("failed", "up_for_retry"):
            return None
        found = self.pushed.get(FAILURE)
        found = found if isinstance(found, dict) else {}
        message, fix, code = (str(found.get(name) or "") for name in ("message", "fix", "code"))
        command = _COMMAND.search(fix)
        return Failure(
            message or _NO_REASON,
            fix,
            code,
            # Any task may push an XCom of that name, with any link.
            error_link(code) if _CODE.fullmatch(code) else "",
            command[1] if command else "",
            accepted if isinstance(accepted := found.get("accepted_with"), dict) else {},
            found.get("inspect_first") is True,
        )

    @property
    def is_explained(self) -> bool:
        """Whether the last attempt failed and recorded the reason."""
        found = self.failure
        return found is not None and found.message != _NO_REASON

    @property
    def rejected(self) -> Rejected | None:
        """The results that the task rejected; None if it did not fail for this reason."""
        if self.state != "failed" or not isinstance(found := self.fact(QUALITY_REJECTED), dict):
            return None
        failed = found.get("failed")
        path = self.fact("path")
        return Rejected(
            len(failed) if isinstance(failed, list) else 0,
            path if isinstance(path, str) else "",
        )

    @property
    def left(self) -> Started | None:
        """The job that may still run: the task ended, and its record does not say that the job did."""
        # docs/contributing/upstream/killed_before_its_trigger.md
        record = self.record
        if record is None or record.is_final or self.state in _LIVE_STATES:
            return None
        started = record.started if record.phase in ("requested", "known") else None
        return started if started is not None and started.kind in ALL_JOB_KINDS else None

    @property
    def shortfalls(self) -> list[Shortfall]:
        """What the results of a task lack that did not fail."""
        return shortfalls(self.pushed.get(INCOMPLETE)) if self.state in ("success", "skipped") else []

    def fact(self, key: str) -> Any:
        """Return an XCom, else the value of that key in the return value, else None."""
        result = self.pushed.get("return_value")
        return self.pushed.get(key, result.get(key) if isinstance(result, dict) else None)


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a JSON value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def sum_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known values; None if none is known, or an integer is too large for a float."""
    known = [value for value in values if value is not None]
    try:
        return sum(known) if known else None
    except OverflowError:
        return None


def late_waits(dag_ids: Collection[str]) -> list[WaitingTask]:
    """Return at most `WAITS_SHOWN` waits whose deadline has passed, the first to end first."""
    # Airflow's own timeout follows the deadline.
    end = datetime.now(timezone.utc) + timedelta(seconds=TIMEOUT_MARGIN_SECONDS)
    found = [_wait(stored) for stored in waits_until(end, dag_ids, WAITS_SHOWN)]
    return [wait for wait in found if wait.is_late]


def summary_of(name: TaskName) -> TaskSummary | None:
    """Return the summary of a task, or None if it does not exist."""
    stored = stored_task(name, (*_FACTS, "return_value"))
    return None if stored is None else summary_from(stored)


def wait_in_worker(summary: TaskSummary, happened: Iterable[Happened]) -> WaitingTask | None:
    """Return the wait of a task that waits in a worker, or between two checks of a sensor; None for any other.

    A task that started no job waits only if it is a sensor. A task that was deferred in this attempt waits no longer.

    :param happened: the task's logged states.
    """
    if summary.conn_id is None or summary.wait or summary.state not in ("running", "up_for_reschedule"):
        return None
    has_started = any(isinstance(summary.pushed.get(key), str) for key in STARTED)
    if not has_started and not (summary.operator or "").endswith("Sensor"):
        return None
    logged = list(happened)
    attempt = max((one.attempt for one in logged), default=1)
    if any(one.event == "deferred" and one.attempt == attempt for one in logged):
        return None
    known = {**summary.arguments, **summary.ids}
    words = _AWAITED | ({"job_id": f"{name_of(summary.operation)} {{}}"} if summary.operation else {})
    return WaitingTask(
        summary.name,
        summary.conn_id,
        next((text.format(known[name]) for name, text in words.items() if known.get(name)), "a delivery"),
        "in a worker slot" if summary.state == "running" else "without a worker slot between two checks",
        summary.started or datetime.now(timezone.utc),
        None,
        {},
    )


def task_named(metadata: Any) -> TaskName | None:
    """Return the task that the metadata of a webhook name. Those of a monitor name no DAG run."""
    if not isinstance(metadata, dict):
        return None
    dag_id, task_id = metadata.get("dag_id"), metadata.get("task_id")
    if not (isinstance(dag_id, str) and isinstance(task_id, str) and dag_id and task_id):
        return None
    run_id = metadata.get("run_id")
    return TaskName(
        dag_id,
        run_id if isinstance(run_id, str) else "",
        task_id,
        map_index_of(str(metadata.get("map_index"))),
    )


def _wait(stored: StoredWait) -> WaitingTask:
    arguments, until = stored.arguments, stored.until
    # Not a number, or out of the range of datetime.
    with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError, OSError):
        until = datetime.fromtimestamp(arguments["deadline"], timezone.utc)
    conn_id = str(arguments.get("webdata_conn_id", "unknown"))
    what = _what(stored.classpath, arguments)
    return WaitingTask(stored.task, conn_id, what, _how(arguments), stored.since, until, arguments)


def _what(classpath: str, arguments: Mapping[str, Any]) -> str:
    if not arguments:
        return "unknown: its arguments cannot be decrypted"
    if kind := arguments.get("kind"):
        return f"{name_of(kind) if kind in ALL_JOB_KINDS else kind} {arguments.get('job_id')}"
    if "criteria" in arguments:
        check = f"check {arguments['check_id']}" if arguments.get("check_id") else "the next check"
        return f"{check} of monitor {arguments.get('monitor_id')}"
    if classpath.endswith(".ResumeTrigger"):
        return "the retry time that the service gave for the result"
    names = {"key": "key", "job_id": "job", "monitor_id": "monitor", "events": "events"}
    limits = [f"{word} {_joined(arguments[name])}" for name, word in names.items() if arguments.get(name)]
    return f"a delivery ({', '.join(limits) or 'any'})"


def _how(arguments: Mapping[str, Any]) -> str:
    if not is_number(poll := arguments.get("poll_interval")):
        return "by time" if "when" in arguments else "by webhook"
    polls = f"by polling every {poll:g} s"
    if arguments.get("reports") is False:
        return polls
    return f"by webhook; without one, {polls}"


def _joined(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _check_ids(result: Any) -> dict[str, Any]:
    """Return the ids of the check that a task waited for, from its return value; empty if that is no check."""
    if not isinstance(result, dict) or "monitorId" not in result:
        return {}
    return {"monitor_id": result["monitorId"], "check_id": result.get("id")}


def _recorded_ids(record: TaskRecord | None) -> dict[str, Any]:
    started = None if record is None else record.started
    if started is None or started.id is None:
        return {}
    return (
        {"check_id" if started.kind == "check" else "job_id": started.id} if started.kind != "session" else {}
    )


def summary_from(stored: StoredTask) -> TaskSummary:
    """Return the summary of a stored task."""
    name, rendered = stored.name, stored.arguments
    wait = None if stored.wait is None else _wait(stored.wait)
    conn_id = rendered.get("webdata_conn_id") or (wait.conn_id if wait else None)
    arguments = wait.arguments if wait else {}
    kind = arguments.get("kind") or _KINDS.get(stored.operator or "") or rendered.get("kind")
    sources = (
        arguments,
        stored.pushed,
        _recorded_ids(stored.record),
        rendered,
        _check_ids(stored.pushed.get("return_value")),
    )
    ids = {key: next((one[key] for one in sources if isinstance(one.get(key), str)), "") for key in _IDS}
    return TaskSummary(
        name,
        stored.state,
        stored.operator,
        str(name.map_index if stored.label is None else stored.label) if name.map_index >= 0 else "",
        stored.started,
        stored.ended,
        conn_id=None if conn_id is None else str(conn_id),
        operation=kind if kind in ALL_JOB_KINDS else None,
        ids={key: value for key, value in ids.items() if value},
        subject=next((rendered[key] for key in _SUBJECTS if isinstance(rendered.get(key), str)), ""),
        wait=wait,
        pushed=stored.pushed,
        arguments=rendered,
        record=stored.record,
    )
