# SPDX-License-Identifier: Apache-2.0
"""Everything that depends on Airflow's internals: its database models, managers, and private modules.

docs/contributing/private_parts.md lists them, and what the rest of the package uses of Airflow without being documented.
After a release of Airflow, read this room again.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
