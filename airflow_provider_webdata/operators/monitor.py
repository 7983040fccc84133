"""The operators for monitors: declare, change, delete, run and list them."""

from __future__ import annotations

from airflow_provider_webdata.operators.monitor_create import WebDataCreateMonitorOperator
from airflow_provider_webdata.operators.monitor_delete import WebDataDeleteMonitorOperator
from airflow_provider_webdata.operators.monitor_list import WebDataListMonitorsOperator
from airflow_provider_webdata.operators.monitor_run import WebDataRunMonitorOperator
from airflow_provider_webdata.operators.monitor_update import WebDataUpdateMonitorOperator

__all__ = [
    "WebDataCreateMonitorOperator",
    "WebDataDeleteMonitorOperator",
    "WebDataListMonitorsOperator",
    "WebDataRunMonitorOperator",
    "WebDataUpdateMonitorOperator",
]
