# SPDX-License-Identifier: Apache-2.0
"""A scrape of one page: its document, failures, cost, files, and documents that take longer than the request."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.tables import each_row
from webdata_sandbox.control import ControlError
from webdata_sandbox.server import SandboxServer

from .conftest import reset_sandbox
from .test_state import opened

FLOODS = "https://river.example/floods"
PDF = "https://papers.example/levels.pdf"
FILM = "https://film.example/flood"
HOUR = 3600
LIFETIMES = [
    ("screenshot", 24 * HOUR, "image/png"),
    ("audio", HOUR, "audio/mpeg"),
    ("video", HOUR, "video/mp4"),
]


def scrape(api: Any, url: str = FLOODS, **body: Any) -> httpx.Response:
    return api.http.post("/v2/scrape", json={"url": url, **body})


def document(api: Any, url: str = FLOODS, **body: Any) -> dict[str, Any]:
    response = scrape(api, url, **body)
    assert response.status_code == 200, response.text
    assert response.json()["success"] is True
    return response.json()["data"]


@pytest.mark.rule("document-text", "document-metadata", "scrape-answer")
def test_a_document(api) -> None:
    found = document(api)
    assert set(found) == {"markdown", "metadata"}
    assert "412 cm" in found["markdown"]
    metadata = found["metadata"]
    assert (metadata["sourceURL"], metadata["url"], metadata["statusCode"]) == (FLOODS, FLOODS, 200)
    assert (metadata["contentType"], metadata["language"], metadata["creditsUsed"]) == ("text/html", "en", 1)
    assert metadata["title"]
    assert api.balance() == 99_999


@pytest.mark.rule("scrape-formats", "document-lists")
def test_the_formats_that_were_asked_for(api) -> None:
    names = ["markdown", "html", "rawHtml", "links", "images", "summary"]
    found = document(api, formats=[names[0], *({"type": name} for name in names[1:])])
    assert set(found) == {*names, "metadata", "warning"}
    assert found["rawHtml"].startswith("<")
    assert "first sentences" in found["warning"]
    assert "warning" not in document(api, formats=["links"])


@each_row(
    "body",
    [
        {"formats": ["rawBase64"]},
        {"formats": ["deterministicJson"]},
        {"formats": [{"type": "query", "prompt": "how high?"}]},
        {"formats": [{"type": "attributes", "selectors": [{"selector": "a >", "attribute": "href"}]}]},
        {"formats": ["branding"]},
        {"formats": ["product"]},
        {"formats": ["menu"]},
        {"formats": ["screenshot"]},
        {"formats": ["audio"]},
        {"actions": [{"type": "click", "selector": "a"}]},
        {"redactPII": True},
        {"onlyCleanContent": True},
    ],
)
@pytest.mark.says("the message shows the line that sets them on the page")
def test_what_it_cannot_do_it_says(api, body: dict[str, Any]) -> None:
    answer = scrape(api, **body)
    assert (answer.status_code, answer.json()["code"]) == (400, "UNSUPPORTED_IN_SANDBOX")
    assert api.balance() == 100_000
    [asked] = body.get("formats", ["actions"] if "actions" in body else [None])
    if asked in CANNED:
        assert f'control.set_page("{FLOODS}", {asked}=' in answer.json()["error"]


CANNED = ("screenshot", "audio", "video", "branding", "product", "menu", "actions")
"""What a page of the sandbox has only if a test sets it."""


@pytest.mark.rule("urls")
@each_row("given, kept", [("river.example/floods", FLOODS), (FLOODS + "#top", FLOODS)])
def test_addresses(api, given: str, kept: str) -> None:
    metadata = document(api, given)["metadata"]
    assert metadata["url"] == kept
    assert "412 cm" in document(api, given)["markdown"]


class TestAgain:
    """``GET /v2/scrape/{id}``"""

    @pytest.mark.rule("scrape-result")
    def test_is_the_same(self, api) -> None:
        answer = scrape(api, formats=["markdown", "links"]).json()
        again = api.http.get(f"/v2/scrape/{answer['data']['metadata']['scrapeId']}")
        assert (again.status_code, again.json()) == (200, answer)
        assert api.balance() == 99_999

    def test_of_a_page_that_was_changed(self, sandbox, api) -> None:
        scrape_id = document(api)["metadata"]["scrapeId"]
        sandbox.control.set_page(FLOODS, "<p>all is well</p>")
        assert "412 cm" in api.http.get(f"/v2/scrape/{scrape_id}").json()["data"]["markdown"]

    def test_of_a_generated_page(self, sandbox, api) -> None:
        sandbox.control.set_site("many.example", pages=5)
        first = document(api, "https://many.example/p/3", formats=["markdown", "html", "links"])
        again = api.http.get(f"/v2/scrape/{first['metadata']['scrapeId']}").json()["data"]
        assert again == first

    @pytest.mark.rule("scrape-result")
    @each_row(
        "scrape_id, status, text",
        [("0b0e3e1c-7d8a-4a53-9f7e-2f1f9a3b7c11", 404, "Job not found."), ("x", 400, "valid UUID")],
    )
    def test_of_none(self, api, scrape_id: str, status: int, text: str) -> None:
        answer = api.http.get(f"/v2/scrape/{scrape_id}")
        assert (answer.status_code, answer.json()["success"]) == (status, False)
        assert text in answer.json()["error"]

    def test_after_a_restart(self, tmp_path) -> None:
        state = str(tmp_path / "state.sqlite")
        with SandboxServer(state=state) as server, opened(server) as api:
            before = document(api)
        with SandboxServer(state=state) as server, opened(server) as api:
            path = f"/v2/scrape/{before['metadata']['scrapeId']}"
            assert api.http.get(path).json()["data"] == before


@pytest.mark.rule("page-codes-500")
@each_row(
    "code, status",
    [
        ("SCRAPE_SITE_ERROR", 500),
        ("SCRAPE_SSL_ERROR", 500),
        ("SCRAPE_ALL_ENGINES_FAILED", 500),
        ("A_CODE_THAT_NOBODY_KNOWS", 500),
        ("SCRAPE_TIMEOUT", 408),
        ("CONCURRENCY_QUEUE_TIMEOUT", 408),
        ("SCRAPE_MEDIA_ACCESS_DENIED", 403),
        ("SCRAPE_ACTIONS_NOT_SUPPORTED", 400),
    ],
    before=reset_sandbox,
)
def test_pages_that_fail(sandbox, api, code: str, status: int) -> None:
    sandbox.control.set_page(FLOODS, "<p>x</p>", error=code)
    answer = scrape(api)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["success"] is False
    assert api.balance() == 100_000


@pytest.mark.rule("credits-page", "metadata-status")
def test_a_site_that_answers_with_an_error_is_a_page(sandbox, api) -> None:
    sandbox.control.set_page(FLOODS, "<p>closed</p>", status=503)
    assert document(api)["metadata"]["statusCode"] == 503
    assert document(api, "https://river.example/no-such-page")["metadata"]["statusCode"] == 404
    assert api.balance() == 99_998


@pytest.mark.rule("ok-but-failed-scrape", "credits-failed")
@each_row("quirk, status", [(None, 500), ("dns-ok", 200)], before=reset_sandbox)
def test_a_host_that_does_not_exist_is_billed(sandbox, api, quirk: str | None, status: int) -> None:
    sandbox.control.set_quirks([quirk] if quirk else [])
    answer = scrape(api, "https://nowhere.example/x")
    assert (answer.status_code, answer.json()["success"]) == (status, False)
    assert answer.json()["code"] == "SCRAPE_DNS_RESOLUTION_ERROR"
    assert api.balance() == 99_999


class TestCache:
    @pytest.mark.rule("scrape-max-age")
    def test_max_age(self, sandbox, api) -> None:
        document(api)
        sandbox.control.set_page(FLOODS, "<p>changed</p>")
        kept = document(api)
        assert kept["metadata"]["cacheState"] == "hit"
        assert kept["metadata"]["cachedAt"]
        assert "412 cm" in kept["markdown"]
        assert document(api, maxAge=0)["markdown"].strip() == "changed"

    @pytest.mark.rule("scrape-max-age")
    def test_two_days_by_default(self, sandbox, api) -> None:
        document(api)
        sandbox.control.advance(2 * 86_400 - 60)
        assert document(api)["metadata"]["cacheState"] == "hit"
        sandbox.control.advance(120)
        assert document(api)["metadata"]["cacheState"] == "miss"

    @pytest.mark.rule("scrape-store", "scrape-cache")
    @each_row("private", [{"headers": {"Cookie": "x"}}, {"profile": {"name": "p"}}], before=reset_sandbox)
    def test_not_for_private_scrapes(self, api, private: dict[str, Any]) -> None:
        document(api)
        assert document(api, **private)["metadata"]["cacheState"] == "miss"

    @pytest.mark.rule("scrape-store")
    def test_store_in_cache(self, api) -> None:
        document(api, storeInCache=False)
        assert document(api)["metadata"]["cacheState"] == "miss"

    @pytest.mark.rule("page-codes-404", "scrape-min-age")
    def test_min_age(self, api) -> None:
        answer = scrape(api, minAge=1)
        assert (answer.status_code, answer.json()["code"]) == (404, "SCRAPE_NO_CACHED_DATA")
        assert api.balance() == 100_000
        document(api)
        assert document(api, minAge=1)["metadata"]["cacheState"] == "hit"
        assert scrape(api, minAge=60_000).status_code == 404

    @pytest.mark.rule("page-codes-404", "credits-lockdown", "scrape-lockdown")
    def test_lockdown(self, api) -> None:
        answer = scrape(api, lockdown=True)
        assert (answer.status_code, answer.json()["code"]) == (404, "SCRAPE_LOCKDOWN_CACHE_MISS")
        assert api.balance() == 99_999
        document(api)
        assert document(api, lockdown=True)["metadata"]["creditsUsed"] == 5
        assert api.balance() == 99_993


class TestEntitlements:
    ROWS = pytest.mark.parametrize(
        ("body", "entitlement"),
        [
            ({"zeroDataRetention": True}, "zeroDataRetention"),
            ({"threatProtection": {"mode": "normal"}}, "threatProtection"),
        ],
    )

    @pytest.mark.rule("status-403", "threat-entitlement", "zdr-entitlement")
    @ROWS
    def test_refused_without(self, api, body: dict[str, Any], entitlement: str) -> None:
        answer = scrape(api, **body)
        assert (answer.status_code, answer.json()["success"]) == (403, False)
        assert api.balance() == 100_000

    @ROWS
    def test_taken_with(self, sandbox, api, body: dict[str, Any], entitlement: str) -> None:
        sandbox.control.configure(entitlements=[entitlement])
        assert "412 cm" in document(api, **body)["markdown"]

    @pytest.mark.rule("credits-zero-data-retention")
    def test_zero_retention_costs_one_more(self, sandbox, api) -> None:
        sandbox.control.configure(entitlements=["zeroDataRetention"])
        assert document(api, zeroDataRetention=True)["metadata"]["creditsUsed"] == 2
        assert api.balance() == 99_998


@pytest.mark.rule("credits-balance")
@each_row("credits, status", [(1, 200), (0, 402)])
def test_balance(sandbox, api, credits: int, status: int) -> None:
    sandbox.control.configure(credits=credits)
    assert scrape(api).status_code == status


@pytest.mark.rule("credits-enhanced-proxy")
@each_row("proxy, cost", [("basic", 1), ("auto", 1), ("enhanced", 5), ("stealth", 5)])
def test_proxy_cost(api, proxy: str, cost: int) -> None:
    assert document(api, proxy=proxy)["metadata"]["creditsUsed"] == cost


@pytest.mark.rule("keyless-calls")
def test_a_call_without_a_key(sandbox) -> None:
    sandbox.control.set_quirks(["keyless-limit=1"])
    codes = [
        httpx.post(
            f"{sandbox.url}/v2/scrape", json={"url": FLOODS}, trust_env=False, verify=False
        ).status_code
        for _ in "12"
    ]
    assert codes == [200, 429]


class TestLargeDocuments:
    """See sandbox/docs/service.md#large-documents."""

    @pytest.fixture(autouse=True)
    def pdf(self, sandbox) -> None:
        text = "\f".join(f"# Page {number}" for number in range(1, 8))
        sandbox.control.set_page(PDF, markdown=text, content_type="application/pdf")

    @pytest.mark.rule("credits-pdf")
    def test_one_credit_a_page(self, api) -> None:
        metadata = document(api, PDF)["metadata"]
        assert (metadata["numPages"], metadata["totalPages"], metadata["creditsUsed"]) == (7, 7, 7)
        capped = document(api, PDF, parsers=[{"type": "pdf", "maxPages": 2}])["metadata"]
        assert (capped["numPages"], capped["totalPages"], capped["creditsUsed"]) == (2, 7, 2)

    @pytest.mark.rule("large-documents-answer", "large-documents-again")
    def test_still_working(self, sandbox, api) -> None:
        sandbox.control.configure(pdf_seconds=100)
        answer = scrape(api, PDF, timeout=30_000)
        assert (answer.status_code, answer.json()["code"]) == (408, "SCRAPE_TIMEOUT")
        details = answer.json()["details"]
        assert details["state"] == "processing_continues"
        assert (details["documentPages"], details["jobStatus"]) == (7, "running")
        assert details["retryAfterSeconds"] == int(answer.headers["retry-after"]) == 70
        assert details["mayExceedProcessingWindow"] is False
        assert api.balance() == 100_000
        assert scrape(api, PDF, timeout=30_000).status_code == 408
        sandbox.control.advance(71)
        assert "# Page 7" in document(api, PDF, timeout=30_000)["markdown"]
        assert api.balance() == 99_993

    @pytest.mark.rule("large-documents-again")
    def test_another_request_is_another_work(self, sandbox, api) -> None:
        sandbox.control.configure(pdf_seconds=100)
        assert scrape(api, PDF, timeout=30_000).status_code == 408
        sandbox.control.advance(90)
        assert scrape(api, PDF, timeout=30_000, formats=["links"]).status_code == 408

    @pytest.mark.parametrize(("seconds", "hint", "exceeds"), [(700, 600, False), (3000, 600, True)])
    def test_very_long_work(self, sandbox, api, seconds: int, hint: int, exceeds: bool) -> None:
        sandbox.control.configure(pdf_seconds=seconds)
        details = scrape(api, PDF, timeout=1000).json()["details"]
        assert (details["retryAfterSeconds"], details["mayExceedProcessingWindow"]) == (hint, exceeds)

    @pytest.mark.rule("scrape-timeout")
    @pytest.mark.parametrize(("timeout", "status"), [(100_000, 200), (99_000, 408), (None, 408)])
    def test_timeout(self, sandbox, api, timeout: int | None, status: int) -> None:
        sandbox.control.configure(pdf_seconds=100)
        assert scrape(api, PDF, **({"timeout": timeout} if timeout else {})).status_code == status

    def test_pages_are_not_affected(self, sandbox, api) -> None:
        sandbox.control.configure(pdf_seconds=100)
        assert scrape(api, timeout=1000).status_code == 200


