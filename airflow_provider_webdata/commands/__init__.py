# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata ...`, one file for each command or group; `cli` declares their flags."""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
