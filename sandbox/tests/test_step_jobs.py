# SPDX-License-Identifier: Apache-2.0
"""Jobs that are made of steps go on after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from webdata_sandbox.server import SandboxServer

from .conftest import Api
from .step_job_calls import FLOODS, HOOK, LEVELS


@pytest.mark.parametrize("kind", ["extract", "agent"])
def test_a_restart_goes_on(tmp_path: Path, kind: str) -> None:
    state = str(tmp_path / "state.sqlite")
    body = {"prompt": "levels", "urls": [LEVELS, FLOODS], "webhook": HOOK}
    with SandboxServer(state=state, step_seconds=60) as server, Api(server).http as http:
        job = http.post(f"/v2/{kind}", json=body).json()["id"]
        server.control.advance(60)
        (before,) = server.control.jobs(kind)
        assert (before["status"], len(before["known"])) == ("processing", 1)
    with SandboxServer(state=state) as server, Api(server).http as http:
        server.control.settle()
        assert http.get(f"/v2/{kind}/{job}").json()["status"] == "completed"
        (after,) = server.control.jobs(kind)
        assert after["known"][0] == before["known"][0]
        sent = [item["event"] for item in server.control.deliveries()]
        assert sent.count(f"{kind}.started") == sent.count(f"{kind}.completed") == 1
