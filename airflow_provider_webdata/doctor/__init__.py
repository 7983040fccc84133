"""Read-only health checks for connections and the installation.

Each check returns one finding with the next step. `airflow webdata doctor` runs all checks; the pages in Airflow's UI
run the quick ones (`examination.quick_findings`).
"""

from __future__ import annotations

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
