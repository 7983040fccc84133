# SPDX-License-Identifier: Apache-2.0
"""Disagreements between the rows that `seed` wrote and the service's state: times, ids, and sums."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from tests.support.seeded_service import PLAN, billed
from tests.support.seeded_story import DAGS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SLACK = timedelta(seconds=1)
_KINDS = ("crawl", "batch_scrape", "agent")
_NO_CREDITS: tuple[dict[str, Any], None] = ({}, None)
_TASK = ("dag_id", "run_id", "task_id", "map_index")


def disagreements(airflow: Path, service: Path) -> list[str]:
    """Return a sentence about each row that contradicts another one.

    :param airflow: SQLite database of Airflow, with the inbox.
    :param service: state of the sandbox.
    """
    with closing(sqlite3.connect(airflow)) as rows, closing(sqlite3.connect(service)) as state:
        rows.row_factory = sqlite3.Row
        objects: dict[str, list[dict[str, Any]]] = {}
        for kind, body in state.execute("select kind, body from objects order by seq"):
            objects.setdefault(kind, []).append(json.loads(body))
        return [*_Days(rows, objects).wrong()]


class _Days:
    """The rows by table."""

    def __init__(self, rows: sqlite3.Connection, objects: dict[str, list[dict[str, Any]]]) -> None:
        self.objects = objects
        self.runs = {(one["dag_id"], one["run_id"]): one for one in rows.execute("select * from dag_run")}
        self.tasks = {
            tuple(one[name] for name in _TASK): one
            for one in rows.execute("select * from task_instance")
            if one["dag_id"] in DAGS
        }
        self.triggers = {one["id"]: one for one in rows.execute('select * from "trigger"')}
        self.logs = [*rows.execute("select * from log where run_id is not null order by dttm, id")]
        self.xcoms: dict[tuple[Any, ...], dict[str, tuple[Any, datetime]]] = {}
        for one in rows.execute("select * from xcom"):
            value = json.loads(one["value"]) if isinstance(one["value"], str) else one["value"]
            name = tuple(one[key] for key in _TASK)
            self.xcoms.setdefault(name, {})[one["key"]] = (value, _time(one["timestamp"]))
        self.deliveries = [*rows.execute("select * from webdata_inbox_delivery")]
        self.jobs = {one["id"]: one for kind in _KINDS for one in objects.get(kind, [])}

    def wrong(self) -> Iterator[str]:
        yield from self._of_tasks()
        yield from self._of_orders()
        yield from self._of_jobs()
        yield from self._of_checks()
        yield from self._of_deliveries()
        yield from self._of_credits()

    def _of_tasks(self) -> Iterator[str]:
        now = datetime.now(timezone.utc)
        for name, task in self.tasks.items():
            run = self.runs[name[:2]]
            start, end = _time(task["start_date"]), _time(task["end_date"])
            if start is None:
                if task["state"] not in ("upstream_failed", None):
                    yield f"{name} is {task['state']} and did not start"
                continue
            first = self._began(name)
            if not _time(run["start_date"]) <= first <= start <= (end or now) <= now:
                yield f"{name}: run {run['start_date']}, first {first}, start {start}, end {end}, now {now}"
            if end is None and run["end_date"] is not None:
                yield f"{name} runs in a run that ended"
            if end is not None and run["end_date"] is not None and end > _time(run["end_date"]):
                yield f"{name} ends after its run"
            for key, (_, at) in self.xcoms.get(name, {}).items():
                if not start <= at <= (end or now):
                    yield f"{name} pushed {key} at {at}, not between {start} and {end}"
            for one in self._logged(name):
                if not first <= _time(one["dttm"]) <= (end or now):
                    yield f"{name}: {one['event']} at {one['dttm']} is outside of the task"
            if (trigger := self.triggers.get(task["trigger_id"])) is not None and not (
                start <= _time(trigger["created_date"]) <= now
            ):
                yield f"{name} is deferred outside of its time"
            if task["state"] == "up_for_retry":
                delay = DAGS[name[0]].get_task(name[2]).retry_delay
                if end + delay < now:
                    yield f"{name} should have been tried again {now - end - delay} ago"

    def _of_orders(self) -> Iterator[str]:
        """Each task starts after those upstream."""
        for name, task in self.tasks.items():
            upstream = DAGS[name[0]].get_task(name[2]).upstream_task_ids
            for other, before in self.tasks.items():
                if other[:2] != name[:2] or other[2] not in upstream or task["start_date"] is None:
                    continue
                if before["end_date"] is None or _time(before["end_date"]) > _time(task["start_date"]):
                    yield f"{name} started at {task['start_date']}, {other[2]} ended at {before['end_date']}"

    def _of_jobs(self) -> Iterator[str]:
        """A job lies within its task, and has the figures that the task reports."""
        for name, pushed in self.xcoms.items():
            task, (job_id, _) = self.tasks[name], pushed.get("job_id", (None, None))
            start, end = _time(task["start_date"]), _time(task["end_date"])
            value, _ = pushed.get("return_value", (None, None))
            if isinstance(value, dict) and "createdAt" in value and job_id:
                created, completed = _time(value["createdAt"]), _time(value["completedAt"])
                if not start <= created <= completed <= end:
                    yield f"{name} from {start} to {end} reports a job from {created} to {completed}"
            credits, _ = pushed.get("credits", _NO_CREDITS)
            used = credits.get("used", 0)
            if isinstance(value, dict) and "creditsUsed" in value and value["creditsUsed"] != used:
                yield f"{name} reports {value['creditsUsed']} and {used} credits"
            for sums in ("by_operation", "by_connection"):
                if credits and sum(credits[sums].values()) != used:
                    yield f"{name}: {sums} is not {used}"
            if isinstance(value, dict) and isinstance(changes := value.get("changes"), dict):
                seen = sum(changes[one] for one in ("new", "changed", "same"))
                emitted = seen if changes["emit"] == "all" else seen - changes["same"] + changes["removed"]
                if (seen, emitted) != (value["completed"], value["count"]):
                    yield f"{name}: {changes} of {value['completed']} pages, {value['count']} emitted"
            if (job := self.jobs.get(job_id)) is not None:
                created, finished = _time(job["createdAt"]), _time(job["finishedAt"])
                if not start - _SLACK <= created <= (finished or created) <= (end or _time(None, now=True)):
                    yield f"{name} from {start} to {end}: its job ran from {created} to {finished}"
                if finished is not None and billed(job) != used:
                    yield f"{name} reports {used} credits, its job {billed(job)}"
                if isinstance(value, dict) and value.get("completed", 0) != job.get("completed", 0):
                    yield f"{name} reports {value.get('completed')} pages, its job {job['completed']}"
        for job in self.jobs.values():
            if job["finishedAt"] and job["finishedAt"] < job["createdAt"]:
                yield f"job {job['id']} ended before it started"

    def _of_checks(self) -> Iterator[str]:
        """A check lies within its monitor, and before the end of the task that waited for it."""
        monitors = {one["id"]: one for one in self.objects["monitor"]}
        for check in (checks := {one["id"]: one for one in self.objects["check"]}).values():
            monitor = monitors[check["monitorId"]]
            times = [monitor["createdAt"], check["scheduledFor"], check["startedAt"], check["finishedAt"]]
            if times != sorted(times) or check["finishedAt"] > monitor["lastRunAt"]:
                yield f"check {check['id']}: {times}, last run {monitor['lastRunAt']}"
            counts = {key: value for key, value in check["summary"].items() if key != "totalPages"}
            if sum(counts.values()) != check["summary"]["totalPages"]:
                yield f"check {check['id']}: {check['summary']}"
        for name, pushed in self.xcoms.items():
            value, _ = pushed.get("return_value", (None, None))
            if not isinstance(value, dict) or "monitorId" not in value:
                continue
            check, run, task = checks[value["id"]], self.runs[name[:2]], self.tasks[name]
            if not _time(run["data_interval_start"]) < _time(check["finishedAt"]) <= _time(task["end_date"]):
                yield f"{name}: check {check['id']} ended at {check['finishedAt']}"
            if (check["status"], check["summary"]) != (value["status"], value["summary"]):
                yield f"{name} returned {value}"

    def _of_deliveries(self) -> Iterator[str]:
        """A delivery lies within the task, or at the end of the check, that it is about."""
        checks = {one["id"]: one for one in self.objects["check"]}
        for one in self.deliveries:
            at, body = _time(one["received_at"]), json.loads(one["body"])
            metadata = body["metadata"]
            if "task_id" in metadata:
                name = (*(metadata[key] for key in _TASK[:3]), int(metadata["map_index"]))
                task, (job_id, _) = self.tasks[name], self.xcoms[name]["job_id"]
                if body["id"] != job_id:
                    yield f"{name}: {body['type']} of another job"
                if not _time(task["start_date"]) <= at <= (_time(task["end_date"]) or at):
                    yield f"{name}: {body['type']} at {at}, not before {task['end_date']}"
                used = [data["creditsUsed"] for data in body["data"] if "creditsUsed" in data]
                if used and used != [self.xcoms[name]["credits"][0]["used"]]:
                    yield f"{name}: {body['type']} with {used} credits"
            elif (check := checks.get(body["id"])) is not None:
                if abs(_time(check["finishedAt"]) - at) > _SLACK:
                    yield f"{body['type']} at {at} of a check until {check['finishedAt']}"
                pages = {(page["url"], page["status"]) for page in self.objects["result"]}
                if not {(data["url"], data["status"]) for data in body["data"] if "url" in data} <= pages:
                    yield f"{body['type']} of a page that the check does not have"

    def _of_credits(self) -> Iterator[str]:
        """What the team has left is the plan without all that was spent."""
        by_id: dict[str, float] = {one["id"]: one["actualCredits"] for one in self.objects["check"]}
        by_id |= {job["id"]: billed(job) for job in self.jobs.values()}
        once = 0.0
        for pushed in self.xcoms.values():
            credits, _ = pushed.get("credits", _NO_CREDITS)
            ids = {job.partition("/")[2]: used for job, used in credits.get("jobs", {}).items()}
            once += 0 if ids else credits.get("used", 0)
            for job_id, used in ids.items():
                if by_id.setdefault(job_id, used) != used:
                    yield f"{job_id}: {used} and {by_id[job_id]} credits"
        left = next(one["remaining"] for one in self.objects["meta"] if "remaining" in one)
        if round(left) != round(PLAN - once - sum(by_id.values())):
            yield f"{left} credits are left of {PLAN}, and {once + sum(by_id.values())} were spent"
        balances = [
            pushed["remainingCredits"] for pushed in self.xcoms.values() if "remainingCredits" in pushed
        ]
        balances.sort(key=lambda one: one[1])
        falling = [value for value, _ in balances]
        if falling != sorted(falling, reverse=True) or falling[-1] < left:
            yield f"the balances {falling} do not fall to {left}"

    def _logged(self, name: tuple[Any, ...]) -> list[sqlite3.Row]:
        return [one for one in self.logs if tuple(one[key] for key in _TASK) == name]

    def _began(self, name: tuple[Any, ...]) -> datetime:
        """Return the start of the first attempt."""
        started = [_time(one["dttm"]) for one in self._logged(name)]
        first: datetime = min([*started, _time(self.tasks[name]["start_date"])])
        return first


def _time(text: Any, *, now: bool = False) -> Any:
    if now:
        return datetime.now(timezone.utc)
    if text is None:
        return None
    found = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
