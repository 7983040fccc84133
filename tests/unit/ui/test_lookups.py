# SPDX-License-Identifier: Apache-2.0
"""The service as the pages ask it: shared questions, a bounded cache, and threads apart from the API server's."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any

import anyio.to_thread
import pytest

from airflow_provider_webdata.airflow_db import connections
from airflow_provider_webdata.api.errors import ConfigurationError, NotFoundError
from airflow_provider_webdata.api.exchange import Reader
from airflow_provider_webdata.ui import lookups
from airflow_provider_webdata.ui.lookups import MAX_BYTES, Lookup, Lookups
from airflow_provider_webdata.ui.threads import in_thread
from tests.support.service import connection_text
from tests.support.waiting import PATIENCE
from webdata_sandbox.server import SandboxServer


@pytest.fixture(autouse=True)
def connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MARKET", connection_text("http://127.0.0.1:9"))
    # No answer depends on how fast this machine is.
    monkeypatch.setattr(lookups, "DEADLINE", PATIENCE)


def answering(answer: Callable[[], Any]) -> tuple[list[Any], Callable[[Any], Awaitable[Any]]]:
    """Return the hooks that were used, and a question that `answer` answers once all who ask do."""
    asked: list[Any] = []

    async def ask(hook: Any) -> Any:
        asked.append(hook)
        await asyncio.sleep(0)
        return answer()

    return asked, ask


def fail() -> None:
    raise ConfigurationError("no service")


@pytest.mark.parametrize(
    ("answer", "found"),
    [(lambda: 7, Lookup(7)), (fail, Lookup(problem=str(ConfigurationError("no service"))))],
)
def test_many_viewers_are_one_call(answer: Callable[[], Any], found: Lookup[Any]) -> None:
    """Failures are cached, too."""

    async def visit() -> None:
        pages = Lookups()
        asked, ask = answering(answer)
        assert await asyncio.gather(*(pages.find("market", "q", ask) for _ in range(50))) == [found] * 50
        assert await pages.find("market", "q", ask) == found
        assert len(asked) == 1
        await pages.find("market", "another", ask)
        assert len(asked) == 2

    asyncio.run(visit())


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (("job", "crawl", "1"), "The service does not have this job. Results are kept for 24 hours"),
        (("monitor", "1"), "The service does not have this monitor, or this check"),
        ("credits", 'The host responds, but not like this service: crawl status: HTTP 404: Job not found. Check "Base'),
    ],
)  # fmt: skip
def test_a_missing_object_is_no_wrong_host(what: Any, said: str) -> None:
    def missing() -> None:
        raise NotFoundError("crawl status", 404, "Job not found")

    async def visit() -> Lookup[Any]:
        return await Lookups().find("market", what, answering(missing)[1])

    problem = asyncio.run(visit()).problem
    assert said in (problem or "")


def test_a_connection_that_was_deleted_needs_no_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its deliveries may remain."""

    async def none(_: str) -> None:
        return None

    # Here, Airflow has no database that could tell.
    monkeypatch.setattr(lookups, "_find_connection", none)

    async def visit() -> tuple[Lookup[Any], Lookup[Any]]:
        pages = Lookups()
        return await pages.answer("deleted"), await pages.find("deleted", "credits", answering(lambda: 1)[1])

    answered, found = asyncio.run(visit())
    assert answered.problem is None
    assert "There is no connection" in (found.problem or "")


