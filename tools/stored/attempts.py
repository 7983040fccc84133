"""Records of task attempts for later ones, data stored at the service, and cursors of asset watchers."""

from __future__ import annotations

import importlib
import json
import logging
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import msgspec

from tests.support.direct import StateStore, TaskInstance, context_of
from tools.stored.examples import CONNECTION_ID, DEADLINE, NOON, delivery, working_in
from tools.stored.triggers import example_triggers

MAX_TRIES = 3


def task_state() -> dict[str, Any]:
    """Return records in the task state store, by key and by the progress of the attempt."""
    from airflow_provider_webdata.runs.jobs.state import NOT_STARTED, StartState

    started = StartState(
        generation=1, past=("older",), known=("other",), requested_at=NOON, attempt=2, job_id="job",
        reports=True, invalid_urls=("x",), deadline=DEADLINE, kind="crawl", request="digest", account="account",
        stopped=True,
    )  # fmt: skip
    if any(getattr(started, name) == getattr(NOT_STARTED, name) for name in StartState.__struct_fields__):
        raise LookupError(
            "set every field of StartState to a value other than its default in tools/stored/attempts.py"
        )
    requested = msgspec.structs.replace(NOT_STARTED, known=("other",), requested_at=NOON)
    found: dict[str, Any] = {}
    for key in ("webdata_monitor", "webdata_check", "webdata_session"):
        found[key] = {
            "begun": _remembered(key, lambda intent: intent.begin(["b", "a"])),
            "started": _remembered(key, lambda intent: (intent.begin(["a"]), intent.started("c"))),
        }
    found["webdata_job"] = {
        "requested": _written("webdata_job", requested),
        "started": _written("webdata_job", started),
    }
    found["webdata_credits"] = {"reserved": _ledger()}
    found["webdata_agent"] = {"read": _agent_sources()}
    found["webdata_provider"] = {"failed": _failed_calls()}
    store = StateStore()
    _check_operator().new_run(context_of(TaskInstance(max_tries=MAX_TRIES), store))._span()  # type: ignore[arg-type]
    waiting = {**store.get("webdata_wait"), "after": NOON.isoformat(), "deadline": DEADLINE}
    found["webdata_wait"] = {"waiting": waiting}
    return found


def _ledger() -> Any:
    from airflow_provider_webdata.hooks.ledger import Ledger

    store = StateStore()
    ledger = Ledger(context_of(TaskInstance(max_tries=MAX_TRIES), store), CONNECTION_ID, 20)
    ledger.settle("", 5, "scrape", call="a", formats={"page": 1, "json": 4}, saved=5)
    ledger.reserve("scrape", 3)
    ledger.settle("scrape", None, "scrape")
    ledger.reserve("search", 2)
    return store.get("webdata_credits")


def _agent_sources() -> Any:
    from airflow_provider_webdata.toolsets.sources import AgentSources

    store = StateStore()
    sources = AgentSources(context_of(TaskInstance(max_tries=MAX_TRIES), store))  # type: ignore[arg-type]
    page = "https://river.example/"
    sources.add_page("read_page", page, page, "River", CONNECTION_ID)
    return store.get("webdata_agent")


def _failed_calls() -> Any:
    from airflow_provider_webdata.runs.provider import _KEY, FailedCalls

    return _written(_KEY, FailedCalls(1))


def _written(key: str, record: msgspec.Struct) -> Any:
    from airflow_provider_webdata.common.attempt import Attempt

    store = StateStore()
    Attempt(context_of(TaskInstance(max_tries=MAX_TRIES), store)).write(key, record)
    return store.get(key)


def _remembered(key: str, act: Callable[[Any], Any]) -> Any:
    from airflow_provider_webdata.runs.intent import Intent

    store = StateStore()
    act(Intent(context_of(TaskInstance(max_tries=MAX_TRIES), store), key))  # type: ignore[arg-type]
    return store.get(key)


def _check_operator() -> Any:
    from airflow_provider_webdata.operators.monitor import WebDataRunMonitorOperator

    return WebDataRunMonitorOperator(task_id="t", monitor_id="monitor", webdata_conn_id=CONNECTION_ID)


RECORDS = [
    {"key": "k", "query": "q", "id": "i", "creditsUsed": 2, "warning": None, "results": {"web": [{"title": "ü"}]}},
    {"key": "l", "query": "r", "creditsUsed": 3, "ambiguous": "why"},
]  # fmt: skip


def paid_records() -> dict[str, Any]:
    """Return billed but unpublished results, in the task state store and in files beside the output."""
    from airflow_provider_webdata.api.models import SearchRequest
    from airflow_provider_webdata.runs.money.paid_records import FileRecords, StoreRecords
    from airflow_provider_webdata.runs.searches.batch_queries import BatchQuery
    from airflow_provider_webdata.runs.searches.records import ambiguous_record, answer_record

    answer = {"id": "i", "creditsUsed": 2, "data": {"web": [{"title": "ü"}]}}
    made = [
        answer_record(BatchQuery("k", "q", SearchRequest(query="q")), answer),
        ambiguous_record(BatchQuery("l", "r", SearchRequest(query="r")), "why", 3),
    ]
    if made != RECORDS:
        raise LookupError("the records of a batch differ from RECORDS of tools/stored/attempts.py")
    store = StateStore()
    StoreRecords(store).save(made)
    context: Any = context_of(TaskInstance())
    with tempfile.TemporaryDirectory() as folder:
        FileRecords(f"{folder}/out.jsonl", context).save(made)
        (part,) = Path(folder).rglob("*.part")
        name = part.relative_to(folder).with_name(f"{part.name.partition('-')[0]}-0badcafe.part")
        return {"store": {key: store.get(key) for key in store.values}, "file": {str(name): part.read_text()}}


