# SPDX-License-Identifier: Apache-2.0
"""Transfers, for use in DAG files: results that other tasks wrote, loaded into other systems."""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
