# SPDX-License-Identifier: Apache-2.0
"""Outcomes of waits, which Airflow stores as a trigger's event until the task resumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airflow_provider_webdata.states.stored import OtherReleaseError, Stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from airflow_provider_webdata.api.errors import Verdict
    from airflow_provider_webdata.common.job_kinds import JobKind

    Via = Literal["webhook", "polling"]

OutcomeT = TypeVar("OutcomeT", bound="WaitOutcome")

Status = Literal["done", "failed", "skip", "timeout", "error"]


class WaitOutcome(Stored, frozen=True, kw_only=True):
    """The outcome of a wait.

    :param status: `done`: the task continues. `failed`: the job or check failed. `skip`: the check does not meet the
        conditions. `timeout`: the deadline passed. `error`: the wait cannot continue.
    :param message: the reason, or at a timeout the last observed state; empty if the status is self-explanatory.
    :param via: how the end was detected.
    :param verdict: of an `error`; `later`: the service refused the connection for too long, and a retry attaches to the
        job or check, which may still run.
    :param is_missing: an `error` because the service does not know what was waited for.
    :param limited_since: ISO 8601 time at which the service first asked to wait for the result.
    """

    status: Status
    message: str = ""
    via: Via | None = None
    verdict: Verdict | None = None
    is_missing: bool = False
    limited_since: str | None = None

    @classmethod
    def deserialize(cls, stored: Mapping[str, Any]) -> Self:
        """Create an outcome from a stored event.

        Fields of newer releases are ignored: in an upgrade, the triggerer comes before the worker.

        :raises OtherReleaseError: the event has no status.
        """
        known = {name: value for name, value in stored.items() if name in cls.__struct_fields__}
        if "status" not in known:
            raise OtherReleaseError("the event of the wait has no status; clear the task")
        return super().deserialize(known)


class JobOutcome(WaitOutcome, frozen=True, kw_only=True):
    """The outcome of a wait for a job.

    :param job_status: state of the job as the service reports it, if it has ended or exceeds its credit limit.
    :param over_limit: credits used by a running job that exceeds its limit; the status is `done`.
    :param most_completed: the greatest number of completed pages that a poll of this wait has shown.
    :param most_total: the same for the number of attempted pages.
    """

    kind: JobKind | None = None
    job_id: str = ""
    job_status: str | None = None
    over_limit: float | None = None
    most_completed: int = 0
    most_total: int = 0


class CheckOutcome(WaitOutcome, frozen=True, kw_only=True):
    """The outcome of a wait for a check. Without a check, as at a timeout, `check_id` and `monitor_id` are empty."""

    check_id: str = ""
    monitor_id: str = ""
    check_status: str | None = None


class DeliveryOutcome(WaitOutcome, frozen=True, kw_only=True):
    """The outcome of a wait for a delivery, which can be read by its id. Without a delivery, the id is 0."""

    delivery_id: int = 0
    event: str | None = None
    key: str | None = None
    job_id: str | None = None
    monitor_id: str | None = None
    success: bool | None = None
    received_at: str | None = None
    size: int | None = None
