# SPDX-License-Identifier: Apache-2.0
"""Results in an S3-compatible object store: there when complete, and not before."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import textwrap
from functools import cache

import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError
from s3fs.errors import translate_boto_error

from airflow_provider_webdata.results.columns import columns_of
from airflow_provider_webdata.results.errors import OutputError, StorageError
from airflow_provider_webdata.results.files.output import OutputFile, check_output
from airflow_provider_webdata.results.files.storage import check_file
from tests.support.fault_server import FaultServer, answer
from tests.support.tables import each_row
from tests.support.warm import airflow_environ

ITEMS = [
    {"markdown": f"# Page {number}", "metadata": {"sourceURL": f"https://x.example/{number}"}}
    for number in range(50)
]


@cache
def large():
    """Return items that take more than one part of an upload and do not compress."""
    return [{"markdown": os.urandom(512 * 1024).hex()} for _ in range(20)]


def stored(s3_client, bucket, key):
    return s3_client.get_object(Bucket=bucket, Key=key)["Body"].read()


def keys(s3_client, bucket):
    return [found["Key"] for found in s3_client.list_objects_v2(Bucket=bucket).get("Contents", [])]


def open_uploads(s3_client, bucket):
    return s3_client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])


@each_row(
    "end, read",
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
    with OutputFile(f"s3://results_s3@{bucket}/deep/er/pages.{end}", columns_of("document")) as file:
        file.write(ITEMS)
    data = stored(s3_client, bucket, f"deep/er/pages.{end}")
    assert read(data) == ITEMS
    assert (file.count, file.bytes) == (len(ITEMS), len(data))


def test_several_parts(s3_client, bucket):
    """An object larger than a part is uploaded in parts, with no more than one of them in memory."""
    with OutputFile(f"s3://results_s3@{bucket}/large.jsonl", columns_of("document")) as file:
        file.write(large())
        assert len(open_uploads(s3_client, bucket)) == 1
        assert keys(s3_client, bucket) == []
    data = stored(s3_client, bucket, "large.jsonl")
    assert [json.loads(line) for line in data.splitlines()] == large()
    assert file.bytes == len(data)
    assert open_uploads(s3_client, bucket) == []


def test_no_items(s3_client, bucket):
    with OutputFile(f"s3://results_s3@{bucket}/none.jsonl", columns_of("document")):
        pass
    assert stored(s3_client, bucket, "none.jsonl") == b""


@pytest.mark.parametrize("items", [lambda: ITEMS, large], ids=["one part", "several parts"])
def test_an_error_leaves_what_was_there(s3_client, bucket, items):
    """Neither half an object nor the parts of one; and the former object is as it was."""
    url = f"s3://results_s3@{bucket}/pages.jsonl"
    with OutputFile(url, columns_of("document")) as file:
        file.write(ITEMS[:1])
    before = stored(s3_client, bucket, "pages.jsonl")

    def failing():
        yield from items()
        raise ConnectionError("the next page did not come")

    with pytest.raises(ConnectionError), OutputFile(url, columns_of("document")) as file:
        file.write(failing())
    del file
    assert stored(s3_client, bucket, "pages.jsonl") == before
    assert open_uploads(s3_client, bucket) == []


def test_a_retry_replaces(s3_client, bucket):
    url = f"s3://results_s3@{bucket}/pages.parquet"
    for part in (ITEMS, ITEMS[:3]):
        with OutputFile(url, columns_of("document")) as file:
            file.write(part)
    assert keys(s3_client, bucket) == ["pages.parquet"]
    assert pq.read_table(io.BytesIO(stored(s3_client, bucket, "pages.parquet"))).num_rows == 3


def test_killed_while_writing(s3_client, bucket, s3_connection, warm, tmp_path):
    """A process that is killed leaves no object."""
    code = """
        import os, sys
        from airflow_provider_webdata.results.columns import columns_of
        from airflow_provider_webdata.results.files.output import OutputFile
        with OutputFile(sys.argv[1], columns_of("document")) as file:
            file.write({"markdown": os.urandom(512 * 1024).hex()} for _ in range(20))
            print("written", flush=True)
            sys.stdin.read()
    """
    process = warm.start(
        ["-c", textwrap.dedent(code), f"s3://results_s3@{bucket}/killed.jsonl"],
        env=airflow_environ(tmp_path, AIRFLOW_CONN_RESULTS_S3=s3_connection),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert any("written" in line for line in process.stdout)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(open_uploads(s3_client, bucket)) == 1
    with pytest.raises(ClientError, match="NoSuchKey"):
        stored(s3_client, bucket, "killed.jsonl")


def test_rejected_results(s3_client, bucket):
    url = f"s3://results_s3@{bucket}/found/run.jsonl"
    with OutputFile(url, columns_of("document"), judged=True) as file:
        file.write(ITEMS[:1])
        file.reject()
    assert keys(s3_client, bucket) == ["found/_run.jsonl.rejected"]


def test_no_such_bucket(bucket):
    with pytest.raises(
        StorageError, match=r"(?s)no-such-bucket/x\.jsonl cannot be written: .*Create the bucket, or"
    ):
        with OutputFile("s3://results_s3@no-such-bucket/x.jsonl", columns_of("document")) as file:
            file.write(ITEMS)


def test_no_such_connection(bucket):
    """Said before there is anything to write; Airflow's own file system would go on without credentials."""
    with pytest.raises(OutputError, match="nobody_defined_this"):
        check_output("s3://nobody_defined_this@bucket/x.jsonl")


