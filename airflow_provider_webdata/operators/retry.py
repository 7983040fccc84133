"""The retry policy of the provider's tasks, for use in any task that calls `WebDataHook`."""

from airflow_provider_webdata.base.retry_policy import WebDataRetryPolicy

__all__ = ["WebDataRetryPolicy"]
