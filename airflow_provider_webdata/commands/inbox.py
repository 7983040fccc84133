# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata inbox list | show | replay | prune`: direct database access, without HTTP."""

from __future__ import annotations

import contextlib
import re
import sys
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.airflow_db.connections import conn_ids_in_environment, stored_conn_ids
from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.airflow_db.tasks import STARTED, starters_of
from airflow_provider_webdata.commands.command import command, print_document
from airflow_provider_webdata.commands.moments import moment_of
from airflow_provider_webdata.commands.table import Column, print_table
from airflow_provider_webdata.commands.terminal import terminal_text
from airflow_provider_webdata.inbox.envelope import NotJSONError, parse_body
from airflow_provider_webdata.inbox_server.options import retention_days
from airflow_provider_webdata.inbox_server.storage.errors import DeliveryNotFoundError, OptionError
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.inbox_server.storage.refusals import next_step
from airflow_provider_webdata.inbox_server.storage.retention import prune_all
from airflow_provider_webdata.inbox_server.storage.store import MAX_CONNECTIONS, DeliveryStore

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery

_UNAVAILABLE = "The inbox is unavailable: {}"
_AGE = re.compile(r"(\d+)\s*([dhm])")
_COLUMNS = (Column("id"), Column("time (UTC)"), Column("event", 8), Column("task", 16), Column("job", 9))
_MAX_COUNTED = 10_000
"""A count of all deliveries could exceed the statement timeout."""
_REFUSED_WITHIN = timedelta(days=1)
_MAX_REFUSED = 5
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


@command(_UNAVAILABLE)
def list_deliveries(args: argparse.Namespace) -> Iterator[str]:
    """List deliveries, newest first, then the refused ones of the last day."""
    wanted = DeliveryFilter(
        keys=(args.key,) if args.key else (),
        job_ids=(args.job_id,) if args.job_id else (),
        monitor_ids=(args.monitor_id,) if args.monitor_id else (),
        page_urls=(args.page_url,) if args.page_url else (),
        events=tuple(args.event),
        dag_ids=tuple(args.dag_id),
        received_after=None if args.since is None else moment_of("--since", args.since),
    )
    if args.limit < 1:
        raise SystemExit(f"--limit must be 1 or more (given: {args.limit})")
    store = DeliveryStore(airflow_engine())
    found = store.newest(args.conn_id, wanted, args.limit)
    refused = _refused(store, args.conn_id)
    tasks = _tasks(found)
    if args.output in {"json", "yaml"}:
        print_document([_fields(one, tasks) for one in found], args.output)
        # The standard output contains only the document.
        for line in refused:
            sys.stderr.write(f"{terminal_text(line)}\n")
        return
    if found:
        print_table(_COLUMNS, [_row(one, tasks) for one in found], args.output)
    else:
        yield "No deliveries match"
    yield from refused


def _refused(store: DeliveryStore, conn_id: str | None) -> list[str]:
    conn_ids = (
        [conn_id] if conn_id else store.conn_ids() + stored_conn_ids("webdata") + conn_ids_in_environment()
    )
    since = datetime.now(timezone.utc) - _REFUSED_WITHIN
    found = [one for one in store.refusals(conn_ids[:MAX_CONNECTIONS]) if one.last > since]
    lines = [
        f"Refused: {_counted(one.number)} to {one.conn_id} {one.text()}, from {one.sender or 'other senders'}; the "
        f"last one at {_time(one.last)}"
        for one in found[:_MAX_REFUSED]
    ]
    return [*lines, next_step([one.reason for one in found])] if lines else []


@command(_UNAVAILABLE)
def show_delivery(args: argparse.Namespace) -> Iterator[str]:
    """Show one delivery with its body."""
    delivery = DeliveryStore(airflow_engine()).get(None, args.id)
    if delivery is None:
        raise SystemExit(
            f"Delivery {args.id} does not exist. `airflow webdata inbox list` shows the deliveries"
        )
    fields = _fields(delivery, _tasks([delivery]))
    try:
        body = parse_body(delivery.body or b"")
    except NotJSONError:
        body = None
    if args.output in {"json", "yaml"}:
        print_document({**fields, "body": body}, args.output)
    else:
        known = {**fields, "received_at": _time(delivery.received_at)}
        width = max(map(len, known))
        yield from (f"{name:<{width}}  {value}" for name, value in known.items() if value is not None)
        if body is None:
            yield "The body is not JSON, or was not stored"
        else:
            print_document(body, "json")


