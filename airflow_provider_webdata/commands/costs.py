"""`airflow webdata costs`: the credits that DAGs, runs, or tasks spent."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.airflow_db.spent import spent, total
from airflow_provider_webdata.commands.command import command, named_connection, print_document, print_rows
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.hooks.webdata import WebDataHook

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


@command("The credits cannot be read: {}")
def costs(args: argparse.Namespace) -> Iterator[str]:
    """Print the credits that DAGs, runs, or tasks spent.

    :param args: dag_id, a list; since; until; by; conn_id; output.
    """
    since = _moment("--since", args.since)
    until = None if args.until is None else _moment("--until", args.until)
    if until is not None and until <= since:
        raise SystemExit(f"--until must be later than --since (given: {args.until!r} and {args.since!r})")
    unread: Counter[str] = Counter()
    found = spent(args.by, args.dag_id, since, until, args.conn_id, unread)
    rows = [one.as_dict() for one in found]
    service = None if args.conn_id is None else _service(args.conn_id, since, until)
    if args.output in {"json", "yaml"}:
        document = {
            "since": since.isoformat(),
            "until": None if until is None else until.isoformat(),
            "used": total(found),
            "spent": rows,
            **({"unread": dict(unread)} if unread else {}),
            **({} if service is None else {"service": service}),
        }
        print_document(document, args.output)
        return
    if rows:
        print_rows([{name: _cell(value) for name, value in row.items()} for row in rows], args.output)
    of_connection = "" if args.conn_id is None else f" with connection {args.conn_id}"
    yield f"{total(found):g} credits in total{of_connection}"
    for why, count in unread.items():
        yield f"Not included: the credits of {count} tasks, because {why}"
    if service is not None:
        yield from _lines(service)


def _moment(flag: str, text: str) -> datetime:
    """Return a date or time; without a zone it is UTC."""
    with suppress(OverflowError):
        if (found := moment(text)) is not None:
            return found.astimezone(timezone.utc)
    raise SystemExit(
        f"{flag} must be a date or time such as 2026-01-31 or 2026-01-31T06:00+01:00 (given: {text!r})"
    )


def _cell(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return ", ".join(f"{part} {credits:g}" for part, credits in value.items())


def _service(conn_id: str, since: datetime, until: datetime | None) -> dict[str, Any]:
    """Return the service's figures for the billing periods that overlap the time span."""
    with WebDataHook.of(named_connection(conn_id)).optional() as hook:
        usage = hook.credit_usage()
        periods = hook.credit_history().periods
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
    for period in service["periods"]:
        used = "unknown" if period["used"] is None else format(period["used"], "g")
        start, end = period["start"] or "an unknown time", period["end"] or "an unknown time"
        yield f"The service: {used} credits from {start} to {end}, by the whole team"
    if not service["periods"]:
        yield "The service reports no billing period in this time span"
    left = service["remaining"]
    yield f"{'Unknown' if left is None else format(left, 'g')} credits are left"
