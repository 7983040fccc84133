# SPDX-License-Identifier: Apache-2.0
"""Extraction returns what a page states, whether or not it satisfies the schema, so that a rejection shows."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from tests.support.tables import each_row

from .conftest import reset_sandbox
from .step_job_calls import done

SHOP = "https://bounds.example/"
OFFER = {
    "type": "object",
    "properties": {
        "price": {"type": "number", "minimum": 1},
        "stock": {"type": "integer", "minimum": 0, "maximum": 10},
        "currency": {"type": "string", "enum": ["EUR", "USD"]},
        "sku": {"type": "string", "pattern": "^[0-9]{4}$"},
        "sold": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    },
    "required": ["price"],
}
OUT_OF_BOUNDS = {"price": -3, "stock": "n/a", "currency": "Taler", "sku": "x", "sold": True}
LINES = ("Price: -3 EUR", "Stock: n/a", "Currency: Taler", "SKU: x", "Sold: yes")
LINKED = f'<script type="application/ld+json">{json.dumps(OUT_OF_BOUNDS)}</script>'
METAS = (
    '<meta name="price" content="-3"><meta name="stock" content="n/a"><meta name="currency" content="Taler">'
)
METAS += '<meta name="sku" content="x"><meta name="sold" content="true">'
STATEMENTS = {
    "json-ld": LINKED,
    "meta": METAS,
    "text": "".join(f"<p>{line}</p>" for line in LINES),
}


def pdf(*pages: tuple[str, ...]) -> bytes:
    """Return a PDF with lines of text."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for lines in pages:
        page = writer.add_blank_page(600, 800)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        stream = DecodedStreamObject()
        drawn = " ".join(f"({line}) Tj 0 -20 Td" for line in lines)
        stream.set_data(f"BT /F1 12 Tf 50 700 Td {drawn} ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    content = io.BytesIO()
    writer.write(content)
    return content.getvalue()


def extracted(response: Any) -> Any:
    assert response.status_code == 200, response.text
    document = response.json()["data"]
    return document["json"], document.get("warning")


def parsed(api: Any, name: str, content: bytes, **options: Any) -> Any:
    form = {"options": json.dumps({"formats": [{"type": "json", "schema": OFFER}], **options})}
    return extracted(api.http.post("/v2/parse", data=form, files={"file": (name, content)}))


@pytest.mark.rule("format-json", "document-answers")
@each_row("where", STATEMENTS, before=reset_sandbox)
def test_a_page_that_breaks_the_schema(api: Any, where: str) -> None:
    api.sandbox.control.set_page(SHOP, STATEMENTS[where], title="Offer")
    body = {"url": SHOP, "formats": [{"type": "json", "schema": OFFER}]}
    assert extracted(api.http.post("/v2/scrape", json=body)) == (OUT_OF_BOUNDS, None)


@each_row("kind", ["extract", "agent"], before=reset_sandbox)
def test_jobs_that_break_the_schema(sandbox: Any, api: Any, kind: str) -> None:
    sandbox.control.set_page(SHOP, LINKED)
    more = {"prompt": "offer", "strictConstrainToURLs": True} if kind == "agent" else {}
    found = done(sandbox, api, kind, urls=[SHOP], schema=OFFER, **more)
    assert (found["status"], found["data"]) == ("completed", OUT_OF_BOUNDS)


def test_a_partial_result_that_breaks_the_schema_is_invalid(sandbox: Any, api: Any) -> None:
    sandbox.control.set_page(SHOP, LINKED)
    found = done(sandbox, api, "agent", prompt="offer", urls=[SHOP], schema=OFFER, maxCredits=5)
    assert found["stopReason"] == "credit_limit_reached"
    assert (found["partial"], found["partialSchemaValid"]) == (OUT_OF_BOUNDS, False)


def test_a_file_that_breaks_the_schema(api: Any) -> None:
    page = "".join(f"<p>{line}</p>" for line in LINES)
    assert parsed(api, "offer.html", page.encode()) == (OUT_OF_BOUNDS, None)
    assert parsed(api, "offer.pdf", pdf(LINES)) == (OUT_OF_BOUNDS, None)


def test_only_the_pages_that_are_read_state_something(api: Any) -> None:
    content = pdf(LINES[1:], LINES[:1])
    found, warning = parsed(api, "offer.pdf", content, parsers=[{"type": "pdf", "maxPages": 1}])
    assert found == {**OUT_OF_BOUNDS, "price": 1}
    assert "does not state price," in warning


def test_a_pdf_of_the_web(sandbox: Any, api: Any) -> None:
    url = "https://bounds.example/offer.pdf"
    text = "\n\n".join(("# Offer", *LINES))
    sandbox.control.set_page(url, markdown=text, content_type="application/pdf")
    body = {"url": url, "formats": [{"type": "json", "schema": OFFER}]}
    assert extracted(api.http.post("/v2/scrape", json=body)) == (OUT_OF_BOUNDS, None)


@pytest.mark.rule("parse-formats")
def test_the_text_of_a_pdf_is_summarized(api: Any) -> None:
    form = {"options": json.dumps({"formats": ["summary"]})}
    response = api.http.post("/v2/parse", data=form, files={"file": ("offer.pdf", pdf(LINES))})
    assert "Taler" in response.json()["data"]["summary"]


def test_answers_that_are_set_for_a_file(api: Any) -> None:
    given = {"price": "on request"}
    api.sandbox.control.set_page("file:///offer.pdf", json=given)
    assert parsed(api, "offer.pdf", pdf(LINES)) == (given, None)
    assert parsed(api, "other.pdf", pdf(LINES)) == (OUT_OF_BOUNDS, None)
    assert api.sandbox.control.delete_page("file:///offer.pdf") is False  # a file is no page
    assert parsed(api, "offer.pdf", pdf(LINES)) == (OUT_OF_BOUNDS, None)


def test_blocks_of_a_file(api: Any) -> None:
    form = {"options": json.dumps({"parsers": [{"type": "pdf", "blocks": True}]})}
    files = {"file": ("offer.pdf", pdf(LINES))}
    refused = api.http.post("/v2/parse", data=form, files=files)
    assert (refused.status_code, refused.json()["code"]) == (400, "UNSUPPORTED_IN_SANDBOX")
    line = refused.json()["error"].partition("Set it for the page: ")[2]
    exec(line, {"control": api.sandbox.control})
    assert api.http.post("/v2/parse", data=form, files=files).json()["data"]["blocks"][0]["pageNumber"] == 1


@each_row(
    "text, number",
    [
        ("12", 12),
        ("-0.5 %", -0.5),
        ("€ 12.50", 12.5),
        ("412 cm", 412),
        ("1,299.00", "1,299.00"),
        ("about 3", "about 3"),
        ("3 or 4", "3 or 4"),
        ("", None),
    ],
    before=reset_sandbox,
)
def test_numbers_in_text(api: Any, text: str, number: Any) -> None:
    api.sandbox.control.set_page(SHOP, f"<p>Price: {text}</p>")
    schema = {"type": "object", "properties": {"price": {"type": ["number", "null"], "default": None}}}
    body = {"url": SHOP, "formats": [{"type": "json", "schema": schema}]}
    assert extracted(api.http.post("/v2/scrape", json=body))[0] == {"price": number}
