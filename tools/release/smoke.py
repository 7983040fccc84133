# SPDX-License-Identifier: Apache-2.0
"""The smoke test of the wheels: imports everything and runs one DAG against the sandbox.

python smoke.py [--complete]

Without `--complete`, parts whose packages are missing must refuse as optional features; with it, none may.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import runpy
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

PACKAGE = "airflow_provider_webdata"
PACKAGES = {PACKAGE: "airflow-provider-webdata", "webdata_sandbox": "airflow-provider-webdata-sandbox"}
"""The packages, and their distributions."""
AGENTS = ("airflow.providers.common.ai", "pydantic_ai")
DAG = """
from airflow.sdk import DAG, task
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator

with DAG("smoke", schedule=None) as dag:
    search = WebDataSearchOperator(task_id="search", query="site:river.example", limit=5, returns="web")
    crawl = WebDataCrawlOperator(
        task_id="crawl", url="https://river.example/", limit=3, deferrable=True,
        poll_interval=1,
    )

    @task
    def check(found, crawled):
        assert found[0]["url"], found
        assert crawled["status"] == "completed" and crawled["data"], crawled

    check(search.output, crawl.output)
"""


def import_all(is_complete: bool) -> tuple[int, list[str]]:
    """Import every module, entry point, and model; return the number of modules, and those that refused.

    :param is_complete: whether all optional packages are installed.
    """
    count, refused = 0, []

    def fail(name: str) -> None:
        raise ImportError(f"{name} cannot be imported") from sys.exc_info()[1]

    optional = importlib.import_module("airflow.exceptions").AirflowOptionalProviderFeatureException
    for package, name in PACKAGES.items():
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}.", onerror=fail):
            # Migrations and `__main__` are scripts.
            if ".migrations" in module.name or "__main__" in module.name:
                continue
            try:
                importlib.import_module(module.name)
            except (optional, ModuleNotFoundError) as error:
                if not is_optional(error, is_complete):
                    raise
                refused.append(module.name)
            count += 1
        for entry in distribution(name).entry_points:
            entry.load()
    models = importlib.import_module(f"{PACKAGE}.api.models")
    for name in models.__all__:
        getattr(models, name)
    return count, refused


def is_optional(error: Exception, is_complete: bool) -> bool:
    """Return whether a module may fail so: it, or the part that imports it, refuses without an optional package."""
    cause = error if isinstance(error, ModuleNotFoundError) else error.__cause__
    missing = str(getattr(cause, "name", ""))
    # Airflow's provider for agents does not support Python 3.10.
    needed = AGENTS if sys.version_info < (3, 11) else ()
    return missing.startswith(needed if is_complete else (*AGENTS, "dlt", "pyarrow"))


def run_dag(home: Path) -> None:
    """Run the DAG with a new Airflow home."""
    subprocess.run(
        [sys.executable, "-I", "-m", "airflow", "db", "migrate"], check=True, stdout=subprocess.DEVNULL
    )
    server = importlib.import_module("webdata_sandbox.server").SandboxServer
    file = home / "dags" / "smoke.py"
    file.parent.mkdir()
    file.write_text(DAG)
    with server() as sandbox:
        connection = {"conn_type": "webdata", "host": sandbox.url, "password": sandbox.api_key}
        os.environ["AIRFLOW_CONN_WEBDATA_DEFAULT"] = json.dumps(connection)
        state = runpy.run_path(str(file))["dag"].test().state
    assert str(getattr(state, "value", state)) == "success", f"the DAG's run ended as {state}"


def main() -> None:
    """Import all modules, then run the DAG."""
    with tempfile.TemporaryDirectory() as home:
        for name in [name for name in os.environ if name.startswith("AIRFLOW")]:
            del os.environ[name]
        os.environ.update(
            AIRFLOW_HOME=home,
            AIRFLOW__API_AUTH__JWT_SECRET="a secret of this run alone, long enough to sign with it",
            AIRFLOW__CORE__DAGS_FOLDER=f"{home}/dags",
            AIRFLOW__CORE__LOAD_EXAMPLES="False",
            AIRFLOW__LOGGING__LOGGING_LEVEL="WARNING",
            # Triggers run in this process, so no worker of a deferred task needs time to exit.
            AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL="0",
        )
        is_complete = "--complete" in sys.argv
        count, refused = import_all(is_complete)
        print(f"{count - len(refused)} of {count} modules imported; refused: {', '.join(refused) or 'none'}")
        if not is_complete:
            run_dag(Path(home))
            print("a DAG ran against the sandbox")


if __name__ == "__main__":
    main()
