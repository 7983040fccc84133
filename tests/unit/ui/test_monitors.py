# SPDX-License-Identifier: Apache-2.0
"""The monitors page: to whom a monitor reports, and which task declares it."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.api.models import Monitor
from airflow_provider_webdata.hooks.environment import environment
from airflow_provider_webdata.states.monitor_decision import Mark
from airflow_provider_webdata.ui.pages.monitors import _declarers_of, receiver_of

HERE = "https://airflow.example"
OURS = Mark(environment(), "shop", "keep", "prices")
THEIRS = OURS._replace(environment="laptop")


def monitor(url: str, mark: Mark | None = None) -> Any:
    webhook = {"url": url, "metadata": mark.metadata if mark else {}}
    return Monitor.model_validate({"id": "m", "webhook": webhook})


@pytest.mark.parametrize(
    ("url", "mark", "receiver"),
    [
        # The connection was renamed, and its address changed.
        ("https://former.example/webdata/inbox/former/key", OURS, "this Airflow"),
        (f"{HERE}/webdata/inbox/web/key", THEIRS, "another Airflow"),
        (f"{HERE}/webdata/inbox/web", None, "this Airflow"),
        ("https://laptop.example/webdata/inbox/web", None, "another Airflow"),
        ("https://chat.example/hook", None, "another webhook"),
    ],
)
def test_to_whom_it_reports(url: str, mark: Mark | None, receiver: str) -> None:
    assert receiver_of(monitor(url, mark), HERE) == receiver


def test_a_task_of_another_airflow_is_not_shown_as_one_of_this(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_webdata.ui.pages.monitors.starters_of", lambda *_: {})
    assert _declarers_of([monitor(HERE, OURS)])["m"].task_id == "keep"
    assert _declarers_of([monitor(HERE, THEIRS)]) == {}
