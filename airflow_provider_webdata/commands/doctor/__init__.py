# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata doctor`: read-only health checks for connections and the installation.

Each check returns one finding with the next step. `checks` has the list, and `report` prints the findings.
"""
