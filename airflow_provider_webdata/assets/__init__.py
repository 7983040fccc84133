# SPDX-License-Identifier: Apache-2.0
"""Airflow assets for objects of the service, for use in DAG files."""
