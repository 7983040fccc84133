# SPDX-License-Identifier: Apache-2.0
"""Base classes and helpers of operators and sensors: arguments, masking, deferral, links, and retries.

Keep module-level imports light: they slow down the parsing of every DAG file.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
