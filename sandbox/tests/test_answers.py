# SPDX-License-Identifier: Apache-2.0
"""What stands in for a language model: json, questions, highlights; and the answers that a page is given."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.tables import each_row
from webdata_sandbox.control import ControlError

from .conftest import reset_sandbox

SHOP = "https://shop.example/kettles"
FLOODS = "https://river.example/floods"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "offers": {
            "type": "object",
            "properties": {"price": {"type": "number"}, "taxes": {"type": "number"}},
        },
        "colours": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
}
JSON = {"type": "json", "schema": SCHEMA, "prompt": "What does it cost?"}


def scraped(api, formats: list[Any], url: str = SHOP, **options: Any) -> dict[str, Any]:
    answer = api.http.post("/v2/scrape", json={"url": url, "formats": formats, **options})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def of_job(api, path: str, body: dict[str, Any]) -> dict[str, Any]:
    job = api.http.post(path, json=body).json()["id"]
    api.sandbox.control.settle()
    status = api.http.get(f"{path}/{job}").json()
    assert status["completed"] == 1, api.http.get(f"{path}/{job}/errors").text
    return status["data"][0]


def searched(api, formats: list[Any]) -> dict[str, Any]:
    answer = api.search("inurl:shop.example/kettles", scrapeOptions={"formats": formats}).json()
    (item,) = answer["data"]["web"]
    return {**item, "warning": answer.get("warning")}


def parsed(api, formats: list[Any]) -> dict[str, Any]:
    import json

    page = api.http.post("/v2/scrape", json={"url": SHOP, "formats": ["rawHtml"]}).json()["data"]["rawHtml"]
    form = {"options": json.dumps({"formats": formats})}
    return api.http.post("/v2/parse", data=form, files={"file": ("a.html", page.encode())}).json()["data"]


WAYS: dict[str, Callable[[Any, list[Any]], dict[str, Any]]] = {
    "scrape": scraped,
    "batch": lambda api, formats: of_job(api, "/v2/batch/scrape", {"urls": [SHOP], "formats": formats}),
    "crawl": lambda api, formats: of_job(
        api, "/v2/crawl", {"url": SHOP, "limit": 1, "scrapeOptions": {"formats": formats}}
    ),
    "search": searched,
    "parse": parsed,
}


class TestJson:
    @pytest.mark.rule("format-json", "document-answers")
    @each_row("way", WAYS, before=reset_sandbox)
    def test_what_the_page_states_and_samples_for_the_rest(self, api, way: str) -> None:
        found = WAYS[way](api, [JSON])
        assert found["json"]["name"] == "Gooseneck kettle"
        assert found["json"]["offers"]["price"] == 75.5
        assert found["json"]["offers"]["taxes"] == 0
        assert found["json"]["colours"] == ["sample"]
        assert "does not state offers.taxes, colours, " in found["warning"]
        assert found["metadata"]["creditsUsed"] == 5

    def test_numbers_in_texts_and_the_price_of_an_offer(self, api) -> None:
        """Meta tags have only texts; a product's price is that of its first offer."""
        number, text = {"type": ["number", "null"]}, {"type": "string"}
        whole = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
        properties = {"price": number, "stock": whole, "sku": text, "size": number, "priceCurrency": text}
        offers = {"type": "array", "items": {"properties": {"price": number}}}
        linked = '{"name": "Mug", "offers": [{"price": "12.50", "priceCurrency": "EUR"}, {"price": "9"}]}'
        api.sandbox.control.set_page(
            "https://mugs.example/",
            '<meta name="stock" content="7"><meta name="sku" content="0042"><meta name="size" content="nan">'
            f'<script type="application/ld+json">{linked}</script>',
        )
        schema = {"type": "object", "properties": {**properties, "offers": offers}}
        found = scraped(api, [{"type": "json", "schema": schema}], "https://mugs.example/")
        assert found["json"] == {
            "price": 12.5, "stock": 7, "sku": "0042", "priceCurrency": "EUR", "size": "nan",
            "offers": [{"price": 12.5, "priceCurrency": "EUR"}, {"price": 9}],
        }  # fmt: skip
        assert "warning" not in found

    def test_without_a_schema(self, api) -> None:
        found = scraped(api, ["json"])
        assert found["json"]["@type"] == "Product"
        assert "without a schema" in found["warning"]

    def test_all_stated_warns_of_nothing(self, api) -> None:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        found = scraped(api, [{"type": "json", "schema": schema}])
        assert found["json"] == {"name": "Gooseneck kettle"}
        assert "warning" not in found

    @each_row(
        "schema, value",
        [
            (
                {"type": "array", "items": {"properties": {"name": {}, "stock": {"type": "integer"}}}},
                [{"name": "Gooseneck kettle", "stock": 0}],
            ),
            (
                {"$ref": "#/$defs/it", "$defs": {"it": {"properties": {"name": {"type": "string"}}}}},
                {"name": "Gooseneck kettle"},
            ),
            ({"type": "string"}, "sample"),
            ({"type": "object", "properties": {"name": {"type": "integer"}}}, {"name": "Gooseneck kettle"}),
            (
                {"type": "object", "properties": {"rent": {"minimum": 1, "exclusiveMinimum": True}}},
                {"rent": "sample"},
            ),
        ],
    )
    def test_schemas_of_other_shapes_and_drafts(self, api, schema: dict[str, Any], value: Any) -> None:
        assert scraped(api, [{"type": "json", "schema": schema}])["json"] == value

    @each_row("kind", ["json", "changeTracking"])
    def test_what_is_no_schema_is_refused(self, api, kind: str) -> None:
        body = {"url": SHOP, "formats": ["markdown", {"type": kind, "schema": {"type": "nothing"}}]}
        answer = api.http.post("/v2/scrape", json=body)
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"] == ["formats", 1, "schema"]


