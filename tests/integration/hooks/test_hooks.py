# SPDX-License-Identifier: Apache-2.0
"""Both hooks over HTTP: monitors, searches and credits, paging, secrets, and the life of their client."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk._shared.secrets_masker import redact

from airflow_provider_webdata.api.errors import ConfigurationError, InvalidRequestError, NotFoundError
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.hooks.operations import monitors
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from tests.support.service import NEVER
from tests.support.waiting import settled

MONITOR = {
    "name": "m",
    "schedule": NEVER,
    "targets": [{"type": "scrape", "urls": ["https://zeppelin.example/"]}],
}


@pytest.fixture
async def hook(kind_of_hook, sandbox, connect):
    connect(sandbox.url, sandbox.api_key)
    hook = kind_of_hook()
    yield hook
    await settled(hook.close())


async def test_every_operation(hook, sandbox):
    """The life of a monitor, a search, and the team's credits."""
    sandbox.control.set_page(
        "https://zeppelin.example/", markdown="# Zeppelin\n\nAn airship.", title="Zeppelin"
    )
    found = await settled(hook.search(query="zeppelin", limit="3", extra_body={"origin": "test"}))
    assert [item.url for item in found.data.web] == ["https://zeppelin.example/"]
    assert sandbox.control.requests("/v2/search")[0]["body"] == {
        "query": "zeppelin",
        "limit": 3,
        "origin": "test",
    }

    monitor = await settled(hook.create_monitor(MONITOR))
    assert (await settled(hook.get_monitor(monitor.id))).name == "m"
    assert [item.id for item in await settled(hook.list_monitors(limit=1, offset=0))] == [monitor.id]
    changed = await settled(hook.update_monitor(monitor.id, name="n", extra_body={"retentionDays": 5}))
    assert (changed.name, changed.retention_days) == ("n", 5)
    check = await settled(hook.run_monitor(monitor.id))
    sandbox.control.settle()
    (listed,) = await settled(hook.list_monitor_checks(monitor.id, limit=5))
    assert listed.id == check.id
    detail = await settled(hook.get_monitor_check(monitor.id, check.id, limit=5))
    assert detail.status == "completed"
    assert [page.url for page in detail.pages] == ["https://zeppelin.example/"]
    assert (await settled(hook.delete_monitor(monitor.id))).success is True
    with pytest.raises(NotFoundError):
        await settled(hook.get_monitor(monitor.id))
    assert (await settled(hook.credit_usage())).remaining_credits < sandbox.config.credits


@pytest.mark.rule("monitor-list")
async def test_all_monitors_once(serve):
    """Full pages are followed by a further request, also the last one."""
    # A monitor moves to the second page because another one was created.
    server, hook = serve(list_of(*range(100)), list_of(*range(98, 198)), list_of(197))
    found = await settled(hook.iter_monitors())
    assert [monitor.id for monitor in found] == [f"m-{number}" for number in range(198)]
    assert [request.target for request in server.requests] == [
        f"/v2/monitor?limit=100&offset={offset}" for offset in (0, 99, 198)
    ]
    await settled(hook.close())


def list_of(*numbers: int) -> dict[str, object]:
    return {"success": True, "data": [{"id": f"m-{number}", "name": "m"} for number in numbers]}


@pytest.mark.parametrize(
    ("pages", "offsets"),
    [
        # Of 350 monitors, two on the first page are deleted: the 101st would be on none.
        (
            [range(100), range(101, 201), range(2, 102), range(101, 201), range(200, 300), range(299, 350)],
            (0, 99, 0, 99, 198, 297),
        ),
        # Of 101 monitors, two are deleted.
        ([range(100), [], range(2, 101)], (0, 99, 0)),
        # A server that does not support the offset.
        ([range(100), [], range(100), []], (0, 99, 0, 99)),
    ],
)
async def test_no_monitor_is_missed_while_others_are_deleted(
    serve: Any, pages: list[Any], offsets: tuple[int, ...]
) -> None:
    """A declared monitor that is missed would be created again."""
    server, hook = serve(*(list_of(*page) for page in pages))
    found = {monitor.id for monitor in await settled(hook.iter_monitors())}
    assert found == {f"m-{number}" for page in pages for number in page}
    assert [request.target for request in server.requests] == [
        f"/v2/monitor?limit=100&offset={offset}" for offset in offsets
    ]
    await settled(hook.close())


