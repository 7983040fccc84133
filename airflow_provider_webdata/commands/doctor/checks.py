# SPDX-License-Identifier: Apache-2.0
"""The list of all checks, and their run."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_webdata.common.coded_errors import CodedError, brief
from airflow_provider_webdata.common.logs import logger

from . import airflow_database, declared_monitors, inbox_answer, installation, service_answer
from .connection_fields import examine, webdata_connections
from .finding import Finding, skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .connection_fields import ExaminedConnection

log = logger(__name__)

SECONDS = 60.0
"""Time limit of all checks together. A check that has begun ends by its own timeouts."""

REQUEST_SECONDS = 20.0
"""Time limit of a check that sends requests."""


@dataclass(frozen=True)
class Check:
    """A check, or several that share one request. Without `conn_id`, it concerns all connections.

    :param names: names of the findings, in their order.
    :param run: returns the findings; its parameter is the number of seconds in which it must end.
    """

    names: tuple[str, ...]
    run: Callable[[float], Finding | Sequence[Finding]]
    conn_id: str | None = None


def findings(
    conn_ids: Sequence[str] = (), *, offline: bool = False, seconds: float = SECONDS
) -> Iterator[Finding]:
    """Run all checks one after another, and yield their findings: the shared ones, then those of each connection.

    The checks change nothing and cost no credits. A check that raises an error is skipped, and so are all that are left
    when the time limit is reached.

    :param conn_ids: ids of the connections. Default: all of type `webdata` that Airflow can list.
    :param offline: whether to omit checks that send requests to the service or the inbox.
    :param seconds: time limit of all checks together.
    """
    end = time.monotonic() + seconds
    wanted, incomplete = [*dict.fromkeys(conn_ids)], None
    if not wanted:
        wanted, incomplete = webdata_connections()
    examined = [examine(conn_id) for conn_id in wanted]
    secrets = [secret for one in examined if one.settings for secret in one.settings.secrets()]
    for check in _checks(examined, incomplete, offline=offline):
        left = end - time.monotonic()
        if left > 0:
            found = _run(check, min(left, REQUEST_SECONDS))
        else:
            found = [skipped(f"not run: all checks together took longer than {seconds:g} s")] * len(
                check.names
            )
        for name, finding in zip(check.names, found, strict=True):
            yield replace(finding, check=name, conn_id=check.conn_id).without(secrets)


def _checks(
    examined: Sequence[ExaminedConnection], incomplete: Finding | None, *, offline: bool
) -> Iterator[Check]:
    yield Check(("versions",), lambda _: installation.versions())
    yield Check(("plugin",), lambda _: installation.plugin())
    yield Check(("tables",), lambda _: airflow_database.tables())
    yield Check(("triggerer",), lambda _: airflow_database.triggerer())
    if incomplete is not None:
        yield Check(("connections",), lambda _: incomplete)
    for one in examined:
        yield from _checks_of(one, offline=offline)


def _checks_of(examined: ExaminedConnection, *, offline: bool) -> Iterator[Check]:
    conn_id, settings = examined.conn_id, examined.settings
    yield Check(("fields",), lambda _: examined.finding, conn_id)
    if settings is None:
        return
    if offline:
        yield Check(("webhook",), lambda _: inbox_answer.webhook_set(settings), conn_id)
    else:
        yield Check(service_answer.CHECKS, lambda seconds: service_answer.ask(settings, seconds), conn_id)
        yield Check(("inbox",), lambda _: inbox_answer.inbox(settings), conn_id)
        yield Check(("webhook",), lambda seconds: inbox_answer.webhook(settings, seconds), conn_id)
        yield Check(("monitors",), lambda seconds: declared_monitors.monitors(settings, seconds), conn_id)
    yield Check(("deliveries",), lambda _: airflow_database.last_delivery(settings), conn_id)


def _run(check: Check, seconds: float) -> Sequence[Finding]:
    try:
        found = check.run(seconds)
    except Exception as error:
        log.debug("A check failed", exc_info=True)
        # The text of other errors may contain an SQL statement with its values.
        is_safe = isinstance(error, CodedError)
        seen = brief(error) if is_safe else f"the check itself failed ({type(error).__name__})"
        return [skipped(seen)] * len(check.names)
    return [found] if isinstance(found, Finding) else found
