# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin in a user's project: the one that docs/testing.md describes, with further tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from airflow_provider_webdata import __version__
from tests.integration.operators.test_cookbook import AGENT, CHECKED, CI, RECIPES
from tests.support.snippets import ROOT, snippets
from webdata_sandbox.testing.migrated_database import MigratedDatabase

MODULE = "webdata_sandbox.testing.pytest_plugin"
PATHS = os.pathsep.join([str(ROOT), str(ROOT / "sandbox")])
DOCUMENTED = {
    found[1]: found[2]
    for found in re.finditer(
        r"`([\w./-]+\.\w+)`[^`\n]*:\n\n```\w+\n(.*?)^```$",
        (ROOT / "docs" / "testing.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
}
AGENT_TEST = next(
    (found.code for found in snippets(ROOT / "docs" / "agents.md") if "def test_it_reads" in found.code), ""
)
HAS_AGENTS = find_spec("pydantic_ai") is not None
FIXTURES = Path(__file__).with_name("fixtures_in_use.py").read_text()

ATTEMPTS = """
from datetime import timedelta

from airflow.sdk import DAG, task

with DAG("attempts", schedule=None) as dag:

    @task(retries=1, retry_delay=timedelta(0))
    def second_time(ti=None):
        assert ti.try_number > 1, "not yet"

    @task
    def never():
        raise ValueError("no")

    second_time() >> never()
"""
VAULT = """
from airflow.secrets import BaseSecretsBackend

class Vault(BaseSecretsBackend):
    def get_conn_value(self, conn_id, team_name=None):
        return "webdata://:a-real-key@service.example"
"""
FOREIGN = {
    "AIRFLOW__SECRETS__BACKEND": "vault.Vault",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": "postgresql+asyncpg://production.example/airflow",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS": "no.such.arguments",
    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": "https://production.example/execution/",
}
"""Settings of another Airflow in the environment."""
FOREIGN_TEST = """
def test_no_other_airflow():
    from airflow import settings
    from airflow.configuration import conf

    assert settings.SQL_ALCHEMY_CONN_ASYNC.startswith("sqlite+aiosqlite:")
    assert not conf.get("core", "execution_api_server_url", fallback=None)
"""


class Project:
    """A folder with files, and pytest in it; nothing of this repository's own configuration counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def pytest(self, *flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTEST"))
        }
        # Whether the plugin is installed already does not matter: it is named, and no other one is taken.
        env = {**inherited, "PYTHONPATH": PATHS, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environ}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", MODULE, *flags],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.timeout(600)
def test_a_project_as_documented(project: Project, migrated_database: MigratedDatabase) -> None:
    project.write(DOCUMENTED)
    project.write(
        {
            "dags/news_digest.py": RECIPES["Send a news digest every morning"],
            "dags/prices.py": RECIPES[CHECKED],
            "dags/chunks.py": RECIPES["Split pages into chunks for a vector store"].replace(
                "/tmp/webdata", str(project.folder)
            ),
            "dags/attempts.py": ATTEMPTS,
            # One fails, which another test expects; others need the folder and the database, or the model, of theirs.
            "tests/test_ci.py": RECIPES[CI].replace(
                "(DAGS.dags)", '({*DAGS.dags} - {"attempts", "nightly", "ask_an_agent"})'
            ),
            **(
                {"dags/ask_an_agent.py": RECIPES[AGENT], "tests/test_agent.py": AGENT_TEST}
                if HAS_AGENTS
                else {}
            ),
            "tests/test_fixtures.py": FIXTURES,
            "tests/test_foreign.py": FOREIGN_TEST,
            "vault.py": VAULT,
        }
    )
    # Airflow's database is in the cache from an earlier run.
    versions = f"{version('apache-airflow-core')}-{__version__}"
    kept = project.folder / ".pytest_cache" / "d" / "webdata" / versions / "migrated"
    kept.mkdir(parents=True)
    migrated_database.copy_to(kept)
    (kept / "done").touch()
    temporary = project.folder / "temporary"
    temporary.mkdir()
    done = project.pytest("-q", TMPDIR=str(temporary), **FOREIGN)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    code = "".join([*DOCUMENTED.values(), RECIPES[CI], FIXTURES, FOREIGN_TEST, AGENT_TEST * HAS_AGENTS])
    # One is run for four ways of waiting, and one for each DAG; of those, one file has two, and three are not run.
    more = 1 + len([*(project.folder / "dags").glob("*.py")]) - HAS_AGENTS
    assert f"{len(re.findall('^def test_', code, re.MULTILINE)) + more} passed" in done.stdout
    assert "creating Airflow's database" not in done.stdout
    assert [path for path in temporary.iterdir() if path.name.startswith("webdata")] == []


def test_a_test_of_a_dag_is_short() -> None:
    tests = re.split(r"^(?=def )", DOCUMENTED["tests/test_plans.py"], flags=re.MULTILINE)[1:]
    assert tests
    assert all(len(test.strip().splitlines()) < 10 for test in tests)


def test_nothing_but_itself_is_imported() -> None:
    """For those who have it installed and do not use it."""
    code = (
        f"import sys, pytest; before = set(sys.modules); import {MODULE}; print(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) == {
        "webdata_sandbox",
        "webdata_sandbox.testing",
        MODULE,
    }


def test_the_entry_point() -> None:
    declared = (ROOT / "sandbox" / "pyproject.toml").read_text()
    assert f'[project.entry-points.pytest11]\nwebdata = "{MODULE}"\n' in declared


def test_a_run_without_it_imports_nothing_more(project: Project) -> None:
    packages = (
        "airflow",
        "airflow_provider_webdata",
        "webdata_sandbox",
        "httpx",
        "pydantic",
        "sqlalchemy",
        "starlette",
        "uvicorn",
    )
    project.write(
        {
            "test_other.py": f"""
import os, sys

def test_other():
    found = {{name for name in sys.modules if name.partition(".")[0] in {packages!r}}}
    assert found == {{"webdata_sandbox", "webdata_sandbox.testing", {MODULE!r}}}
    assert not [name for name in os.environ if name.startswith("AIRFLOW")]
"""
        }
    )
    done = project.pytest()
    assert done.returncode == 0, done.stdout


def test_the_provider_is_missing(project: Project) -> None:
    project.write(
        {
            "conftest.py": """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "airflow_provider_webdata":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
""",
            "test_it.py": "def test_it(webdata_sandbox):\n    pass\n",
        }
    )
    done = project.pytest()
    assert done.returncode == 1
    assert (
        "The fixtures need airflow-provider-webdata, which is not installed: "
        "run `pip install .` in a clone of its repository"
    ) in done.stdout
    assert "Traceback" not in done.stdout


def test_a_secrets_backend_that_leads_to_the_service(project: Project) -> None:
    project.write({"vault.py": VAULT, "test_it.py": "def test_it(webdata_sandbox):\n    pass\n"})
    done = project.pytest(AIRFLOW_HOME=str(project.folder), AIRFLOW__SECRETS__BACKEND="vault.Vault")
    assert done.returncode == 1
    assert "Connection 'webdata_default' points to the service instead of the sandbox" in done.stdout
    assert "a-real-key" not in done.stdout


BAD_SETTINGS = {
    "no such folder": ([], "webdata_dags_folder: folder"),
    "too late": (["-p", "early"], "another pytest plugin has already imported Airflow"),
}


@pytest.mark.parametrize(("flags", "told"), BAD_SETTINGS.values(), ids=BAD_SETTINGS.keys())
def test_a_setting_that_cannot_work(project: Project, flags: list[str], told: str) -> None:
    project.write(
        {
            "pyproject.toml": "[tool.pytest.ini_options]\nwebdata_dags_folder = 'dags'\n",
            # As if it had imported Airflow, which takes seconds.
            "early.py": "import sys\nsys.modules['airflow'] = sys\n",
            "test_it.py": "def test_it():\n    pass\n",
        }
    )
    if flags:
        (project.folder / "dags").mkdir()
    done = project.pytest(*flags)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert told in done.stderr
    assert "Traceback" not in done.stderr
