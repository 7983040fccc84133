"""What a batch of searches may still spend."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata.api.models import SearchRequest
from airflow_provider_webdata.tasks.searches.credit_budget import CreditBudget


def search(**fields: Any) -> SearchRequest:
    return SearchRequest(query="q", **fields)


def test_without_a_limit_everything_is_affordable() -> None:
    budget = CreditBudget(None)
    budget.spend(1e9)
    assert not budget.is_limited
    assert budget.affords(search(limit=100))


def test_what_is_in_flight_is_set_aside() -> None:
    budget = CreditBudget(5)
    assert budget.is_limited
    budget.reserve("a", search())
    assert budget.affords(search())
    budget.reserve("b", search())
    assert not budget.affords(search())
    assert budget.release("a") == 2
    assert budget.release("a") == 0
    assert budget.affords(search())
    budget.spend(2)
    assert not budget.affords(search())


def test_the_dearest_search_is_the_price_of_the_next() -> None:
    budget = CreditBudget(30)
    budget.learn_price(20)
    budget.learn_price(3)
    assert budget.affords(search())
    budget.reserve("a", search())
    assert budget.release("a") == 20
    assert not CreditBudget(1).affords(search())
