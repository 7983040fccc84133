# SPDX-License-Identifier: Apache-2.0
"""Loads of results files into tables: file readers, layouts, and one transactional loader for each database."""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
