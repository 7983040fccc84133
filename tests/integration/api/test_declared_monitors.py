# SPDX-License-Identifier: Apache-2.0
"""Any declared monitor is created as declared, updated once to another declaration, and then left alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from airflow_provider_webdata.api.client import ClientConfig, WebDataClient
from airflow_provider_webdata.api.endpoints import CREATE_MONITOR, GET_MONITOR, UPDATE_MONITOR
from airflow_provider_webdata.api.models import MonitorCreateRequest, MonitorUpdateRequest
from airflow_provider_webdata.api.monitor_diff import MonitorChanges, monitor_changes
from tests.support.request_fields import drawn
from webdata_sandbox.server import SandboxServer

Wire = dict[str, Any]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with (
        SandboxServer() as sandbox,
        WebDataClient(ClientConfig(sandbox.url, sandbox.api_key, declared="hosted")) as client,
    ):
        sandbox.control.configure(credits=10**9)
        sandbox.control.set_quirks(["schedule-spread", "patch-keeps-judge"])
        yield Service(client)


class Service:
    """Monitors as the provider's client creates, updates, and reads them."""

    def __init__(self, client: WebDataClient) -> None:
        self._client = client

    def create(self, declared: Wire) -> Wire:
        request = MonitorCreateRequest.model_validate(declared)
        return self.read(self._client.call(CREATE_MONITOR, body=request).data.id)

    def update(self, monitor_id: str, patch: Wire) -> Wire:
        request = MonitorUpdateRequest.model_validate(patch)
        self._client.call(UPDATE_MONITOR, path={"monitor_id": monitor_id}, body=request)
        return self.read(monitor_id)

    def read(self, monitor_id: str) -> Wire:
        return self._client.call(GET_MONITOR, path={"monitor_id": monitor_id}).data.to_wire()


def compared(declared: Wire, stored: Wire, applied: Wire) -> MonitorChanges:
    """Compare as a task does that recorded the cron that the service made of a text."""
    schedule = {"text": declared["schedule"].get("text"), "cron": applied["schedule"]["cron"]}
    return monitor_changes(declared, stored, schedule if schedule["text"] else None)


def without_ids(body: Wire) -> Wire:
    """Return a declaration as authors write it; the wire form of its model."""
    targets = [{name: value for name, value in target.items() if name != "id"} for target in body["targets"]]
    return MonitorCreateRequest.model_validate({**body, "targets": targets}).to_wire()


def with_new_fields(value: Any) -> Any:
    """Return what a newer service shows: another field with a default in each object that is no value of its author."""
    if isinstance(value, list):
        return [with_new_fields(item) for item in value]
    if not isinstance(value, dict):
        return value
    exact = ("headers", "metadata", "schema")
    return {
        "aDefault": {"of": "tomorrow"},
        **{name: inner if name in exact else with_new_fields(inner) for name, inner in value.items()},
    }


MONITORS = drawn(MonitorCreateRequest).map(without_ids)


@pytest.mark.rule("monitor-normalised", "schedule-stored", "open-responses")
@given(declared=MONITORS)
def test_a_monitor_created_as_declared_does_not_differ(service: Service, declared: Wire) -> None:
    """Neither as the service returns it, nor with fields that the service may add one day."""
    stored = service.create(declared)
    assert compared(declared, stored, stored).fields == ()
    assert compared(declared, with_new_fields(stored), stored).fields == ()
    undeclared = {name: value for name, value in declared.items() if name in ("name", "schedule")}
    assert compared(undeclared, stored, stored).fields == ()


@pytest.mark.rule("monitor-update", "monitor-update-goal", "target-ids")
@given(before=MONITORS, declared=MONITORS)
def test_one_update_removes_every_difference(service: Service, before: Wire, declared: Wire) -> None:
    """As many targets as possible keep their ids, and with them their history."""
    stored = service.create(before)
    changes = monitor_changes(declared, stored)
    after = service.update(stored["id"], changes.patch) if changes else stored
    assert compared(declared, after, after).fields == ()
    ids = [[target["id"] for target in monitor["targets"]] for monitor in (stored, after)]
    kinds = [[target["type"] for target in monitor["targets"]] for monitor in (before, declared)]
    could_stay = sum(min(kind.count(name) for kind in kinds) for name in ("scrape", "crawl", "search"))
    assert len({*ids[0]} & {*ids[1]}) == could_stay
    assert len({*ids[1]}) == len(ids[1])
