# SPDX-License-Identifier: Apache-2.0
"""The searches of indexes, and the client that others wrote for the public service on them."""

from __future__ import annotations

from typing import Any

import pytest
from firecrawl import Firecrawl

from tests.support.tables import each_row

DEVELOPER, PAPERS = "/v2/search/developer", "/v2/search/research/papers"
REPO = "pipeline/pipeline"


def found(api: Any, path: str, **body: Any) -> Any:
    answer = api.http.get(path, params=body) if path.startswith(PAPERS) else api.http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(api: Any, **body: Any) -> list[str]:
    return [
        item["id"]
        for item in found(api, DEVELOPER, **{"query": "pipeline schedule", "k": 100, **body})["results"]
    ]


# body, beginnings of the ids
NARROWED: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"doc", "issue", "readme"}),
    ({"types": ["issue"]}, {"issue"}),
    ({"types": ["doc", "readme"]}, {"doc", "readme"}),
    ({"types": ["pull_request"]}, set()),
    ({"min_stars": 0}, {"issue", "readme"}),
    ({"min_stars": 1000}, {"readme"}),
    ({"max_stars": 5, "types": ["readme"]}, set()),
    ({"min_stars": 1000, "sources": ["docs.pipeline.example"]}, {"doc", "readme"}),
    ({"sources": ["elsewhere.example"]}, {"issue", "readme"}),
    ({"repos": ["a/b"]}, {"doc"}),
]


@pytest.mark.rule("developer-types", "developer-scope", "developer-repositories")
@each_row("body, kinds", NARROWED)
def test_developer_search_narrowed(api, body: dict[str, Any], kinds: set[str]) -> None:
    assert {name.partition(":")[0] for name in ids(api, **body)} == kinds


@pytest.mark.rule("developer-get", "developer-answer", "developer-passages")
def test_developer_results(api) -> None:
    answer = found(
        api, DEVELOPER, query="clocks go forward", types=["issue"], passages=2, repos=[REPO, "a/b"]
    )
    (item,) = answer["results"]
    assert (item["id"], item["type"]) == (f"issue:{REPO}#42", "issue")
    assert item["passages"][0]["text"].endswith("When clocks go forward, the run of 02:30 is lost.")
    assert len(item["passages"]) == 2
    assert answer["coverage"] == {
        "doc": "skipped",
        "issue": "ok",
        "pull_request": "skipped",
        "readme": "skipped",
    }
    assert [(repo["repo"], repo["indexed"]) for repo in answer["repos"]] == [(REPO, True), ("a/b", False)]
    by_get = api.http.get(DEVELOPER, params={"query": "clocks", "types": "issue,readme", "k": "5"}).json()
    assert [result["type"] for result in by_get["results"]] == ["issue"]
    assert found(api, DEVELOPER, query="pipeline", sources=["x.example"])["sources"] == [
        {"source": "x.example", "indexed": False}
    ]
    assert found(api, DEVELOPER, query="pipeline", min_stars=5)["coverage"]["doc"] == "unavailable"


@pytest.mark.rule("research-query", "research-filters", "research-days", "research-papers")
def test_papers(api) -> None:
    (paper,) = found(api, PAPERS, query="rain levels model", k=1)["results"]
    assert paper["title"] == "Rain and river levels: a model"
    assert paper["primaryId"] == "doi:10.5555/rain"
    assert paper["ids"] == {"doi": ["10.5555/rain"]}
    for narrow, left in (
        ({"authors": ["brook", "B. Ford"]}, ["Rain and river levels: a model"]),
        ({"authors": "brook,nobody"}, []),
        ({"to": "2000-01-01"}, []),
        ({"from": "2000-01-01", "authors": "brook"}, ["Rain and river levels: a model"]),
        ({"categories": ["cs.LG"]}, []),
    ):
        assert [item["title"] for item in found(api, PAPERS, query="rain soil", **narrow)["results"]] == left


