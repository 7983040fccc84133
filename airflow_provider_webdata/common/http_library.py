"""The HTTP library of the package, imported only here, so that another one of the same interface takes one change."""

from __future__ import annotations

import httpcore
import httpx

__all__ = ["httpcore", "httpx"]
