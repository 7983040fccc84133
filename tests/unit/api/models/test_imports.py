# SPDX-License-Identifier: Apache-2.0
"""The models work without Airflow, and modules that are slow to import wait until they are needed."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys

class NoAirflow:
    def find_spec(self, name, path=None, target=None):
        if name == "airflow" or name.startswith("airflow."):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, NoAirflow())
from airflow_provider_webdata.api import models, query
request = models.SearchRequest(query=query.phrase("q"), tbs=query.tbs("2026-05-01", "2026-05-02"))
assert request.to_wire() == {"query": '"q"', "tbs": "cdr:1,cd_min:05/01/2026,cd_max:05/02/2026"}
print(" ".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""
UNNEEDED = {"airflow", "croniter", "httpx", "jsonschema", "sqlalchemy"}


def test_models_import_no_slow_modules() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported = {*done.stdout.split()}
    assert "pydantic" in imported
    assert imported & UNNEEDED == set()
