# SPDX-License-Identifier: Apache-2.0
"""Names by which `make chaos` counts its faults."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from demo.chaos import faults


@pytest.mark.parametrize(
    ("unregistered", "name"), [(True, None), (False, "api-server-1 killed without an unregistered event")]
)
def test_a_kill_without_an_unregistered_event_is_counted_separately(
    monkeypatch: pytest.MonkeyPatch, unregistered: bool, name: str | None
) -> None:
    monkeypatch.setattr(faults, "_PATIENCE", 0.0)
    killed: list[str] = []
    stack: Any = SimpleNamespace(
        down=set(), kill=killed.append, launch=killed.remove, has_unregistered_events=lambda: unregistered
    )
    fault = faults.faults_of(stack, None)[0]
    with fault.inject() as counted:
        assert killed == ["api-server-1"]
    assert (fault.name, counted, killed) == ("api-server-1 killed before registration", name, [])