@pytest.mark.rule("research-ids", "research-one", "research-paper")
def test_one_paper(api) -> None:
    (paper,) = found(api, PAPERS, query="rain levels model", k=1)["results"]
    for name in (paper["paperId"], "doi:10.5555/rain", "10.5555/rain"):
        told = found(api, f"{PAPERS}/{name.replace('/', '%2F')}")
        assert told["paper"]["authors"] == "A. Brook, B. Ford"
        assert "passages" not in told
    read = found(api, f"{PAPERS}/{paper['paperId']}", query="how many hours ahead?", k=1)
    assert [passage["text"] for passage in read["passages"]] == [
        "A simple model turns measured rain into river levels six hours ahead."
    ]
    assert read["query"] == "how many hours ahead?"
    assert api.http.get(f"{PAPERS}/doi:none").status_code == 404


@pytest.mark.rule("research-similar")
def test_similar_papers(sandbox, api) -> None:
    head = '<title>Weather</title><meta name="citation_title" content="Weather">'
    link = '<a href="https://journal.example/papers/rain">rain</a>'
    page = f"<html><head>{head}</head><body><main>Weather {link}</main></body></html>"
    sandbox.control.set_page("https://journal.example/papers/weather", page)
    rain, weather = f"{PAPERS}/doi:10.5555%2Frain/similar", f"{PAPERS}/doi:10.5555%2Fweather/similar"

    def titles(path: str, **query: Any) -> list[str]:
        return [item["title"] for item in found(api, path, intent="soil moisture", **query)["results"]]

    assert titles(rain, k=1) == ["Soil moisture from satellites"]
    assert titles(rain, mode="citers") == ["Weather"]
    assert titles(weather, mode="references") == ["Rain and river levels: a model"]
    assert titles(rain, mode="references") == []
    assert "Weather" not in titles(rain, anchor=["doi:10.5555/weather"])


@pytest.mark.rule("credits-index")
def test_what_they_cost(sandbox, api) -> None:
    def spent(path: str, **body: Any) -> int:
        before = sandbox.control.state()["credits"]
        found(api, path, **body)
        return before - sandbox.control.state()["credits"]

    assert spent(DEVELOPER, query="pipeline") == 2
    assert spent(DEVELOPER, query="nothingofthekind") == 0
    assert spent(PAPERS, query="rain soil fish") == 2
    assert spent(f"{PAPERS}/10.5555%2Frain") == 1
    assert spent(f"{PAPERS}/10.5555%2Frain/similar", intent="soil") == 2


# path, method, what is sent
REFUSED: list[tuple[str, str, dict[str, Any]]] = [
    (DEVELOPER, "POST", {}),
    (DEVELOPER, "POST", {"query": "q", "k": 101}),
    (DEVELOPER, "GET", {"query": "q", "k": "x"}),
    (DEVELOPER, "POST", {"query": "q", "types": ["doc"], "repos": ["a/b"]}),
    (DEVELOPER, "POST", {"query": "q", "magic": 1}),
    (DEVELOPER, "POST", {"query": "q", "language": "Rust"}),
    (PAPERS, "GET", {"query": "q", "k": 501}),
    (PAPERS, "GET", {"query": "q", "from": "yesterday"}),
    (f"{PAPERS}/10.5555%2Frain", "GET", {"k": 2}),
    (f"{PAPERS}/10.5555%2Frain/similar", "GET", {"intent": "i", "rerank": "perhaps"}),
]


@pytest.mark.rule("developer-scope", "research-paper")
@each_row("path, method, sent", REFUSED)
def test_refused(api, path: str, method: str, sent: dict[str, Any]) -> None:
    answer = api.http.request(method, path, **{"params" if method == "GET" else "json": sent})
    assert answer.status_code == 400, answer.text


def test_the_independent_client(sandbox) -> None:
    client = Firecrawl(api_key=sandbox.api_key, api_url=sandbox.url)
    answer = client.developer_search("clocks go forward", types=["issue"], repos=[REPO], k=3, passages=2)
    assert answer.results[0].id == f"issue:{REPO}#42"
    assert answer.repos[0].types.pull_request is True
    papers = client.v2.search_papers("rain", authors=["Brook", "Ford"], from_date="2000-01-01")["results"]
    assert client.v2.inspect_paper(papers[0]["primaryId"])["paper"]["title"] == papers[0]["title"]
    assert client.v2.read_paper(papers[0]["paperId"], "model", k=1)["passages"]
    assert client.v2.related_papers(papers[0]["paperId"], "soil", mode="similar", rerank=False, k=2)[
        "results"
    ]
