"""Questions about jobs, which the sandbox answers from their records."""

from __future__ import annotations

from typing import Any

import pytest

SITE = "https://site.example/"


def asked(api: Any, **body: Any) -> dict[str, Any]:
    response = api.http.post("/v2/support/ask", json={"question": "what went wrong?", **body})
    assert response.status_code == 200, response.text
    return response.json()


def started(api: Any, **body: Any) -> str:
    return api.http.post("/v2/crawl", json={"url": SITE, "limit": 3, **body}).json()["id"]


@pytest.mark.rule("support-answer", "support-job")
def test_a_job_that_failed(sandbox: Any, api: Any) -> None:
    sandbox.control.set_site("site.example", pages=3)
    sandbox.control.add_fault("fail_crawl")
    job_id = started(api)
    sandbox.control.settle()
    before = api.balance()
    found = asked(api, jobId=job_id)
    assert found["answer"].startswith(f"The crawl job {job_id} failed: The job failed because")
    assert (found["confidence"], found["feedback"]) == ("high", None)
    assert "success" not in found
    assert api.balance() == before


@pytest.mark.rule("support-answer")
def test_pages_that_failed_and_jobs_that_did_not(sandbox: Any, api: Any) -> None:
    sandbox.control.set_site("site.example", pages=2)
    sandbox.control.configure(page_seconds=60)
    running = started(api)
    assert "is still running" in asked(api, jobId=running)["answer"]
    api.http.delete(f"/v2/crawl/{running}")
    assert "was canceled" in asked(api, jobId=running)["answer"]
    whole = started(api)
    sandbox.control.advance(600)
    assert "No page failed" in asked(api, jobId=whole)["answer"]
    lost = "https://site.example/none"
    sandbox.control.set_page(lost, "<p>a</p>", error="SCRAPE_SITE_ERROR")
    batch = api.http.post("/v2/batch/scrape", json={"urls": [SITE, lost]}).json()["id"]
    sandbox.control.advance(600)
    assert f"1 of its pages failed. First error: {lost}:" in asked(api, jobId=batch)["answer"]


@pytest.mark.rule("support-stuck", "support-question")
def test_questions_without_an_answer(api: Any) -> None:
    for job_id, reason in (
        (None, "Send its jobId"),
        ("7f3c1a52-9d0e-4b7a-8f65-0123456789ab", "No job of this"),
    ):
        found = asked(api, **({"jobId": job_id} if job_id else {}))
        assert reason in found["feedback"]["blockedBy"]
        assert (found["answer"], found["confidence"]) == ("", "low")
    assert api.http.post("/v2/support/ask", json={"jobId": "x"}).status_code == 400
