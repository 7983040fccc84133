"""The command `airflow webdata costs`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_webdata.airflow_db.command_line import (
    AirflowConsole,
    providers_configuration_loaded,
    suppress_logs_and_warning,
    yaml,
)
from airflow_provider_webdata.airflow_db.connections import named_connection
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.airflow_db.spent import Spent, spent, total
from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.terminal import terminal_text
from airflow_provider_webdata.hooks.webdata import WebDataHook

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence


@suppress_logs_and_warning
@providers_configuration_loaded
def costs(args: argparse.Namespace) -> None:
    """Print the credits that DAGs, runs, or tasks spent.

    :param args: dag_id, a list; since; until; by; conn_id; output.
    """
    since = _moment("--since", args.since)
    until = None if args.until is None else _moment("--until", args.until)
    if until is not None and until <= since:
        raise SystemExit(f"--until must be later than --since (given: {args.until!r} and {args.since!r})")
    unread: Counter[str] = Counter()
    try:
        found = spent(args.by, args.dag_id, since, until, args.conn_id, unread)
    except SQLAlchemyError as error:
        raise SystemExit(f"Airflow's metadata database cannot be read: {type(error).__name__}") from None
    service = None if args.conn_id is None else _service(args.conn_id, since, until)
    if args.output in {"json", "yaml"}:
        document = {
            "since": since.isoformat(),
            "until": None if until is None else until.isoformat(),
            "used": total(found),
            "spent": [one.as_dict() for one in found],
            **({"unread": dict(unread)} if unread else {}),
            **({} if service is None else {"service": service}),
        }
        sys.stdout.write(
            yaml.dump(document) if args.output == "yaml" else f"{json.dumps(document, indent=2)}\n"
        )
        return
    if found:
        AirflowConsole().print_as([_row(one) for one in found], args.output)
    of_connection = "" if args.conn_id is None else f" with connection {args.conn_id}"
    missing = [f"Not included: the credits of {count} tasks, because {why}" for why, count in unread.items()]
    for line in (f"{total(found):g} credits in total{of_connection}", *missing, *_lines(service or {})):
        sys.stdout.write(f"{terminal_text(line)}\n")


def _moment(flag: str, text: str) -> datetime:
    """Return a date or time; without a zone it is UTC."""
    with suppress(OverflowError):
        if (found := moment(text)) is not None:
            return found.astimezone(timezone.utc)
    raise SystemExit(
        f"{flag} must be a date or time such as 2026-01-31 or 2026-01-31T06:00+01:00 (given: {text!r})"
    )


def _row(one: Spent) -> dict[str, Any]:
    row = one.as_dict()
    for name in ("by_operation", "by_format"):
        row[name] = ", ".join(f"{part} {credits:g}" for part, credits in row[name].items())
    return {
        name: escape(terminal_text(value)) if isinstance(value, str) else value for name, value in row.items()
    }


def _service(conn_id: str, since: datetime, until: datetime | None) -> dict[str, Any]:
    """Return the service's figures for the billing periods that overlap the time span."""
    try:
        with WebDataHook.of(named_connection(conn_id)).optional() as hook:
            usage = hook.credit_usage()
            periods = hook.credit_history().periods
    except (StoreUnavailableError, WebDataError) as error:
        raise SystemExit(f"The service's figures cannot be read: {terminal_text(str(error))}") from None
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


def _lines(service: Mapping[str, Any]) -> Sequence[str]:
    if not service:
        return ()
    periods = [
        f"The service: {'unknown' if period['used'] is None else format(period['used'], 'g')} credits from "
        f"{period['start'] or 'an unknown time'} to {period['end'] or 'an unknown time'}, by the whole team"
        for period in service["periods"]
    ] or ["The service reports no billing period in this time span"]
    left = service["remaining"]
    return [*periods, f"{'Unknown' if left is None else format(left, 'g')} credits are left"]