class TestSentences:
    @pytest.mark.rule("format-question", "document-answers", "credits-formats")
    def test_a_question(self, api) -> None:
        found = scraped(api, [{"type": "question", "question": "How high is the level?"}], FLOODS)
        assert "412 cm" in found["answer"]
        assert "Move cars" not in found["answer"]
        assert "share a word with the question" in found["warning"]
        assert found["metadata"]["creditsUsed"] == 5

    @pytest.mark.rule("format-highlights")
    def test_highlights(self, api) -> None:
        found = scraped(api, [{"type": "highlights", "query": "level"}, "summary"], FLOODS)
        assert "412 cm" in found["highlights"]
        assert "share a word with the query" in found["warning"]
        assert "first sentences" in found["warning"]

    @each_row(
        "item, field",
        [
            ({"type": "question", "question": "Zeppelin?"}, "answer"),
            ({"type": "highlights", "query": "zeppelin"}, "highlights"),
        ],
    )
    def test_nothing_of_it_on_the_page(self, api, item: dict[str, str], field: str) -> None:
        found = scraped(api, [item])
        assert found[field] is None
        assert "no sentence" in found["warning"]


@pytest.mark.rule("format-further")
def test_attributes(api) -> None:
    selectors = [{"selector": "nav a", "attribute": "href"}, {"selector": "h1", "attribute": "id"}]
    first, second = scraped(api, [{"type": "attributes", "selectors": selectors}])["attributes"]
    assert first == {**selectors[0], "values": ["/", *first["values"][1:]]}
    assert second == {**selectors[1], "values": []}


GIVEN: list[tuple[str, dict[str, Any]]] = [
    ("screenshot", {"formats": ["screenshot"]}),
    ("screenshot", {"formats": ["markdown", {"type": "screenshot", "fullPage": True}]}),
    ("audio", {"formats": ["audio"]}),
    ("video", {"formats": ["video"]}),
    ("branding", {"formats": ["branding"]}),
    ("product", {"formats": ["product"]}),
    ("menu", {"formats": ["menu"]}),
    ("actions", {"actions": [{"type": "click", "selector": "a"}, {"type": "screenshot"}]}),
]


