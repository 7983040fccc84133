# SPDX-License-Identifier: Apache-2.0
"""Changes tracked from scrape to scrape, in every operation that has them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tables import each_row
from webdata_sandbox.server import SandboxServer

URL = "https://gauges.example/mill"
DATA = '<script type="application/ld+json">{{"level": {0}, "gauge": "mill"}}</script><p>Level: {0}</p>'


def tracking(**asked: Any) -> list[Any]:
    return ["markdown", {"type": "changeTracking", **asked}]


def once(api, *, url: str = URL, **asked: Any) -> dict[str, Any]:
    answer = api.http.post("/v2/scrape", json={"url": url, "formats": tracking(**asked)})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["changeTracking"]


def batch(api) -> dict[str, Any]:
    return of_job(api, "/v2/batch/scrape", {"urls": [URL], "formats": tracking(modes=["git-diff"])})


def crawl(api) -> dict[str, Any]:
    options = {"formats": tracking(modes=["git-diff"])}
    return of_job(api, "/v2/crawl", {"url": URL, "limit": 1, "scrapeOptions": options})


def of_job(api, path: str, body: dict[str, Any]) -> dict[str, Any]:
    job = api.http.post(path, json=body).json()["id"]
    api.sandbox.control.settle()
    first = api.http.get(f"{path}/{job}").json()["data"]
    assert api.http.get(f"{path}/{job}").json()["data"] == first  # reading compares nothing reset_sandbox
    return first[0]["changeTracking"]


@pytest.fixture(autouse=True)
def page(sandbox) -> None:
    sandbox.control.set_page(URL, DATA.format(412))


@pytest.mark.rule("format-change-tracking", "document-change-tracking")
@pytest.mark.parametrize(
    "look", [lambda api: once(api, modes=["git-diff"]), batch, crawl], ids=["scrape", "batch", "crawl"]
)
def test_new_same_changed(sandbox, api, look: Any) -> None:
    first = look(api)
    assert first == {"previousScrapeAt": None, "changeStatus": "new", "visibility": "visible"}
    sandbox.control.advance(3600)
    second = look(api)
    assert (second["changeStatus"], "diff" in second) == ("same", False)
    assert second["previousScrapeAt"] is not None
    sandbox.control.set_page(URL, DATA.format(450))
    third = look(api)
    assert third["changeStatus"] == "changed"
    assert third["previousScrapeAt"] > second["previousScrapeAt"]
    assert "-Level: 412\n+Level: 450" in third["diff"]["text"]
    (file,) = third["diff"]["json"]["files"]
    assert {change["type"] for change in file["chunks"][0]["changes"]} >= {"add", "del"}


@pytest.mark.rule("format-change-tracking")
@pytest.mark.parametrize(
    ("modes", "change", "status", "holds"),
    [
        (None, 450, "changed", set()),
        (["git-diff"], 450, "changed", {"diff"}),
        (["json"], 450, "changed", {"json"}),
        (["git-diff", "json"], 450, "changed", {"diff", "json"}),
        (["git-diff"], 412, "same", set()),
        (["json"], 412, "same", {"json"}),
    ],
)
def test_modes(sandbox, api, modes: list[str] | None, change: int, status: str, holds: set[str]) -> None:
    asked = {} if modes is None else {"modes": modes}
    assert once(api, **asked).get("json") is None
    sandbox.control.set_page(URL, DATA.format(change))
    found = once(api, **asked)
    assert found["changeStatus"] == status
    assert found.keys() - {"previousScrapeAt", "changeStatus", "visibility"} == holds
    if "json" in holds:
        assert found["json"] == {
            "level": {"previous": 412, "current": change},
            "gauge": {"previous": "mill", "current": "mill"},
        }


def test_json_mode_does_not_see_the_text_around(sandbox, api) -> None:
    once(api, modes=["json"])
    sandbox.control.set_page(URL, DATA.format(412) + "<p>Around</p>")
    assert once(api, modes=["json"])["changeStatus"] == "same"
    schema = {"type": "object", "properties": {"level": {"type": "number"}, "trend": {"type": "string"}}}
    once(api, modes=["json"], schema=schema, tag="schema")
    sandbox.control.set_page(URL, json={"level": 450, "trend": "rising"})
    found = once(api, modes=["json"], schema=schema, tag="schema")["json"]
    assert found == {
        "level": {"previous": 412, "current": 450},
        "trend": {"previous": None, "current": "rising"},
    }


def test_tags_are_histories_of_their_own(sandbox, api) -> None:
    assert once(api, tag="daily")["changeStatus"] == "new"
    assert once(api, tag=None)["changeStatus"] == "new"
    sandbox.control.set_page(URL, DATA.format(450))
    assert once(api, tag="hourly")["changeStatus"] == "new"
    assert once(api, tag="daily")["changeStatus"] == "changed"
    assert once(api)["changeStatus"] == "changed"
    assert once(api, url="https://river.example/")["changeStatus"] == "new"


def test_a_page_that_is_gone(sandbox, api) -> None:
    sandbox.control.set_page("https://gauges.example/", "<p>All gauges</p>")
    once(api)
    sandbox.control.delete_page(URL)
    assert once(api)["changeStatus"] == "removed"
    assert once(api)["changeStatus"] == "same"
    sandbox.control.set_page(URL, DATA.format(412))
    assert once(api)["changeStatus"] == "changed"


@pytest.mark.rule("scrape-cache")
def test_the_cache_is_skipped(sandbox, api) -> None:
    api.http.post("/v2/scrape", json={"url": URL})
    once(api)
    sandbox.control.set_page(URL, DATA.format(450))
    assert once(api)["changeStatus"] == "changed"


def test_zero_data_retention_remembers_nothing(sandbox, api) -> None:
    sandbox.control.configure(entitlements=["zeroDataRetention"])
    body = {"url": URL, "formats": tracking(), "zeroDataRetention": True}
    for _ in range(2):
        found = api.http.post("/v2/scrape", json=body).json()["data"]["changeTracking"]
        assert found["changeStatus"] == "new"


@each_row("modes, cost", [(["git-diff"], 1), (["json"], 5), (["json", "git-diff"], 5)])
def test_cost(api, modes: list[str], cost: int) -> None:
    body = {"url": URL, "formats": tracking(modes=modes)}
    assert api.http.post("/v2/scrape", json=body).json()["data"]["metadata"]["creditsUsed"] == cost


def test_of_a_generated_page_and_after_a_restart(api, tmp_path) -> None:
    state = str(tmp_path / "state.sqlite")
    with SandboxServer(state=state) as server:
        server.control.set_site("many.example", pages=2)
        first = _track(server, "https://many.example/p/1")
        assert first["changeTracking"]["changeStatus"] == "new"
    with SandboxServer(state=state) as server:
        assert _track(server, "https://many.example/p/1")["changeTracking"]["changeStatus"] == "same"


def _track(server: SandboxServer, url: str) -> dict[str, Any]:
    import httpx

    headers = {"Authorization": f"Bearer {server.api_key}"}
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False, verify=False) as client:
        found = client.post("/v2/scrape", json={"url": url, "formats": tracking()}).json()["data"]
        again = client.get(f"/v2/scrape/{found['metadata']['scrapeId']}").json()["data"]
    assert again == found
    return found
