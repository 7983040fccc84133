"""The plugin brings macros, and next to no cost."""

from __future__ import annotations

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
