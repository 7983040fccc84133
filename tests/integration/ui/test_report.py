# SPDX-License-Identifier: Apache-2.0
"""The recipe that sends last month's credits to a chat, with the pages of a real API server."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from tests.integration.operators.test_cookbook import RECIPES, REPORT
from tests.integration.operators.test_tutorial import messages
from tests.integration.ui.conftest import PREFIX, Pages


@pytest.mark.parametrize(("months", "text"), [(1, "other_dag: 40 credits\n"), (3, "No credits last month.")])
def test_the_credits_of_last_month(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, months: int, text: str
) -> None:
    """The tasks of the pages reported today, so the report is that of a later month."""
    host = f"{str(pages.client.base_url).rstrip('/')}{PREFIX}"
    airflow = {"conn_type": "http", "host": host, "login": "admin", "password": pages.password}
    monkeypatch.setenv("AIRFLOW_CONN_AIRFLOW_API", json.dumps(airflow))
    names: dict[str, object] = {}
    exec(compile(RECIPES[REPORT], "recipe", "exec"), names)
    send = names["dag"].get_task("send").python_callable  # type: ignore[attr-defined]
    later = datetime.now(timezone.utc).replace(day=1) + timedelta(days=31 * months)
    with messages() as (alert_url, sent):
        monkeypatch.setenv("AIRFLOW_VAR_ALERT_URL", alert_url)
        send(dag_run=SimpleNamespace(run_after=later))
    assert len(sent) == 1
    assert sent[0].startswith(text)
