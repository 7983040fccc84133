# SPDX-License-Identifier: Apache-2.0
"""Operators that read from and write to an S3-compatible object store, which can neither append nor rename."""

from __future__ import annotations

import hashlib
import json

import pytest
from airflow.sdk.exceptions import AirflowException

from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from tests.integration.results.conftest import CONNECTION, bucket, s3_client, s3_connection, s3_server
from tests.support.direct import TaskInstance, accept, context_of
from tests.support.service import connection_text

__all__ = ["bucket", "s3_client", "s3_connection", "s3_server"]


@pytest.fixture(autouse=True)
def _connection(sandbox, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(sandbox.url))


def keys(client, bucket_name):
    return [found["Key"] for found in client.list_objects_v2(Bucket=bucket_name).get("Contents", [])]


def test_a_batch_of_searches_across_tries(sandbox, s3_client, bucket):
    """Progress is objects beside the output, found by the next attempt, and gone when the output is there."""
    for number in range(20):
        sandbox.control.set_page(
            f"https://z.example/{number}", markdown=f"zeppelin {number}", title=f"Z{number}"
        )
    url = f"s3://{CONNECTION}@{bucket}/found/all.jsonl"
    queries = [f"zeppelin {number}" for number in range(20)]
    sandbox.control.add_fault(
        "status", path="/v2/search", times=3, status=500, body={"success": False, "error": "oops"}
    )

    def execute(try_number):
        operator = WebDataBatchSearchOperator(
            task_id="t", queries=queries, limit=1, max_concurrency=4, save_to=url
        )
        context = context_of(TaskInstance(try_number=try_number, max_tries=1))
        value = operator.execute(context)
        accept(context)
        return value

    with pytest.raises(AirflowException, match="3 of 20"):
        execute(1)
    parts = keys(s3_client, bucket)
    assert len(parts) == 17
    assert all(key.startswith("found/_all.jsonl.partial/") for key in parts)

    value = execute(2)
    assert (value["done"], value["path"]) == (20, url)
    assert keys(s3_client, bucket) == ["found/all.jsonl"]
    stored = s3_client.get_object(Bucket=bucket, Key="found/all.jsonl")["Body"].read()
    assert {json.loads(line)["query"] for line in stored.splitlines()} == set(queries)
    assert len(sandbox.control.requests("/v2/search")) == 23


def test_parsing_a_file_from_there(sandbox, s3_client, bucket):
    data = b"<html><body>" + b"<p>Wheat is up.</p>" * 50_000 + b"</body></html>"
    s3_client.put_object(Bucket=bucket, Key="in/report.html", Body=data)
    operator = WebDataParseOperator(task_id="t", file=f"s3://{CONNECTION}@{bucket}/in/report.html")
    document = operator.execute(context_of(TaskInstance()))
    assert "Wheat is up." in document["markdown"]
    (sent,) = sandbox.control.requests("/v2/parse")
    assert sent["body"]["file"]["filename"] == "report.html"
    assert sent["body"]["file"]["sha256"] == hashlib.sha256(data).hexdigest()
