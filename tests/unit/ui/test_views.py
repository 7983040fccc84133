"""The entry in the menu and the tab that the plugin adds to Airflow's UI."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.plugin import views


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
    found = {view["destination"]: view["href"] for view in views()}
    assert found == {
        "nav": f"{root}/webdata-ui/",
        "task_instance": f"{root}/webdata-ui/task?dag_id={{DAG_ID}}&run_id={{RUN_ID}}&task_id={{TASK_ID}}"
        "&map_index={MAP_INDEX}",
    }
    assert len({view["url_route"] for view in views()}) == 2


@pytest.mark.parametrize(
    ("given", "hidden"), [("False", True), (" 0 ", True), ("true", False), ("flase", False)]
)
def test_the_tab_can_be_hidden(monkeypatch: pytest.MonkeyPatch, given: str, hidden: bool) -> None:
    """What is misspelt hides nothing, and does not keep the plugin from being loaded."""
    monkeypatch.setenv("AIRFLOW__WEBDATA__UI_TABS", given)
    assert len(views()) == (1 if hidden else 2)
