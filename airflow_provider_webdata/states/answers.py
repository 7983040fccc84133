# SPDX-License-Identifier: Apache-2.0
"""Verdict on an answer of the service during a wait.

An error that no retry can fix ends a task, as long as nothing is billed. During a wait, it is an outage: a rotated key,
a connection that is being edited, or a lack of credits says nothing about the job or check, which runs and is billed.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from airflow_provider_webdata.api.errors import (
    EnvironmentVariableError,
    InvalidRequestError,
    NotFoundError,
    TransportError,
    UnsupportedError,
)
from airflow_provider_webdata.common.coded_errors import CodedError

Ruling = Literal["go on", "warn", "end"]

OUTAGE_SECONDS = 600.0
"""Seconds for which refusals do not end a wait for something that is billed."""


_NOTHING_RUNS = (InvalidRequestError, UnsupportedError)
"""Errors after which nothing can run: no job has an invalid id, and a server runs nothing that it lacks."""


def is_refusal(error: BaseException | None) -> bool:
    """Return whether no retry of the same call can succeed, unless the connection or the service's rights change.

    An unknown host or certificate is an outage like any other. A missing object is no refusal: the service reads from a
    replica.
    """
    if not isinstance(error, CodedError) or isinstance(error, (NotFoundError, TransportError)):
        return False
    # An error without a verdict is one of the connection or of an argument.
    return getattr(error, "verdict", "never") == "never"


def is_survived(error: BaseException | None) -> bool:
    """Return whether what is billed runs on after a refusal, so that a retry can wait for it again."""
    return is_refusal(error) and not _shows_that_nothing_runs(error)


def _shows_that_nothing_runs(error: BaseException | None) -> bool:
    # A firewall may answer 405 for a moment.
    return (
        isinstance(error, _NOTHING_RUNS) and getattr(error, "status", None) != HTTPStatus.METHOD_NOT_ALLOWED
    )


def ruling(error: BaseException | None, refused_for: float | None, *, bills: bool) -> Ruling:
    """Return what a wait does about an answer.

    :param error: the failure of a poll, or of reading the connection; None: a good answer.
    :param refused_for: seconds since the first refusal after the last good answer; None: there was none.
    :param bills: whether something runs, or has ended, that is billed, and whose result a new start would bill again.
    """
    if not is_refusal(error):
        return "go on"
    if not bills or _shows_that_nothing_runs(error):
        return "end"
    if isinstance(error, EnvironmentVariableError):
        # It lasts until this process ends; a retry may run in another one.
        return "end"
    if refused_for is None:
        return "warn"
    return "end" if refused_for >= OUTAGE_SECONDS else "go on"


def judged(
    error: BaseException | None, since: float | None, now: float, *, bills: bool
) -> tuple[Ruling, float | None]:
    """Return the ruling on an answer, and the time of the first refusal after the last good answer.

    :param since: the time before this answer; None: no refusal.
    :param now: the time, on the same clock, in seconds.
    """
    found = ruling(error, None if since is None else now - since, bills=bills)
    if error is None:
        since = None
    elif found == "warn":
        since = now
    return found, since
