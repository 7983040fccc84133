"""Runs of all checks and of the quick ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_webdata.hooks.webhooks import can_receive

from . import airflow_database, inbox_answer, installation, service_answer
from .connection_fields import ExaminedConnection, examine, webdata_connections
from .side_by_side import CheckGroup, TimeLimit, findings_of, results_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_webdata.hooks.connection import ConnectionSettings

    from .finding import Finding

SECONDS = 20.0
"""Time limit of each step: listing the connections, reading them, and running all checks."""

QUICK_SECONDS = 3.0
"""Time limit of the checks for a page."""


def findings(
    conn_ids: Sequence[str] = (), *, offline: bool = False, seconds: float = SECONDS
) -> list[Finding]:
    """Run all checks. They change nothing and cost no credits.

    A check that fails or times out is `unknown`; the other checks are unaffected.

    :param conn_ids: ids of the connections. Default: all of type `webdata` that Airflow can list.
    :param offline: whether to skip checks that send requests to the service or the inbox.
    :param seconds: time limit of each step: listing the connections, reading them, and running all checks.
    :return: the shared findings, followed by those of each connection.
    """
    general: list[Finding] = []
    wanted = list(dict.fromkeys(conn_ids))
    if not wanted:
        wanted, missing = webdata_connections(TimeLimit(seconds))
        general += [missing] if missing else []
    examined = _examined(wanted, TimeLimit(seconds))
    needed = any(one.settings and one.settings.webhook.url for one in examined)
    hosted = any(one.settings and one.settings.client.server.ends_operations for one in examined)
    groups = [
        _single("versions", installation.versions),
        _single("plugin", installation.plugin),
        _single("tables", partial(airflow_database.tables, needed=needed)),
        _single("triggerer", airflow_database.triggerer),
        _single("endings", partial(airflow_database.endings, hosted=hosted)),
    ]
    for one in examined:
        if one.settings:
            groups += _local(one.settings) if offline else _remote(one.settings, seconds)
    return _in_order(general, examined, findings_of(groups, TimeLimit(seconds)))


def quick_findings(conn_id: str, *, seconds: float = QUICK_SECONDS) -> list[Finding]:
    """Run the quick checks of one connection, for a page. Blocks: call it in a thread.

    These are plugin, tables, triggerer, fields, webhook (configuration only), deliveries, host, tls, key, credits, and
    clock.

    :param seconds: time limit of all checks together.
    :return: the shared findings, followed by those of the connection.
    """
    limit = TimeLimit(seconds)
    examined = _examined([conn_id], limit)
    settings = examined[0].settings
    needed = bool(settings and settings.webhook.url)
    groups = [
        _single("plugin", installation.plugin),
        _single("tables", partial(airflow_database.tables, needed=needed)),
        _single("triggerer", airflow_database.triggerer),
    ]
    if settings:
        groups.append(_service(settings, limit.left(), service_answer.QUICK_CHECKS))
        groups += _local(settings)
    return _in_order([], examined, findings_of(groups, limit))


def _examined(conn_ids: Sequence[str], limit: TimeLimit) -> list[ExaminedConnection]:
    results = results_of([partial(examine, conn_id) for conn_id in conn_ids], limit)
    examined = []
    for conn_id, result in zip(conn_ids, results, strict=True):
        if isinstance(result, Exception):
            group = CheckGroup(("fields",), list, conn_id)
            result = ExaminedConnection(conn_id, group.unknown(result)[0])
        examined.append(result)
    return examined


def _single(name: str, check: Callable[[], Finding], conn_id: str | None = None) -> CheckGroup:
    return CheckGroup((name,), lambda: [check()], conn_id)


def _local(settings: ConnectionSettings) -> list[CheckGroup]:
    conn_id = settings.conn_id
    return [
        _single("webhook", partial(inbox_answer.webhook_set, settings), conn_id),
        _last_delivery(settings),
    ]


def _remote(settings: ConnectionSettings, seconds: float) -> list[CheckGroup]:
    conn_id = settings.conn_id
    return [
        _service(settings, seconds, service_answer.CHECKS),
        _single("webhook", partial(inbox_answer.webhook, settings, seconds), conn_id),
        _last_delivery(settings),
        _single("reader", partial(inbox_answer.reader, settings), conn_id),
    ]


def _last_delivery(settings: ConnectionSettings) -> CheckGroup:
    receives = can_receive(settings)
    check = partial(airflow_database.last_delivery, settings.conn_id, receives=receives)
    return _single("deliveries", check, settings.conn_id)


def _service(settings: ConnectionSettings, seconds: float, names: tuple[str, ...]) -> CheckGroup:
    def run() -> list[Finding]:
        answer = service_answer.ask_service(settings, seconds, with_queue="entitlements" in names)
        return [finding for finding in answer.findings() if finding.check in names]

    return CheckGroup(names, run, settings.conn_id)


def _in_order(
    general: list[Finding], examined: Sequence[ExaminedConnection], made: list[Finding]
) -> list[Finding]:
    """Return all findings grouped by connection, with all secrets removed."""
    ordered = [*(finding for finding in made if finding.conn_id is None), *general]
    for one in examined:
        ordered += [one.finding, *(finding for finding in made if finding.conn_id == one.conn_id)]
    secrets = [secret for one in examined if one.settings for secret in one.settings.secrets()]
    return [finding.without(secrets) for finding in ordered]
