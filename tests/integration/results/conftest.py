# SPDX-License-Identifier: Apache-2.0
"""An S3-compatible server on loopback, and the connection with which Airflow reaches it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import boto3
import pytest
from moto.server import ThreadedMotoServer

CONNECTION = "results_s3"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def s3_connection(s3_server: str) -> str:
    """The connection as JSON."""
    return json.dumps(
        {
            "conn_type": "aws",
            "login": "key",
            "password": "secret",
            "extra": {"endpoint_url": s3_server, "region_name": "us-east-1"},
        }
    )


@pytest.fixture(scope="session")
def s3_client(s3_server: str):
    """An S3 client that is not the one under test."""
    return boto3.client(
        "s3",
        endpoint_url=s3_server,
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )


@pytest.fixture
def bucket(s3_client, s3_connection: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A fresh bucket, reachable as `s3://results_s3@bucket/...`."""
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", s3_connection)
    name = f"b-{uuid.uuid4().hex}"
    s3_client.create_bucket(Bucket=name)
    return name
