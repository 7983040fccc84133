# SPDX-License-Identifier: Apache-2.0
"""What the tests of search share."""

from __future__ import annotations

from typing import Any

RIVER = "river.example"
PDF = "journal.example/papers/fish-ladders.pdf"


def document(api, url: str, **options: Any) -> dict[str, Any]:
    response = api.search(f"inurl:{url}", limit=1, scrapeOptions=options)
    assert response.status_code == 200, response.text
    return response.json()["data"]["web"][0]
