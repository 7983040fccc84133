# SPDX-License-Identifier: Apache-2.0
"""Histories of a batch search whose worker is killed, on the real runner."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx

from airflow_provider_webdata.hooks.ledger import Ledger
from airflow_provider_webdata.hooks.task_memory import memory_of
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.results.files.storage import WholeFile
from tests.support.direct import KilledError, StateStore, TaskInstance, accept, context_of
from tests.support.service import connection_text

COST = 2
LOST = "lost"
"""A query whose response never arrives."""


class SearchService:
    """Answers each search with one result, whose URL names the query.

    :ivar billed: the queries that it has answered, in order.
    """

    def __init__(self) -> None:
        self.billed: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None: ...

            def do_POST(self) -> None:
                query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["query"]
                service.billed.append(query)
                if query == LOST:
                    self.close_connection = True
                    with contextlib.suppress(OSError):
                        self.connection.shutdown(2)
                    return
                web = [{"url": f"https://{query}.example/", "title": query}]
                body = {"success": True, "id": query, "creditsUsed": COST, "data": {"web": web}}
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Steps:
    """Counts what an attempt does to the world outside its process, and kills it just before one of these steps.

    :param last: number of steps before the kill; None: it lives.
    :ivar names: the steps that it did.
    """

    def __init__(self, last: int | None) -> None:
        self._last = last
        self._lock = threading.Lock()
        self.names: list[str] = []
        self.is_dead = False

    def do(self, name: str) -> None:
        with self._lock:
            self.is_dead = self.is_dead or len(self.names) == self._last
            if self.is_dead:
                raise KilledError
            self.names.append(name)


class KilledStore(StateStore):
    """A task state store whose changes are steps."""

    steps: Steps

    def set(self, key: str, value: Any, **options: Any) -> None:
        self.steps.do(f"set {key}")
        super().set(key, value, **options)

    def delete(self, key: str) -> None:
        self.steps.do(f"delete {key}")
        super().delete(key)


@contextlib.contextmanager
def _stepping(steps: Steps) -> Iterator[None]:
    send, leave = httpx.AsyncClient.send, WholeFile.__exit__

    async def sending(client: httpx.AsyncClient, request: httpx.Request, **options: Any) -> httpx.Response:
        steps.do("send")
        response = await send(client, request, **options)
        steps.do("receive")
        return response

    def leaving(file: WholeFile, *error: Any) -> None:
        if error == (None, None, None):
            try:
                steps.do("output" if file.path.name == "found.jsonl" else "file")
            except KilledError as killed:
                leave(file, KilledError, killed, None)
                raise
        leave(file, *error)

    with patch.object(httpx.AsyncClient, "send", sending), patch.object(WholeFile, "__exit__", leaving):
        yield


@dataclass(frozen=True)
class Plan:
    """An attempt.

    :param queries: its list of queries.
    :param key: API key of its connection.
    :param round: which time the task runs, after it was cleared.
    :param repeats: whether it sends calls of unknown outcome again.
    """

    queries: Sequence[str] = ("a", "b", "c")
    key: str = "one"
    round: int = 0
    repeats: bool = False


@dataclass
class World:
    """What outlives an attempt.

    :ivar stored: the files of answers that there ever were: query and account by path.
    """

    service: SearchService
    folder: Path
    limit: float | None = None
    max_concurrency: int = 1
    store: KilledStore = field(default_factory=KilledStore)
    stored: dict[Path, tuple[str, str]] = field(default_factory=dict)
    number: int = 0
    deaths: int = 0
    value: Any = None
    credits: Any = None

    def kept(self) -> dict[Path, str]:
        """Return the queries with a file."""
        return {
            path: json.loads(path.read_text())["query"]
            for path in self.folder.rglob("*.json")
            if not path.name.startswith(".")
        }

    def attempt(self, plan: Plan, last: int | None = None) -> Steps:
        """Execute an attempt, and check that it sends no query whose response is stored."""
        self.number += 1
        steps = self.store.steps = Steps(last)
        before = len(self.service.billed)
        ti = TaskInstance(try_number=self.number, max_tries=20 + plan.round)
        context: Any = context_of(ti, self.store)
        task = WebDataBatchSearchOperator(
            task_id="t",
            queries=[*plan.queries],
            max_concurrency=self.max_concurrency,
            max_error_ratio=0.9,
            credit_limit=self.limit,
            repeat_ambiguous=plan.repeats,
            save_to=f"{self.folder}/found.jsonl",
        )
        known = {query for query, key in self.stored.values() if key == plan.key}
        known -= {LOST} if plan.repeats else set()
        connection = connection_text(self.service.url, plan.key, retry_budget=0)
        with (
            patch.dict("os.environ", {"AIRFLOW_CONN_WEBDATA_DEFAULT": connection}),
            _stepping(steps),
            contextlib.suppress(KilledError),
        ):
            self.value = task.execute(context)
            self.credits = ti.xcom["credits"]
        sent = self.service.billed[before:]
        assert known.isdisjoint(sent), (known, sent)
        assert len(sent) == len({*sent}), sent
        self.stored |= {
            path: (query, plan.key) for path, query in self.kept().items() if path not in self.stored
        }
        answers = [name for name in self.stored.values() if name[0] != LOST]
        assert len({*answers}) == len(answers)
        assert self.stored.keys() == self.kept().keys()
        self.deaths += steps.is_dead
        if not steps.is_dead:
            self._check(plan, context)
            # What it reserved, it has settled.
            assert not sent or not memory_of(context).record.credits.open
            accept(context)
        return steps

    def _check(self, plan: Plan, context: Any) -> None:
        """Check an attempt that lived."""
        rows = [json.loads(line) for line in (self.folder / "found.jsonl").read_text().splitlines()]
        left = set(map(str, self.value["left"]))
        answered = [query for query in plan.queries if query != LOST and query not in left]
        assert [row["query"] for row in rows] == answered
        assert [row["url"] for row in rows] == [f"https://{query}.example/" for query in answered]
        # Each is an answer to its own account.
        assert {(query, plan.key) for query in answered} <= {*self.stored.values()}
        assert self.value["done"] == len(answered)
        assert self.value["credits_used"] == COST * len(answered)
        failed = [failure["query"] for failure in self.value["failed"]]
        assert failed == [query for query in plan.queries if query == LOST and query not in left]
        # Each stored answer counts once, whichever attempt was billed for it.
        assert self.credits["used"] == COST * sum(query != LOST for query, _ in self.stored.values())
        lost = sum(query == LOST for query, _ in self.stored.values())
        # A killed attempt leaves one reservation at most.
        assert lost <= self.credits["unknown"] <= lost + self.deaths
        if self.limit is not None and not plan.round:
            spent = Ledger(context, limit=self.limit).spent
            billed = COST * len(self.service.billed)
            assert billed <= spent <= self.limit, (billed, spent)

    def ended(self) -> None:
        """Check what is left once Airflow has stored the result."""
        assert [path.name for path in self.folder.iterdir()] == ["found.jsonl"]
        assert "webdata_paid" not in str([*self.store.values])


def play(
    service: SearchService, folders: Iterator[Path], plans: Sequence[Plan], **options: Any
) -> Iterator[list[int]]:
    """Play all histories in which each attempt but the last is killed, before each of its steps in turn.

    :param folders: an empty folder for each history.
    :param options: of `World`.
    :return: the histories, each as the numbers of steps before the kills.
    """
    todo: list[list[int]] = [[0]] if len(plans) > 1 else [[]]
    while todo:
        kills = todo.pop()
        service.billed.clear()
        world = World(service, next(folders), **options)
        ended = False
        for plan, last in zip(plans, kills, strict=False):
            if not world.attempt(plan, last).is_dead:
                ended = True
                break
        if not ended:
            if len(kills) < len(plans) - 1:
                todo += [[*kills[:-1], kills[-1] + 1], [*kills, 0]]
                continue
            world.attempt(plans[-1])
            if kills:
                todo.append([*kills[:-1], kills[-1] + 1])
        world.ended()
        yield kills
