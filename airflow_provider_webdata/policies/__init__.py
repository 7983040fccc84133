# SPDX-License-Identifier: Apache-2.0
"""Retry policies, for use in DAG files."""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
