# SPDX-License-Identifier: Apache-2.0
"""Sensors that wait for a check of a monitor, a job, or any delivery.

One module per sensor. `states` decides which checks count; `tasks` contains the code shared with operators.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
