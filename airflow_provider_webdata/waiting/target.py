"""Base class of targets, and messages about waits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import pendulum
from msgspec.structs import replace

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.common.url_secrets import without_secrets
from airflow_provider_webdata.hooks.webhooks import can_receive, no_deliveries_reason
from airflow_provider_webdata.states.outcomes import OutcomeT

if TYPE_CHECKING:
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.states.outcomes import Status
    from airflow_provider_webdata.waiting.mailbox import Mailbox, WaitFailedError
    from airflow_provider_webdata.waiting.policy import PollingPolicy
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

    __slots__ = ("log", "mailbox", "subscriptions")

    outcome_class: type[OutcomeT]
    """The class of the wait's outcome."""

    subject_class: type[Subject]
    """The class of the polled subject; not set if the service is not polled."""

    def __init__(self, log: Any) -> None:
        self.log = log
        self.mailbox: Mailbox
        self.subscriptions: tuple[Subscription, ...] = ()

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
    def begin(self, settings: ConnectionSettings) -> tuple[str, tuple[Subscription, ...]]:
        """Return how the end is detected, as text, and the deliveries to subscribe to.

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

    def remarks(self) -> list[str]:
        """Return additional remarks for the message of a timeout."""
        return []


def listens(policy: PollingPolicy, settings: ConnectionSettings) -> bool:
    """Return whether a wait subscribes to deliveries.

    :raises ConfigurationError: the policy requires webhooks, and the connection cannot receive any.
    """
    if policy.wait_by != "polling" and can_receive(settings):
        return True
    if policy.wait_by == "webhook":
        raise ConfigurationError(no_deliveries_reason(settings))
    return False


@cache
def polls(interval: float) -> str:
    """Return a text about polling at this interval."""
    return f"polling the service every {interval:g} s"


@cache
def by_webhook(safety_poll: float) -> str:
    """Return a text about deliveries with a safety poll."""
    return f"by webhook, and {polls(safety_poll)} in case a delivery is lost"


def waiting_for(subject: object, how: str, deadline: float | None) -> str:
    """Return the first log line of a wait.

    :param subject: the target, or a text.
    :param deadline: seconds since the epoch; None: no deadline.
    """
    until = "without a deadline"
    if deadline is not None:
        until = f"until {pendulum.from_timestamp(int(deadline)).to_iso8601_string()}"
    return without_secrets(f"Waiting for {subject}, {how}, {until}")
