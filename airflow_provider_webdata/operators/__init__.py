# SPDX-License-Identifier: Apache-2.0
"""The operators, for use in DAG files.

One module per operation; `monitor` contains the operators for monitors. An operator defines its arguments; shared code
is in `tasks`. Keep module-level imports light: they slow down the parsing of every DAG file.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
