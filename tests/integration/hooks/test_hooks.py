"""Both hooks over real HTTP: every operation, paging, secrets."""

from __future__ import annotations

import pytest
from airflow.sdk._shared.secrets_masker import redact

from airflow_provider_webdata.api.errors import ConfigurationError, InvalidRequestError, NotFoundError
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import AsyncWebDataHook
from tests.support.service import NEVER
from tests.support.waiting import settled

MONITOR = {
    "name": "m",
    "schedule": NEVER,
    "targets": [{"type": "scrape", "urls": ["https://zeppelin.example/"]}],
}
HOOKS = [WebDataHook, AsyncWebDataHook]


@pytest.fixture(params=HOOKS)
async def hook(request, sandbox, connect):
    connect(sandbox.url, sandbox.api_key)
    made = request.param()
    yield made
    await settled(made.close())


async def test_every_operation(hook, sandbox):
    """One life of a monitor, a search, and the team's credits."""
    sandbox.control.set_page(
        "https://zeppelin.example/", markdown="# Zeppelin\n\nAn airship.", title="Zeppelin"
    )
    found = await settled(hook.search({"query": "zeppelin", "limit": "3"}, extra_body={"origin": "test"}))
    assert [item.url for item in found.data.web] == ["https://zeppelin.example/"]
    assert sandbox.control.requests("/v2/search")[0]["body"] == {
        "query": "zeppelin",
        "limit": 3,
        "origin": "test",
    }

    monitor = await settled(hook.create_monitor(MONITOR))
    assert (await settled(hook.get_monitor(monitor.id))).name == "m"
    assert [item.id for item in await settled(hook.list_monitors(limit=1, offset=0))] == [monitor.id]
    changed = await settled(hook.update_monitor(monitor.id, {"name": "n"}, extra_body={"retentionDays": 5}))
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
async def test_all_monitors_once(hook, sandbox):
    """Over several pages, the last of them full: read until a page is short."""
    for number in range(200):
        await settled(hook.create_monitor({**MONITOR, "name": f"m-{number}"}))
    sandbox.control.clear_requests()
    found = await settled(hook.iter_monitors())
    assert sorted(monitor.name for monitor in found) == sorted(f"m-{number}" for number in range(200))
    assert [request["query"]["offset"] for request in sandbox.control.requests("/v2/monitor")] == [
        "0",
        "100",
        "200",
    ]


@pytest.mark.rule("next-host", "check-get", "check-pages-order")
@pytest.mark.parametrize("quirks", [[], ["next-wrong-host", "repeated-pages", "next-null"]])
async def test_all_pages_of_a_check_once(hook, sandbox, quirks):
    """`next` is followed on this connection's host only, and what comes twice is dropped."""
    urls = [f"https://pages.example/{number}" for number in range(250)]
    for url in urls:
        sandbox.control.set_page(url, markdown=f"# {url}")
    monitor = await settled(hook.create_monitor({**MONITOR, "targets": [{"type": "scrape", "urls": urls}]}))
    check = await settled(hook.run_monitor(monitor.id))
    sandbox.control.settle()
    sandbox.control.set_quirks(quirks)
    parts = await settled(hook.iter_monitor_check_pages(monitor.id, check.id))
    assert len(parts) >= 3
    assert sorted(page.url for part in parts for page in part.pages) == sorted(urls)


async def test_bad_request_is_not_sent(hook, sandbox):
    with pytest.raises(InvalidRequestError, match="quary"):
        await settled(hook.search({"quary": "q"}))
    with pytest.raises(InvalidRequestError, match="monitor_id"):
        await settled(hook.get_monitor(" "))
    assert sandbox.control.requests() == []


@pytest.mark.parametrize("kind", HOOKS)
async def test_secrets_are_masked(kind, sandbox, connect):
    """Whatever Airflow redacts from then on, the connection's secrets are among it."""
    secrets = {
        "secret_headers": {"X-Tenant": f"hush-{kind.__name__}-header"},
        "webhook_secret": f"hush-{kind.__name__}-webhook",
        "signing_secret": f"hush-{kind.__name__}-signing",
        "proxy": f"http://someone:hush-{kind.__name__}-pa%24s@proxy.example:1",
    }
    connect(sandbox.url, f"hush-{kind.__name__}-key", **secrets)
    made = kind()
    settings = await settled(made.get_settings())
    values = list(settings.secrets())
    assert len(values) >= 7
    assert redact([f"<{value}>" for value in values]) == ["<***>"] * len(values)
    assert "hush" not in repr(settings)
    assert "hush" not in repr(vars(made))


@pytest.mark.parametrize("kind", HOOKS)
async def test_one_client_until_closed(kind, sandbox, connect):
    """The pooled client is made on first use, kept, closed, and made anew if need be."""
    connect(sandbox.url, sandbox.api_key)
    made = kind()
    client = await settled(made.get_conn())
    assert await settled(made.get_conn()) is client
    await settled(made.close())
    await settled(made.close())
    assert client.is_closed
    assert (await settled(made.credit_usage())).remaining_credits is not None
    await settled(made.close())


async def test_as_context_manager(sandbox, connect):
    connect(sandbox.url, sandbox.api_key)
    with WebDataHook() as blocking:
        client = blocking.get_conn()
    assert client.is_closed
    async with AsyncWebDataHook() as other:
        other_client = await other.get_conn()
    assert other_client.is_closed


@pytest.mark.parametrize("kind", HOOKS)
async def test_bad_connection(kind, connect):
    connect("https://api.example.com", "Bearer key-0123456789")
    with pytest.raises(ConfigurationError, match="enter the key alone"):
        await settled(kind().credit_usage())


def test_a_sibling_shares_the_settings_and_no_client(sandbox, connect, monkeypatch):
    """It is for code that interrupts a call: nothing that may be half done is touched, nothing read again."""
    connect(sandbox.url, sandbox.api_key)
    with WebDataHook() as hook:
        settings, client = hook.get_settings(), hook.get_conn()
        monkeypatch.delenv("AIRFLOW_CONN_WEBDATA_DEFAULT")
        with hook.sibling() as other:
            assert other.get_settings() is settings
            assert other.get_conn() is not client
            assert other.credit_usage().remaining_credits is not None
        assert not client.is_closed
