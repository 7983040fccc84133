# SPDX-License-Identifier: Apache-2.0
"""Records that attempts leave each other, and lists of files, with damage drawn at random from a seed."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from airflow_provider_webdata.api.models import SearchRequest
from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.hooks.ledger import Ledger
from airflow_provider_webdata.hooks.task_memory import TaskMemory
from airflow_provider_webdata.results.changes.pages import Page, RunFacts, compared, version_after
from airflow_provider_webdata.results.changes.snapshots import Emitter, SnapshotFolder
from airflow_provider_webdata.runs.billed_response import _File, _StoredValue
from airflow_provider_webdata.runs.searches.answer_files import AnswerFiles
from airflow_provider_webdata.runs.searches.batch_queries import BatchQuery
from airflow_provider_webdata.states.credits import Credits, Entry, report
from airflow_provider_webdata.states.task_record import KEY, Source, Started, TaskRecord, stored_form
from tests.support.direct import StateStore, TaskInstance, context_of

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("FUZZ_SEED", "23"))
ROUNDS = 300 * int(os.environ.get("FUZZ_FACTOR", "1"))
"""Of each kind of record; `make fuzz` makes more."""

ATOMS: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 10**400, -(10**400), 1e308, float("nan"), float("inf"), "", "x", "\ud800"),
    *("../../x", "a\x00b", "x" * 5000, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"),
    *([], {}, [7], [[]], {"key": 7}, {"\ud800": None}, json.loads("[" * 500 + "]" * 500)),
)


def damaged(draw: random.Random, value: Any) -> Any:
    """Return JSON with one of its parts replaced, left out, or repeated."""
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = [([value], 0)]
    for holder, key in places:
        inner = holder[key]
        if isinstance(inner, (dict, list)):
            places += [(inner, one) for one in (inner if isinstance(inner, dict) else range(len(inner)))]
    holder, key = draw.choice(places)
    how = draw.random()
    if how < 0.2:
        del holder[key]
    elif how < 0.3 and isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder[key] = draw.choice(ATOMS)
    root = places[0][0]
    return root[0] if root else None


def cut(draw: random.Random, text: bytes) -> bytes:
    """Return bytes of which some are lost, doubled, or others."""
    begin, end = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
    return text[:begin] + draw.choice([b"", b"\xff", b"\x00", b"[" * 9999, text[begin:end] * 2]) + text[end:]


def reads(number: int, place: str, damage: Any, read: Callable[..., Any], *args: Any) -> Any:
    """Return what is read; None where an error names the record and the fix."""
    try:
        return read(*args)
    except CodedError as error:
        if place not in str(error):
            raise AssertionError((SEED, number, damage)) from error
        return None
    except Exception as error:
        raise AssertionError((SEED, number, str(damage)[:2000])) from error


def context(store: StateStore) -> Any:
    return context_of(TaskInstance(try_number=2, max_tries=1), store)


RECORD = TaskRecord(
    max_tries=1,
    attempt=1,
    phase="known",
    started=Started(
        kind="crawl",
        key="key",
        request="digest",
        account="digest",
        attempt=1,
        sent_at=datetime(2026, 11, 24, 12, tzinfo=timezone.utc),
        id="job",
        known=("before",),
        reports=True,
    ),
    wait_since=datetime(2026, 11, 24, 12, tzinfo=timezone.utc),
    wait_until=1764000000.5,
    credits=Credits(
        open={"/search": Entry(round="0", reserved=2, unknown=1)},
        settled={"crawl/job": Entry(round="0", by_operation={"crawl": 2.5}, by_connection={"market": 2.5})},
    ),
    sources={"read https://a.example/": Source("read", "https://a.example/", "t")},
)
SENT = replace(RECORD, phase="requested", started=replace(RECORD.started, id=None))  # type: ignore[type-var]


@pytest.mark.parametrize("record", [RECORD, SENT], ids=["known", "requested"])
def test_fuzz_of_the_record(record: TaskRecord) -> None:
    """A damaged record never passes for none: nothing starts again in silence."""
    draw = random.Random(SEED)
    for number in range(2 * ROUNDS):
        store = StateStore()
        damage = damaged(draw, stored_form(record))
        store.set(KEY, damage)
        memory = reads(number, f"the key {KEY}", damage, TaskMemory, context(store))
        if memory is None or damage is None or memory.former is not None:
            continue
        assert memory.record.started is not None or damage.get("phase") in ("ended", "published"), (
            SEED,
            number,
        )
        report(memory.record.credits)


RESPONSE = {"key": "a", "id": "i", "answer": {"data": {"web": [{"title": "t"}]}}, "skipped": 0}


def test_fuzz_of_stored_responses(tmp_path: Path) -> None:
    """In the store and in a file: it is read, or the error says where it is."""
    draw = random.Random(SEED)
    file = _File(f"{tmp_path}/out.jsonl", Attempt(context(StateStore())), "a")
    file.write(RESPONSE)
    for number in range(ROUNDS):
        text = json.dumps(damaged(draw, RESPONSE)).encode()
        if draw.random() < 0.5:
            text = cut(draw, text)
        Path(file.where).write_bytes(text)
        store = StateStore()
        store.set("webdata_paid", draw.choice([text.decode(errors="replace"), damaged(draw, RESPONSE)]))
        for place in (file, _StoredValue(store, "a")):
            found = reads(number, place.where, text, place.read)
            assert found is None or {*map(type, (found["answer"], found["skipped"]))} == {dict, int}


def test_fuzz_of_answer_files(tmp_path: Path) -> None:
    """Whatever part of one is damaged, what reads on is whole."""
    draw = random.Random(SEED)
    queries = {key: BatchQuery(key, key, SearchRequest(query=key)) for key in "ab"}

    def opened() -> AnswerFiles:
        given = context(StateStore())
        return AnswerFiles(f"{tmp_path}/out.jsonl", given, "account", Ledger(given))

    files = opened()
    files.save(queries["a"], {"creditsUsed": 2, "results": {"web": [{"title": "t"}]}}, 2)
    files.save(queries["b"], {"ambiguous": "lost"}, 2)
    paths = [*tmp_path.rglob("*.json")]
    whole = {path: json.loads(path.read_text()) for path in paths}
    for number in range(ROUNDS):
        path = draw.choice(paths)
        text = json.dumps(damaged(draw, whole[path])).encode()
        path.write_bytes(text if draw.random() < 0.5 else cut(draw, text))
        files = opened()
        found = reads(number, path.name, text, lambda: dict(files.earlier(queries)))  # noqa: B023
        if found is not None:
            assert [*found] == ["a", "b"] or [*found] == ["b", "a"], (SEED, number)
            assert isinstance(found["b"]["ambiguous"], str)
            assert all(isinstance(item, dict) for *_, item in files.results(queries.values()))
            files.report()
        path.write_text(json.dumps(whole[path]))


def test_fuzz_of_snapshots(tmp_path: Path) -> None:
    """One value of another type, or a run of bytes: it is read, or an error names the file."""
    draw = random.Random(SEED)
    folder = SnapshotFolder(f"file://{tmp_path}/seen")
    night = RunFacts("token", 7 << 20, 1_800_000_000, "request", 0, True, emits_all=True)
    with folder.draft() as draft:
        draft.write([Page(f"https://a.example/{name}", 5 << 20, "d", "r", 1, 1, "token") for name in "ab"])
        path = Path(draft.publish(2, {"token": Emitter("run", -1, ["load"])}).removeprefix("file://"))

    def next_night() -> None:
        with folder.opened() as state, folder.draft() as draft:
            outcomes = [compared(page, None, night) for page in state.pages()]
            draft.write(outcome.page for outcome in outcomes if outcome is not None)
            assert isinstance(state.last_count, (int, type(None)))
            assert version_after(state.newest, 0) > state.newest
            Path(draft.publish(2, state.emitters).removeprefix("file://")).unlink()

    next_night()
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    for number in range(ROUNDS):
        damage = damaged(draw, lines)
        content = "\n".join(map(json.dumps, damage if isinstance(damage, list) else [damage])).encode()
        content = cut(draw, content) if draw.random() < 0.3 else content
        stored = gzip.compress(content)
        path.write_bytes(cut(draw, stored) if draw.random() < 0.2 else stored)
        reads(number, "seen", content, next_night)
