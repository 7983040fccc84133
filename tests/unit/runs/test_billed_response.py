# SPDX-License-Identifier: Apache-2.0
"""A billed response is stored for the next attempt: in the task state store, or beside the output."""

from __future__ import annotations

import itertools
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from airflow.configuration import conf

from airflow_provider_webdata.api.models import SearchResponse
from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.results.errors import StorageError
from airflow_provider_webdata.runs.billed_response import (
    MAX_STORED_BYTES,
    BilledResponse,
    ResponseFolder,
    digest_of,
)
from airflow_provider_webdata.runs.failures import UnpublishedResponseError
from tests.support.direct import StateStore, TaskInstance, context_of

WIRE = {
    "success": True,
    "data": {"web": [{"url": "u", "n": None, "text": 'ü\ud800\0"'}]},
    "creditsUsed": 2,
    "warning": None,
    "new": 1,
}
REQUEST = {"query": "q"}


class FailingStore(StateStore):
    def set(self, key: str, value: Any) -> None:
        raise OSError("the API server is down")


def opened(
    number: int, store: StateStore | None, output: str | None, request: Any = REQUEST, account: str = "one"
) -> BilledResponse:
    context: Any = context_of(TaskInstance(try_number=number), store)
    return BilledResponse(request, SearchResponse, account, output, context, logging.getLogger(__name__))


def not_called() -> Any:
    raise AssertionError("the call is billed again")


def fails(folder: Path) -> None:
    (folder / "_x.jsonl.partial").write_text("a file in place of the folder")


@pytest.mark.parametrize(
    ("kind", "has_output", "is_long"),
    [*itertools.product(["none", "works", "fails"], [None, "works", "fails"], [False, True])],
)
def test_each_place_is_tried(tmp_path: Path, kind: str, has_output: str | None, is_long: bool) -> None:
    """A short response is in the store, else in a file. Then a retry reuses it; then nothing is left."""
    store = {"none": None, "works": StateStore(), "fails": FailingStore()}[kind]
    output = f"{tmp_path}/x.jsonl" if has_output else None
    if has_output == "fails":
        fails(tmp_path)
    answer = SearchResponse.model_validate({**WIRE, "more": "x" * MAX_STORED_BYTES} if is_long else WIRE)
    answer._skipped = 3
    first = opened(1, store, output)
    assert first.or_call(lambda: answer) is answer

    in_store, in_file = kind == "works" and not is_long, has_output == "works"
    assert first.is_stored == (in_store or in_file)
    assert bool(store and store.values) == in_store
    files = [path for path in tmp_path.rglob("*") if path.is_file() and has_output != "fails"]
    assert len(files) == (in_file and not in_store)
    assert all(path.relative_to(tmp_path).parts[0] == "_x.jsonl.partial" for path in files)
    if not first.is_stored:
        return
    again = opened(2, store, output)
    reused = again.or_call(not_called)
    assert (reused.to_wire(), reused.skipped, again.is_earlier, again.is_stored) == (
        answer.to_wire(),
        3,
        True,
        True,
    )
    again.delete()
    assert not (store and store.values)
    assert has_output == "fails" or not [*tmp_path.iterdir()]


@pytest.mark.parametrize("in_store", [True, False])
@pytest.mark.parametrize("changed", [{"request": {"query": "r"}}, {"account": "two"}])
def test_another_request_or_account_is_another_response(
    tmp_path: Path, in_store: bool, changed: dict[str, Any]
) -> None:
    store, output = (StateStore(), None) if in_store else (None, f"{tmp_path}/x.jsonl")
    opened(1, store, output).or_call(lambda: SearchResponse.model_validate(WIRE))
    other = opened(2, store, output, **changed)
    assert other.or_call(lambda: SearchResponse.model_validate({**WIRE, "new": 2})).to_wire()["new"] == 2
    assert not other.is_earlier
    # It is published: of the former one, nothing is left either.
    other.delete()
    assert not (store and store.values)
    assert not [*tmp_path.iterdir()]


