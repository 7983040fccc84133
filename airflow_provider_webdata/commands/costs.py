# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata costs`: the credits of DAGs, tasks, months, or days."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from airflow_provider_webdata.airflow_db.spent import columns_of, spent
from airflow_provider_webdata.commands.command import command, print_document
from airflow_provider_webdata.commands.moments import moment_of
from airflow_provider_webdata.commands.table import Column, print_csv, print_table
from airflow_provider_webdata.commands.terminal import terminal_text
from airflow_provider_webdata.common.needs_database import NEEDS_DATABASE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

_DEFAULT_DAYS = 30
_MAX_DAYS = 36500
_LEAST = {"dag_id": 12, "task_id": 12}
"""Columns that a table may shorten, to this width."""


@command(f"The credits cannot be read: {{}}. {NEEDS_DATABASE}")
def costs(args: argparse.Namespace) -> Iterator[str]:
    """Print sums of the credits that tasks reported.

    :param args: dag_id, a list; since; until; days; by; conn_id; output.
    """
    since, until = _span(args)
    unread: Counter[str] = Counter()
    found = spent(args.by, since, until, dag_ids=args.dag_id or None, conn_id=args.conn_id, unread=unread)
    names, rows = columns_of(args.by), [one.as_dict() for one in found]
    missing = [f"Not included: the credits of {count} tasks, because {why}" for why, count in unread.items()]
    if args.output in {"json", "yaml"}:
        print_document(rows, args.output)
    elif args.output == "csv":
        print_csv(names, rows)
    else:
        of_connection = "" if args.conn_id is None else f" of {args.conn_id}"
        yield f"Credits{of_connection} from {_time(since)} to {'now' if until is None else _time(until)} (UTC)"
        if rows:
            sums = {name: sum(row[name] for row in rows) for name in ("used", "tasks", "unknown")}
            total = {**dict.fromkeys(names), names[0]: "total", **sums}
            print_table([Column(name, _LEAST.get(name)) for name in names], [*rows, total], args.output)
        else:
            yield "No task reported credits"
        yield from missing
        return
    # The standard output contains only the document.
    for line in missing:
        sys.stderr.write(f"{terminal_text(line)}\n")


def _span(args: argparse.Namespace) -> tuple[datetime, datetime | None]:
    """Return start and end of the report; an end of None is now."""
    until = None if args.until is None else moment_of("--until", args.until)
    if args.since is not None and args.days is not None:
        raise SystemExit("--since and --days exclude each other")
    if args.since is not None:
        since = moment_of("--since", args.since)
    else:
        days = _DEFAULT_DAYS if args.days is None else args.days
        if not 1 <= days <= _MAX_DAYS:
            raise SystemExit(f"--days must be 1 to {_MAX_DAYS} (given: {days})")
        since = datetime.now(timezone.utc) - timedelta(days=days)
    if until is not None and until <= since:
        given = "" if args.since is None else f"; given: {args.until!r} and {args.since!r}"
        raise SystemExit(f"--until must be later than --since (which is {_time(since)} UTC{given})")
    return since, until


def _time(value: datetime) -> str:
    return f"{value.astimezone(timezone.utc):%Y-%m-%d %H:%M}"
