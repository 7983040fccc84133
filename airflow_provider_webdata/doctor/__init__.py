"""Checks of each connection that change nothing, and the command that prints them.

Each check gives one finding with what to do about it. `airflow webdata doctor` runs all, the pages in Airflow's UI
those that are quick (`examination.quick_findings`).
"""

from __future__ import annotations

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
