# SPDX-License-Identifier: Apache-2.0
"""The inbox server: `http` on top of `storage`, and their integration with Airflow.

The integration consists of the application that the plugin mounts, the process of `airflow webdata inbox serve`, and
the DB manager. `plugin` and `cli` import this package lazily.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
