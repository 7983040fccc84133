# SPDX-License-Identifier: Apache-2.0
"""How files and inputs are named for OpenLineage, and what a task reports."""

from __future__ import annotations

import sys
from pathlib import Path

from airflow_provider_webdata.common.page_urls import monitor_page, task_page
from airflow_provider_webdata.results.columns import columns_of
from airflow_provider_webdata.results.lineage import (
    WrittenFile,
    dataset_of_file,
    dataset_of_input,
    operator_lineage,
)
from tests.support.tables import each_row

FILES = [
    ("s3://bucket/a/b.jsonl", ("s3://bucket", "a/b.jsonl")),
    ("s3://aws_default@bucket/a/b.jsonl", ("s3://bucket", "a/b.jsonl")),
    ("s3a://bucket/b.jsonl", ("s3://bucket", "b.jsonl")),
    ("gs://conn@bucket/b.parquet", ("gs://bucket", "b.parquet")),
    ("gcs://bucket/b.parquet", ("gs://bucket", "b.parquet")),
    (
        "abfs://box@account.dfs.core.windows.net/a/b.jsonl",
        ("abfss://box@account.dfs.core.windows.net", "a/b.jsonl"),
    ),
    ("abfs://conn@box/a/b.jsonl", ("abfss://box", "a/b.jsonl")),
    ("hdfs://name:8020/a/b.jsonl", ("hdfs://name:8020", "a/b.jsonl")),
    ("file:///data/b.jsonl", ("file", "/data/b.jsonl")),
    ("/data/b.jsonl", ("file", "/data/b.jsonl")),
    ("b.jsonl", ("file", str(Path("b.jsonl").absolute()))),
]


@each_row("url, dataset", FILES)
def test_files(url, dataset):
    assert dataset_of_file(url) == dataset


INPUTS = [
    ("https://shop.example/a?b=1", ("https://shop.example", "/a?b=1")),
    ("http://user:pass@shop.example:8080", ("http://shop.example:8080", "/")),
    ("wheat site:shop.example", ("webdata://web_eu", "wheat site:shop.example")),
    ("https://[broken", ("webdata://web_eu", "https://[broken")),
]


@each_row("given, dataset", INPUTS)
def test_inputs(given, dataset):
    assert dataset_of_input(given, "web_eu") == dataset


def test_told():
    """In OpenLineage's own classes, with the count, the size and a table's columns."""
    written = WrittenFile("s3://c@bucket/x.parquet", 3, 500, columns_of("link"))
    lineage = operator_lineage(["https://a.example/", "https://a.example/", "words"], written, "web_eu")
    assert [(found.namespace, found.name) for found in lineage.inputs] == [
        ("https://a.example", "/"),
        ("webdata://web_eu", "words"),
    ]
    (output,) = lineage.outputs
    assert (output.namespace, output.name) == ("s3://bucket", "x.parquet")
    assert output.outputFacets["outputStatistics"].rowCount == 3
    assert output.outputFacets["outputStatistics"].size == 500
    assert [field.name for field in output.facets["schema"].fields] == [
        "url",
        "title",
        "description",
        "extra",
    ]


def test_nothing_written():
    lineage = operator_lineage([f"https://a.example/{n}" for n in range(500)], None, "web_eu")
    assert len(lineage.inputs) == 100
    assert lineage.outputs == []


def test_page(monkeypatch):
    """The facet that tools show as a link: an id, and the page that shows the object; of a job, the task's."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example")
    lineage = operator_lineage([], None, "web_eu", task_page("shop", "run", "crawl", -1), "j-1")
    facet = lineage.run_facets["externalQuery"]
    assert facet.externalQueryId == "j-1"
    assert facet.source == (
        "https://airflow.example/webdata-ui/task?dag_id=shop&run_id=run&task_id=crawl&map_index=-1"
    )
    checked = operator_lineage([], None, "web_eu", monitor_page("web_eu", "m-1", "c-1"))
    assert checked.run_facets["externalQuery"].externalQueryId == "c-1"
    assert operator_lineage([], None, "web_eu").run_facets == {}


def test_without_openlineage_nothing_happens(monkeypatch):
    for name in ("airflow.providers.openlineage", "airflow.providers.openlineage.extractors"):
        monkeypatch.setitem(sys.modules, name, None)
    assert operator_lineage(["q"], WrittenFile("/x.jsonl", 1, 1), "c") is None
