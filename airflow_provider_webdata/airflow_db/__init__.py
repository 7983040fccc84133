# SPDX-License-Identifier: Apache-2.0
"""Everything that depends on Airflow's internals: its database models, managers, and private modules.

docs/contributing/private_parts.md lists them, and the undocumented parts of Airflow that the rest of the package uses.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
