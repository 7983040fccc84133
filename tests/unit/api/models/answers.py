"""A document with everything that the service may say of a page."""

from __future__ import annotations

from tests.unit.api.models.limits import SITE, UUID

METADATA = {
    "title": ["T", "U"],
    "language": None,
    "ogLocaleAlternate": ["de"],
    "dc.creator": ["a", "b"],
    "contentType": "text/html",
    "scrapeId": UUID,
    "concurrencyLimited": True,
    "concurrencyQueueDurationMs": 12.5,
    "proxyUsed": "stealth",
    "cacheState": "hit",
    "cachedAt": "2026-08-21T10:00:00.000Z",
    "creditsUsed": 5,
    "statusCode": 404,
    "sourceURL": SITE,
    "sourceFile": "a.pdf",
}
BLOCK = {
    "id": "p1.b1",
    "type": "table",
    "label": None,
    "bbox": {"x0": 0, "y0": 0.5, "x1": 1, "y1": 1},
    "content": "| a |",
    "markdownSpan": {"start": 0, "end": 5},
    "readingOrder": 1,
    "source": "native_text",
    "confidence": {"layout": 0.9, "ocr": None},
}
DOCUMENT = {
    "markdown": "# a",
    "html": None,
    "rawHtml": "<p>",
    "links": [SITE],
    "json": {"a": [1]},
    "changeTracking": {
        "previousScrapeAt": None,
        "changeStatus": "new",
        "visibility": "visible",
        "diff": {"text": "-a", "json": {"files": [{"from": "a", "to": "b", "chunks": []}]}},
        "json": {"price": {"previous": 1, "current": 2}},
    },
    "branding": {
        "colorScheme": "dark",
        "colors": {"primary": "#fff"},
        "fonts": [{"family": "A"}],
        "tone": None,
    },
    "product": {"title": "t", "url": SITE, "variants": [{"price": {"amount": 1.5}}]},
    "menu": {"isMenu": True, "sections": []},
    "attributes": [{"selector": "a", "attribute": "href", "values": ["x"]}],
    "pages": [{"pageNumber": 1, "markdown": "x"}],
    "blocks": [{"pageNumber": 1, "width": None, "height": None, "status": "partial", "items": [BLOCK]}],
    "actions": {
        "screenshots": [SITE],
        "scrapes": [{"url": SITE, "html": "<p>"}],
        "javascriptReturns": [{"type": "number", "value": 4}],
        "pdfs": [SITE],
    },
    "warning": None,
    "metadata": METADATA,
}
