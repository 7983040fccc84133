# SPDX-License-Identifier: Apache-2.0
"""Base class of targets, and messages about waits."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple

import pendulum
from msgspec.structs import replace

from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.states import answers
from airflow_provider_webdata.states.outcomes import OutcomeT
from airflow_provider_webdata.waiting.mailbox import Notice, WaitFailedError

if TYPE_CHECKING:
    from airflow_provider_webdata.api.errors import Verdict
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.states.answers import Ruling
    from airflow_provider_webdata.states.outcomes import Status
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.subjects import Subject, SubjectKey
    from airflow_provider_webdata.waiting.subscriptions import Subscription


class Look(NamedTuple):
    """A request to poll now.

    :param hint: id of the job or check that has ended according to a delivery, or None.
    """

    hint: str | None = None


class Judge(NamedTuple):
    """A request to read whether a check has a change that was judged meaningful."""

    check_id: str


class Judgment(NamedTuple):
    """The result of `Judge`."""

    check_id: str
    is_meaningful: bool


class Target(ABC, Generic[OutcomeT]):
    """A job, check, or delivery to wait for. It evaluates the findings of its sources, and can request more."""

    __slots__ = ("log", "mailbox", "refused_since", "subscriptions")

    outcome_class: type[OutcomeT]
    """The class of the wait's outcome."""

    subject_class: type[Subject]
    """The class of the polled subject; not set if the service is not polled."""

    bills: ClassVar[bool] = True
    """Whether something that is billed runs; see `states.answers`."""

    def __init__(self, log: Any) -> None:
        self.log = log
        self.mailbox: Mailbox
        self.subscriptions: tuple[Subscription, ...] = ()
        self.refused_since: float | None = None

    @abstractmethod
    def __str__(self) -> str:
        """Return the target's name in messages."""

    @property
    def key(self) -> SubjectKey:
        """The key of the polled subject; empty strings if the service is not polled."""
        return "", ""

    @property
    def is_polled(self) -> bool:
        """Whether the service is polled for this target."""
        return bool(self.key[0])

    @abstractmethod
    def begin(self, settings: ConnectionSettings, *, listens: bool) -> tuple[str, tuple[Subscription, ...]]:
        """Return how the end is detected, as text, and the deliveries to subscribe to.

        :param listens: whether deliveries to the connection are read.
        :raises ConfigurationError: the connection has no webhook to wait for.
        """

    @abstractmethod
    def receive(self, item: Any) -> Look | None:
        """Process a finding of a source."""

    @abstractmethod
    def decide(self) -> Any:
        """Return the finding that ends the wait, a `Look` or `Judge` request for more information, or None."""

    @abstractmethod
    def outcome(self, found: Any) -> OutcomeT:
        """Return the outcome of the wait for a finding from `decide`."""

    def unfinished(self, status: Status, message: str, failure: WaitFailedError | None = None) -> OutcomeT:
        """Return the outcome of a wait that ends without a finding.

        :param failure: of an `error`.
        """
        outcome = self.outcome_class(status=status, message=message)
        if failure is None:
            return outcome
        return replace(outcome, verdict=failure.verdict, is_missing=failure.is_missing)

    def ruling(self, error: BaseException | None) -> Ruling:
        """Return what this wait does about an answer, or about a failed lookup of the connection.

        :param error: None: a good answer.
        """
        found, self.refused_since = answers.judged(
            error, self.refused_since, time.monotonic(), bills=self.bills
        )
        return found

    def answered(self, error: BaseException | None) -> None:
        """Judge an answer, and post the warning or the end of the wait that follows from it."""
        since, ruling = self.refused_since, self.ruling(error)
        minutes = answers.OUTAGE_SECONDS / 60
        if error is None:
            if since is not None:
                self.mailbox.post(
                    Notice(f"The service accepts the connection again, for {self}", is_warning=False)
                )
        elif ruling == "warn":
            self.mailbox.post(
                Notice(
                    f"{self}: {brief(error)}; retries continue for {minutes:g} minutes, and read the connection again"
                )
            )
        elif ruling == "end":
            text = "" if since is None else f"refused for {minutes:g} minutes: "
            verdict: Verdict = "later" if self.bills and answers.is_survived(error) else "never"
            self.mailbox.post(WaitFailedError(f"{self}: {text}{brief(error)}", verdict))

    def remarks(self) -> list[str]:
        """Return additional remarks for the message of a timeout."""
        return []


@cache
def polls(interval: float) -> str:
    """Return a text about polling at this interval."""
    return f"polling the service every {interval:g} s"


@cache
def by_webhook(interval: float) -> str:
    """Return a text about deliveries with a poll at this interval."""
    return f"by webhook, and {polls(interval)} in case a delivery is lost"


def waiting_for(subject: object, how: str, deadline: float | None) -> str:
    """Return the first log line of a wait.

    :param subject: the target, or a text.
    :param deadline: seconds since the epoch; None: no deadline.
    """
    until = "without a deadline"
    if deadline is not None:
        until = f"until {pendulum.from_timestamp(int(deadline)).to_iso8601_string()}"
    return f"Waiting for {subject}, {how}, {until}"