class TestFiles:
    """Screenshots, audio and video that a page was given, at addresses that expire."""

    @pytest.mark.rule("document-screenshot", "document-media", "document-media-expires")
    @each_row("kind, lifetime, content_type", LIFETIMES, before=reset_sandbox)
    def test_is_served_until_it_expires(
        self, sandbox, api, kind: str, lifetime: int, content_type: str
    ) -> None:
        sandbox.control.set_page(FILM, "<p>The flood</p>")
        sandbox.control.set_media(FILM, kind, b"\x00\x01bytes")
        url = document(api, FILM, formats=["markdown", kind])[kind]
        file = httpx.get(url, trust_env=False, verify=False)  # no key: the address is the permission
        assert (file.status_code, file.content) == (200, b"\x00\x01bytes")
        assert file.headers["content-type"] == content_type
        sandbox.control.advance(lifetime - 60)
        assert httpx.get(url, trust_env=False, verify=False).status_code == 200
        sandbox.control.advance(120)
        late = httpx.get(url, trust_env=False, verify=False)
        assert (late.status_code, late.json()) == (403, {"error": "ExpiredToken"})

    @pytest.mark.rule("credits-formats")
    @each_row("kind, cost", [("screenshot", 1), ("audio", 5), ("video", 5)], before=reset_sandbox)
    def test_cost(self, sandbox, api, kind: str, cost: int) -> None:
        sandbox.control.set_page(FILM, "<p>The flood</p>")
        sandbox.control.set_media(FILM, kind, b"x")
        assert document(api, FILM, formats=[kind])["metadata"]["creditsUsed"] == cost
        assert document(api, FILM, formats=[{"type": kind}])["metadata"]["creditsUsed"] == cost

    def test_a_page_without_one_is_still_refused(self, sandbox, api) -> None:
        sandbox.control.set_media(FILM, "screenshot", b"x")
        answer = scrape(api, formats=["screenshot"])
        assert (answer.status_code, answer.json()["code"]) == (400, "UNSUPPORTED_IN_SANDBOX")

    def test_large_and_of_another_type(self, sandbox, api) -> None:
        sandbox.control.set_page(FILM, "<p>The flood</p>")
        sandbox.control.set_media(FILM, "video", size=5_000_000, content_type="video/webm")
        file = httpx.get(document(api, FILM, formats=["video"])["video"], trust_env=False, verify=False)
        assert len(file.content) == int(file.headers["content-length"]) == 5_000_000
        assert file.headers["content-type"] == "video/webm"

    def test_addresses_cannot_be_made_up(self, sandbox, api) -> None:
        sandbox.control.set_page(FILM, "<p>The flood</p>")
        sandbox.control.set_media(FILM, "audio", b"x")
        url = document(api, FILM, formats=["audio"])["audio"]
        plain, _, query = url.partition("?")
        for other in (
            plain,
            f"{plain}?{query}0",
            f"{plain}?expires={'9' * 12}&{query.partition('&')[2]}",
            f"{plain}?expires={'9' * 5000}&{query.partition('&')[2]}",
            f"{plain[:-1]}{'0' if plain[-1] != '0' else '1'}?{query}",
        ):
            assert httpx.get(other, trust_env=False, verify=False).status_code == 403, other

    def test_in_a_batch_and_its_events(self, sandbox, api) -> None:
        sandbox.control.set_page(FILM, "<p>The flood</p>")
        sandbox.control.set_media(FILM, "screenshot", b"png")
        body = {"urls": [FILM, FLOODS], "formats": ["screenshot"]}
        path = f"/v2/batch/scrape/{api.http.post('/v2/batch/scrape', json=body).json()['id']}"
        sandbox.control.settle()
        (found,) = api.http.get(path).json()["data"]
        assert httpx.get(found["screenshot"], trust_env=False, verify=False).content == b"png"
        (error,) = api.http.get(f"{path}/errors").json()["errors"]
        assert error["url"] == FLOODS

    @each_row(
        "how",
        [
            {"kind": "hologram", "content": b"x"},
            {"kind": "video"},
            {"kind": "video", "content": b"x", "size": 1},
            {"kind": "video", "size": -1},
        ],
    )
    def test_control_checks(self, sandbox, how: dict[str, Any]) -> None:
        with pytest.raises(ControlError):
            sandbox.control.set_media(FILM, **how)

    def test_after_a_restart(self, tmp_path) -> None:
        state = str(tmp_path / "state.sqlite")
        with SandboxServer(state=state) as server, opened(server) as api:
            server.control.set_page(FILM, "<p>The flood</p>")
            server.control.set_media(FILM, "audio", b"x")
            first = document(api, FILM, formats=["audio"])["audio"]
        with SandboxServer(state=state) as server, opened(server) as api:
            moved = httpx.URL(first).copy_with(port=httpx.URL(server.url).port)
            assert httpx.get(moved, trust_env=False, verify=False).content == b"x"
            assert (
                httpx.get(
                    document(api, FILM, formats=["audio"])["audio"], trust_env=False, verify=False
                ).content
                == b"x"
            )