def test_an_unexpected_error_is_cached() -> None:
    async def visit() -> None:
        pages = Lookups()
        asked, ask = answering(lambda: 1 // 0)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await pages.find("market", "q", ask)
        assert len(asked) == 1

    asyncio.run(visit())


def test_the_cache_is_bounded_in_bytes() -> None:
    """The oldest answers go first; one that is too large alone is not kept, and counts wide values as they are."""
    answers = {
        "first": lambda: b"1" * (MAX_BYTES // 2),
        "second": lambda: b"2" * (MAX_BYTES // 3),
        "third": lambda: b"3" * (MAX_BYTES // 3),
        "wide": lambda: [{"a": float(number)} for number in range(MAX_BYTES // 200)],
        "last": lambda: 1,
    }

    async def visit() -> None:
        pages = Lookups()
        for name, answer in answers.items():
            await pages.find("market", name, answering(answer)[1])
        kept = []
        for name in answers:
            asked, ask = answering(lambda: None)
            await pages.find("market", name, ask)
            kept += [] if asked else [name]
        assert kept == ["last"]

    asyncio.run(visit())


def test_the_cache_is_bounded_by_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "KEPT", 0.0)

    async def visit() -> None:
        pages = Lookups()
        asked, ask = answering(lambda: b"1" * 1000)
        await pages.find("market", "q", ask)
        while pages._kept:
            await asyncio.sleep(0.001)
        await pages.find("market", "q", ask)
        assert len(asked) == 2

    asyncio.run(visit())


def test_the_credits_of_dags_are_kept_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """But not an error."""
    monkeypatch.setattr(lookups, "KEPT", 0.0)
    read: list[date] = []

    def spent(since: date) -> None:
        read.append(since)
        if len(read) == 1:
            raise RuntimeError("no database")

    monkeypatch.setattr(lookups, "_spent_by_day", spent)

    async def visit() -> None:
        pages = Lookups()
        for _ in range(3):
            with contextlib.suppress(RuntimeError):
                await pages.spent_by_day(date.min)
            await pages.find("market", "q", answering(lambda: 7)[1])
            while ("market", "q") in pages._kept:
                await asyncio.sleep(0.001)
        assert read == [date.min] * 2

    asyncio.run(visit())


def test_the_threads_of_the_api_server_are_left_alone() -> None:
    """The pages answer while all of those are taken."""

    async def visit() -> None:
        shared = anyio.to_thread.current_default_thread_limiter()
        for number in range(int(shared.total_tokens)):
            shared.acquire_on_behalf_of_nowait(number)
        pages = Lookups()
        assert await pages.find("market", "q", answering(lambda: 7)[1]) == Lookup(7)
        assert await pages.conn_ids()
        assert (await pages.answer("market")).problem

    asyncio.run(visit())


class Down:
    """A secrets backend that is unavailable."""

    def get_connection(self, conn_id: str) -> None:
        raise ConnectionError("sealed")


def test_the_list_of_connections_may_be_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that is unavailable may have others."""
    monkeypatch.setattr(connections, "ensure_secrets_loaded", lambda: [Down()])
    monkeypatch.setattr(lookups, "stored_conn_ids", lambda conn_type: [])

    async def visit() -> None:
        assert await Lookups().is_list_incomplete()

    asyncio.run(visit())


class Hanging:
    """A secrets backend that does not respond until the test ends."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def get_connection(self, conn_id: str) -> None:
        self.released.wait(60)


def test_a_secrets_backend_that_hangs_does_not_stop_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lookup ends at the deadline and names the backend; other pages have threads meanwhile."""
    backend = Hanging()
    monkeypatch.setattr(connections, "ensure_secrets_loaded", lambda: [backend])
    monkeypatch.setattr(lookups, "DEADLINE", 0.2)

    async def visit() -> None:
        pages = Lookups()
        names = [f"market-{number}" for number in range(6)]
        asked = asyncio.gather(*(pages.find(name, "q", answering(lambda: 7)[1]) for name in names))
        addresses = asyncio.gather(*(pages.dashboard_url(name) for name in names))
        assert await in_thread(lambda: 7) == 7
        for name, found in zip(names[:4], await asked, strict=False):
            assert found.problem is not None
            assert f"{name!r} cannot be read: Hanging did not respond within 0.2 seconds" in found.problem
        assert await addresses == [None] * 6
        assert not backend.released.is_set()

    try:
        asyncio.run(visit())
    finally:
        backend.released.set()


def test_answers_are_parsed_apart_from_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large one would silence the API server. Errors are parsed there, too."""
    threads: list[threading.Thread] = []
    finish = Reader.finish

    def finish_here(reader: Reader[Any]) -> Any:
        threads.append(threading.current_thread())
        return finish(reader)

    monkeypatch.setattr(Reader, "finish", finish_here)

    async def visit() -> None:
        pages = Lookups()
        usage = await pages.find("market", "usage", lambda hook: hook.credit_usage())
        assert usage.value is not None
        missing = await pages.find("market", "monitor", lambda hook: hook.get_monitor("none"))
        assert missing.problem is not None

    with SandboxServer() as sandbox:
        monkeypatch.setenv("AIRFLOW_CONN_MARKET", connection_text(sandbox.url))
        asyncio.run(visit())
    assert len(threads) == 2
    assert threading.main_thread() not in threads
