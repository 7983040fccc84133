"""Arguments that all instances of a mapped task share."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.hooks.connection import ConnectionMissingError
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.runs.load import LoadRun
from airflow_provider_webdata.runs.mapped import is_shared
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator


def context_of(dag: DAG, map_index: int, **mapped: Any) -> Any:
    task = dag.get_task("each").unmap(mapped)
    return {"ti": SimpleNamespace(task=task, map_index=map_index)}


@pytest.mark.parametrize(
    ("path", "shared"),
    [
        ("/data/x.jsonl", True),
        ("/data/{{ ds }}/{{ dag_run.run_after | ts_nodash }}/{{ var.value.site }}.jsonl", True),
        # `expand_kwargs` may set them for each instance.
        ("/data/{{ params.site }}.jsonl", False),
        ("/data/{{ unique() }}.jsonl", False),
        ("/data/{{ ti.map_index }}.jsonl", False),
        ("/data/{{ task.url | replace('/', '_') }}.jsonl", False),
        ("/data/{{ macros.uuid.uuid4() }}.jsonl", False),
        ("/data/{{ ds }}/{{ [1, 2] | random }}.jsonl", False),
        ("/data/{{ ds | own }}.jsonl", False),
        (None, False),
    ],
)
def test_paths(path: Any, shared: bool) -> None:
    with DAG("d", user_defined_filters={"own": str}, user_defined_macros={"unique": str}) as dag:
        WebDataScrapeOperator.partial(task_id="each", save_to=path).expand(url=["a", "b"])
    found = [is_shared(context_of(dag, index, url="a"), "save_to") for index in (0, 1)]
    assert found == [False, shared]


def test_a_path_of_each_instance() -> None:
    with DAG("d") as dag:
        WebDataScrapeOperator.partial(task_id="each").expand_kwargs([{"url": "a", "save_to": "/a.jsonl"}])
    assert not is_shared(context_of(dag, 1, url="a", save_to="/a.jsonl"), "save_to")


@pytest.mark.parametrize("mode", ["replace", "upsert"])
def test_instances_of_a_load_do_not_replace_each_others_rows(mode: str) -> None:
    with DAG("d") as dag:
        load = WebDataToTableOperator.partial(task_id="each", table="pages", conn_id="absent", mode=mode)
        load.expand(path=["a.jsonl", "b.jsonl"])
    context = context_of(dag, 1, path="b.jsonl")
    words = "each would replace the rows of the others" if mode == "replace" else "'absent' does not exist"
    with pytest.raises((AirflowFailException, ConnectionMissingError), match=words):
        LoadRun(context["ti"].task, context).execute()
