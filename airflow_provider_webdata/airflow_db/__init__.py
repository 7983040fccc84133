# SPDX-License-Identifier: Apache-2.0
"""Everything that depends on Airflow's internals: its database models, managers, and private modules.

The rest of the package imports only what Airflow documents: the task SDK, exceptions, configuration, metrics, and the
base classes of triggers, plugins, and commands. After a release of Airflow, read this room again.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
