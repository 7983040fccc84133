"""The JSON-LD of a page: structured data that the page states itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .page import Page


def json_ld(page: Page) -> Any:
    """Return the JSON-LD that the page embeds, or None: nothing is guessed from its text."""
    for node in page.tree.iter("script"):
        if node.get("type") == "application/ld+json":
            try:
                return json.loads(node.text_content())
            except ValueError:
                return None
    return None
