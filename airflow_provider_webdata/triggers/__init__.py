# SPDX-License-Identifier: Apache-2.0
"""Triggers of deferred tasks and asset watchers. Airflow stores them by import path and arguments.

Import paths and arguments of released triggers never change. A trigger defines its target and its event; `waiting`
implements the wait.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
