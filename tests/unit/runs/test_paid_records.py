"""Storage of finished searches: no record is lost, repeated, or left behind."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from airflow.configuration import conf

from airflow_provider_webdata.results.errors import StorageError
from airflow_provider_webdata.runs.failures import UnpublishedResponseError
from airflow_provider_webdata.runs.money import paid_records as paid_records
from airflow_provider_webdata.runs.money.paid_records import (
    FileRecords,
    StoreRecords,
    records_of,
)
from tests.support.direct import StateStore


def context(**of_task):
    ids = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, **of_task}
    return {"ti": SimpleNamespace(**ids)}


def record(key, **more):
    return {"key": key, "query": f"query {key}", "results": {"web": [{"title": "ü\ud800"}]}, **more}


@pytest.fixture(params=["file", "store"])
def reopen(request, tmp_path):
    """Return what opens the progress of the same task anew, as each attempt does."""
    store = StateStore()
    if request.param == "file":
        return lambda account=None: FileRecords(str(tmp_path / "out.jsonl"), context(), account)
    return lambda account=None: StoreRecords(store, account)


def test_later_tries_find_what_earlier_ones_kept(reopen):
    first = reopen()
    first.save([record("a"), record("b")])
    first.save([record("c")])
    second = reopen()
    assert [item["key"] for item in second.read()] == ["a", "b", "c"]
    second.save([record("d")])
    assert [item["key"] for item in second.read()] == ["a", "b", "c", "d"]
    assert list(reopen().read()) == [record(key) for key in "abcd"]
    assert second.lasts


def test_forgotten_is_gone(reopen, tmp_path):
    progress = reopen()
    progress.save([record("a")])
    progress.forget()
    assert list(progress.read()) == []
    assert list(reopen().read()) == []
    assert list(tmp_path.iterdir()) == []
    progress.save([record("b")])
    assert list(reopen().read()) == [record("b")]


def test_forgetting_nothing_is_fine(reopen):
    reopen().forget()


def test_of_other_tasks_with_the_same_output_nothing_is_found(tmp_path):
    output = str(tmp_path / "out.jsonl")
    mine = FileRecords(output, context())
    mine.save([record("a")])
    others = [{"run_id": "s"}, {"map_index": 1}, {"task_id": "u"}, {"dag_id": "e"}]
    for other in others:
        theirs = FileRecords(output, context(**other))
        assert list(theirs.read()) == []
        theirs.save([record("b")])
        theirs.forget()
    assert [item["key"] for item in FileRecords(output, context()).read()] == ["a"]


def test_what_a_killed_process_was_writing_is_passed_over(tmp_path):
    """Half a file under its hidden name is none; it goes when the folder goes."""
    output = str(tmp_path / "out.jsonl")
    first = FileRecords(output, context())
    first.save([record("a")])
    (folder,) = (tmp_path / "out.jsonl.partial").iterdir()
    (folder / ".00000002-0badcafe.part.xyz.part").write_text('{"key": "b"')
    second = FileRecords(output, context())
    assert [item["key"] for item in second.read()] == ["a"]
    second.forget()
    assert list(tmp_path.iterdir()) == []


def test_two_attempts_at_once_do_not_overwrite_each_other(tmp_path):
    """A worker that was Airflow gave up may still be writing."""
    output = str(tmp_path / "out.jsonl")
    zombie, heir = FileRecords(output, context()), FileRecords(output, context())
    zombie.save([record("a")])
    heir.save([record("b")])
    assert {item["key"] for item in FileRecords(output, context()).read()} == {"a", "b"}


def test_the_store_is_not_filled_without_end(monkeypatch, caplog):
    """It is the metadata database: over the limit, the log says that a retry would pay again, once."""
    monkeypatch.setattr(paid_records, "MAX_STORED_BYTES", 2000)
    store = StateStore()
    progress = StoreRecords(store)
    for number in range(40):
        progress.save([record(f"k{number:02}")])
    assert not progress.lasts
    assert len(list(progress.read())) == 40
    kept = [item["key"] for item in StoreRecords(store).read()]
    assert kept == [f"k{number:02}" for number in range(len(kept))]
    assert 5 < len(kept) < 40
    assert (
        sum(len(json.loads(value)) for name, value in store.values.items() if name != "webdata_paid") <= 2000
    )
    assert caplog.text.count("exceed 0 MiB, the limit") == 1


def test_airflow_does_not_warn_of_long_values():
    store = StateStore()
    StoreRecords(store).save([record("k", text='"' * 2**17)])
    limit = conf.getint("state_store", "max_value_storage_bytes", fallback=65535)
    assert max(len(value) for value in store.values.values()) <= limit


def test_a_part_that_the_index_does_not_know_is_none():
    """The process died between the two writes."""
    store = StateStore()
    StoreRecords(store).save([record("a")])
    store.set("webdata_paid_1", json.dumps([record("b")]))
    progress = StoreRecords(store)
    assert [item["key"] for item in progress.read()] == ["a"]
    progress.save([record("c")])
    assert [item["key"] for item in StoreRecords(store).read()] == ["a", "c"]


WHERE = [
    (None, None, StoreRecords, False),
    (None, StateStore(), StoreRecords, True),
    ("out.jsonl", None, FileRecords, True),
    ("out.jsonl", StateStore(), FileRecords, True),
]


@pytest.mark.parametrize(("output", "store", "kind", "lasts"), WHERE)
def test_where_it_is_kept(tmp_path, output, store, kind, lasts):
    """Beside the output where there is one; else in the state store, which Airflow 3.2 lacks."""
    given_context = {**context(), **({"task_state_store": store} if store else {})}

    def opened(account):
        return records_of(str(tmp_path / output) if output else None, given_context, account)

    progress = opened("one")
    assert type(progress) is kind
    assert progress.lasts is lasts
    progress.save([record("a")])
    assert list(opened("one").read()) == ([record("a")] if lasts else [])
    assert list(opened("other").read()) == []


DAMAGED = (
    b"{",
    b"[1]",
    b"{}",
    b'{"key": 1}',
    b'{"key": "a", "answer": 7}',
    b'{"key": "a", "query": "q"}',
    b'{"key": "a", "creditsUsed": "two"}',
    b'{"key": "a", "results": {"web": {"title": "t"}}}',
    b'{"key": "a", "results": {"web": ["t"]}}',
    b"\xff\xfe",
    b"[" * 100_000,
)


def test_a_damaged_file_says_where_it_is_and_what_to_do(tmp_path):
    FileRecords(str(tmp_path / "out.jsonl"), context()).save([record("a")])
    (part,) = (tmp_path / "out.jsonl.partial").glob("*/*.part")
    for line in DAMAGED:
        part.write_bytes(line + b"\n")
        with pytest.raises(UnpublishedResponseError, match=f"{part.name} [\\s\\S]*clear the task"):
            [*FileRecords(str(tmp_path / "out.jsonl"), context()).read()]


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    FileRecords(str(tmp_path / "out.jsonl"), context()).save([record("a")])
    (part,) = (tmp_path / "out.jsonl.partial").glob("*/*.part")
    records = FileRecords(str(tmp_path / "out.jsonl"), context())
    part.unlink()
    part.mkdir()
    with pytest.raises(StorageError, match=rf"{part} cannot be read"):
        [*records.read()]


def test_damaged_values_of_the_store_say_what_to_do():
    for index, value in (
        *(({"values": 1, "bytes": 9}, line.decode(errors="replace")) for line in DAMAGED),
        ({"values": 1, "bytes": 9}, None),
        ({"values": 1, "bytes": 9}, {"key": "a"}),
        ({"values": "1"}, ""),
        ({"values": -1, "bytes": 0}, ""),
        ("text", ""),
    ):
        store = StateStore()
        store.set("webdata_paid", index)
        store.set("webdata_paid_0", value)
        with pytest.raises(UnpublishedResponseError, match=r"webdata_paid[\s\S]*clear the task"):
            StoreRecords(store)


def test_records_of_another_account_are_not_found(reopen):
    reopen("one").save([record("a")])
    assert list(reopen("other").read()) == []
    assert list(reopen("one").read()) == [record("a")]


def test_the_damage_is_named_without_what_was_kept():
    store = StateStore()
    store.set("webdata_paid", {"values": 1, "bytes": 9})
    store.set("webdata_paid_0", json.dumps({"key": "a", "results": {"web": ["hush"]}}))
    with pytest.raises(UnpublishedResponseError) as raised:
        StoreRecords(store)
    assert "(Expected `object`, got `str` - at `$.results[...][0]`)" in str(raised.value)
    assert "hush" not in str(raised.value)
