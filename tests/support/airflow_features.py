# SPDX-License-Identifier: Apache-2.0
"""Features of the installed Airflow."""

from __future__ import annotations

from airflow_provider_webdata.common.supported_airflow import airflow_release

FRAME = "/plugin/webdata" if airflow_release() >= (3, 3, 2) else ""
"""What precedes the path of a page in an address within Airflow's frame."""
HAS_LOOPS = airflow_release() >= (3, 4)
"""A task group can be repeated in a loop."""
