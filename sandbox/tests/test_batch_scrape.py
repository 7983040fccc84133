# SPDX-License-Identifier: Apache-2.0
"""Batch scrapes: what only they can do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tables import each_row

from .page_job_calls import NOBODY, batch, site
from .test_webhooks import Receiver, receiver  # noqa: F401 - a fixture


class TestBatch:
    @pytest.mark.rule("batch-ignore-invalid-urls", "batch-answer")
    def test_invalid_urls(self, api) -> None:
        bad = ["intranet", "ftp://weather.example/x", ""]
        job = batch(api, ["https://weather.example/levels", *bad])
        assert job.answer["invalidURLs"] == bad
        assert len(job.urls()) == 1
        assert batch(api, ["https://weather.example/levels"]).answer["invalidURLs"] == []

    @pytest.mark.rule("batch-ignore-invalid-urls", "batch-answer")
    def test_invalid_urls_refused(self, api) -> None:
        body = {"urls": ["https://weather.example/levels", "intranet"], "ignoreInvalidURLs": False}
        answer = api.http.post("/v2/batch/scrape", json=body)
        assert (answer.status_code, answer.json()["success"]) == (400, False)
        assert "intranet" in answer.json()["error"]
        good = batch(api, ["https://weather.example/levels"], ignoreInvalidURLs=False)
        assert "invalidURLs" not in good.answer

    @pytest.mark.rule("batch-no-valid-urls")
    @each_row("more", [{}, {"ignoreInvalidURLs": True}])
    def test_none_valid(self, api, more: dict[str, Any]) -> None:
        answer = api.http.post("/v2/batch/scrape", json={"urls": ["intranet", "x"], **more})
        assert (answer.status_code, answer.json()["error"]) == (400, "No valid URLs provided")

    @pytest.mark.rule("batch-options")
    def test_options_hold_for_every_page(self, api) -> None:
        job = batch(api, ["river.example", "https://river.example/floods"], formats=["links"])
        documents = job.settled()["data"]
        assert all(set(document) == {"links", "metadata"} for document in documents)

    def test_one_address_twice(self, api) -> None:
        assert len(batch(api, ["https://river.example/"] * 2).urls()) == 2

    @pytest.mark.rule("request-blanks")
    def test_blanks_around_an_address(self, api) -> None:
        job = batch(api, [" https://river.example/ ", "https://river.example/floods\n"])
        assert job.urls() == ["https://river.example/", "https://river.example/floods"]

    @pytest.mark.rule("batch-append")
    def test_append(self, sandbox, api) -> None:
        job = batch(api, ["https://river.example/"])
        assert len(job.urls()) == 1
        more = batch(api, ["https://river.example/floods", "bad"], appendToId=job.id)
        assert (more.id, more.answer["invalidURLs"]) == (job.id, ["bad"])
        assert job.urls() == ["https://river.example/", "https://river.example/floods"]
        body = {"urls": ["https://river.example/"], "appendToId": NOBODY}
        assert api.http.post("/v2/batch/scrape", json=body).status_code == 404

    @pytest.mark.rule("idempotency-key")
    def test_the_idempotency_key_is_ignored(self, api) -> None:
        headers = {"x-idempotency-key": NOBODY}
        body = {"urls": ["https://river.example/"]}
        ids = {api.http.post("/v2/batch/scrape", json=body, headers=headers).json()["id"] for _ in range(2)}
        assert len(ids) == 2

    @pytest.mark.rule("credits-page")
    def test_credits(self, sandbox, api) -> None:
        sandbox.control.configure(credits=2)
        urls = site(api, 2)
        answer = api.http.post("/v2/batch/scrape", json={"urls": urls})
        assert (answer.status_code, answer.json()["success"]) == (402, False)
        assert len(batch(api, urls[:2]).urls()) == 2
        assert api.balance() == 0
