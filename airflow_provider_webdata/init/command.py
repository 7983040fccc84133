"""The command. It stores nothing until the key works."""

from __future__ import annotations

import contextlib
import getpass
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.configuration import conf
from msgspec.structs import replace

from airflow_provider_webdata.airflow_db.command_line import (
    action_cli,
    providers_configuration_loaded,
    suppress_logs_and_warning,
)
from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.api.servers import is_hosted_service
from airflow_provider_webdata.doctor.airflow_database import tables
from airflow_provider_webdata.get_provider_info import HOSTED_URL
from airflow_provider_webdata.hooks.connection import settings_of
from airflow_provider_webdata.hooks.probe import probe
from airflow_provider_webdata.inbox.wire import delivery_url
from airflow_provider_webdata.init.connection import address, existing, fill_in, set_server, store
from airflow_provider_webdata.init.example import DAG_ID, ExampleDag

if TYPE_CHECKING:
    import argparse

    from airflow_provider_webdata.airflow_db.connections import Connection
    from airflow_provider_webdata.api.servers import Kind

_KEY_VARIABLE = "WEBDATA_API_KEY"


@action_cli  # type: ignore[untyped-decorator]
@suppress_logs_and_warning
@providers_configuration_loaded
def init(args: argparse.Namespace) -> None:
    """Prompt for a connection, test it, store it, and write the example DAG.

    :param args: conn_id, base_url, server, webhook_url, skip_test, dags_folder, no_example, force.
    """
    try:
        _init(args)
    except ConfigurationError as error:
        raise SystemExit(f"{error}\nNothing was stored.") from None
    except (KeyboardInterrupt, EOFError):
        raise SystemExit("\nCancelled; nothing was stored.") from None


def _init(args: argparse.Namespace) -> None:
    connection = existing(args.conn_id, replace=args.force)
    is_new = connection.id is None
    example = None
    if not args.no_example:
        folder = args.dags_folder or conf.get_mandatory_value("core", "dags_folder")
        example = ExampleDag(Path(folder).expanduser(), args.conn_id)
        example.check(replace=args.force)

    _ask_and_fill_in(connection, args)
    found = None if args.skip_test else _tested(connection, args.server)
    _store(connection, example)

    if found is not None:
        _say(found)
    _say(f"Connection {args.conn_id!r} was {'created' if is_new else 'updated'}: {address(connection)}.")
    if example:
        _say(f"Example DAG: {example.path}\n  Run it once: airflow dags test {DAG_ID}")
    _say(_about_webhooks(connection))
    _say("Check the installation: airflow webdata doctor")


def _ask_and_fill_in(connection: Connection, args: argparse.Namespace) -> None:
    stored_webhook_url = str(connection.extra_dejson.get("webhook_url") or "")
    base_url = args.base_url
    if base_url is None:
        default = address(connection) or (HOSTED_URL if sys.stdin.isatty() else None)
        base_url = _asked("Base URL", "--base-url", default)
    key = _api_key(connection.password, required=is_hosted_service(base_url))
    webhook_url = args.webhook_url
    if webhook_url is None:
        question = "Public https address of this Airflow, for webhooks (optional)"
        webhook_url = _asked(question, "--webhook-url", stored_webhook_url)
    fill_in(connection, base_url, key, webhook_url, args.server)


def _tested(connection: Connection, given: Kind | None) -> str:
    """Test the connection, set the kind of its server unless it is given, and return what was found."""
    settings = settings_of(connection)
    _say(f"Testing {settings.client.base_url} ...")
    found = probe(settings.client)
    if given is None and found.kind is not None and not is_hosted_service(settings.client.base_url):
        if (before := settings.client.declared) not in (None, found.kind) and connection.password:
            _say(f"The server is {found.kind}, not {before}. The connection was changed.")
        set_server(connection, found.kind)
        found = replace(found, server=settings_of(connection).client.server)
    works, finding = found.message()
    if given is not None and found.contradiction:
        # The user insists.
        return f"Warning: {finding}"
    if not works:
        raise SystemExit(f"{finding}\nNothing was stored.")
    return finding


def _asked(what: str, flag: str, default: str | None) -> str:
    """Return the input from the terminal; the default if it is empty or there is no terminal."""
    if not sys.stdin.isatty():
        if default is None:
            raise ConfigurationError(
                f"{flag} is missing, and standard input is not a terminal; specify {flag}"
            )
        return default
    entered = input(f"{what} [{default}]: " if default else f"{what}: ").strip()
    return entered or default or ""


def _api_key(stored: str | None, *, required: bool) -> str:
    """Return the key from the environment, the terminal, or the first line of standard input. It is never shown.

    :param stored: the stored key, kept if the input at the terminal is empty.
    :param required: whether the server is known to require a key.
    """
    key = os.environ.get(_KEY_VARIABLE, "")
    if not key and sys.stdin.isatty():
        hint = "not shown"
        if stored:
            hint += "; leave empty to keep the current one"
        elif not required:
            hint += "; leave empty if the server requires none"
        key = getpass.getpass(f"API key ({hint}): ") or stored or ""
    elif not key:
        key = sys.stdin.readline()
    if required and not key.strip():
        raise ConfigurationError(
            f"the API key is missing; enter it at the prompt, write it to standard input, or set {_KEY_VARIABLE}"
        )
    return key.strip()


def _store(connection: Connection, example: ExampleDag | None) -> None:
    """Store the connection and the DAG, or neither."""
    with contextlib.ExitStack() as undo:
        part = example.write_part() if example else None
        if part:
            undo.callback(part.unlink, missing_ok=True)
        store(connection)
        if example and part:
            part.replace(example.path)


def _about_webhooks(connection: Connection) -> str:
    url = str(connection.extra_dejson.get("webhook_url") or "")
    lines = ["Webhooks: the connection has a webhook secret."]
    inbox_tables = tables(needed=bool(url))
    if inbox_tables.advice:
        lines.append(f"  The inbox's tables: {inbox_tables.seen}. {inbox_tables.advice}")
    if url:
        lines.append(
            f"  The service delivers to {delivery_url(url, connection.conn_id)}/...: forward only POST requests for "
            "that path to this Airflow's API server."
        )
    else:
        lines.append(
            "  Without a webhook URL, tasks wait by polling. If the service can reach this Airflow, set its public "
            "https address: airflow webdata init --force --webhook-url https://..."
        )
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
