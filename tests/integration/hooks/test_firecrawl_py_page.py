# SPDX-License-Identifier: Apache-2.0
"""The hook's calls on the page for users of the public Python client work against the sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.hooks.webdata import WebDataHook
from tests.unit.test_firecrawl_py_page import SAME
from webdata_sandbox.server import SandboxServer

SCHEMA = {"type": "object", "properties": {"level": {"type": "number"}}}


@pytest.mark.parametrize("call", [ours for _, ours in SAME])
def test_a_call_is_answered(sandbox: SandboxServer, connect: Any, call: str) -> None:
    connect(sandbox.url)
    url = "https://river.example/"
    with WebDataHook() as hook:
        job_id = hook.start_crawl(url=url, limit=1).id
        assert eval(call, {"hook": hook, "url": url, "schema": SCHEMA, "job_id": job_id})
