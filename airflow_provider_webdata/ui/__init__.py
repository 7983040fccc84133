# SPDX-License-Identifier: Apache-2.0
"""Read-only pages in Airflow's UI about the service, the inbox, waiting tasks, and credits.

The plugin mounts the pages on the API server and imports this package on the first visit. Pages read the inbox through
`inbox_server.storage`, Airflow's tables through `airflow_db`, and the service through a connection's hook, with a
deadline. Airflow's auth manager controls access.
"""

from __future__ import annotations

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
