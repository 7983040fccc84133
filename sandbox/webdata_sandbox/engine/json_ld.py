# SPDX-License-Identifier: Apache-2.0
"""The JSON-LD of a page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .page import Page


def json_ld(page: Page) -> Any:
    """Return the JSON-LD embedded in the page, or None."""
    for node in page.tree.iter("script"):
        if node.get("type") == "application/ld+json":
            try:
                return json.loads(node.text_content())
            except ValueError:
                return None
    return None
