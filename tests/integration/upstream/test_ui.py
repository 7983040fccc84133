# SPDX-License-Identifier: Apache-2.0
"""Faults of Airflow's API server and UI that the pages meet. Those of the UI are read from its scripts."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import airflow.ui
from airflow.api_fastapi.core_api.security import AuthManagerDep
from fastapi import FastAPI
from starlette.testclient import TestClient

from tests.support.upstream import Report


@cache
def frame() -> str:
    """Return the parts of the UI's scripts about the frames of plugins."""
    folder = Path(next(iter(airflow.ui.__path__))) / "dist" / "assets"
    scripts = (path.read_text(errors="replace") for path in folder.glob("*.js"))
    (script,) = (one for one in scripts if "{MAP_INDEX}" in one and "plugin/:page/*" in one)
    place = script.index("{MAP_INDEX}")
    sandboxes = re.findall(r"`allow-scripts allow-same-origin[^`]*`", script)
    assert sandboxes
    return script[place - 1000 : place + 1000] + "".join(sandboxes)


def test_pages_of_the_frame() -> None:
    """The frame starts with the view's own address, whatever follows `/plugin/<route>` in Airflow's."""
    Report("frame_opens_first_page").check("`/plugin/${" not in frame())


def test_downloads() -> None:
    Report("frame_without_downloads").check("allow-downloads" not in frame())


def test_windows() -> None:
    Report("frame_without_windows").check("allow-popups" not in frame())


def test_the_placeholder_of_a_task_that_is_not_mapped() -> None:
    """It is replaced only where there is an index."""
    conditional = re.search(r"(\w+)!==void 0&&\((\w+)=\2\.replaceAll\(`\{MAP_INDEX\}`,\1\)\)", frame())
    Report("map_index_placeholder").check(conditional is not None)


def test_the_auth_manager_of_a_mounted_application() -> None:
    plugin, server = FastAPI(), FastAPI()

    def page(manager: object) -> str:
        return str(manager)

    page.__annotations__["manager"] = AuthManagerDep
    plugin.get("/")(page)
    server.state.auth_manager = "the manager"
    server.mount("/plugin", plugin)
    try:
        is_missing = TestClient(server).get("/plugin/").text != '"the manager"'
    except AttributeError as error:
        is_missing = "auth_manager" in str(error)
    Report("auth_manager_in_mounted_apps").check(is_missing)