def test_a_connection_that_exists(bucket):
    check_output(f"s3://results_s3@{bucket}/x.jsonl.gz")


def test_nothing_is_written_to_find_out(s3_client, bucket):
    """An object would notify somebody, and need the right to delete."""
    check_output(f"s3://results_s3@{bucket}/deep/er/x.jsonl")
    assert keys(s3_client, bucket) == []
    assert open_uploads(s3_client, bucket) == []


def test_no_such_bucket_is_said_before_there_is_anything_to_write(bucket):
    with pytest.raises(OutputError, match="bucket 'no-such-bucket' does not exist; create it"):
        check_output("s3://results_s3@no-such-bucket/x.jsonl")


DENIED = "<Error><Code>AccessDenied</Code><Message>No.</Message></Error>"


@pytest.fixture
def refusing(monkeypatch):
    """Return what starts a storage that refuses with a code, and its URL with a connection of its own."""
    servers = []

    def start(code):
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>No.</Message></Error>"
        server = FaultServer([answer(403, body, "application/xml")])
        servers.append(server)
        extra = {"endpoint_url": server.url, "region_name": "us-east-1"}
        connection = {"conn_type": "aws", "login": "key", "password": "secret", "extra": extra}
        # Airflow remembers the file system of each connection.
        conn_id = f"refusing_{server.port}"
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))
        return server, f"s3://{conn_id}@bucket/x.jsonl"

    yield start
    for server in servers:
        server.close()


@each_row("code", ["InvalidAccessKeyId", "SignatureDoesNotMatch"])
def test_wrong_credentials_are_said_before_there_is_anything_to_write(refusing, code):
    _, url = refusing(code)
    with pytest.raises(OutputError, match=f"rejects the credentials .{code}.; correct the connection"):
        check_output(url)


@each_row("name", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_certificates_of_the_environment_that_are_missing_are_named(monkeypatch, name):
    """The storage's library says only that a file does not exist, which is not the one to write."""
    for other in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "/no-cert-file.crt")
    extra = {"endpoint_url": "https://127.0.0.1:9", "region_name": "us-east-1"}
    connection = {"conn_type": "aws", "login": "key", "password": "secret", "extra": extra}
    monkeypatch.setenv(f"AIRFLOW_CONN_WITH_{name}", json.dumps(connection))
    with pytest.raises(
        StorageError,
        match=rf"cannot be written: [\s\S]*environment variable {name} names '/no-cert-file.crt', which does not exist",
    ):
        check_output(f"s3://with_{name.lower()}@bucket/x.jsonl")


