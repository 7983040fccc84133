"""Features of the installed Airflow."""

from __future__ import annotations

from airflow_provider_webdata.common.supported_airflow import airflow_release

HAS_PARTITIONS = airflow_release() >= (3, 3)
HAS_LOOPS = airflow_release() >= (3, 4)
"""A task group can be repeated in a loop."""
