# SPDX-License-Identifier: Apache-2.0
"""Runs of tasks in the process of a test."""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