@command(_UNAVAILABLE, audited=True)
def replay_deliveries(args: argparse.Namespace) -> Iterator[str]:
    """Publish deliveries again."""
    try:
        copies = DeliveryStore(airflow_engine()).replay(args.id)
    except DeliveryNotFoundError as error:
        raise SystemExit(f"{error}; no delivery was replayed") from None
    for original, copy in copies.items():
        yield f"Replayed delivery {original} as {copy}"


@command(_UNAVAILABLE, audited=True)
def prune_deliveries(args: argparse.Namespace) -> Iterator[str]:
    """Delete old deliveries."""
    before = datetime.now(timezone.utc) - _age(args.older_than)
    since = _time(before)
    store = DeliveryStore(airflow_engine())
    count = store.count_before(before, _MAX_COUNTED)
    found = f"{_MAX_COUNTED} or more deliveries" if count == _MAX_COUNTED else _counted(count)
    if args.dry_run or not count:
        yield f"{found} received before {since}; no delivery was deleted"
        return
    if not args.yes and not _agrees(f"Delete {found} received before {since}? (y/n) "):
        raise SystemExit("Cancelled; no delivery was deleted")
    yield f"Deleted {_counted(prune_all(store, before))}"


def _agrees(question: str) -> bool:
    """Return whether the answer on standard input is `y`.

    :raises SystemExit: there is no answer.
    """
    try:
        if sys.stdin is not None:
            return input(question).strip().lower() == "y"
    except EOFError:
        pass
    except KeyboardInterrupt:
        return False
    raise SystemExit("Standard input has no answer; to delete without a question, specify --yes")


def _counted(count: int) -> str:
    return "1 delivery" if count == 1 else f"{count} deliveries"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def _tasks(deliveries: Sequence[StoredDelivery]) -> dict[int, tuple[str | None, str | None]]:
    """Return DAG and task id by delivery: those that it names, or those of the task that started its job."""
    unnamed = {one.job_id for one in deliveries if one.job_id and not one.task_id}
    starters = starters_of(unnamed, STARTED) if unnamed else {}
    found: dict[int, tuple[str | None, str | None]] = {}
    for one in deliveries:
        task = starters.get(one.job_id or "")
        found[one.id] = (one.dag_id, one.task_id) if task is None else (task.dag_id, task.task_id)
    return found


def _row(delivery: StoredDelivery, tasks: dict[int, tuple[str | None, str | None]]) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "time (UTC)": f"{delivery.received_at.astimezone(timezone.utc):%Y-%m-%d %H:%M}",
        "event": delivery.event,
        "task": ".".join(filter(None, tasks[delivery.id])),
        "job": delivery.job_id,
    }


def _age(text: str | None) -> timedelta:
    if text is None:
        try:
            days = retention_days()
        except OptionError as error:
            raise SystemExit(str(error)) from None
        if not days:
            raise SystemExit(
                "[webdata] inbox_retention_days is 0, which keeps all deliveries; set --older-than, such as 30d"
            )
        return timedelta(days=days)
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise SystemExit(
            f"--older-than must be a number of days, hours, or minutes, such as 30d, 12h, or 90m (given: {text!r})"
        )
    with contextlib.suppress(OverflowError):
        age = timedelta(**{_UNITS[match[2]]: int(match[1])})
        if age < timedelta(days=365 * 1000):
            return age
    raise SystemExit(f"--older-than is more than a thousand years (given: {text!r})")


def _fields(delivery: StoredDelivery, tasks: dict[int, tuple[str | None, str | None]]) -> dict[str, Any]:
    dag_id, task_id = tasks[delivery.id]
    return {
        "id": delivery.id,
        "conn_id": delivery.conn_id,
        "event": delivery.event,
        "success": delivery.success,
        "job_id": delivery.job_id,
        "monitor_id": delivery.monitor_id,
        "monitor": delivery.monitor_name,
        "dag_id": dag_id,
        "task_id": task_id,
        "key": delivery.key,
        "received_at": delivery.received_at.isoformat(timespec="seconds"),
        "size": delivery.size,
        "replay_of": delivery.replay_of,
    }
