"""The pages in Airflow's UI: the service, the inbox, the waits and the credits, read-only.

The plugin mounts them on the API server; nothing here is imported before the first visit. Pages read the inbox through
`inbox_server.storage`, Airflow's tables through its own models, and the service through a connection's hook, with a
deadline. Who may see what is Airflow's decision.
"""

from __future__ import annotations

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
