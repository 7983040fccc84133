# SPDX-License-Identifier: Apache-2.0
"""What the plugin adds to the API server, by the options `inbox` and `pages`."""

from __future__ import annotations

from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from airflow_provider_webdata import __version__
from airflow_provider_webdata.inbox_server import options
from airflow_provider_webdata.plugin import WebDataPlugin

INBOX, PAGES = "Web data inbox", "Web data pages"


@pytest.mark.parametrize(
    ("given", "apps", "middlewares", "views"),
    [
        ({}, [PAGES], [], 2),
        ({"INBOX": "True"}, [INBOX, PAGES], [INBOX], 2),
        ({"PAGES": "False"}, [], [], 0),
        ({"INBOX": "true", "PAGES": "0"}, [INBOX], [INBOX], 0),
    ],
    ids=["default", "inbox", "nothing", "inbox alone"],
)
def test_parts(
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    apps: list[str],
    middlewares: list[str],
    views: int,
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(f"AIRFLOW__WEBDATA__{name}", value)
    plugin = WebDataPlugin()
    assert [one["name"] for one in plugin.fastapi_apps] == apps
    assert [one["name"] for one in plugin.fastapi_root_middlewares] == middlewares
    assert len(plugin.external_views) == views
    assert [one["destination"] for one in plugin.react_apps] == ["dashboard"] * (views // 2)


def test_a_misspelled_option_is_logged_once_and_its_default_applies(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    options._report.cache_clear()
    monkeypatch.setenv("AIRFLOW__WEBDATA__INBOX", "ture")
    monkeypatch.setenv("AIRFLOW__WEBDATA__PAGES", "flase")
    plugin = WebDataPlugin()
    assert [one["name"] for one in plugin.fastapi_apps] == [PAGES]
    assert (plugin.fastapi_root_middlewares, len(plugin.external_views)) == ([], 2)
    assert [record.getMessage() for record in caplog.records] == [
        "[webdata] inbox must be True or False (given: 'ture') (WD-006). The default, False, applies",
        "[webdata] pages must be True or False (given: 'flase') (WD-006). The default, True, applies",
    ]


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("", ""),
        ("http://airflow.example:8080", ""),
        ("https://airflow.example/company/airflow/", "/company/airflow"),
        # Malformed: the plugin is loaded nevertheless, and mounts the inbox.
        ("http://[airflow", ""),
    ],
)
def test_addresses(monkeypatch: pytest.MonkeyPatch, base_url: str, root: str) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    views = WebDataPlugin().external_views
    assert {view["destination"]: view["href"] for view in views} == {
        "nav": f"{root}/webdata-ui/",
        "task_instance": f"{root}/webdata-ui/task?dag_id={{DAG_ID}}&run_id={{RUN_ID}}&task_id={{TASK_ID}}"
        "&map_index={MAP_INDEX}",
    }
    (card,) = WebDataPlugin().react_apps
    assert card["bundle_url"] == f"{root}/webdata-ui/static/{__version__}/card.js"
    assert len({view["url_route"] for view in (*views, card)}) == 3


def test_the_icons_are_images() -> None:
    for view in WebDataPlugin().external_views:
        for icon in (view["icon"], view["icon_dark_mode"]):
            kind, _, image = icon.partition(",")
            assert kind == "data:image/svg+xml"
            assert ElementTree.fromstring(unquote(image)).tag.endswith("svg")
        assert view["icon"] != view["icon_dark_mode"]
