# SPDX-License-Identifier: Apache-2.0
"""Two DAGs that run once per completed check: for asset events of the API server, and for those of a watcher."""

from __future__ import annotations

from airflow.sdk import DAG, Asset, AssetWatcher

from airflow_provider_webdata.assets.monitor import monitor_asset
from airflow_provider_webdata.triggers.events import WebDataWebhookEventTrigger

SCHEDULED = "00000000-0000-4000-8000-000000000001"
WATCHED = "00000000-0000-4000-8000-000000000002"

trigger = WebDataWebhookEventTrigger("webdata_default", ["monitor.check.completed"], monitor_id=WATCHED)
watched = Asset("watched_checks", watchers=[AssetWatcher(name="completed", trigger=trigger)])

# Without tasks, a run has the minimum cost for the scheduler.
for dag_id, asset in (("on_scheduled", monitor_asset(SCHEDULED)), ("on_watched", watched)):
    globals()[dag_id] = DAG(dag_id, schedule=[asset], catchup=False)
