"""Messages of the poller and its lookups to the waits for a monitor's checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_webdata.api.models import MonitorCheck


@dataclass(frozen=True)
class CheckSnapshot:
    """Checks of one monitor as the service shows them now.

    :param checks: in any order; the same list for all waits.
    """

    checks: list[MonitorCheck]


@dataclass(frozen=True)
class Unconfirmed:
    """The service does not show a check as over.

    :param check_id: the check's UUID.
    :param reason: what it says instead, or why it could not be asked.
    :param missing: whether it does not know the check.
    """

    check_id: str
    reason: str
    missing: bool = False


@dataclass(frozen=True)
class CheckJudgment:
    """Whether a check has a page whose change was judged meaningful.

    :param check_id: the check's UUID.
    :param meaningful: whether it has.
    """

    check_id: str
    meaningful: bool