@pytest.mark.rule("next-host", "check-get", "check-pages-order")
@pytest.mark.parametrize(
    "quirks", [[], ["next-wrong-host", "repeated-pages", "next-null"]], ids=["", "quirks"]
)
async def test_all_pages_of_a_check_once(hook, sandbox, monkeypatch, quirks):
    """`next` is followed on the connection's host only, and repeated pages are dropped."""
    monkeypatch.setattr(monitors, "PAGE_SIZE", 10)
    urls = [f"https://pages.example/{number}" for number in range(25)]
    for url in urls:
        sandbox.control.set_page(url, markdown=f"# {url}")
    monitor = await settled(hook.create_monitor({**MONITOR, "targets": [{"type": "scrape", "urls": urls}]}))
    check = await settled(hook.run_monitor(monitor.id))
    sandbox.control.settle()
    sandbox.control.set_quirks(quirks)
    pages = await settled(hook.iter_monitor_check_pages(monitor.id, check.id))
    assert sorted(page.url for page in pages) == sorted(urls)
    extra = {"payload": {"monitor_id": monitor.id, "check_id": check.id}}
    for event in (SimpleNamespace(extra=extra), {"extra": extra}, extra["payload"]):
        changed = await settled(hook.changed_pages(event))
        assert sorted((page.url, page.status) for page in changed) == [(url, "new") for url in sorted(urls)]


async def test_changed_pages_of_no_check(hook):
    extras = ({}, {"payload": {}}, {"payload": "text"}, {"payload": {"monitor_id": "m"}}, "text", None)
    for event in (*extras, *(SimpleNamespace(extra=extra) for extra in extras)):
        with pytest.raises(ArgumentError, match="needs an asset event of a monitor"):
            await settled(hook.changed_pages(event))


async def test_an_invalid_request_is_not_sent(hook, sandbox):
    with pytest.raises(InvalidRequestError, match="quary"):
        await settled(hook.search({"quary": "q"}))
    with pytest.raises(InvalidRequestError, match="monitor_id"):
        await settled(hook.get_monitor(" "))
    assert sandbox.control.requests() == []


async def test_secrets_are_masked(kind_of_hook, connect):
    """Airflow redacts all secrets of the connection."""
    mine = f"hush-{kind_of_hook.__name__}"
    secrets = {
        "secret_headers": {"X-Tenant": f"{mine}-header"},
        "webhook_secret": f"{mine}-webhook",
        "signing_secret": f"{mine}-signing",
        "proxy": f"http://someone:{mine}-pa%24s@proxy.example:1",
    }
    connect("https://api.example", f"{mine}-key", **secrets)
    hook = kind_of_hook()
    settings = await settled(hook.get_settings())
    values = list(settings.secrets())
    assert len(values) >= 7
    assert redact([f"<{value}>" for value in values]) == ["<***>"] * len(values)
    assert "hush" not in repr(settings)
    assert "hush" not in repr(vars(hook))


async def test_one_client_until_closed(kind_of_hook, sandbox, connect):
    """The hook creates its pooled client at the first use, keeps it, and creates another one after `close`."""
    connect(sandbox.url, sandbox.api_key)
    hook = kind_of_hook()
    client = await settled(hook.get_conn())
    assert await settled(hook.get_conn()) is client
    await settled(hook.close())
    await settled(hook.close())
    assert client.is_closed
    assert (await settled(hook.credit_usage())).remaining_credits is not None
    await settled(hook.close())


async def test_as_context_manager(connect):
    connect("https://api.example")
    with WebDataHook() as blocking:
        client = blocking.get_conn()
    assert client.is_closed
    async with WebDataAsyncHook() as other:
        other_client = await other.get_conn()
    assert other_client.is_closed


async def test_an_invalid_connection(kind_of_hook, connect):
    connect("https://api.example.com", "Bearer key-0123456789")
    with pytest.raises(ConfigurationError, match="enter the key alone"):
        await settled(kind_of_hook().credit_usage())


def test_a_sibling_shares_the_settings_and_no_client(sandbox, connect, monkeypatch):
    """Code that interrupts a call uses it: it neither touches the client nor reads the connection again."""
    connect(sandbox.url, sandbox.api_key)
    with WebDataHook() as hook:
        settings, client = hook.get_settings(), hook.get_conn()
        monkeypatch.delenv("AIRFLOW_CONN_WEBDATA_DEFAULT")
        with hook.sibling() as other:
            assert other.get_settings() is settings
            assert other.get_conn() is not client
            assert other.credit_usage().remaining_credits is not None
        assert not client.is_closed
