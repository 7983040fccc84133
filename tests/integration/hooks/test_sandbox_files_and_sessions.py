# SPDX-License-Identifier: Apache-2.0
"""Both hooks against the sandbox: a file, an agent run, and a browser session, from start to end."""

from __future__ import annotations

import io

import pytest

from airflow_provider_webdata.api.errors import (
    BadRequestError,
    ConflictError,
    NotFoundError,
    ProcessingContinuesError,
    RequestTimeoutError,
)
from tests.integration.hooks.conftest import one_hook
from tests.support.waiting import settled

PAGE = "https://zeppelin.example/"
HTML = b"<html><head><title>Airship</title></head><body><main><h1>Airship</h1><p>It floats.</p></main></body></html>"
KIND = {"type": "object", "properties": {"title": {"type": "string"}}}


@pytest.fixture
async def hook(kind_of_hook, sandbox, connect):
    connect(sandbox.url, sandbox.api_key, retry_budget=0)
    sandbox.control.set_page(PAGE, html=HTML.decode(), title="Airship")
    hook = kind_of_hook()
    yield hook
    await settled(hook.close())


@pytest.mark.rule("parse-file-name", "metadata-source-file")
async def test_a_file(hook, sandbox):
    before = (await settled(hook.credit_usage())).remaining_credits
    found = await settled(
        hook.parse(
            io.BytesIO(HTML), "/secret/place/Luftschiff ä.HTML", None, {"formats": ["markdown", "html"]}
        )
    )
    assert "It floats." in found.data.markdown
    assert "<h1>" in found.data.html
    assert found.data.to_wire()["metadata"]["sourceFile"] == "Luftschiff ä.HTML"
    assert (await settled(hook.credit_usage())).remaining_credits == before - 1


@pytest.mark.rule("parse-unsupported")
@one_hook
async def test_options_of_pages_alone(hook):
    with pytest.raises(BadRequestError, match="PARSE_UNSUPPORTED_OPTIONS"):
        await settled(hook.parse(io.BytesIO(HTML), "a.html", extra_body={"mobile": True}))


@pytest.mark.rule("parse-time")
@one_hook
async def test_a_file_that_takes_too_long(hook, sandbox):
    sandbox.control.configure(parse_seconds=60)
    with pytest.raises(RequestTimeoutError) as caught:
        await settled(hook.parse(io.BytesIO(HTML), "a.html", None, {"timeout": 1000}))
    assert not isinstance(caught.value, ProcessingContinuesError)


@pytest.mark.rule("agent-answer", "agent-status", "agent-cancel-ended")
async def test_an_agent_run(hook, sandbox):
    sandbox.control.configure(step_seconds=60)
    started = await settled(hook.start_agent(prompt="title", urls=[PAGE], schema=KIND))
    assert (await settled(hook.job_status("agent", started.id))).status == "processing"
    assert await settled(hook.cancel_job("agent", started.id)) is True
    sandbox.control.advance(60)
    assert (await settled(hook.job_status("agent", started.id))).status == "cancelled"
    assert await settled(hook.cancel_job("agent", started.id)) is False


@pytest.mark.rule("session-answer", "session-list", "session-close")
async def test_a_session(hook, sandbox):
    session = await settled(hook.open_session(ttl=60, activity_ttl=30))
    assert len(list(session.secrets())) == 2
    assert [item.id for item in await settled(hook.list_sessions(status="active"))] == [session.id]
    opened = f'await page.goto("{PAGE}")\nconsole.log(await page.title())'
    result = await settled(hook.execute(session.id, code=opened, language="node", timeout=5))
    assert (result.stdout, result.failure()) == ("Airship\n", None)
    failed = await settled(hook.execute(session.id, code='throw new Error("no wind")', language="node"))
    assert "no wind" in failed.failure()
    closed = await settled(hook.close_session(session.id))
    assert closed.credits_billed >= 2
    assert await settled(hook.list_sessions(status="active")) == []
    assert await settled(hook.close_session(session.id))
    with pytest.raises(NotFoundError):
        await settled(hook.close_session("00000000-0000-4000-8000-000000000000"))


@pytest.mark.rule("scrape-profile", "session-profile")
@one_hook
async def test_a_profile_has_one_saving_session(hook):
    first = await settled(hook.open_session(ttl=60, profile={"name": "p"}))
    with pytest.raises(ConflictError):
        await settled(hook.open_session(ttl=60, profile={"name": "p"}))
    await settled(hook.close_session(first.id))


@pytest.mark.rule("scrape-interact", "scrape-interact-stop")
async def test_on_the_page_of_a_scrape(hook):
    page = await settled(hook.scrape(url=PAGE))
    scrape_id = page.data.metadata.scrape_id
    code = {"code": "console.log(await page.title())", "language": "node", "timeout": 5}
    result = await settled(hook.interact_with_scrape(scrape_id, code))
    assert (result.stdout, result.failure()) == ("Airship\n", None)
    assert len(list(result.secrets())) == 2
    failed = await settled(hook.interact_with_scrape(scrape_id, {**code, "code": "process.exit(3)"}))
    assert failed.success is False
    assert failed.exit_code == 3
    assert failed.failure() is not None
    asked = await settled(hook.interact_with_scrape(scrape_id, prompt="What is the title?"))
    assert asked.output
    assert (await settled(hook.stop_scrape_interaction(scrape_id))).success is True
    with pytest.raises(NotFoundError):
        await settled(hook.interact_with_scrape("00000000-0000-4000-8000-000000000000", code))
    with pytest.raises(BadRequestError):
        await settled(hook.interact_with_scrape("no-uuid", code))
