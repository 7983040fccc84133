# SPDX-License-Identifier: Apache-2.0
"""Apache Airflow provider for a web data service.

This module imports nothing, so that each subpackage costs only its own imports.
"""

from __future__ import annotations

__version__ = "0.1.0"
