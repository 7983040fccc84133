# SPDX-License-Identifier: Apache-2.0
"""The plugin brings macros, and next to no cost."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.plugins_manager import integrate_macros_plugins

from airflow_provider_webdata.plugin import WebDataPlugin


class Filtered(BaseOperator):
    template_fields = ("tbs",)

    def __init__(self, tbs: str, **kwargs):
        super().__init__(**kwargs)
        self.tbs = tbs


START = pendulum.datetime(2026, 3, 1)
END = START.add(days=1)
DUE = pendulum.datetime(2026, 3, 9, 12)


def rendered(template: str, **context: Any) -> str:
    """Return what the template gives where a task's templates are rendered, through Airflow's own integration."""
    from airflow.sdk.execution_time.context import MacrosAccessor

    integrate_macros_plugins()
    with DAG("macros", schedule=None) as dag:
        task = Filtered(task_id="t", tbs=template)
    task.render_template_fields({"macros": MacrosAccessor(), **context}, dag.get_template_env())
    return task.tbs


def dag_run(start: Any = None, end: Any = None) -> SimpleNamespace:
    return SimpleNamespace(data_interval_start=start, data_interval_end=end, run_after=DUE)


@pytest.mark.parametrize(
    ("template", "context", "expected"),
    [
        (
            "{{ macros.webdata.tbs(data_interval_start, data_interval_end, sort_by_date=True) }}",
            {"data_interval_start": START, "data_interval_end": END},
            "sbd:1,cdr:1,cd_min:03/01/2026,cd_max:03/01/2026",
        ),
        (
            "{{ macros.webdata.tbs(dag_run) }}",
            {"dag_run": dag_run(START, END)},
            "cdr:1,cd_min:03/01/2026,cd_max:03/01/2026",
        ),
        (
            "{{ macros.webdata.tbs(dag_run) }}",
            {"dag_run": dag_run()},
            "cdr:1,cd_min:03/09/2026,cd_max:03/09/2026",
        ),
        (
            "{{ macros.webdata.tbs(dag_run.run_after - macros.timedelta(days=7), dag_run.run_after) }}",
            {"dag_run": dag_run()},
            "cdr:1,cd_min:03/02/2026,cd_max:03/09/2026",
        ),
    ],
    ids=["two moments", "run with a data interval", "run without", "seven days"],
)
def test_macro_in_a_template(template: str, context: dict[str, Any], expected: str):
    assert rendered(template, **context) == expected


@pytest.mark.parametrize(
    ("template", "day"),
    [
        ("{{ macros.webdata.tbs(dag_run) }}", "03/02"),
        ("{{ macros.webdata.tbs(data_interval_start, data_interval_end) }}", "03/02"),
        ("{{ macros.webdata.tbs(data_interval_start, data_interval_start, tz='UTC') }}", "03/01"),
    ],
)
def test_the_days_are_those_of_the_dag_s_time_zone(template: str, day: str):
    # A day in Berlin, as Airflow hands it to templates: in UTC.
    start, end = pendulum.datetime(2026, 3, 1, 23), pendulum.datetime(2026, 3, 2, 23)
    with DAG("d", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1, tz="Europe/Berlin")) as dag:
        context = {"dag": dag, "dag_run": dag_run(start, end)}
    context |= {"data_interval_start": start, "data_interval_end": end}
    assert rendered(template, **context) == f"cdr:1,cd_min:{day}/2026,cd_max:{day}/2026"


def test_a_macro_says_what_to_write_for_a_run_without_data_interval():
    with pytest.raises(ValueError, match=re.escape("use macros.webdata.tbs(dag_run)")):
        rendered("{{ macros.webdata.tbs(data_interval_start, data_interval_end) }}")


def test_plugin_class():
    assert WebDataPlugin.name == "webdata"
    WebDataPlugin.validate()