def test_a_storage_that_is_away_is_named(refusing):
    """Its own library's error is no OSError."""
    server, url = refusing("InternalError")
    server.close()
    with pytest.raises(
        StorageError,
        match=r"x\.jsonl cannot be written: [\s\S]*Check that the storage is available[\s\S]*WD-065",
    ):
        check_output(url)


BEGUN = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"


@each_row("may_abort", [True, False])
def test_whoever_may_only_write_may_write(refusing, may_abort):
    """A role without the right to look is no reason to refuse."""
    denied = answer(403, DENIED, "application/xml")
    server, url = refusing("AccessDenied")
    server._steps = [denied, answer(200, BEGUN, "application/xml"), answer(204, "") if may_abort else denied]
    check_output(url)
    assert [request.method for request in server.requests] == ["GET", "POST", "DELETE"]


def test_whoever_may_only_look_may_not_write(refusing):
    """What a write begins with is tried, and nothing is left behind."""
    found = "<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>"
    server, url = refusing("AccessDenied")
    server._steps = [answer(200, found, "application/xml"), answer(403, DENIED, "application/xml")]
    with pytest.raises(
        OutputError, match=r"refuses to begin an upload .AccessDenied.; allow the connection s3:PutObject"
    ):
        check_output(url)
    assert [request.method for request in server.requests] == ["GET", "POST"]


@each_row(
    "code, step",
    [
        ("ExpiredToken", "Renew the credentials of the connection"),
        ("RequestTimeTooSkewed", "Set the clock of the machine"),
        ("InvalidBucketName", "Correct the bucket's name"),
    ],
)
def test_an_error_of_s3_has_its_own_next_step(refusing, code, step):
    _, url = refusing(code)
    with pytest.raises(StorageError, match=f"(?s)cannot be written: .*{step}"):
        with OutputFile(url, columns_of("document")) as file:
            file.write(ITEMS)


def test_an_upload_that_somebody_aborted(s3_client, bucket, monkeypatch):
    """It has a bucket and needs no folder: a new attempt works."""
    url = f"s3://results_s3@{bucket}/pages.jsonl"

    def complete(_):
        # What s3fs raises for the answer of S3; moto answers with status 500.
        answered = {"Error": {"Code": "NoSuchUpload", "Message": "The upload does not exist"}}
        raise translate_boto_error(ClientError(answered, "CompleteMultipartUpload"))

    def write():
        with OutputFile(url, columns_of("document")) as file:
            file.write(ITEMS)

    with monkeypatch.context() as patch:
        patch.setattr("s3fs.core.S3File.commit", complete)
        with pytest.raises(
            StorageError, match=r"(?s)aborted the upload.*new attempt.*clear the task"
        ) as error:
            write()
    assert "Create" not in str(error.value)
    write()
    assert keys(s3_client, bucket) == ["pages.jsonl"]


def test_a_temporary_folder_that_cannot_be_written(s3_client, bucket, tmp_path, monkeypatch):
    """Results that may be rejected are written there first; the message names it, not the object."""
    url = f"s3://results_s3@{bucket}/pages.jsonl"
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))

    def write(judged):
        with OutputFile(url, columns_of("document"), judged=judged) as file:
            file.write(ITEMS)

    for attempt in (lambda: check_file(url, movable=True), lambda: write(True)):
        with pytest.raises(
            StorageError, match=f"(?s)temporary folder {tmp_path}/gone, .*cannot be written.*TMPDIR"
        ):
            attempt()
    write(False)
    (tmp_path / "gone").mkdir()
    check_file(url, movable=True)
    write(True)
    assert open_uploads(s3_client, bucket) == []


def test_a_storage_that_does_not_answer(refusing):
    """It may in a moment: a retry helps, and nothing is paid for meanwhile."""
    server, url = refusing("any")
    server.close()
    with pytest.raises(Exception, match="connect") as failed:
        check_output(url)
    assert not isinstance(failed.value, OutputError)
