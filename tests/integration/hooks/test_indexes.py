# SPDX-License-Identifier: Apache-2.0
"""Searches of indexes through both hooks, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.api import errors
from tests.integration.hooks.test_jobs import calls_of
from tests.support.fault_server import answer
from tests.support.waiting import settled

PAPER = {"paperId": "1", "primaryId": "doi:10.5555/rain", "title": "t"}
PAPERS = "/v2/search/research/papers"


@pytest.mark.rule("developer-answer")
async def test_a_search_with_a_body(serve: Any) -> None:
    server, hook = serve({"success": True, "results": [{"id": "doc:x", "passages": [{"text": "p"}]}]})
    found = await settled(hook.search_developer(query="q", min_stars="5", extra_body={"new": 1}))
    assert found.results[0].passages[0].text == "p"
    assert calls_of(server) == [("POST", "/v2/search/developer")]
    assert json.loads(server.requests[0].body) == {"query": "q", "min_stars": 5, "new": 1}
    await settled(hook.close())


@pytest.mark.rule("research-query", "research-filters", "research-similar", "research-ids", "research-papers")
async def test_papers_are_requested_in_the_query(serve: Any) -> None:
    server, hook = serve(
        {"success": True, "results": [PAPER]},
        {"success": True, "paper": PAPER},
        {"success": True, "paper": PAPER, "passages": [{"text": "p", "score": 0.5}]},
        {"success": True, "results": [PAPER], "poolSize": 1},
    )
    request = {"query": "a & b", "authors": ["A, B", "C"], "from": "2026-01-01"}
    found = await settled(hook.search_papers(request, extra_body={"new": "x"}))
    assert found.results[0].primary_id == "doi:10.5555/rain"
    assert (await settled(hook.get_paper("doi:10.5555/rain"))).paper.title == "t"
    assert (await settled(hook.read_paper("1", "why?", k=2))).passages[0].score == 0.5
    similar = await settled(hook.similar_papers("1", intent="i", rerank=True, anchor=["2", "3"]))
    assert similar.pool_size == 1
    assert calls_of(server) == [
        ("GET", f"{PAPERS}?query=a+%26+b&authors=A%2C+B&authors=C&from=2026-01-01&new=x"),
        ("GET", f"{PAPERS}/doi%3A10.5555%2Frain"),
        ("GET", f"{PAPERS}/1?query=why%3F&k=2"),
        ("GET", f"{PAPERS}/1/similar?intent=i&rerank=true&anchor=2&anchor=3"),
    ]
    assert all(request.body == b"" for request in server.requests)
    await settled(hook.close())


@pytest.mark.rule("research-billed-get", "repeat-unsafe")
async def test_a_call_after_a_lost_answer_is_not_repeated(serve: Any) -> None:
    """The search may have been billed."""
    server, hook = serve(answer(502, "bad gateway"), {"success": True, "results": []})
    with pytest.raises(errors.ServerError):
        await settled(hook.search_papers(query="q"))
    assert len(server.requests) == 1
    await settled(hook.close())


async def test_an_invalid_request_names_field_and_rule(serve: Any) -> None:
    server, hook = serve({})
    for call, words in (
        (lambda: hook.search_developer(query="q", k=101), "k"),
        (lambda: hook.search_papers(query="q", from_date="today"), "must be a date"),
        (lambda: hook.read_paper("1", " "), "query"),
        (lambda: hook.get_paper(" "), "paper_id"),
        (lambda: hook.similar_papers("1", {}), "intent"),
    ):
        with pytest.raises(errors.InvalidRequestError, match=words):
            await settled(call())
    assert server.requests == []
