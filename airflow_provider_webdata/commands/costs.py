"""`airflow webdata costs`: the credits that DAGs, runs, or tasks spent."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.airflow_db.connections import find_webdata_connection
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.airflow_db.spent import spent, total
from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.commands.command import command, named_connection, print_document
from airflow_provider_webdata.commands.table import Column, print_table
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.hooks.webdata import WebDataHook

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from airflow_provider_webdata.airflow_db.spent import By, Spent

_DEFAULT_DAYS = 30
_MAX_DAYS = 36500
_LEAST = {"dag_id": 12, "run_id": 10, "task": 12, "operations": 10}
"""Columns that a table may shorten, to this width."""


@command("The credits cannot be read: {}")
def costs(args: argparse.Namespace) -> Iterator[str]:
    """Print the credits that DAGs, runs, or tasks spent.

    :param args: dag_id, a list; since; until; days; by; conn_id; output.
    """
    since, until, period, reason = _period(args)
    unread: Counter[str] = Counter()
    found = spent(args.by, args.dag_id, since, until, args.conn_id, unread)
    service = None if args.conn_id is None else _service(args.conn_id, since, until)
    if args.output in {"json", "yaml"}:
        document = {
            "period": period,
            "since": since.isoformat(),
            "until": None if until is None else until.isoformat(),
            "used": total(found),
            "spent": [one.as_dict() for one in found],
            **({"unread": dict(unread)} if unread else {}),
            **({} if service is None else {"service": service}),
        }
        print_document(document, args.output)
        return
    of_connection = "" if args.conn_id is None else f" of {args.conn_id}"
    yield f"Credits{of_connection}, {period}: {_time(since)} to {'now' if until is None else _time(until)} (UTC)"
    if reason:
        yield f"No billing period: {reason}"
    if found:
        rows = [_row(one, args.by) for one in found]
        rows.append(_total(found, rows[0]))
        print_table([Column(name, _LEAST.get(name)) for name in rows[0]], rows, args.output)
    else:
        yield "No task reported credits"
    for why, count in unread.items():
        yield f"Not included: the credits of {count} tasks, because {why}"
    if service is not None:
        yield from _lines(service)


def _period(args: argparse.Namespace) -> tuple[datetime, datetime | None, str, str]:
    """Return start and end of the report, its name, and the reason why it is not the billing period, if any."""
    until = None if args.until is None else _moment("--until", args.until)
    now = datetime.now(timezone.utc)
    reason = ""
    if args.since is not None and args.days is not None:
        raise SystemExit("--since and --days exclude each other")
    if args.days is not None:
        if not 1 <= args.days <= _MAX_DAYS:
            raise SystemExit(f"--days must be 1 to {_MAX_DAYS} (given: {args.days})")
        since, period = now - timedelta(days=args.days), _last(args.days)
    elif args.since is not None:
        since, period = _moment("--since", args.since), "given period"
    else:
        conn_id = args.conn_id or WebDataHook.default_conn_name
        since, period, reason = _billing_period(conn_id, now)
        if args.conn_id is None and not reason:
            period += f" of {conn_id}"
    if until is not None and until <= since:
        given = "" if args.since is None else f"; given: {args.until!r} and {args.since!r}"
        raise SystemExit(f"--until must be later than --since (which is {_time(since)} UTC{given})")
    return since, until, period, reason


def _billing_period(conn_id: str, now: datetime) -> tuple[datetime, str, str]:
    """Return the start of the service's billing period, or 30 days ago, with its name and the reason."""
    reason = f"connection {conn_id} does not exist"
    try:
        if (connection := find_webdata_connection(conn_id)) is not None:
            reason = f"the service of connection {conn_id} reports none"
            with WebDataHook.of(connection).optional() as hook:
                start = moment(hook.credit_usage().billing_period_start)
            if start is not None and start < now:
                return start.astimezone(timezone.utc), "billing period", ""
    except (StoreUnavailableError, WebDataError) as error:
        reason = error.brief()
    return now - timedelta(days=_DEFAULT_DAYS), _last(_DEFAULT_DAYS), reason


def _last(days: int) -> str:
    return "last day" if days == 1 else f"last {days} days"


def _time(value: datetime) -> str:
    return f"{value.astimezone(timezone.utc):%Y-%m-%d %H:%M}"


def _row(one: Spent, by: By) -> dict[str, Any]:
    if by == "task":
        index = one.names["map_index"]
        task = one.names["task_id"] + (f"[{index}]" if index >= 0 else "")
        names = {"dag_id": one.names["dag_id"], "run_id": one.names["run_id"], "task": task}
        return {**names, "used": one.used, "unknown": one.unknown}
    operations = ", ".join(f"{name} {credits_text(used)}" for name, used in one.operations.items())
    figures = {"tasks": one.tasks, "used": one.used, "saved": one.saved, "unknown": one.unknown}
    return {**one.names, **figures, "operations": operations}


def _total(found: list[Spent], row: Mapping[str, Any]) -> dict[str, Any]:
    sums = {name: sum(getattr(one, name) for one in found) for name in ("tasks", "used", "saved", "unknown")}
    return {name: sums.get(name) for name in row} | {"dag_id": "total"}


def _moment(flag: str, text: str) -> datetime:
    """Return a date or time; without a zone it is UTC."""
    with suppress(OverflowError):
        if (found := moment(text)) is not None:
            return found.astimezone(timezone.utc)
    raise SystemExit(
        f"{flag} must be a date or time such as 2026-01-31 or 2026-01-31T06:00+01:00 (given: {text!r})"
    )


def _service(conn_id: str, since: datetime, until: datetime | None) -> dict[str, Any]:
    """Return the service's figures for the billing periods that overlap the time span, or why they are missing."""
    try:
        with WebDataHook.of(named_connection(conn_id)).optional() as hook:
            usage = hook.credit_usage()
            periods = hook.credit_history().periods
    except (StoreUnavailableError, WebDataError) as error:
        return {"conn_id": conn_id, "remaining": None, "periods": [], "problem": error.brief()}
    shown = [
        {"start": period.start_date, "end": period.end_date, "used": period.used}
        for period in periods
        if _touches(period.start_date, period.end_date, since, until)
    ]
    return {"conn_id": conn_id, "remaining": usage.remaining_credits, "periods": shown}


def _touches(start: str | None, end: str | None, since: datetime, until: datetime | None) -> bool:
    begins, ends = moment(start), moment(end)
    is_before = until is not None and begins is not None and begins >= until
    return not is_before and not (ends is not None and ends <= since)


def _lines(service: dict[str, Any]) -> Iterator[str]:
    if "problem" in service:
        yield f"The service's own figures are missing: {service['problem']}"
        return
    for period in service["periods"]:
        start, end = (
            "an unknown time" if (at := moment(period[name])) is None else _time(at)
            for name in ("start", "end")
        )
        yield f"The service: {credits_text(period['used'])} credits from {start} to {end} (UTC), by the whole team"
    if not service["periods"]:
        yield "The service reports no billing period in this time span"
    left = service["remaining"]
    if left is None:
        yield "The service does not report how many credits are left"
    else:
        yield f"{credits_text(left)} credits are left"
