# SPDX-License-Identifier: Apache-2.0
"""What the package adds to an API server: nothing that its options do not ask for."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.browser import opened
from tests.support.warm import Warm, airflow_environ

DRIVER = Path(__file__).with_name("api_server_driver.py")
INBOX_TABLES = [
    "alembic_version_webdata",
    "webdata_asset_event",
    "webdata_inbox_counter",
    "webdata_inbox_delivery",
    "webdata_inbox_refusal",
]
OTHER_PLUGIN = """
from airflow.plugins_manager import AirflowPlugin

class Other(AirflowPlugin):
    name = "other"
    external_views = [{"name": "Other plugin", "href": "/other", "destination": "nav", "url_route": "other"}]
"""

Footprint = dict[str, Any]

SERVERS: Mapping[str, tuple[bool, dict[str, str]]] = {
    "without": (True, {}),
    "off": (False, {"INBOX": "False", "PAGES": "False"}),
    "default": (False, {}),
    "not migrated": (False, {"INBOX": "True"}),
    "inbox": (False, {"INBOX": "True", "INBOX_CREATE_TABLES": "True", "PAGES": "False"}),
}
"""Whether Airflow sees the package, and its options."""


def environ(home: Path, **options: str) -> dict[str, str]:
    """Return the environment of an Airflow with options of `[webdata]`."""
    return airflow_environ(
        home,
        AIRFLOW__API_AUTH__JWT_SECRET="a secret of this run alone, long enough to sign with it",
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE=str(home / "passwords.json"),
        **{f"AIRFLOW__WEBDATA__{name}": value for name, value in options.items()},
    )


@pytest.fixture(scope="module")
def foreign_database(tmp_path_factory: pytest.TempPathFactory, warm: Warm) -> Path:
    """The database of an Airflow without this package."""
    home = tmp_path_factory.mktemp("without")
    arguments = json.dumps({"hidden": True, "only_migrates": True})
    done = warm.run([str(DRIVER), arguments], env=environ(home))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return home / "airflow.db"


@pytest.fixture(scope="module")
def measured(
    foreign_database: Path, tmp_path_factory: pytest.TempPathFactory, warm: Warm
) -> Mapping[str, Footprint]:
    """The footprints of API servers, each with a copy of that database."""
    found = {}
    for name, (hidden, options) in SERVERS.items():
        home = tmp_path_factory.mktemp("home")
        shutil.copy(foreign_database, home)
        done = warm.run([str(DRIVER), json.dumps({"hidden": hidden})], env=environ(home, **options))
        if done.returncode == 0:
            found[name] = json.loads(done.stdout.rpartition("\nANSWER ")[2])
        else:
            found[name] = {"error": done.stdout[-3000:] + done.stderr[-3000:]}
    return found


COUNTED = ("routes", "middlewares", "threads", "statements")


def added(measured: Mapping[str, Footprint], server: str) -> dict[str, list[Any]]:
    """Return what a server has beyond the one without the package."""
    found, base = measured[server], measured["without"]
    return {name: sorted((Counter(found[name]) - Counter(base[name])).elements()) for name in COUNTED}


def test_with_both_options_off_it_adds_nothing(measured: Mapping[str, Footprint]) -> None:
    """Its database was migrated without this package, and `airflow db check-migrations` does not wait."""
    assert added(measured, "off") == {name: [] for name in COUNTED}
    found = measured["off"]
    assert sorted(found["plugins"]) == sorted([*measured["without"]["plugins"], "webdata"])
    assert (found["new tables"], found["views"]) == ([], measured["without"]["views"])


def test_by_default_it_adds_the_pages(measured: Mapping[str, Footprint]) -> None:
    assert added(measured, "default") == {**{name: [] for name in COUNTED}, "routes": ["/webdata-ui"]}
    found = measured["default"]
    assert found["new tables"] == []
    own = [view for view in found["views"] if view not in measured["without"]["views"]]
    assert [view["destination"] for view in own] == ["nav", "task_instance"]


def test_the_inbox_adds_what_is_counted(measured: Mapping[str, Footprint]) -> None:
    """Otherwise, the tests above would count nothing."""
    assert "There are still unapplied migrations after 1 seconds" in measured["not migrated"]["error"]
    found = measured["inbox"]
    assert found["new tables"] == INBOX_TABLES
    assert added(measured, "inbox")["routes"] == ["/webdata"]
    assert all(added(measured, "inbox").values())
    assert found["views"] == measured["without"]["views"]


def test_the_menu_entry_stays_beside_another_plugin(
    foreign_database: Path, tmp_path: Path, warm: Warm
) -> None:
    shutil.copy(foreign_database, tmp_path)
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "other.py").write_text(OTHER_PLUGIN)
    server = warm.start(
        [str(DRIVER), json.dumps({"served": True})],
        env=environ(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        line = next(line for line in server.stdout if line.startswith("SERVING "))
        served = json.loads(line.removeprefix("SERVING "))
        with opened(served["url"], served["token"]) as page:
            page.goto("/")
            entry = page.get_by_role("link", name="Web Data")
            expect(entry).to_be_visible()
            icon = entry.locator("img")
            assert icon.evaluate("image => image.complete && image.naturalWidth > 0")
            # Two entries below the top level would share a submenu.
            expect(page.get_by_role("link", name="Other plugin")).to_be_visible()
    finally:
        server.kill()
        server.wait()
