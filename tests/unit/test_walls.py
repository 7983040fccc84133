"""What may be imported by whom, where the import linter cannot see it: at run time, and at what moment."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCK_AIRFLOW = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name == "airflow" or name.startswith("airflow."):
            raise ImportError(f"{name} was imported")
sys.meta_path.insert(0, Block())
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "module",
    [
        "api.client",
        "api.models",
        "api.query",
        "api.errors",
        "api.endpoints",
        "sandbox.server",
        "sandbox.__main__",
    ],
)
def test_no_airflow_needed(module: str) -> None:
    run(f"{BLOCK_AIRFLOW}\nimport airflow_provider_webdata.{module}")


@pytest.mark.parametrize(
    ("module", "too_heavy"),
    [
        ("plugin", "fastapi starlette httpx sqlalchemy airflow_provider_webdata.api"),
        (
            "operators.search",
            "airflow_provider_webdata.api airflow_provider_webdata.hooks airflow_provider_webdata.results",
        ),
        ("results.output", "pyarrow httpx fsspec airflow_provider_webdata.api"),
        ("results.media", "pyarrow fsspec airflow_provider_webdata.api"),
        ("operators.monitor", "airflow_provider_webdata.api airflow_provider_webdata.hooks"),
        ("sensors.monitor", "airflow_provider_webdata.api airflow_provider_webdata.triggers"),
        ("sensors.webhook", "airflow_provider_webdata.api airflow_provider_webdata.triggers"),
        (
            "cli",
            "starlette uvicorn sqlalchemy airflow_provider_webdata.sandbox airflow_provider_webdata.api "
            "airflow_provider_webdata.inbox",
        ),
        ("get_provider_info", "airflow pydantic httpx"),
        ("sandbox.server", "airflow_provider_webdata.api airflow_provider_webdata.hooks"),
    ],
)
def test_imports_stay_light(module: str, too_heavy: str) -> None:
    needs_airflow = module not in {"get_provider_info", "sandbox.server"}
    run(
        ("import airflow.plugins_manager, airflow.sdk as sdk; sdk.BaseOperator\n" if needs_airflow else "")
        # Airflow's own part of the command line is not what is weighed.
        + ("import airflow.cli.cli_config\n" if module == "cli" else "")
        + "import sys\n"
        "before = set(sys.modules)\n"
        f"import airflow_provider_webdata.{module}\n"
        f"rooms = {too_heavy.split()!r}\n"
        "added = set(sys.modules) - before\n"
        "heavy = [name for name in added if any((name + '.').startswith(room + '.') for room in rooms)]\n"
        "assert not heavy, heavy"
    )
