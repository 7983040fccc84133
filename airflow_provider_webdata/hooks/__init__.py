# SPDX-License-Identifier: Apache-2.0
"""Hooks: a validated Airflow connection, and each operation of the service as a typed method, blocking and async.

Decisions about tasks, task retries, and XCom belong in `tasks`.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
