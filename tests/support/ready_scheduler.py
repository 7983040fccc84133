# SPDX-License-Identifier: Apache-2.0
"""Airflow's scheduler with the package imported: `python ready_scheduler.py`.

Tasks fork from it, and do not spend half their CPU time on imports.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import airflow.__main__

# Subpackages that tasks use.
ROOMS = (
    "api",
    "base",
    "hooks",
    "operators",
    "policies",
    "results",
    "sensors",
    "transfers",
    "triggers",
    "waiting",
)

# DAG files do not see the other modules here.
sys.path.pop(0)
for room in ROOMS:
    package = importlib.import_module(f"airflow_provider_webdata.{room}")
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)
sys.argv = ["airflow", "scheduler"]
airflow.__main__.main()  # type: ignore[no-untyped-call]
