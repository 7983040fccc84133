# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata init`: prompts for a connection, tests and stores it, and writes an example DAG.

It stores nothing until the key works.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import secrets
import socket
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow.configuration import AIRFLOW_CONFIG
from msgspec.structs import replace

from airflow_provider_webdata.airflow_db import connections
from airflow_provider_webdata.airflow_db.connections import Connection
from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.api.servers import UNKNOWN, is_hosted_service, private_webhook_note
from airflow_provider_webdata.commands.command import command
from airflow_provider_webdata.commands.example import ExampleDag, example_for, local_dag_folder
from airflow_provider_webdata.commands.terminal import is_terminal, terminal_lines
from airflow_provider_webdata.common.hosts import is_loopback, url_host
from airflow_provider_webdata.get_provider_info import HOSTED_URL
from airflow_provider_webdata.hooks.connection import settings_of
from airflow_provider_webdata.hooks.probe import probe
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webhooks import inbox_error
from airflow_provider_webdata.inbox.reader import InboxRefusedError
from airflow_provider_webdata.inbox.wire import delivery_url

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator, Iterator

    from airflow_provider_webdata.api.servers import Kind

_KEY_VARIABLE = "WEBDATA_API_KEY"
_SECRET_BYTES = 32
_PORTS = {"http": 80, "https": 443}
_START_SECONDS = 10.0
"""Time for a server on this machine to start."""


@command("{}\nNothing was stored.", audited=True)
def init(args: argparse.Namespace) -> Iterator[str]:
    """Prompt for a connection, test it, store it, and write the example DAG.

    :param args: conn_id, base_url, server, webhook_url, skip_test, no_example, force.
    """
    connection = _existing(args.conn_id, replace=args.force)
    is_new = connection.id is None
    try:
        former = _webhook_url(connection)
        is_assumed = _ask_for_service(connection, args)
        found = None if args.skip_test else (yield from _tested(connection, args.server, is_assumed))
        _ask_for_webhooks(connection, args.webhook_url, former)
    except (KeyboardInterrupt, EOFError):
        raise SystemExit("\nCancelled; nothing was stored.") from None
    example = None
    if not args.no_example:
        runnable = example_for(settings_of(connection).client, untested=args.skip_test)
        example = ExampleDag(local_dag_folder(), args.conn_id, runnable)
        example.check(replace=args.force)
    with example.written() if example else contextlib.nullcontext("") as written:
        connections.store(connection)

    if found is not None:
        yield found
    yield f"Connection {args.conn_id!r} was {'created' if is_new else 'updated'}: {_address(connection)}."
    if example:
        yield from example.lines(written)
    yield from _about_webhooks(connection)
    yield "Check the installation: airflow webdata doctor"


def _existing(conn_id: str, *, replace: bool) -> Connection:
    """Return the stored connection with this id, or a new one that is not stored yet.

    :param replace: accept an existing connection.
    :raises ConfigurationError: the connection cannot be created or updated; the message says what to do instead.
    """
    new = Connection(conn_id=conn_id, conn_type=WebDataHook.conn_type)
    if new.conn_id != conn_id:
        raise ConfigurationError(
            f"--conn-id is {conn_id!r}; an id has at most 250 letters, digits, and the characters _ # ! ( ) - . : / \\"
        )
    if backend := connections.backend_with(conn_id):
        raise ConfigurationError(
            f"connection {conn_id!r} comes from {backend}, which takes precedence over Airflow's database; remove it "
            "there, or choose another id with --conn-id"
        )
    found = connections.stored_connection(conn_id)
    if found is None:
        return new
    if found.conn_type != WebDataHook.conn_type:
        raise ConfigurationError(
            f"connection {conn_id!r} is of type {found.conn_type!r}; choose another id with --conn-id"
        )
    if not replace:
        raise ConfigurationError(
            f"connection {conn_id!r} exists; --force updates its address and key and keeps its other fields, "
            "--conn-id creates another one"
        )
    return found


def _ask_for_service(connection: Connection, args: argparse.Namespace) -> bool:
    """Set address, key, and server of a connection without a webhook URL, and a webhook secret if it has none.

    Its other fields are unchanged. Return whether the kind of server is only assumed, until the test shows it.

    :raises ConfigurationError: a field is missing or invalid; the message names it.
    """
    base_url, server = args.base_url, args.server
    if base_url is None:
        default = _address(connection) or (HOSTED_URL if is_terminal() else None)
        base_url = _asked("Base URL", "--base-url", default)
    key = _api_key(connection.password, required=is_hosted_service(base_url))
    extra = {
        # Keep an existing secret: the webhooks of monitors contain it.
        "webhook_secret": secrets.token_hex(_SECRET_BYTES),
        **connection.extra_dejson,
        # The kind of server, which is not known yet, decides which address is valid.
        "webhook_url": "",
    }
    is_assumed = server is None and not key and not extra.get("server")
    if is_assumed:
        if args.skip_test:
            raise ConfigurationError(
                "a server without an API key needs its kind: add --server self-hosted if it bills no calls, else "
                "--server gateway"
            )
        # Of the kinds without a key, the one whose calls are billed.
        server = "gateway"
    if server is not None:
        extra["server"] = server
    connection.host, connection.schema, connection.port = base_url, None, None
    connection.password = key
    connection.extra = json.dumps({name: value for name, value in extra.items() if value != ""})
    parts = urlsplit(settings_of(connection).client.base_url)
    # Separate, because the form tests no connection without a port: docs/contributing/upstream/form_without_port.md
    connection.port = parts.port or _PORTS[parts.scheme]
    connection.host = parts._replace(netloc=parts.netloc.removesuffix(f":{connection.port}")).geturl()
    return is_assumed


