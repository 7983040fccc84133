# SPDX-License-Identifier: Apache-2.0
"""The service as agent tools, for `apache-airflow-providers-common-ai` (extra `ai`).

`WebDataToolset` is in `webdata.py`. No other module of the package imports this one, so the extra is optional.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
