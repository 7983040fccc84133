# SPDX-License-Identifier: Apache-2.0
"""States of checks and jobs, and their outcomes for a wait.

Pure decisions, shared by triggers, sensors, and operators, and the storage of their criteria and outcomes. This package
neither calls the service nor depends on Airflow.
"""
