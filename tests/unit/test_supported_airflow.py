# SPDX-License-Identifier: Apache-2.0
"""A missing or too old Airflow is named in one sentence by each part of the package that needs Airflow.

The old Airflow is a stub with a version and little else: real old versions differ in what they lack, and any import of
Airflow before the check fails here. A separate process finds the stub before the real package.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from airflow_provider_webdata import __version__
from airflow_provider_webdata.common.supported_airflow import OLDEST_AIRFLOW, require_airflow

ROOT = Path(__file__).parents[2]
OLDEST = ".".join(map(str, OLDEST_AIRFLOW))
NEEDS = f"airflow-provider-webdata {__version__} needs Apache Airflow {OLDEST} or newer"

IMPORT_ALL = """
import importlib, pkgutil, traceback
import airflow_provider_webdata as package

skipped = ("migrations", "__main__", "airflow_provider_webdata.cli")
for module in pkgutil.walk_packages(package.__path__, "airflow_provider_webdata.", onerror=lambda _: None):
    if not any(part in module.name for part in skipped):
        try:
            importlib.import_module(module.name)
        except RuntimeError as error:
            print("REFUSED", module.name, error)
        except BaseException as error:
            print("BROKE", module.name, traceback.format_exc())
        else:
            print("LOADED", module.name)
"""


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT)])}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=180)


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    """Return a folder with an Airflow that is a version and little else."""
    package = tmp_path / "airflow"
    package.mkdir()
    (package / "plugins_manager.py").write_text("class AirflowPlugin: ...\n")
    return tmp_path


def set_version(stub: Path, version: str) -> None:
    (stub / "airflow" / "__init__.py").write_text(f"__version__ = {version!r}\n")


def test_every_module_that_needs_airflow_says_so(stub: Path) -> None:
    """Except `cli`: Airflow 3.2 is the first version that loads a provider's commands."""
    set_version(stub, "3.1.8")
    said = run(IMPORT_ALL, stub)
    assert said.returncode == 0, said.stderr
    assert "BROKE" not in said.stdout, said.stdout
    lines = said.stdout.splitlines()
    sentence = f"{NEEDS}, but this is Airflow 3.1.8: upgrade Airflow, or uninstall airflow-provider-webdata"
    refused = {line.split()[1] for line in lines if line.startswith("REFUSED") and line.endswith(sentence)}
    loaded = {line.split()[1].removeprefix("airflow_provider_webdata.") for line in lines if "LOADED" in line}
    rooms = {
        "airflow_db",
        "commands",
        "hooks",
        "inbox_server",
        "operators",
        "plugin",
        "policies",
        "sensors",
        "base",
        "toolsets",
        "transfers",
        "triggers",
        "ui",
        "waiting",
    }
    assert {f"airflow_provider_webdata.{room}" for room in rooms} <= refused
    # Modules without Airflow still work, and so does the metadata that Airflow reads at its start.
    assert {"api.client", "results.columns", "get_provider_info"} <= loaded


@pytest.mark.parametrize(
    ("version", "supported"),
    [
        ("2.11.0", False),
        ("3.2.0", False),
        ("3.2.1rc1", True),
        ("3.2.1", True),
        ("3.2.1+vendor.4", True),
        ("3.10.0", True),
        ("4.0.0b1", True),
    ],
)
def test_versions(monkeypatch: pytest.MonkeyPatch, version: str, supported: bool) -> None:
    airflow = ModuleType("airflow")
    vars(airflow)["__version__"] = version
    monkeypatch.setitem(sys.modules, "airflow", airflow)
    if supported:
        require_airflow()
    else:
        with pytest.raises(RuntimeError, match=re.escape(f"{NEEDS}, but this is Airflow {version}:")):
            require_airflow()


def test_no_airflow_at_all(tmp_path: Path) -> None:
    block = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'airflow':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "import airflow_provider_webdata.operators.search"
    )
    said = run(block, tmp_path)
    sentence = f"{NEEDS}, but Airflow is not installed: run `pip install 'apache-airflow>={OLDEST}'`"
    assert said.stderr.splitlines()[-1] == f"RuntimeError: {sentence}"


def test_an_airflow_that_is_broken_is_not_called_missing(stub: Path) -> None:
    (stub / "airflow" / "__init__.py").write_text("import a_module_that_is_missing\n")
    said = run("import airflow_provider_webdata.operators.search", stub)
    assert said.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'a_module_that_is_missing'"


def test_the_floor_is_the_same_everywhere() -> None:
    """What is required, what `make test-floor` installs, and what is said."""
    assert re.search(r'"apache-airflow>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())[1] == OLDEST  # type: ignore[index]
    pins = (ROOT / "constraints-floor.txt").read_text()
    assert f"\napache-airflow=={OLDEST}\napache-airflow-core=={OLDEST}\n" in pins
