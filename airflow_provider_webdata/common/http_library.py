"""The HTTP library of the package, imported only here, so that another one of the same interface takes one change.

With httpx2 and httpcore2 2.16 in place of these two, all tests of the client pass, those of its fault table included:
no difference was found. Airflow 3.4 requires httpx beside httpx2, which needs Python 3.11.
"""

from __future__ import annotations

import httpcore
import httpx

__all__ = ["httpcore", "httpx"]
