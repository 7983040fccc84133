# SPDX-License-Identifier: Apache-2.0
"""Task execution. Operators and sensors only declare; these modules are imported when a task executes."""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
