# SPDX-License-Identifier: Apache-2.0
"""Polled monitors: when their checks must be read again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_webdata.api.errors import NotFoundError, RateLimitError
from airflow_provider_webdata.api.models import Monitor
from airflow_provider_webdata.states.check_queue import CheckQueue
from airflow_provider_webdata.states.checks import CheckCriteria
from airflow_provider_webdata.waiting import subjects
from airflow_provider_webdata.waiting.check_target import CheckTarget
from airflow_provider_webdata.waiting.subjects import MonitorSubject


@pytest.mark.rule("late-reads")
async def test_a_monitor_is_read_until_its_checks_can_show_what_is_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def no_checks(*_: Any, **__: Any) -> list[Any]:
        if fails:
            raise RateLimitError("list checks", 429, "Rate limit exceeded")
        return []

    async def no_check(*_: Any, **__: Any) -> Any:
        raise NotFoundError("get check", 404, "Check not found")

    async def call(request: Any) -> Any:
        return await request(SimpleNamespace(list_monitor_checks=no_checks, get_monitor_check=no_check))

    def listed(run: str) -> bool:
        return subject.has_changed(Monitor.model_validate({"id": "m", "lastRunAt": run}))

    now, fails = 1000.0, False
    monkeypatch.setattr(subjects, "time", SimpleNamespace(monotonic=lambda: now, time=lambda: now))
    subject = MonitorSubject(("monitor", "m"))
    subject.targets.add(CheckTarget("m", CheckQueue(CheckCriteria(), None), 60.0, None))
    assert listed("first")
    await subject.poll(call)
    assert listed("first"), "the replica may lack it"
    now += subjects.MISSING_LIMIT
    assert listed("first")
    await subject.poll(call)
    assert not listed("first")

    now += subjects.MISSING_LIMIT
    assert listed("second")
    now, fails = now + subjects.MISSING_LIMIT, True
    with pytest.raises(RateLimitError):
        await subject.poll(call)
    assert listed("second"), "it was not read"
    fails = False
    await subject.poll(call)
    assert not listed("second")

    subject.hint("c")
    assert listed("second"), "a delivery is unconfirmed"
    await subject.poll(call)
    subject.hints = None
    assert listed("second"), "a check is missing"
    await subject.poll(call)
    assert not listed("second")
