# SPDX-License-Identifier: Apache-2.0
"""Support code shared by the tests of several rooms, the demo, and the benchmarks.

It has servers that stand in for the service, an Airflow to start and follow, databases, and functions that wait.
Nothing here is part of the installed package, and nothing here needs pytest.
"""
