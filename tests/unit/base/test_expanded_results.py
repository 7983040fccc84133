# SPDX-License-Identifier: Apache-2.0
"""Values that `expand_kwargs` gets from another task are data: a page that links to `{{ ... }}` reads no connection."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, XComArg, task, task_group
from airflow.sdk.bases.operator import BaseOperator

from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.runs.publishing.detect_changes import _instance_name
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support.direct import TaskInstance

HOSTILE = "https://a.example/{{ conn.webdata_default.password }}"
OWN = "https://a.example/{{ 6 * 7 }}"
RENDERED = "https://a.example/42"
Build = Callable[[Any], Any]


class Sites(WebDataScrapeOperator):
    """An author's operator with a template as default."""

    def __init__(self, *, url: str = OWN, **kwargs: Any) -> None:
        super().__init__(url=url, **kwargs)


class Conn:
    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(password="the key")


def rendered(build: Build, result: Any, index: int = 0) -> Any:
    """Return the instance of the DAG's last task that Airflow executes, after its rendering of the fields.

    :param build: defines the task, which is expanded over the result of another one.
    :param result: what the other task returned.
    """
    with DAG("d", schedule=None) as dag:

        @task
        def pick() -> Any: ...

        build(pick())
    mapped: Any = [one for one in dag.tasks if one.task_id != "pick"][-1]
    ti = TaskInstance(map_index=index)
    ti.xcom_pull = lambda **_: json.loads(json.dumps(result))  # type: ignore[method-assign]
    ti.get_relevant_upstream_map_indexes = lambda **_: None  # type: ignore[attr-defined]
    context: dict[str, Any] = {"ti": ti, "conn": Conn(), "dag": dag, "dag_run": SimpleNamespace(conf={})}
    mapped.render_template_fields(context)
    return ti.task if mapped.is_mapped else mapped


def scrape(**partial: Any) -> Any:
    return WebDataScrapeOperator.partial(task_id="t", **partial)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", HOSTILE),
        ("save_to", f"/data/{HOSTILE}/*.jsonl"),
        ("headers", {"Referer": HOSTILE, "Accept": [HOSTILE]}),
        ("extra_body", {"deep": [{"er": [HOSTILE]}]}),
        ("changes", HOSTILE),
    ],
)
@pytest.mark.parametrize(
    "source",
    [lambda found: found, lambda found: found.map(lambda one: one), lambda found: found.concat(found)],
    ids=["plain", "map", "concat"],
)
def test_a_value_of_another_task_is_no_template(name: str, value: Any, source: Build) -> None:
    one = rendered(
        lambda found: scrape(webdata_conn_id=OWN).expand_kwargs(source(found)),
        [{"url": "https://a.example/", name: value}],
    )
    assert (getattr(one, name), one.webdata_conn_id) == (value, RENDERED)


def test_own_templates_of_a_literal_list_render() -> None:
    def build(found: XComArg) -> Any:
        return scrape(headers={"X": OWN}).expand_kwargs([{"url": OWN}, found])

    one = rendered(build, {"url": HOSTILE})
    assert (one.url, one.headers) == (RENDERED, {"X": RENDERED})
    assert rendered(build, {"url": HOSTILE}, 1).url == HOSTILE


def test_a_value_that_replaces_an_own_template_is_none() -> None:
    one = rendered(
        lambda found: scrape(url=OWN, webdata_conn_id=OWN).expand_kwargs(found, strict=False),
        [{"url": HOSTILE}],
    )
    assert (one.url, one.webdata_conn_id) == (HOSTILE, RENDERED)


def test_a_default_of_an_own_operator_renders() -> None:
    one = rendered(lambda found: Sites.partial(task_id="t").expand_kwargs(found), [{"mobile": True}])
    assert (one.url, one.mobile) == (RENDERED, True)
    one = rendered(lambda found: Sites.partial(task_id="t").expand_kwargs(found), [{"url": HOSTILE}])
    assert one.url == HOSTILE


def test_the_name_of_an_instance_is_no_template() -> None:
    name = 'it\'s "{{ conn.webdata_default.password }}" \N{AIRPLANE}'
    one = rendered(
        lambda found: scrape(url=OWN).expand_kwargs(found, strict=False), [{"map_index_template": name}]
    )
    slug = _instance_name(one, {"ti": TaskInstance(map_index=0), "conn": Conn()})  # type: ignore[typeddict-item]
    assert slug is not None
    assert slug.startswith("it-s-conn-webdata-default-password-")


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (WebDataToTableOperator, {"path": HOSTILE, "table": HOSTILE}),
        (WebDataJobSensor, {"job_id": HOSTILE}),
    ],
)
def test_all_tasks_of_the_package(operator: Any, arguments: dict[str, Any]) -> None:
    conn = {"conn_id": OWN} if operator is WebDataToTableOperator else {"webdata_conn_id": OWN}
    extra = {"kind": "crawl"} if operator is WebDataJobSensor else {}
    one = rendered(
        lambda found: operator.partial(task_id="t", **conn, **extra).expand_kwargs(found), [arguments]
    )
    assert {name: getattr(one, name) for name in arguments} == arguments
    assert {name: getattr(one, name) for name in conn} == dict.fromkeys(conn, RENDERED)


@pytest.mark.parametrize("build", ["expand", "field", "group", "group_of_dicts"])
def test_other_ways_of_a_result_do_not_render_it_either(build: str) -> None:
    """Airflow's own promise, on which docs/results.md builds."""

    @task_group
    def site(url: Any) -> None:
        WebDataScrapeOperator(task_id="t", url=url, headers={"X": OWN})

    result: Any = [HOSTILE]
    ways: dict[str, Build] = {
        "expand": lambda found: scrape(headers={"X": OWN}).expand(url=found),
        "field": lambda found: WebDataScrapeOperator(task_id="t", url=found, headers={"X": OWN}),
        "group": lambda found: site.expand(url=found),
        "group_of_dicts": lambda found: site.expand_kwargs(found),
    }
    if build == "field":
        result = HOSTILE
    elif build == "group_of_dicts":
        result = [{"url": HOSTILE}]
    one = rendered(ways[build], result)
    assert (one.url, one.headers) == (HOSTILE, {"X": RENDERED})


def test_a_task_without_a_dag_renders() -> None:
    one: BaseOperator = copy.copy(WebDataScrapeOperator(task_id="t", url=OWN))
    one.render_template_fields({})
    assert one.url == RENDERED  # type: ignore[attr-defined]
