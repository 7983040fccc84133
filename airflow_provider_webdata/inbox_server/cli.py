"""`airflow webdata inbox list | show | replay | prune`: direct database access, without HTTP."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from airflow_provider_webdata.airflow_db.command_line import (
    AirflowConsole,
    action_cli,
    providers_configuration_loaded,
    suppress_logs_and_warning,
    yaml,
)
from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.inbox.envelope import NotJSONError, parse_body
from airflow_provider_webdata.inbox_server.options import retention_days
from airflow_provider_webdata.inbox_server.storage.errors import DeliveryNotFoundError, OptionError
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.inbox_server.storage.retention import prune_all
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery

_AGE = re.compile(r"(\d+)\s*([dhm])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


@suppress_logs_and_warning
@providers_configuration_loaded
def list_deliveries(args: argparse.Namespace) -> None:
    """List deliveries, newest first."""
    wanted = DeliveryFilter(
        keys=(args.key,) if args.key else (),
        job_ids=(args.job_id,) if args.job_id else (),
        monitor_ids=(args.monitor_id,) if args.monitor_id else (),
        page_urls=(args.page_url,) if args.page_url else (),
        events=tuple(args.event),
    )
    if args.limit < 1:
        raise SystemExit(f"--limit must be 1 or more (given: {args.limit})")
    with _store() as store:
        found = store.newest(args.conn_id, wanted, args.limit)
    AirflowConsole().print_as([_shown(_fields(one), args.output) for one in found], args.output)


@suppress_logs_and_warning
@providers_configuration_loaded
def show_delivery(args: argparse.Namespace) -> None:
    """Show one delivery with its body."""
    with _store() as store:
        delivery = store.get(None, args.id)
    if delivery is None:
        raise SystemExit(
            f"Delivery {args.id} does not exist. `airflow webdata inbox list` shows the deliveries"
        )
    fields = _fields(delivery)
    try:
        body = parse_body(delivery.body or b"")
    except NotJSONError:
        body = None
    if args.output == "json":
        _write(json.dumps({**fields, "body": body}, indent=2))
    elif args.output == "yaml":
        _write(yaml.dump({**fields, "body": body}))
    else:
        rows = [{"field": name, "value": value} for name, value in fields.items()]
        AirflowConsole().print_as([_shown(row, args.output) for row in rows], args.output)
        _write(json.dumps(body, indent=2))


@action_cli  # type: ignore[untyped-decorator]
@suppress_logs_and_warning
@providers_configuration_loaded
def replay_deliveries(args: argparse.Namespace) -> None:
    """Publish deliveries again."""
    with _store() as store:
        try:
            copies = store.replay(args.id)
        except DeliveryNotFoundError as error:
            raise SystemExit(f"{error}; no delivery was replayed") from None
    for original, copy in copies.items():
        _write(f"Replayed delivery {original} as {copy}")


@action_cli  # type: ignore[untyped-decorator]
@suppress_logs_and_warning
@providers_configuration_loaded
def prune_deliveries(args: argparse.Namespace) -> None:
    """Delete old deliveries."""
    age = _age(args.older_than)
    before = datetime.now(timezone.utc) - age
    since = before.isoformat(timespec="seconds")
    with _store() as store:
        count = store.count_before(before)
        if args.dry_run or not count:
            _write(f"{count} deliveries were received before {since}; no delivery was deleted")
            return
        question = f"Delete {count} deliveries that were received before {since}? (y/n) "
        if not args.yes and input(question).strip().lower() != "y":
            raise SystemExit("Cancelled")
        _write(f"Deleted {prune_all(store, before)} deliveries")


@contextlib.contextmanager
def _store() -> Iterator[DeliveryStore]:
    try:
        yield DeliveryStore(airflow_engine())
    except StoreUnavailableError as error:
        raise SystemExit(f"The inbox is unavailable: {error}") from None


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


def _fields(delivery: StoredDelivery) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "conn_id": delivery.conn_id,
        "event": delivery.event,
        "success": delivery.success,
        "job_id": delivery.job_id,
        "monitor_id": delivery.monitor_id,
        "key": delivery.key,
        "received_at": delivery.received_at.isoformat(timespec="seconds"),
        "size": delivery.size,
        "replay_of": delivery.replay_of,
    }


def _shown(row: dict[str, Any], output: str) -> dict[str, Any]:
    """Return a table row, with brackets escaped so that they are not parsed as markup."""
    if output != "table":
        return row
    return {name: escape(value) if isinstance(value, str) else value for name, value in row.items()}


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
