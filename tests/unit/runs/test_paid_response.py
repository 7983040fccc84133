"""A billed response that is stored for the next attempt, and read by its model."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from airflow_provider_webdata.api.models import SearchResponse
from airflow_provider_webdata.runs.failures import UnpublishedResponseError
from airflow_provider_webdata.runs.money.paid_records import StoreRecords
from airflow_provider_webdata.runs.money.paid_response import MAX_BYTES_ON_RECEIPT, PaidResponse
from tests.support.direct import StateStore, TaskInstance, context_of

WIRE = {
    "success": True,
    "data": {"web": [{"url": "u", "n": None}]},
    "creditsUsed": 2,
    "warning": None,
    "new": 1,
}


def kept(store: StateStore, attempt: int) -> PaidResponse:
    context = context_of(TaskInstance(try_number=attempt), store)
    return PaidResponse({"query": "q"}, SearchResponse, "account", None, context, logging.getLogger(__name__))


def not_called() -> Any:
    raise AssertionError("the call is billed again")


def test_the_next_attempt_reads_the_response():
    store, answer = StateStore(), SearchResponse.model_validate(WIRE)
    answer._skipped = 3
    first, second = kept(store, 1), kept(store, 2)
    assert first.or_call(lambda: answer) is answer
    assert first.keep()
    again = second.or_call(not_called)
    assert (again.to_wire(), again.skipped, second.is_earlier) == (WIRE, 3, True)


def test_a_long_response_is_stored_only_if_the_attempt_fails():
    store, answer = StateStore(), SearchResponse.model_validate({**WIRE, "more": "x" * MAX_BYTES_ON_RECEIPT})
    first = kept(store, 1)
    first.or_call(lambda: answer)
    assert store.values == {}
    assert first.keep()
    assert kept(store, 2).or_call(not_called).to_wire()["more"] == answer.to_wire()["more"]


def test_a_response_without_its_form_is_damaged():
    store = StateStore()
    StoreRecords(store, "account").save([{"key": kept(store, 1)._key, "answer": {"data": 5}}])
    with pytest.raises(UnpublishedResponseError, match="is damaged"):
        kept(store, 2).or_call(not_called)
