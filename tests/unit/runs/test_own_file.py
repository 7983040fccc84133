# SPDX-License-Identifier: Apache-2.0
"""Files and tables that the instances of a mapped task, or the runs of a task, would replace."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, task_group
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.hooks.connection import ConnectionMissingError
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.runs.load import LoadRun
from airflow_provider_webdata.runs.publishing.own_file import check_own_file
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator

URL = "https://a.example"


def context_of(map_index: int = -1) -> Any:
    return {"ti": SimpleNamespace(map_index=map_index)}


def is_shared(dag: DAG, map_index: int, **mapped: Any) -> bool:
    try:
        check_own_file(dag.get_task("each").unmap(mapped), context_of(map_index), emits_changes=False)
    except OutputError as error:
        return "all instances of the mapped task would write the same file" in error.text()
    return False


@pytest.mark.parametrize(
    ("path", "shared"),
    [
        ("/data/{{ ds }}/{{ dag_run.run_after | ts_nodash }}/{{ var.value.site }}.jsonl", True),
        ("/data/{{ params.site }}.jsonl", True),
        ("/data/{{ ti.run_id }}/{{ task_instance.task_id }}.jsonl", True),
        ("/data/{{ 'x' }}.jsonl", True),
        ("/data/{{ unique() }}.jsonl", False),
        ("/data/{{ ti.map_index }}.jsonl", False),
        ("/data/{{ ti.xcom_pull(task_ids='a') }}.jsonl", False),
        ("/data/{{ task.url | replace('/', '_') }}.jsonl", False),
        ("/data/{{ macros.uuid.uuid4() }}.jsonl", False),
        ("/data/{{ ds }}/{{ [1, 2] | random }}.jsonl", False),
        ("/data/{{ ds | own }}.jsonl", False),
        (None, False),
    ],
)
def test_instances(path: Any, shared: bool) -> None:
    with DAG("d", user_defined_filters={"own": str}, user_defined_macros={"unique": str}) as dag:
        WebDataScrapeOperator.partial(task_id="each", save_to=path).expand(url=["a", "b"])
    assert [is_shared(dag, index, url="a") for index in (0, 1)] == [shared, shared]


def test_paths_that_each_instance_has() -> None:
    with DAG("d") as dag:
        WebDataScrapeOperator.partial(task_id="each").expand_kwargs([{"url": "a", "save_to": "/a.jsonl"}])
    assert not is_shared(dag, 1, url="a", save_to="/a.jsonl")
    by_params = {"task_id": "each", "save_to": "/{{ params.site }}.jsonl"}
    with DAG("d") as dag:
        mapped = [{"url": "a", "params": {"site": "a"}}]
        WebDataScrapeOperator.partial(**by_params).expand_kwargs(mapped)
    assert not is_shared(dag, 0, **mapped[0])
    with DAG("d") as dag:
        WebDataScrapeOperator.partial(**by_params).expand_kwargs([{"url": "a"}])
    assert is_shared(dag, 0, url="a")


def test_a_literal_path_of_all_instances_is_refused_while_the_dag_is_parsed() -> None:
    words = r"(?s)save_to: all instances .*Write \*, .*: save_to='/data/x-\*.jsonl.gz'"
    with DAG("d"):
        with pytest.raises(ArgumentError, match=words):
            WebDataScrapeOperator.partial(task_id="a", save_to="/data/x.jsonl.gz")
        # The advice is followed.
        WebDataScrapeOperator.partial(task_id="b", save_to="/data/x-*.jsonl.gz").expand(url=["a"])

        @task_group
        def site(url: str) -> None:
            WebDataScrapeOperator(task_id="one", url=url, save_to="/data/x.jsonl")

        with pytest.raises(ArgumentError, match="all instances of the mapped task"):
            site.expand(url=["a"])


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/x.jsonl", "parsed"),
        ("/{{ var.value.lake }}/{{ dag.dag_id }}.jsonl", "run"),
        ("/{{ ti.task_id }}.jsonl", "run"),
        ("/{{ ds }}.jsonl", None),
        ("/{{ params.x }}.jsonl", None),
        ("/{{ ti.run_id }}.jsonl", None),
        ("/*.jsonl", None),
    ],
)
def test_a_file_of_changes_is_not_replaced_by_the_next_run(path: str, refused: str | None) -> None:
    def define(changes: Changes | str) -> WebDataCrawlOperator:
        with DAG("d"):
            return WebDataCrawlOperator(task_id="t", url=URL, save_to=path, changes=changes)

    define(Changes("/seen", emit="all"))
    words = "each run would replace the file of the run before"
    if refused == "parsed":
        for given in ("/seen", Changes("/seen")):
            with pytest.raises(ArgumentError, match=words):
                define(given)
        return
    task = define("/seen")
    if refused == "run":
        with pytest.raises(OutputError, match=words):
            check_own_file(task, context_of(), emits_changes=True)
    else:
        check_own_file(task, context_of(), emits_changes=True)


def test_instances_of_a_load_do_not_replace_each_others_rows() -> None:
    words = "each instance would replace the rows of the others"
    load: dict[str, Any] = {"task_id": "each", "table": "pages", "conn_id": "absent"}
    with DAG("d") as dag:
        with pytest.raises(ArgumentError, match=words):
            WebDataToTableOperator.partial(**load, mode="replace")
        both = [{"path": "/a.jsonl", "mode": mode} for mode in ("replace", "upsert")]
        WebDataToTableOperator.partial(**load).expand_kwargs(both)

        @task_group
        def site(path: str) -> None:
            WebDataToTableOperator(**{**load, "task_id": "one"}, path=path, mode="replace")

        with pytest.raises(ArgumentError, match=words):
            site.expand(path=["/a.jsonl"])
    for index, expected in enumerate((words, "'absent' does not exist")):
        mapped: Any = dag.get_task("each").unmap(both[index])
        with pytest.raises((AirflowFailException, ConnectionMissingError), match=expected):
            LoadRun(mapped, context_of(index)).execute()
    alone = WebDataToTableOperator(**load, path="/a.jsonl", mode="replace")
    with pytest.raises(ConnectionMissingError):
        LoadRun(alone, context_of()).execute()


def test_a_path_from_default_arguments() -> None:
    with DAG("d", default_args={"save_to": "/x.jsonl"}) as dag:
        WebDataScrapeOperator.partial(task_id="each").expand(url=["a"])
    assert is_shared(dag, 0, url="a")
