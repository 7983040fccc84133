# SPDX-License-Identifier: Apache-2.0
"""The verdict on an answer during a wait: every error, and all short histories of answers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from airflow_provider_webdata.api import errors
from airflow_provider_webdata.hooks.connection import ConnectionMissingError
from airflow_provider_webdata.inbox.reader import errors as inbox_errors
from airflow_provider_webdata.states.answers import OUTAGE_SECONDS, judged, ruling

GO_ON = {
    None,
    errors.TransportError,
    errors.UnknownHostError,
    errors.CertificateRefusedError,
    errors.CertificateRequiredError,
    errors.UploadError,
    errors.InvalidResponseError,
    errors.APIError,
    errors.UnsuccessfulError,
    errors.PageError,
    errors.NotFoundError,
    errors.CacheMissError,
    errors.RequestTimeoutError,
    errors.ProcessingContinuesError,
    errors.ConflictError,
    errors.RequestInFlightError,
    errors.RateLimitError,
    errors.ServerError,
    errors.UndeclaredServerError,
    errors.UnavailableError,
    errors.UnfinishedJobError,
    errors.WebDataError,
    inbox_errors.InboxError,
    inbox_errors.InboxUnreachableError,
    inbox_errors.InboxRefusedError,
    inbox_errors.InboxMissingError,
    inbox_errors.InboxAnswerError,
    inbox_errors.CursorAheadError,
    # A secrets backend raises any error.
    RuntimeError,
}
REFUSALS = {
    errors.ConfigurationError,
    errors.EnvironmentVariableError,
    ConnectionMissingError,
    errors.UploadTooLargeError,
    errors.ResponseTooLargeError,
    errors.PermanentPageError,
    errors.ClientError,
    errors.BadRequestError,
    errors.AuthenticationError,
    errors.PaymentRequiredError,
    errors.EntitlementError,
    errors.TermsRequiredError,
    errors.PageRefusedError,
    errors.RequestIdUsedError,
    errors.RequestUnresolvedError,
    errors.IdempotencyKeyUsedError,
    errors.GoneError,
    errors.CallRefusedError,
    inbox_errors.DeliveryGoneError,
}
NOTHING_RUNS = {errors.InvalidRequestError, errors.UnsupportedError}


def instance(kind: type[Any] | None) -> Any:
    # The verdict belongs to the class; the text needs the arguments.
    return None if kind is None else kind.__new__(kind)


def subclasses(kind: type[Any]) -> set[type[Any]]:
    found = {kind}.union(*map(subclasses, kind.__subclasses__()))
    return {one for one in found if one.__module__.startswith("airflow_provider_webdata.")}


def test_every_error_of_the_service_is_listed() -> None:
    known = {
        error
        for error in subclasses(errors.WebDataError)
        if error.__module__ in {errors.__name__, inbox_errors.__name__}
    }
    assert not known - GO_ON - REFUSALS - NOTHING_RUNS
    assert not GO_ON & REFUSALS


@pytest.mark.parametrize("bills", [True, False])
@pytest.mark.parametrize(
    "kind",
    sorted({*GO_ON, *REFUSALS, *NOTHING_RUNS}, key=str),
    ids=lambda kind: getattr(kind, "__name__", "ok"),
)
def test_the_ruling_on_every_error(kind: type[Any] | None, bills: bool) -> None:
    found = [
        ruling(instance(kind), refused_for, bills=bills)
        for refused_for in (None, 0.0, OUTAGE_SECONDS - 1, OUTAGE_SECONDS, OUTAGE_SECONDS + 1)
    ]
    if kind in GO_ON:
        assert found == ["go on"] * 5
    elif kind in {*NOTHING_RUNS, errors.EnvironmentVariableError} or not bills:
        assert found == ["end"] * 5
    else:
        assert found == ["warn", "go on", "go on", "end", "end"]


STEP = 200.0
KINDS = (None, errors.ServerError, errors.NotFoundError, errors.AuthenticationError, errors.EntitlementError)


@pytest.mark.slow
@pytest.mark.parametrize("bills", [True, False])
def test_all_short_histories(bills: bool) -> None:
    """An answer every 200 s: the outage ends three steps after its first refusal."""
    count = 0
    for history in itertools.product(KINDS, repeat=7):
        since, outage = None, list[int]()
        for number, kind in enumerate(history):
            found, since = judged(instance(kind), since, STEP * number, bills=bills)
            if kind is None:
                outage = []
            elif kind in REFUSALS:
                outage.append(number)
            expected = "go on"
            if kind in REFUSALS:
                expected = "warn" if len(outage) == 1 else "go on"
                if not bills or STEP * (number - outage[0]) >= OUTAGE_SECONDS:
                    expected = "end"
            assert found == expected, (history, number)
            count += 1
            if found == "end":
                break
    assert count > 100_000
