# SPDX-License-Identifier: Apache-2.0
"""Tests on a whole Airflow: its scheduler, triggerer and API server, beside the sandbox."""
