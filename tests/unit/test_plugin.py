"""The plugin brings macros, and next to no cost."""

from __future__ import annotations

import subprocess
import sys

import pendulum
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.plugins_manager import integrate_macros_plugins

from airflow_provider_webdata.plugin import WebDataPlugin, tbs


class Filtered(BaseOperator):
    template_fields = ("tbs",)

    def __init__(self, tbs: str, **kwargs):
        super().__init__(**kwargs)
        self.tbs = tbs


def test_macro_in_a_template():
    """The macro works where a task's templates are rendered, through Airflow's own integration."""
    from airflow.sdk.execution_time.context import MacrosAccessor

    integrate_macros_plugins()
    start = pendulum.datetime(2026, 3, 1)
    context = {
        "macros": MacrosAccessor(),
        "data_interval_start": start,
        "data_interval_end": start.add(days=1),
    }
    with DAG("macros", schedule=None) as dag:
        task = Filtered(
            task_id="t",
            tbs="{{ macros.webdata.tbs(data_interval_start, data_interval_end, sort_by_date=True) }}",
        )
    task.render_template_fields(context, dag.get_template_env())
    assert task.tbs == tbs(start, start.add(days=1), sort_by_date=True)
    assert "cd_min:03/01/2026,cd_max:03/01/2026" in task.tbs


def test_plugin_class():
    assert WebDataPlugin.name == "webdata"
    WebDataPlugin.validate()


def test_import_brings_nothing_heavy():
    """Every Airflow process imports the plugin: it adds itself to what Airflow has loaded, and nothing else."""
    code = (
        "import sys, airflow.plugins_manager; before = set(sys.modules); import airflow_provider_webdata.plugin;"
        "print(*sorted(set(sys.modules) - before))"
    )
    added = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert set(added) <= {"airflow_provider_webdata", "airflow_provider_webdata.plugin"}
    assert "airflow_provider_webdata.plugin" in added


def test_operators_import_no_models_and_no_client():
    """A DAG file pays for what its imports bring: no wire models, no HTTP client of ours."""
    code = (
        "import sys, airflow.sdk; before = set(sys.modules);"
        "import airflow_provider_webdata.operators.search, airflow_provider_webdata.operators.monitor;"
        "print(*sorted(set(sys.modules) - before))"
    )
    added = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    ours = {name for name in added if name.startswith("airflow_provider_webdata")}
    assert "airflow_provider_webdata.operators.search" in ours
    assert not [name for name in ours if ".api" in name or ".hooks" in name]
    assert not {"httpx", "pydantic", "tenacity"} & set(added)
