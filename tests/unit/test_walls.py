# SPDX-License-Identifier: Apache-2.0
"""Imports that the import linter cannot judge: circles of files, imports for types, and modules loaded at run time.

Each case of an import at run time is a fork of one process, which imports Airflow in between. A case therefore starts
with the modules of its stage and of nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from tests.unit.test_contract import TASKS

PACKAGE = "airflow_provider_webdata"

FORK = """
import importlib, json, os, sys, traceback

def attempt(code):
    read, write = os.pipe()
    if not (pid := os.fork()):
        failure = ""
        try:
            exec(code, {"before": {*sys.modules}, "import_module": importlib.import_module, "sys": sys})
        except BaseException:
            failure = traceback.format_exc()
        with os.fdopen(write, "w") as out:
            out.write(failure)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as failure:
        found = failure.read()
    os.waitpid(pid, 0)
    return found

found = {}
for stage, cases in json.load(sys.stdin):
    exec(stage)
    found |= {name: attempt(code) for name, code in cases.items()}
print(json.dumps(found))
"""


def blocked(package: str) -> str:
    return f"""
class Block:
    def find_spec(self, name, path=None, target=None):
        if f"{{name}}.".startswith({package!r} + "."):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""


def light(modules: list[str], too_heavy: str) -> str:
    """Return code that imports modules of the package, and fails if that loads what is too heavy.

    :param too_heavy: packages; one that starts with a dot is of this package.
    """
    packages = [name if name[0] != "." else PACKAGE + name for name in too_heavy.split()]
    return f"""
for module in {modules!r}:
    import_module(f"{PACKAGE}.{{module}}")
    added = {{*sys.modules}} - before
    heavy = [name for name in added if any(f"{{name}}.".startswith(f"{{one}}.") for one in {packages!r})]
    assert not heavy, (module, heavy)
"""


def refused(package: str, use: str, message: str) -> str:
    """Return code that fails unless an optional part refuses to work without a package, as Airflow's providers do."""
    return f"""{blocked(package)}
from airflow.exceptions import AirflowOptionalProviderFeatureException
try:
    exec({use!r})
except AirflowOptionalProviderFeatureException as error:
    assert str(error).startswith({message!r}), str(error)
else:
    assert False, "works"
"""


def without_airflow(*modules: str) -> str:
    return blocked("airflow") + light([*modules], "airflow")