def test_airflow_does_not_warn_of_a_long_value() -> None:
    limit = conf.getint("state_store", "max_value_storage_bytes", fallback=65_535)
    sizes = []
    for size in range(0, 2 * MAX_STORED_BYTES, 999):
        store = StateStore()
        answer = SearchResponse.model_validate({**WIRE, "more": '"ü' * (size // 8)})
        opened(1, store, None).or_call(lambda answer=answer: answer)  # type: ignore[misc]
        sizes += [len(value) for value in store.values.values()]
    assert 0.9 * MAX_STORED_BYTES < max(sizes) <= MAX_STORED_BYTES < limit


DAMAGED = (
    b"{",
    b"[1]",
    b"{}",
    b'{"key": 1, "answer": {}, "skipped": 0}',
    b'{"key": "a", "answer": 7, "skipped": 0}',
    b'{"key": "a", "answer": {}}',
    b"\xff\xfe",
    b"[" * 100_000,
    json.dumps({"key": digest_of(REQUEST, "one"), "answer": {"data": 5}, "skipped": 0}).encode(),
)


@pytest.mark.parametrize("damage", DAMAGED, ids=lambda damage: damage[:20])
@pytest.mark.parametrize("in_store", [True, False])
def test_a_damaged_response_says_where_it_is_and_what_to_do(
    tmp_path: Path, in_store: bool, damage: bytes
) -> None:
    store, output = (StateStore(), None) if in_store else (None, f"{tmp_path}/x.jsonl")
    opened(1, store, output).or_call(lambda: SearchResponse.model_validate(WIRE))
    where = "webdata_paid"
    if store is None:
        (file,) = (tmp_path / "_x.jsonl.partial").glob("*/*.response.json")
        file.write_bytes(damage)
        where = str(file)
    else:
        store.set("webdata_paid", damage.decode(errors="replace"))
    with pytest.raises(
        UnpublishedResponseError, match=rf"is damaged, in [\s\S]*{where}[\s\S]*clear the task"
    ):
        opened(2, store, output).or_call(not_called)


def test_the_damage_is_named_without_the_response() -> None:
    store = StateStore()
    store.set("webdata_paid", json.dumps({"key": "a", "answer": "hush", "skipped": 0}))
    with pytest.raises(UnpublishedResponseError) as raised:
        opened(2, store, None).or_call(not_called)
    assert "(Expected `object`, got `str` - at `$.answer`)" in str(raised.value)
    assert "hush" not in str(raised.value)


# The folder.


def folder_of(tmp_path: Path, name: str = "x.jsonl", **ids: Any) -> ResponseFolder:
    return ResponseFolder(f"{tmp_path}/{name}", Attempt(context_of(TaskInstance(**ids))))


def test_a_task_instance_does_not_see_the_files_of_another(tmp_path: Path) -> None:
    mine = folder_of(tmp_path)
    mine.write("a.json", {"n": 1})
    for other in ({"run_id": "s"}, {"map_index": 1}, {"task_id": "u"}, {"dag_id": "e"}):
        theirs = folder_of(tmp_path, **other)
        assert theirs.names() == []
        theirs.write("a.json", {"n": 2})
        theirs.delete()
    assert (mine.names(), mine.read("a.json", dict)) == (["a.json"], {"n": 1})


@pytest.mark.parametrize("name", ["x.jsonl", "n" * 240 + ".parquet", "ü" * 110 + ".csv", ".hidden.jsonl"])
def test_its_name_is_short_and_skipped_by_readers(tmp_path: Path, name: str) -> None:
    folder_of(tmp_path, name).write("a.json", {})
    (found,) = tmp_path.iterdir()
    assert found.name.startswith(f"_{name[:50]}")


def test_what_a_killed_process_was_writing_is_no_file(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    folder.write("a.json", {"n": 1})
    draft = Path(folder.path_of(".b.json.0badcafe.part"))
    draft.write_text('{"n": ')
    assert [name for name in folder.names() if name.endswith(".json")] == ["a.json"]
    folder.delete()
    assert [*tmp_path.iterdir()] == []
    folder.delete()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    Path(folder.path_of("a.json")).mkdir(parents=True)
    with pytest.raises(StorageError, match=r"a\.json cannot be read"):
        folder.read("a.json", dict)
    with pytest.raises(FileNotFoundError):
        folder.read("b.json", dict)
