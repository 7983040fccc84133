# SPDX-License-Identifier: Apache-2.0
"""Snapshots in a folder, and the sorting of a run's pages."""

from __future__ import annotations

import gzip
import random
from typing import TYPE_CHECKING

import pytest

from airflow_provider_webdata.results.changes import found_pages
from airflow_provider_webdata.results.changes.found_pages import FoundPages
from airflow_provider_webdata.results.changes.pages import Found, Page
from airflow_provider_webdata.results.changes.snapshots import Emitter, SnapshotFolder
from airflow_provider_webdata.results.errors import OutputError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

NIGHT = Emitter("scheduled__2026-11-28", -1, ["load"])


def page(key: str, version: int, by: str | None = "night", *, seen: int = 1) -> Page:
    return Page(f"https://a.example/{key}", version, f"content {version}", "markdown", seen, seen, by)


def write(folder: SnapshotFolder, pages: list[Page], emitters: dict[str, Emitter]) -> str:
    with folder.draft() as draft:
        draft.write(pages)
        return draft.publish(len(pages), emitters)


def pages_in(folder: SnapshotFolder) -> list[Page]:
    with folder.opened() as state:
        return [*state.pages()]


@pytest.fixture
def folder(tmp_path: Path) -> SnapshotFolder:
    return SnapshotFolder(f"file://{tmp_path}/seen/shop/crawl")


def test_a_folder_that_does_not_exist_is_an_empty_state(folder: SnapshotFolder) -> None:
    with folder.opened() as state:
        assert ([*state.pages()], state.names, state.newest, state.last_count) == ([], [], 0, None)


def test_snapshots_are_merged_by_version(folder: SnapshotFolder, tmp_path: Path) -> None:
    old, new = page("é", 5, seen=9), page("é", 7, "other", seen=2)
    write(folder, [page("a", 3), old], {"night": NIGHT})
    write(folder, [new], {"other": NIGHT})
    with folder.opened() as state:
        assert [*state.pages()] == [
            page("a", 3),
            Page(new.key, 7, "content 7", "markdown", 9, 9, "other"),
        ]
        assert (state.newest, state.last_count, state.emitters) == (7, 1, {"night": NIGHT, "other": NIGHT})
        write(folder, [*state.pages()], state.emitters)
        folder.delete(state.names)
    assert len([*tmp_path.rglob("*")]) == 4


def test_an_emission_of_an_unlisted_run_is_lost(folder: SnapshotFolder) -> None:
    consumed = Page("https://a.example/c", 2, "x", "markdown", 1, 1, "earlier", True)
    write(folder, [page("a", 3), page("b", 3, "other"), consumed], {"other": NIGHT})
    assert [one.by for one in pages_in(folder)] == [None, "other", "earlier"]


def test_a_snapshot_is_deleted_while_it_is_read(folder: SnapshotFolder) -> None:
    write(folder, [page("a", 3)], {"night": NIGHT})
    with folder.opened() as state:
        folder.delete(state.names)
        folder.delete(state.names)
        assert [*state.pages()] == [page("a", 3)]


def test_a_snapshot_is_deleted_after_it_was_listed(
    folder: SnapshotFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, [page("a", 3)], {"night": NIGHT})
    listed = folder.names
    names = iter([["seen-0000000000000000.jsonl.gz"]])
    monkeypatch.setattr(folder, "names", lambda: next(names, None) or listed())
    assert pages_in(folder) == [page("a", 3)]


def test_other_files_are_ignored(folder: SnapshotFolder, tmp_path: Path) -> None:
    write(folder, [page("a", 3)], {"night": NIGHT})
    there = tmp_path / "seen" / "shop" / "crawl"
    (there / ".seen-1.jsonl.gz.1234.part").write_bytes(b"half")
    (there / "notes.txt").write_text("ours")
    assert pages_in(folder) == [page("a", 3)]


@pytest.mark.parametrize(
    "content",
    [b"", b"text", gzip.compress(b"{}\n"), gzip.compress(b"text\n"), "cut"],
    ids=["empty", "text", "no header", "no JSON", "cut"],
)
def test_a_damaged_snapshot_is_an_error(folder: SnapshotFolder, tmp_path: Path, content: bytes | str) -> None:
    url = write(folder, [page(str(number), 3) for number in range(1000)], {"night": NIGHT})
    file = next(tmp_path.rglob("seen-*"))
    file.write_bytes(file.read_bytes()[:-200] if isinstance(content, str) else content)
    with pytest.raises(OutputError, match=r"is damaged (?s:.*)Delete it") as failed:
        pages_in(folder)
    assert url in str(failed.value)
    file.unlink()
    assert pages_in(folder) == []


def test_a_newer_format_is_an_error(folder: SnapshotFolder, tmp_path: Path) -> None:
    write(folder, [], {})
    file = next(tmp_path.rglob("seen-*"))
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()).replace(b'"format":1', b'"format":2')))
    with pytest.raises(OutputError, match="newer airflow-provider-webdata"):
        pages_in(folder)


def test_a_folder_that_cannot_be_listed_is_no_empty_state(folder: SnapshotFolder, tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("a file")
    with pytest.raises(StorageError, match="cannot be listed"):
        pages_in(folder)


def test_an_interrupted_draft_leaves_nothing(folder: SnapshotFolder, tmp_path: Path) -> None:
    def failing() -> list[Page]:
        raise ValueError("full")

    with pytest.raises(ValueError, match="full"), folder.draft() as draft:
        draft.write(failing())
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("chunk", [7, 1000], ids=["in files", "in memory"])
def test_pages_are_sorted_and_unique(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(found_pages, "_CHUNK", chunk)
    keys = [f"https://a.example/{number % 60}ü" for number in range(100)]
    random.Random(3).shuffle(keys)
    with FoundPages() as found:
        for index, key in enumerate(keys):
            found.add(key, f"digest {index}", index)
        found.add_listed([keys[0], "https://a.example/listed"])
        pages = [*found.sorted()]
    assert [one.key for one in pages] == sorted({*keys, "https://a.example/listed"})
    assert all(one.index == keys.index(one.key) for one in pages if one.digest is not None)
    assert [one for one in pages if one.digest is None] == [Found("https://a.example/listed", None)]
