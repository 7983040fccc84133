# SPDX-License-Identifier: Apache-2.0
"""Links to pages in Airflow's UI, of a task and in events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_webdata.base.links import PageLink
from airflow_provider_webdata.common.page_urls import page_url


@pytest.mark.parametrize(("pages", "has_link"), [("True", True), ("False", False), ("maybe", True)])
def test_without_pages_there_is_no_link(monkeypatch: pytest.MonkeyPatch, pages: str, has_link: bool) -> None:
    monkeypatch.setenv("AIRFLOW__WEBDATA__PAGES", pages)
    operator: Any = SimpleNamespace(_webdata_page="/monitors/monitor?conn_id=c&monitor_id=m")
    key: Any = SimpleNamespace()
    assert bool(PageLink().get_link(operator, ti_key=key)) is has_link
    assert (page_url(operator._webdata_page) is not None) is has_link
