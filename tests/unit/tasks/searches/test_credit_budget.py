"""What a batch of searches may still spend."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.api.models import SearchRequest
from airflow_provider_webdata.tasks.searches.credit_budget import CreditBudget, estimated_credits

SCRAPED = {"scrape_options": {"formats": ["markdown"]}}
PRICES = [
    ({}, 2),
    ({"limit": 10}, 2),
    ({"limit": 11}, 4),
    ({"limit": 100}, 20),
    ({"limit": 10, "sources": ["web", "news"]}, 4),
    ({"enterprise": ["zdr"]}, 10),
    ({"enterprise": ["anon"]}, 2),
    ({"limit": 5, **SCRAPED}, 7),
    ({"limit": 5, "scrape_options": {"only_main_content": True}}, 2),
]


def search(**fields: Any) -> SearchRequest:
    return SearchRequest(query="q", **fields)


@pytest.mark.parametrize(("fields", "price"), PRICES)
def test_price(fields: dict[str, Any], price: float) -> None:
    assert estimated_credits(search(**fields)) == price


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