def requests() -> dict[str, Any]:
    """Return the requests and digests under which responses are stored. Later versions must compute the same ones."""
    found: dict[str, Any] = {}
    for name, arguments in PAID_CALLS.items():
        request = paid_request(name, arguments)
        found[name] = {"arguments": arguments, "request": request, "key": kept_under(request)}
    queries: list[Any] = ["river", {"query": "lake", "limit": 3}]
    found["batch"] = {"queries": queries, "keys": batch_keys(queries)}
    return found


def kept_under(request: Any) -> str:
    """Return the key of the record with a request's response."""
    from airflow_provider_webdata.api.models.base import Answer
    from airflow_provider_webdata.runs.money.paid_response import PaidResponse

    store = StateStore()
    kept = PaidResponse(  # type: ignore[arg-type]
        request, Answer, "account", None, context_of(TaskInstance(), store), logging.getLogger(__name__)
    )
    kept.or_call(Answer)
    kept.keep()
    key: str = json.loads(store.get("webdata_paid_0"))["key"]
    return key


def batch_keys(queries: list[Any]) -> list[str]:
    """Return the keys under which the responses of a batch are stored."""
    from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
    from airflow_provider_webdata.runs.searches.batch_queries import checked_queries

    batch = WebDataBatchSearchOperator(task_id="t", webdata_conn_id=CONNECTION_ID, queries=queries, limit=5)
    run = batch.new_run(context_of(TaskInstance()))
    return [*checked_queries(queries, run.request_of, None, batch.log)]


PAID_CALLS: dict[str, dict[str, Any]] = {
    "search.WebDataSearchOperator": {
        "query": "river",
        "limit": 5,
        "sources": ["web", "news"],
        "tbs": "qdr:d",
        "scrape_options": {"formats": ["markdown"], "only_main_content": True},
    },
    "scrape.WebDataScrapeOperator": {
        "url": "https://river.example/",
        "formats": ["markdown", {"type": "json", "prompt": "p", "schema": {"type": "object"}}],
        "max_age": 0,
        "headers": {"X-A": "b"},
        "extra_body": {"new": 1},
    },
    "map.WebDataMapOperator": {"url": "https://river.example/", "search": "docs", "limit": 5},
    "parse.WebDataParseOperator": {"file": "page.html", "formats": ["markdown"]},
}
"""Operators with stored responses, and their arguments."""


def paid_request(operator: str, arguments: dict[str, Any]) -> Any:
    """Return the request under which an operator's response is stored."""
    from airflow_provider_webdata.runs import call

    module, _, name = operator.partition(".")
    cls = getattr(importlib.import_module(f"airflow_provider_webdata.operators.{module}"), name)
    asked: list[Any] = []

    class Stop(Exception):  # noqa: N818
        """The request is captured."""

    def keep(request: Any, *_: Any) -> Any:
        asked.append(request)
        raise Stop

    in_folder = tempfile.TemporaryDirectory()
    with in_folder as folder, working_in(Path(folder)), patch.object(call, "PaidResponse", keep):
        if "file" in arguments:
            Path(arguments["file"]).write_text("<p>a page</p>")
        task = cls(task_id="t", webdata_conn_id=CONNECTION_ID, **arguments)
        with suppress(Stop):
            task.execute(context_of(TaskInstance()))
    (request,) = asked
    if "file" in request:
        # The path and the modification time of the file always differ.
        request["file"] = [None, *request["file"][1:3], None]
    return request


def job_identity() -> dict[str, Any]:
    """Return the keys by which a later attempt finds a job; each attempt computes them again."""
    from airflow_provider_webdata.common.attempt import Attempt
    from airflow_provider_webdata.runs.jobs.identity import JobIdentity

    context: Any = context_of(TaskInstance(max_tries=MAX_TRIES), dag_run=SimpleNamespace(start_date=NOON))
    identity = JobIdentity.of(Attempt(context))
    return {"key": identity.key("secret", 1), "idempotency_key": identity.idempotency_key(1)}


def managed_webhook() -> dict[str, Any]:
    """Return the webhook that jobs and monitors at the service permanently store."""
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.hooks.webhooks import webhook_for

    return webhook_for(WebDataHook(CONNECTION_ID).get_settings(), "key", ["completed"])


def asset_state() -> dict[str, Any]:
    """Return the cursors of watchers, by key."""
    from airflow_provider_webdata.triggers.base.stream_trigger import StreamTrigger
    from airflow_provider_webdata.waiting.streams.check_stream import cursor_behind
    from airflow_provider_webdata.waiting.streams.checkpoint import Checkpoint
    from airflow_provider_webdata.waiting.streams.webhook_stream import cursor_at

    keys: dict[str, Any] = {}
    for which, trigger in example_triggers():
        if isinstance(trigger, StreamTrigger):
            keys.setdefault(trigger.serialize()[0], {})[which] = Checkpoint(None, trigger.serialize())._key
    check = cursor_behind({"after": "2026-01-31T11:00:00+00:00", "ids": []}, "check", NOON)
    return {"keys": keys, "delivery": cursor_at(delivery()), "check": check}
