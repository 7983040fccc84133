# SPDX-License-Identifier: Apache-2.0
"""Operators that declare, update, delete, run, and list monitors. Each is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_webdata.operators.monitor.create import WebDataCreateMonitorOperator
    from airflow_provider_webdata.operators.monitor.delete import WebDataDeleteMonitorOperator
    from airflow_provider_webdata.operators.monitor.list import WebDataListMonitorsOperator
    from airflow_provider_webdata.operators.monitor.run import WebDataRunMonitorOperator
    from airflow_provider_webdata.operators.monitor.update import WebDataUpdateMonitorOperator

__all__ = [
    "WebDataCreateMonitorOperator",
    "WebDataDeleteMonitorOperator",
    "WebDataListMonitorsOperator",
    "WebDataRunMonitorOperator",
    "WebDataUpdateMonitorOperator",
]

_FILES = {
    "WebDataCreateMonitorOperator": "create",
    "WebDataDeleteMonitorOperator": "delete",
    "WebDataListMonitorsOperator": "list",
    "WebDataRunMonitorOperator": "run",
    "WebDataUpdateMonitorOperator": "update",
}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