class TestGivenAnswers:
    def line(self, error: str) -> str:
        (line,) = re.findall(r"control\.set_page\(.*\)$", error)
        return line

    @pytest.mark.rule("format-plain", "document-brand", "document-actions")
    @each_row("field, options", GIVEN, before=reset_sandbox)
    def test_the_refusal_has_the_line_to_write(
        self, sandbox, api, field: str, options: dict[str, Any]
    ) -> None:
        body = {"url": SHOP, **options}
        refused = api.http.post("/v2/scrape", json=body)
        assert (refused.status_code, refused.json()["code"]) == (400, "UNSUPPORTED_IN_SANDBOX")
        assert api.balance() == 100_000

        exec(self.line(refused.json()["error"]), {"control": sandbox.control})
        found = scraped(api, body.pop("formats", ["markdown"]), **{k: body[k] for k in body if k != "url"})
        assert found[field]
        assert found["metadata"]["title"]  # the page itself is as it was

    @pytest.mark.rule("document-blocks", "parser-pdf", "document-pdf-pages")
    def test_layout_and_pages_of_a_pdf(self, sandbox, api) -> None:
        url = "https://journal.example/papers/fish-ladders.pdf"
        body = {"url": url, "parsers": [{"type": "pdf", "blocks": True, "pages": True, "pageMarkers": True}]}
        refused = api.http.post("/v2/scrape", json=body)
        assert refused.status_code == 400
        exec(self.line(refused.json()["error"]), {"control": sandbox.control})
        found = api.http.post("/v2/scrape", json=body).json()["data"]
        assert found["blocks"] == [{"pageNumber": 1, "items": []}]
        assert [page["pageNumber"] for page in found["pages"]] == [1, 2, 3]
        assert all(page["markdown"] in found["markdown"] for page in found["pages"])
        assert re.findall(r"^---\n\n<!-- Page (\d) -->$", found["markdown"], re.MULTILINE) == ["2", "3"]

    @each_row("way", [way for way in WAYS if way != "parse"], before=reset_sandbox)
    def test_in_every_operation(self, sandbox, api, way: str) -> None:
        given = {"price": 12, "of": "an hour ago"}
        sandbox.control.set_page(SHOP, json=given, branding={"colorScheme": "dark"})
        found = WAYS[way](api, [JSON, "branding"])
        assert (found["json"], found["branding"]) == (given, {"colorScheme": "dark"})
        assert found.get("warning") is None

    def test_wins_over_what_the_sandbox_would_say(self, sandbox, api) -> None:
        scraped(api, ["markdown"])  # which is in the cache from now on
        sandbox.control.set_page(SHOP, answer="75.50 EUR", highlights="Sold out")
        formats = [{"type": "question", "question": "Price?"}, {"type": "highlights", "query": "stock"}]
        found = scraped(api, formats)
        assert (found["answer"], found["highlights"]) == ("75.50 EUR", "Sold out")
        assert "warning" not in found

    def test_until_it_is_taken_away(self, sandbox, api) -> None:
        def status() -> int:
            return api.http.post("/v2/scrape", json={"url": SHOP, "formats": ["menu"]}).status_code

        sandbox.control.set_page(SHOP, menu={"isMenu": False})
        assert status() == 200
        sandbox.control.set_page(SHOP, "<p>New</p>")
        assert status() == 200
        sandbox.control.set_page(SHOP, menu=None)
        assert status() == 400
        sandbox.control.set_page(SHOP, menu={"isMenu": False})
        sandbox.control.delete_page(SHOP)
        assert status() == 400
        sandbox.control.reset()
        assert status() == 400

    def test_a_job_says_it_of_each_page(self, sandbox, api) -> None:
        sandbox.control.set_page(SHOP, menu={"isMenu": False})
        body = {"urls": [SHOP, FLOODS], "formats": ["menu"]}
        path = f"/v2/batch/scrape/{api.http.post('/v2/batch/scrape', json=body).json()['id']}"
        sandbox.control.settle()
        assert len(api.http.get(path).json()["data"]) == 1
        (error,) = api.http.get(f"{path}/errors").json()["errors"]
        assert (
            self.line(error["error"])
            == f'control.set_page("{FLOODS}", menu={{"isMenu": True, "sections": []}})'
        )

    @each_row(
        "page",
        [
            {"screenshot": 5},
            {"branding": "blue"},
            {"blocks": {}},
            {"hologram": {}},
            {"json": {}, "title": "A title alone"},
        ],
    )
    def test_control_checks(self, sandbox, page: dict[str, Any]) -> None:
        with pytest.raises(ControlError):
            sandbox.control.set_page(SHOP, **page)

    def test_a_page_that_is_not_there(self, sandbox) -> None:
        with pytest.raises(ControlError, match="pass html or markdown to create it"):
            sandbox.control.set_page("https://nowhere.example/", json={})
