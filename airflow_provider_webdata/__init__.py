"""Apache Airflow provider for a web data service: search, monitors and the waiting between them.

Nothing is imported here, so that every room costs only what it brings itself.
"""

from __future__ import annotations

__version__ = "0.1.0"