def _ask_for_webhooks(connection: Connection, given: str | None, former: str) -> None:
    """Set the webhook URL of a connection whose server is known.

    :param given: the URL if it was passed as an argument.
    :param former: the default at the prompt.
    :raises ConfigurationError: the URL is invalid for this kind of server.
    """
    if given is None:
        accepts_any = settings_of(connection).client.server.allows_plain_webhooks
        what = "Address at which the server reaches" if accepts_any else "Public https address of"
        given = _asked(f"{what} this Airflow, for webhooks (optional)", "--webhook-url", former)
    if given:
        connection.extra = json.dumps({**connection.extra_dejson, "webhook_url": given})
        settings_of(connection)


def _tested(connection: Connection, given: Kind | None, is_assumed: bool) -> Generator[str, None, str]:
    """Test the connection, set the kind of its server unless it is given, and return what was found.

    :param is_assumed: the connection has no key, and its kind of server is not declared.
    :raises ConfigurationError: a hosted server needs a key, which is missing.
    :raises SystemExit: the connection does not work.
    """
    settings = settings_of(connection)
    yield f"Testing {settings.client.base_url} ..."
    if is_loopback(url_host(settings.client.base_url)):
        _await_start(settings.client.base_url)
    found = probe(settings.client)
    if is_assumed:
        found = replace(found, server=UNKNOWN)
    before = None if is_assumed else settings.client.declared
    is_new_kind = found.kind is not None and (before is None or found.contradiction is not None)
    if given is None and is_new_kind and not is_hosted_service(settings.client.base_url):
        if before is not None:
            yield f"The server is {found.kind}, not {before}. The connection was changed."
        connection.extra = json.dumps({**connection.extra_dejson, "server": found.kind})
        if not connection.password and found.kind == "hosted":
            raise ConfigurationError(
                "the server reports a balance, so it bills calls and needs an API key; enter one, or add --server "
                "gateway if a gateway adds the key"
            )
        found = replace(found, server=settings_of(connection).client.server)
    works, finding = found.message()
    if given is not None and found.contradiction:
        # The user insists.
        return f"Warning: {finding}"
    if works and is_assumed and found.kind is None:
        works, finding = False, f"{finding} Repeat the command with --server."
    if not works:
        raise SystemExit(f"{terminal_lines(finding)}\nNothing was stored.")
    return finding


def _await_start(base_url: str) -> None:
    """Wait until a server accepts connections: the command before this one may have started it."""
    parts = urlsplit(base_url)
    address = (parts.hostname or "", parts.port or _PORTS[parts.scheme])
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(address, timeout=1):
            return
        time.sleep(0.2)


def _asked(what: str, flag: str, default: str | None) -> str:
    """Return the input from the terminal; the default if it is empty or there is no terminal."""
    if not is_terminal():
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
    if not key and is_terminal():
        hint = "not shown"
        if stored:
            hint += "; leave empty to keep the current one"
        elif not required:
            hint += "; leave empty if the server requires none"
        key = getpass.getpass(f"API key ({hint}): ") or stored or ""
    elif not key:
        key = sys.stdin.readline() if sys.stdin is not None else ""
    if required and not key.strip():
        raise ConfigurationError(
            f"the API key is missing; enter it at the prompt, write it to standard input, or set {_KEY_VARIABLE}"
        )
    return key.strip()


def _address(connection: Connection) -> str | None:
    """Return the base URL of a connection; None if it is missing or invalid."""
    try:
        return settings_of(connection).client.base_url
    except ConfigurationError:
        return None


def _webhook_url(connection: Connection) -> str:
    return str(connection.extra_dejson.get("webhook_url") or "")


def _about_webhooks(connection: Connection) -> Iterator[str]:
    url = _webhook_url(connection)
    yield "Webhooks: the connection has a webhook secret."
    if url:
        yield (
            f"  The service delivers to {delivery_url(url, connection.conn_id)}/...: forward only POST requests for "
            "that path to this Airflow's API server."
        )
        settings = settings_of(connection)
        if note := private_webhook_note(settings.client.server, url):
            yield f"  {note}."
        error = inbox_error(settings)
        if error is not None:
            yield f"  Tasks wait by polling for now: {error.brief()}."
        if error is not None and not isinstance(error, InboxRefusedError):
            yield (
                f"  Set `inbox = True` in section [webdata] of {AIRFLOW_CONFIG}, or AIRFLOW__WEBDATA__INBOX=True, for "
                "all of Airflow's components. Then run `airflow db migrate`, and restart the API server."
            )
    else:
        yield (
            "  Without a webhook URL, tasks wait by polling. If the service can reach this Airflow, turn on the inbox "
            f"and set its address: airflow webdata init --conn-id {connection.conn_id} --force --no-example "
            "--webhook-url URL"
        )
