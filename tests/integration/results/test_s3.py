"""Results in an S3-compatible object store: there when complete, and not before."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import textwrap

import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError

from airflow_provider_webdata.results.columns import columns_of
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.output import check_output, open_output

ITEMS = [
    {"markdown": f"# Page {number}", "metadata": {"sourceURL": f"https://x.example/{number}"}}
    for number in range(50)
]
# More than one part of an upload, and nothing that compresses.
LARGE = [{"markdown": os.urandom(512 * 1024).hex()} for _ in range(20)]


def stored(s3_client, bucket, key):
    return s3_client.get_object(Bucket=bucket, Key=key)["Body"].read()


def keys(s3_client, bucket):
    return [found["Key"] for found in s3_client.list_objects_v2(Bucket=bucket).get("Contents", [])]


def open_uploads(s3_client, bucket):
    return s3_client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])


@pytest.mark.parametrize(
    ("end", "read"),
    [
        ("jsonl", lambda data: [json.loads(line) for line in data.splitlines()]),
        ("jsonl.gz", lambda data: [json.loads(line) for line in gzip.decompress(data).splitlines()]),
        (
            "parquet",
            lambda data: [
                {"markdown": row["markdown"], "metadata": {"sourceURL": row["source_url"]}}
                for row in pq.read_table(io.BytesIO(data)).to_pylist()
            ],
        ),
    ],
)
def test_formats(s3_client, bucket, end, read):
    with open_output(f"s3://results_s3@{bucket}/deep/er/pages.{end}", columns_of("document")) as file:
        file.write(ITEMS)
    data = stored(s3_client, bucket, f"deep/er/pages.{end}")
    assert read(data) == ITEMS
    assert (file.count, file.bytes) == (len(ITEMS), len(data))


def test_several_parts(s3_client, bucket):
    """An object larger than a part is uploaded in parts, with no more than one of them in memory."""
    with open_output(f"s3://results_s3@{bucket}/large.jsonl", columns_of("document")) as file:
        file.write(LARGE)
        assert len(open_uploads(s3_client, bucket)) == 1
        assert keys(s3_client, bucket) == []
    data = stored(s3_client, bucket, "large.jsonl")
    assert [json.loads(line) for line in data.splitlines()] == LARGE
    assert file.bytes == len(data)
    assert open_uploads(s3_client, bucket) == []


def test_no_items(s3_client, bucket):
    with open_output(f"s3://results_s3@{bucket}/none.jsonl", columns_of("document")):
        pass
    assert stored(s3_client, bucket, "none.jsonl") == b""


@pytest.mark.parametrize("items", [ITEMS, LARGE], ids=["one part", "several parts"])
def test_an_error_leaves_what_was_there(s3_client, bucket, items):
    """Neither half an object nor the parts of one; and the former object is as it was."""
    url = f"s3://results_s3@{bucket}/pages.jsonl"
    with open_output(url, columns_of("document")) as file:
        file.write(ITEMS[:1])
    before = stored(s3_client, bucket, "pages.jsonl")

    def failing():
        yield from items
        raise ConnectionError("the next page did not come")

    with pytest.raises(ConnectionError), open_output(url, columns_of("document")) as file:
        file.write(failing())
    del file
    assert stored(s3_client, bucket, "pages.jsonl") == before
    assert open_uploads(s3_client, bucket) == []


def test_a_retry_replaces(s3_client, bucket):
    url = f"s3://results_s3@{bucket}/pages.parquet"
    for part in (ITEMS, ITEMS[:3]):
        with open_output(url, columns_of("document")) as file:
            file.write(part)
    assert keys(s3_client, bucket) == ["pages.parquet"]
    assert pq.read_table(io.BytesIO(stored(s3_client, bucket, "pages.parquet"))).num_rows == 3


def test_killed_while_writing(s3_client, bucket, s3_connection):
    """A process that is killed leaves no object."""
    code = """
        import os, sys
        from airflow_provider_webdata.results.columns import columns_of
        from airflow_provider_webdata.results.output import open_output
        with open_output(sys.argv[1], columns_of("document")) as file:
            file.write({"markdown": os.urandom(512 * 1024).hex()} for _ in range(20))
            print("written", flush=True)
            sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), f"s3://results_s3@{bucket}/killed.jsonl"],
        env={**os.environ, "AIRFLOW_CONN_RESULTS_S3": s3_connection},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert any("written" in line for line in process.stdout)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(open_uploads(s3_client, bucket)) == 1
    with pytest.raises(ClientError, match="NoSuchKey"):
        stored(s3_client, bucket, "killed.jsonl")


def test_no_such_bucket(bucket):
    with pytest.raises(FileNotFoundError):
        with open_output("s3://results_s3@no-such-bucket/x.jsonl", columns_of("document")) as file:
            file.write(ITEMS)


def test_no_such_connection(bucket):
    """Said before there is anything to write; Airflow's own file system would go on without credentials."""
    with pytest.raises(OutputError, match="nobody_defined_this"):
        check_output("s3://nobody_defined_this@bucket/x.jsonl")


def test_a_connection_that_exists(bucket):
    check_output(f"s3://results_s3@{bucket}/x.jsonl.gz")
