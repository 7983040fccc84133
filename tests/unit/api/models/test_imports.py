"""The models stand alone, and what is slow to import waits until it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys

class NoAirflow:
    def find_spec(self, name, path=None, target=None):
        if name == "airflow" or name.startswith("airflow."):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, NoAirflow())
from airflow_provider_webdata.api import models, query
request = models.SearchRequest(query=query.Query("q"), tbs=query.tbs("2026-05-01", "2026-05-02"))
assert request.to_wire() == {"query": "q", "tbs": "cdr:1,cd_min:05/01/2026,cd_max:05/02/2026"}
print(" ".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """Return what an interpreter without Airflow holds after using the models."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("package", ["airflow", "httpx", "jsonschema", "pendulum", "croniter", "sqlalchemy"])
def test_importing_the_models_does_not_import(imported: set[str], package: str) -> None:
    assert "pydantic" in imported
    assert package not in imported
