# SPDX-License-Identifier: Apache-2.0
"""Demonstrations with the sandbox and a real Airflow, started and stopped from Python.

`make demo`, `make up`, and `make down` run `python -m demo`; the end-to-end tests use `tests.support.stack` directly.
This package is not installed.
"""