WITHOUT_AIRFLOW = {
    "the client": without_airflow("api.client", "api.models", "api.query", "api.errors", "api.endpoints"),
    "the sandbox": blocked("airflow")
    + blocked(PACKAGE)
    + "import webdata_sandbox.__main__, webdata_sandbox.server",
    "the metadata": light(["get_provider_info"], "airflow pydantic httpx"),
    "assets": light(["assets.monitor", "assets.job"], "airflow pydantic"),
}
TASK_SDK = """
from airflow.sdk import DAG, BaseOperator, BaseSensorOperator
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowException
"""
IN_A_DAG_FILE = {
    "every task": light(
        sorted({task.__module__.removeprefix(f"{PACKAGE}.") for task in TASKS}),
        "anyio fsspec httpx msgspec pyarrow pydantic sqlalchemy starlette "
        "webdata_sandbox .api .hooks .inbox .results .triggers",
    ),
    "valid literal arguments": f"""
from {PACKAGE}.operators.monitor import WebDataCreateMonitorOperator
from {PACKAGE}.operators.search import WebDataSearchOperator
WebDataSearchOperator(task_id="s", query="q", limit=5, tbs="qdr:d", scrape_options={{"formats": ["markdown"]}})
WebDataCreateMonitorOperator(
    task_id="m", name="n", schedule={{"cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"}}, webhook="https://a.example/",
    targets=[{{"type": "search", "queries": ["q"]}}], goal="g",
)
assert not [name for name in sys.modules if name.startswith("{PACKAGE}.api")]
""",
    "results": light(["results.files.output"], "pyarrow httpx fsspec .api"),
    "media": light(["results.media"], "pyarrow fsspec .api"),
}
CORE = "import airflow.plugins_manager"
IN_AIRFLOW = {
    "the plugin": light(["plugin"], "fastapi starlette httpx sqlalchemy .api"),
    "the command line": "import airflow.cli.cli_config\nbefore = {*sys.modules}\n"
    + light(["cli"], "starlette uvicorn sqlalchemy webdata_sandbox .api .inbox"),
    "Airflow's parser": f"""
import airflow.cli.cli_parser
airflow.cli.cli_parser.get_parser()
ours = {{name for name in sys.modules if name.startswith(("{PACKAGE}.", "webdata_sandbox."))}}
assert "{PACKAGE}.cli" in ours
flags = {{"webdata_sandbox.cli", "webdata_sandbox.config"}}
heavy = {{name for name in ours - flags if "sandbox." in name or ".api" in name or ".hooks" in name}}
assert not heavy, heavy
""",
    "the toolset without the provider of agents": refused(
        "pydantic_ai",
        f"import {PACKAGE}.toolsets.webdata",
        "WebDataToolset needs apache-airflow-providers-common-ai 1.0 or newer, and Python 3.11 or newer: "
        "pip install 'apache-airflow-providers-common-ai>=1.0' (the extra ai)",
    ),
    "Parquet without pyarrow": refused(
        "pyarrow",
        f"from {PACKAGE}.results.files.formats import FORMATS; FORMATS['.parquet'].check()",
        "Parquet needs the package pyarrow on the workers: pip install pyarrow (the extra parquet), or use a format "
        "without it",
    ),
    "a resource of dlt without dlt": refused(
        "dlt",
        f"import {PACKAGE}.results.tables.dlt_resource",
        "webdata_resource needs the package dlt on the workers: pip install 'dlt[duckdb]' pyarrow (the extra dlt)",
    ),
    "a table without the provider of its database": refused(
        "airflow.providers.postgres",
        "from airflow.sdk import Connection; from airflow_provider_webdata.results.tables.load import hook_of; "
        "hook_of(Connection(conn_id='shop', conn_type='postgres'))",
        "conn_id: Airflow has no hook for the type 'postgres' of the connection 'shop'; install the provider of that "
        "database on the workers",
    ),
    "all else without the provider of agents": blocked("pydantic_ai")
    + f"""
import {PACKAGE}.plugin, {PACKAGE}.cli, {PACKAGE}.toolsets
from {PACKAGE}.operators.search import WebDataSearchOperator
from {PACKAGE}.hooks.webdata import WebDataHook
WebDataHook().guarded(max_credits=1)
""",
}
STAGES = [("", WITHOUT_AIRFLOW), (TASK_SDK, IN_A_DAG_FILE), (CORE, IN_AIRFLOW)]


@pytest.fixture(scope="module")
def failures() -> dict[str, str]:
    """Return the traceback of each case, empty for one that passes."""
    done = subprocess.run(
        [sys.executable, "-c", FORK], input=json.dumps(STAGES), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("case", [case for _, cases in STAGES for case in cases])
def test_import(failures: dict[str, str], case: str) -> None:
    assert failures[case] == ""


def test_no_files_import_each_other() -> None:
    """Imports for types and imports in functions count."""
    graph = grimp.build_graph(PACKAGE, "webdata_sandbox", cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as circle:
        pytest.fail(" is imported by\n".join(circle.args[1]), pytrace=False)


def test_a_run_imports_its_task_for_types_only() -> None:
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    above = [f"{PACKAGE}.{room}" for room in ("base", "operators", "sensors", "transfers")]
    found = [(room, graph.find_shortest_chain(f"{PACKAGE}.runs", room, as_packages=True)) for room in above]
    assert found == [(room, None) for room in above]
