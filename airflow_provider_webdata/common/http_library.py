# SPDX-License-Identifier: Apache-2.0
"""The HTTP library of the package, imported only here, so that it can be replaced by a compatible one in one place.

With httpx2 and httpcore2 2.16 instead, all tests of the client pass, including its fault table. Airflow 3.4 requires
both httpx and httpx2, which needs Python 3.11.
"""

from __future__ import annotations

import httpcore
import httpx

__all__ = ["httpcore", "httpx"]
