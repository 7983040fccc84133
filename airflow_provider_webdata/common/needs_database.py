# SPDX-License-Identifier: Apache-2.0
"""The requirement of commands that read Airflow's database, for their help and their errors."""

NEEDS_DATABASE = "This command needs Airflow's database: run it on the scheduler or the API server."
