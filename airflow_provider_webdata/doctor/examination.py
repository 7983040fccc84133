"""Runs of all checks and of the quick ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

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

Mode = Literal["all", "offline", "page"]
"""`offline` sends no request to the service and the inbox; `page` is quick, and sends one to the service."""

SubjectT = TypeVar("SubjectT")


class Examined(NamedTuple):
    """A valid connection, and the seconds in which a check must end."""

    settings: ConnectionSettings
    seconds: float


@dataclass(frozen=True)
class Check(Generic[SubjectT]):
    """A check, or several that share one request.

    :param names: names of the findings, in their order.
    :param run: returns the findings.
    :param modes: the modes in which it runs.
    """

    names: tuple[str, ...]
    run: Callable[[SubjectT], Finding | Sequence[Finding]]
    modes: tuple[Mode, ...] = ("all", "offline", "page")


OF_AIRFLOW: tuple[Check[Sequence[ConnectionSettings]], ...] = (
    Check(("versions",), lambda _: installation.versions(), ("all", "offline")),
    Check(("plugin",), lambda _: installation.plugin()),
    Check(("tables",), lambda valid: airflow_database.tables(needed=any(one.webhook.url for one in valid))),
    Check(("triggerer",), lambda _: airflow_database.triggerer()),
)
OF_CONNECTION: tuple[Check[Examined], ...] = (
    Check(service_answer.CHECKS, lambda one: service_answer.ask(*one), ("all", "page")),
    Check(("webhook",), lambda one: inbox_answer.webhook(*one), ("all",)),
    Check(("webhook",), lambda one: inbox_answer.webhook_set(one.settings), ("offline", "page")),
    Check(("deliveries",), lambda one: airflow_database.last_delivery(one.settings), ("all", "offline")),
    # The visitor of a page may not be permitted to read the DAGs of a connection's monitors.
    Check(("deliveries",), lambda one: airflow_database.last_delivery(one.settings, names=False), ("page",)),
    Check(("reader",), lambda one: inbox_answer.reader(one.settings), ("all",)),
)


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
    return _findings(examined, "offline" if offline else "all", seconds, TimeLimit(seconds), general)


def quick_findings(conn_id: str, *, seconds: float = QUICK_SECONDS) -> list[Finding]:
    """Run the quick checks of one connection, for a page. Blocks: call it in a thread.

    :param seconds: time limit of all checks together.
    :return: the shared findings, followed by those of the connection.
    """
    limit = TimeLimit(seconds)
    return _findings(_examined([conn_id], limit), "page", limit.left(), limit)


def _examined(conn_ids: Sequence[str], limit: TimeLimit) -> list[ExaminedConnection]:
    results = results_of([partial(examine, conn_id) for conn_id in conn_ids], limit)
    examined = []
    for conn_id, result in zip(conn_ids, results, strict=True):
        if isinstance(result, Exception):
            group = CheckGroup(("fields",), list, conn_id)
            result = ExaminedConnection(conn_id, group.unknown(result)[0])
        examined.append(result)
    return examined


def _findings(
    examined: Sequence[ExaminedConnection],
    mode: Mode,
    seconds: float,
    limit: TimeLimit,
    general: Sequence[Finding] = (),
) -> list[Finding]:
    """Return all findings grouped by connection, with all secrets removed."""
    valid = [one.settings for one in examined if one.settings]
    groups = [
        CheckGroup(check.names, partial(check.run, valid)) for check in OF_AIRFLOW if mode in check.modes
    ]
    groups += [
        CheckGroup(check.names, partial(check.run, Examined(settings, seconds)), settings.conn_id)
        for settings in valid
        for check in OF_CONNECTION
        if mode in check.modes
    ]
    made = findings_of(groups, limit)
    ordered = [*(finding for finding in made if finding.conn_id is None), *general]
    for one in examined:
        ordered += [one.finding, *(finding for finding in made if finding.conn_id == one.conn_id)]
    secrets = [secret for settings in valid for secret in settings.secrets()]
    return [finding.without(secrets) for finding in ordered]
