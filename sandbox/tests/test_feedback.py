# SPDX-License-Identifier: Apache-2.0
"""Feedback on earlier calls."""

from __future__ import annotations

from typing import Any

NOBODY = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
GOOD = {"rating": "good", "valuableSources": [{"url": "https://a.example/"}]}


def on_search(api: Any, search_id: str, **body: Any) -> Any:
    return api.http.post(f"/v2/search/{search_id}/feedback", json={**GOOD, **body})


def test_a_credit_comes_back_once(sandbox, api) -> None:
    search = api.search().json()
    before = sandbox.control.state()["credits"]
    first, second = on_search(api, search["id"]).json(), on_search(api, search["id"], rating="partial").json()
    assert (first["creditsRefunded"], first["creditsRefundedToday"]) == (1, 1)
    assert "alreadySubmitted" not in first
    assert second["alreadySubmitted"] is True
    assert (second["creditsRefunded"], second["feedbackId"]) == (0, first["feedbackId"])
    assert sandbox.control.state()["credits"] == before + 1


def test_a_day_has_its_limit(sandbox, api) -> None:
    told = [on_search(api, api.search().json()["id"]).json() for _ in range(12)]
    assert [answer["creditsRefunded"] for answer in told] == [1] * 10 + [0] * 2
    assert [answer.get("dailyCapReached") for answer in told] == [None] * 9 + [True] * 3
    sandbox.control.advance(86_400)
    assert on_search(api, api.search().json()["id"]).json()["creditsRefunded"] == 1


def test_feedback_on_any_call(sandbox, api) -> None:
    sandbox.control.set_site("site.example", pages=2)
    page = api.http.post("/v2/scrape", json={"url": "https://site.example/"}).json()
    links = api.http.post("/v2/map", json={"url": "https://site.example/"}).json()
    parsed = api.http.post("/v2/parse", files={"file": ("a.html", b"<p>a</p>")}).json()
    ids = {
        "search": api.search().json()["id"],
        "scrape": page["data"]["metadata"]["scrapeId"],
        "map": links["id"],
        "parse": parsed["data"]["metadata"]["scrapeId"],
    }
    for endpoint, job_id in ids.items():
        body = {"endpoint": endpoint, "jobId": job_id, "rating": "bad", "issues": ["slow"]}
        answer = api.http.post("/v2/feedback", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["creditsRefunded"] == (endpoint == "search")
    body["endpoint"] = "map"
    assert api.http.post("/v2/feedback", json=body).status_code == 404


def test_refusals(sandbox, api) -> None:
    search = api.search().json()
    for path, body, status, code in (
        (f"/v2/search/{NOBODY}/feedback", GOOD, 404, "SEARCH_NOT_FOUND"),
        ("/v2/feedback", {"endpoint": "map", "jobId": NOBODY, "note": "n", **GOOD}, 404, "JOB_NOT_FOUND"),
        (f"/v2/search/{search['id']}/feedback", {"rating": "good"}, 400, "INVALID_BODY"),
        (f"/v2/search/{search['id']}/feedback", {**GOOD, "nonsense": 1}, 400, "INVALID_BODY"),
    ):
        answer = api.http.post(path, json=body)
        assert (answer.status_code, answer.json()["feedbackErrorCode"]) == (status, code)
    sandbox.control.advance(121)
    answer = on_search(api, search["id"])
    assert (answer.status_code, answer.json()["feedbackErrorCode"]) == (409, "FEEDBACK_WINDOW_EXPIRED")
