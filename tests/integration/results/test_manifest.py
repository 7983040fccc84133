"""The manifests of a task: with what a run compares, and what becomes of runs at once, of gaps and of damage."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.manifest.comparison import Comparison
from airflow_provider_webdata.results.manifest.entries import MAYBE_CHANGED, MAYBE_NEW, Entry
from airflow_provider_webdata.results.manifest.folder import Known, ManifestFolder, ManifestRun
from airflow_provider_webdata.results.manifest.plan import Plan

FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)


def at(day: int, run_id: str | None = None, **more: int | str) -> ManifestRun:
    return ManifestRun(
        FIRST + timedelta(days=day), "dag", run_id or f"run_{day}", **{"task_id": "crawl", **more}
    )  # type: ignore[arg-type]


def entry(name: str, digest: str = "0") -> tuple[str, Entry]:
    return f"https://a.example/{name}", Entry(None, digest, 200, "x", "y", "z")


def wrote(folder: ManifestFolder, run: ManifestRun, *pages: tuple[str, Entry], by: str = "content") -> Path:
    return Path(folder.write(run, folder.known_before(run), dict(pages), by).removeprefix("file://"))


@pytest.fixture
def folder(tmp_path: Path) -> ManifestFolder:
    return ManifestFolder(f"file://{tmp_path}/seen/")


def known(folder: ManifestFolder, run: ManifestRun) -> dict[str, str]:
    return {key.rpartition("/")[2]: found.digest for key, found in folder.known_before(run).entries.items()}


def of(*names: str) -> set[str]:
    return {f"https://a.example/{name}" for name in names}


def certain(known: Known) -> set[str]:
    """Return the names of the pages that consumers have for certain."""
    return {key.rpartition("/")[2] for key, found in known.entries.items() if found.digest != MAYBE_NEW}


def test_the_newest_before_the_interval(folder: ManifestFolder) -> None:
    assert folder.known_before(at(1)).files == []
    for day in (1, 2, 3):
        wrote(folder, at(day), entry("a", str(day)), entry(f"only_{day}"))
    assert known(folder, at(4)) == {"a": "3", "only_3": "0"}
    assert known(folder, at(3)) == {"a": MAYBE_CHANGED, "only_2": "0", "only_3": MAYBE_NEW}
    assert known(folder, at(1)) == {"a": MAYBE_NEW, "only_1": MAYBE_NEW}
    assert len(folder.known_before(at(4)).files) == 1


def test_the_same_pages_give_the_same_bytes(folder: ManifestFolder) -> None:
    path = wrote(folder, at(1), entry("a"))
    before = path.read_bytes()
    path.unlink()
    assert wrote(folder, at(1), entry("a")) == path
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_all_that_is_known_of_a_page_is_kept(folder: ManifestFolder) -> None:
    pages = dict(
        [
            ("https://a.example/a", Entry("https://a.example/b?c", "f", 301, "1", "2", "3", 4)),
            entry("ä\ud83d" * 3),
            entry('"\\\n\0\u2028'),
        ]
    )
    wrote(folder, at(1), *pages.items())
    assert folder.known_before(at(2)).entries == pages


def test_runs_at_the_same_time(folder: ManifestFolder) -> None:
    wrote(folder, at(1), entry("a", "1"))
    second, third, manual = at(2), at(3), at(3, "manual")
    begun = [(run, folder.known_before(run)) for run in (second, third, manual)]
    for number, (run, before) in enumerate(begun):
        folder.write(run, before, dict([entry("a", str(number)), entry(run.run_id)]), "content")
    after = folder.known_before(at(4))
    assert len(after.files) == 3
    assert {key.rpartition("/")[2] for key in after.entries} == {"a", "run_2", "run_3", "manual"}
    assert after.entries["https://a.example/a"].digest == MAYBE_CHANGED
    folder.write(at(4), after, after.entries, "content")
    assert len(folder.known_before(at(5)).files) == 1
    assert known(folder, at(5)).keys() == {"a", "run_2", "run_3", "manual"}


def test_an_interval_that_is_filled_in_later(folder: ManifestFolder) -> None:
    for day in (5, 6):
        wrote(folder, at(day), entry(f"of_{day}"))
    wrote(folder, at(2), entry("of_2"))
    assert known(folder, at(3)) == {"of_2": "0"}
    assert known(folder, at(7)) == {"of_6": "0", "of_2": "0"}


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_the_last_ones_are_kept(folder: ManifestFolder, keep: int) -> None:
    for day in (1, 2, 3, 4):
        before = folder.known_before(at(day))
        path = wrote(folder, at(day), entry("a", str(day)))
        folder.tidy(at(day), keep, before)
    # The newest run can always be repeated.
    assert len(list(path.parent.iterdir())) == max(keep, 2)
    assert folder.known_before(at(4)).files == before.files
    assert known(folder, at(5)) == {"a": "4"}
    early = wrote(folder, at(0), entry("a", "0"))
    folder.tidy(at(0), keep, folder.known_before(at(0)))
    assert early.exists(), "what fills a gap is needed by the next one that does"
    assert len(list(path.parent.iterdir())) == max(keep, 2) + 1


def test_a_run_deletes_no_file_that_no_run_has_considered(folder: ManifestFolder) -> None:
    before = {day: folder.known_before(at(day)) for day in (1, 2)}
    for day, known_then in before.items():
        folder.write(at(day), known_then, dict([entry(f"of_{day}")]), "content")
        folder.tidy(at(day), 1, known_then)
    assert known(folder, at(3)) == {"of_1": "0", "of_2": "0"}


def test_more_tasks_share_a_folder_than_files_are_kept(tmp_path: Path) -> None:
    folder = ManifestFolder(str(tmp_path / "seen"), shared=True)
    names = [f"task_{number}" for number in range(5)]
    for day in (1, 2, 3):
        for name in names:
            run = at(day, task_id=name)
            before = folder.known_before(run)
            assert before.entries.keys() == (of(*names) if day > 1 else set())
            folder.write(run, before, before.entries | dict([entry(name)]), "content", removes=False)
            folder.tidy(run, 2, before)
    assert len(list((tmp_path / "seen").iterdir())) == 2 * len(names)


def test_another_run_deletes_an_old_file_after_it_was_listed(
    folder: ManifestFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in (1, 2, 3):
        wrote(folder, at(day), entry("a", str(day)))
    list_names = ManifestFolder._names

    def names_before_deletion(listed: ManifestFolder) -> list[str]:
        monkeypatch.undo()
        found = list_names(listed)
        listed.tidy(at(3), 1, Known(listed=found))
        return found

    monkeypatch.setattr(ManifestFolder, "_names", names_before_deletion)
    assert known(folder, at(4)) == {"a": "3"}


def test_runs_whose_results_were_not_consumed(folder: ManifestFolder) -> None:
    """They are ignored until they are consumed; a repeated run compares with the same files again."""
    failed = {"run_2", "run_3"}

    def known_before(day: int) -> Known:
        return folder.known_before(
            at(day), lambda _, run_id, tasks: run_id not in failed or tasks != ["load"]
        )

    for day in (1, 2, 3, 4):
        known = known_before(day)
        pages = dict([entry(f"of_{day}")])
        folder.write(at(day), known, pages, "content", consumers=["load"])
        folder.tidy(at(day), 2, known)
        assert certain(known) == ({"of_1"} if day > 1 else set())
        assert known.entries.keys() - of("of_1") == of(*(f"of_{ignored}" for ignored in range(2, day)))
    assert [*known_before(4).ignored.values()] == ["run_3", "run_2"], "whose consumers may have some pages"
    filled_in = at(0, "filled_in")
    folder.write(filled_in, known_before(0), dict([entry("of_0")]), "content", consumers=["load"])
    before = folder.known_before(at(4), lambda _, run_id, __: run_id == "filled_in")
    assert [*before.ignored.values()] == ["run_3", "run_2"], (
        "the one that was not there the first time is consumed"
    )
    assert certain(before) == {"of_0", "of_1"}
    Path(folder.url.removeprefix("file://"), filled_in.file_name).unlink()
    failed.clear()
    assert certain(known_before(4)) == {"of_1"}, "a repeated run"
    assert certain(known_before(5)) == {"of_4"}, "which emitted those of the third day"
    failed.add("run_4")
    for day in (5, 6):
        # These have no consumers.
        known = known_before(day)
        assert [*known.ignored.values()] == (["run_4"] if day == 5 else [])
        folder.write(at(day), known, dict([entry(f"of_{day}")]), "content")


_SITES = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), min_size=1)
_RUNS = st.lists(st.tuples(st.integers(1, 4), _SITES, st.sampled_from(["all", "some", "no"])), max_size=7)


def _consumed(*runs: tuple[int, dict[str, str]]) -> list[tuple[int, dict[str, str], str]]:
    return [(day, pages, "all") for day, pages in runs]


@given(_RUNS, _SITES, st.integers(1, 2), st.integers(1, 3))
# The newest run is cleared, in two ways; an older run is cleared; a day is backfilled.
@example(
    *(_consumed((1, {"a": "x", "b": "x"}), (2, {"b": "x"}), (2, {"a": "x", "b": "x"})), {"a": "x", "b": "x"}),
    *(1, 3),
)
@example(_consumed((1, {"a": "x"}), (2, {"a": "y", "b": "x"}), (2, {"a": "x"})), {"a": "x"}, 2, 3)
@example(_consumed((1, {"a": "x"}), (2, {"a": "y"}), (1, {"a": "x"})), {"a": "y"}, 2, 3)
@example(_consumed((1, {"a": "x", "b": "x"}), (3, {"b": "x"}), (2, {"b": "x"})), {"a": "x", "b": "x"}, 1, 3)
# An older run is cleared twice, and its results are not consumed; few files are kept.
@example(
    [*_consumed((1, {"a": "x"}), (2, {"a": "x"}), (1, {"a": "y"})), (1, {"a": "x"}, "no")], {"a": "x"}, 1, 3
)
@example([(1, {"a": "x", "b": "x"}, "some"), (2, {"a": "x"}, "no")], {"a": "x"}, 1, 1)
def test_consumers_have_the_whole_site_whatever_runs_were_before(
    runs: list[tuple[int, dict[str, str], str]], site: dict[str, str], after: int, keep: int
) -> None:
    """Days are skipped, backfilled, and cleared in any order; some or all consumers of a run may fail."""
    table: dict[str, str] = {}
    failed: set[str] = set()
    later = [(5 + number, site, "all") for number in range(after + 1)]
    with TemporaryDirectory() as home:
        folder = ManifestFolder(home)
        for day, pages, consumers in (*runs, *later):
            run = at(day)
            try:
                known = folder.known_before(run, lambda _, run_id, __: run_id not in failed)
            except OutputError:
                # Older than the kept files.
                continue
            comparison = Comparison(known.entries, run.stored_moment, "content")
            items = [{"markdown": text, "url": f"https://a.example/{name}"} for name, text in pages.items()]
            emitted = {
                item["url"]: item["markdown"] for item in items if comparison.change_of(item).change != "same"
            }
            gone = {} if known.is_followed else comparison.removed(after, len(known.entries))
            folder.write(run, known, comparison.entries(), "content", consumers=["load", "notify"])
            folder.tidy(run, keep, known)
            failed.discard(run.run_id)
            if consumers != "all":
                failed.add(run.run_id)
            if consumers != "no":
                table = {url: text for url, text in (table | emitted).items() if url not in gone}
    assert table == {f"https://a.example/{name}": text for name, text in site.items()}


def emitted(folder: ManifestFolder, day: int, keep: int = 9, **pages: str) -> set[str]:
    """Return the names of the new and changed pages of a run, which writes its file."""
    known = folder.known_before(at(day))
    comparison = Comparison(known.entries, at(day).stored_moment, "content")
    changes = {
        name: comparison.change_of({"markdown": text, "url": f"https://a.example/{name}"}).change
        for name, text in pages.items()
    }
    if not known.is_followed:
        comparison.removed(1, 9)
    folder.write(at(day), known, comparison.entries(), "content")
    folder.tidy(at(day), keep, known)
    return {name for name, change in changes.items() if change != "same"}


def test_attempts_that_ended_after_they_wrote_their_file(folder: ManifestFolder) -> None:
    """Consumers may have what any earlier attempt of the run emitted."""
    assert emitted(folder, 1, a="x", b="x") == {"a", "b"}
    assert emitted(folder, 2, a="y") == {"a"}
    for _ in range(3):
        assert emitted(folder, 2, a="x", b="x") == {"a", "b"}
    assert emitted(folder, 3, a="x", b="x") == set()


def test_a_run_is_repeated_whose_file_was_deleted(folder: ManifestFolder) -> None:
    """The file of a later run names an earlier file of that name."""
    for day in (1, 2, 3):
        emitted(folder, day, 1, a="x")
    assert emitted(folder, 1, a="y") == {"a"}
    assert emitted(folder, 4, a="x") == {"a"}


def test_a_run_whose_file_to_compare_with_is_gone(folder: ManifestFolder) -> None:
    for day in (1, 2, 3):
        wrote(folder, at(day), entry("a"))
    folder.tidy(at(3), 2, folder.known_before(at(4)))
    with pytest.raises(
        OutputError, match=r"(?s)this run was compared with 20260102T.*cannot be repeated.*Changes\(keep=\)"
    ):
        folder.known_before(at(2))


def test_tasks_that_share_a_folder(folder: ManifestFolder) -> None:
    for index in (0, 1):
        wrote(folder, at(1, map_index=index), entry("a"))
    with pytest.raises(OutputError, match=r"(?s)written by several tasks: 'crawl' \(map index .*task.url"):
        folder.known_before(at(2))


def test_a_folder_belongs_to_the_task_that_writes_first(tmp_path: Path, folder: ManifestFolder) -> None:
    wrote(folder, at(1, task_id="written before folders had owners"), entry("a"))
    for day in (1, 2):
        folder.claim(at(day))
        folder.claim(at(day, map_index=day))
    for other in (at(3, task_id="other"), ManifestRun(FIRST, "other", "r", "crawl")):
        with pytest.raises(
            OutputError, match=r"(?s)belongs to task 'crawl' of DAG 'dag'.*shared=True.*owner\.json"
        ):
            folder.claim(other)
    shared = ManifestFolder(folder.url, shared=True)
    shared.claim(at(3))
    shared.claim(at(3, task_id="other"))
    with pytest.raises(OutputError, match="belongs to several tasks with shared=True"):
        folder.claim(at(4))
    wrote(shared, at(4), entry("a"))
    wrote(shared, at(4, task_id="other"), entry("b"))
    assert shared.known_before(at(5)).entries.keys() == {"https://a.example/a", "https://a.example/b"}


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b"7", b"null", b"{}", b'{"dagId": 1}', b"[" * 99_999]
)
def test_a_damaged_owner_is_named(tmp_path: Path, folder: ManifestFolder, content: bytes) -> None:
    (tmp_path / "seen").mkdir()
    (tmp_path / "seen" / "owner.json").write_bytes(content)
    with pytest.raises(OutputError, match=r"owner\.json is damaged; delete it"):
        folder.claim(at(1))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "damaged"),
        (b"no gzip", "Not a gzipped file"),
        (gzip.compress(b""), "damaged"),
        (gzip.compress(b"{}\n"), "damaged"),
        (gzip.compress(b'{"format":2}\n'), "newer"),
        (gzip.compress(b"[]\n"), "damaged"),
        (gzip.compress(b'{"format":1}\n{"url"'), "damaged"),
        (gzip.compress(b'{"format":1}\n{}\n'), "damaged"),
        (gzip.compress(b'{"format":1}\n')[:-9], "damaged"),
    ],
    ids=["nothing", "no gzip", "empty", "no format", "newer", "list", "cut line", "no page", "cut file"],
)
def test_damage(folder: ManifestFolder, content: bytes, why: str) -> None:
    path = wrote(folder, at(1), entry("a"))
    path.write_bytes(content)
    with pytest.raises(OutputError, match=why):
        folder.known_before(at(2))


ODD = (None, True, 7, -1.5, "text", [], ["x"], [7], {}, {"x": []}, [[]])


def is_reported(read: Callable[[], object]) -> bool:
    """Return whether a file is reported as damaged, which it need not be."""
    with contextlib.suppress(OutputError):
        read()
        return False
    return True


def test_values_of_any_type_are_read_or_reported(tmp_path: Path, folder: ManifestFolder) -> None:
    path = wrote(folder, at(1), entry("a"))
    header, page = (json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines())
    plan = Plan(["https://a.example/a"], [], 2.0, is_whole=True)
    folder.write_plan(at(1), plan)
    (plan_path,) = (tmp_path / "seen").glob("*.plan.json")
    reported = 0
    for odd in ODD:
        changed = [
            *(({**header, name: odd}, page) for name in header),
            *((header, {**page, name: odd}) for name in (*page, "key", "missing")),
            (odd, page),
            (header, odd),
        ]
        for lines in changed:
            path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
            reported += is_reported(lambda: folder.known_before(at(2)))
            reported += is_reported(lambda: folder.known_before(at(1)))
        for content in (odd, *({**asdict(plan), name: odd} for name in asdict(plan))):
            plan_path.write_text(json.dumps(content))
            reported += is_reported(lambda: folder.plan_of(at(1)))
    assert reported > 300


def test_other_files_do_no_harm(folder: ManifestFolder, tmp_path: Path) -> None:
    wrote(folder, at(1), entry("a"))
    for name in ("README", ".20260105T000000000000Z-000000000000.jsonl.gz.x.part", "20260105.jsonl.gz"):
        (tmp_path / "seen" / name).write_text("x")
    assert known(folder, at(9)) == {"a": "0"}


def test_an_object_store(bucket: str) -> None:
    """A bucket has no folders until something is in them."""
    folder = ManifestFolder(f"s3://results_s3@{bucket}/of/seen")
    plan = Plan(["https://a.example/a"], ["https://a.example/b"], 2.0, is_whole=True)
    assert folder.plan_of(at(1)) is None
    for day in (1, 2, 3):
        folder.write_plan(at(day), plan)
        assert folder.plan_of(at(day)) == plan
        folder.write(at(day), folder.known_before(at(day)), dict([entry("a", str(day))]), "content")
        folder.tidy(at(day), 2, folder.known_before(at(day)))
        folder.delete_plan(at(day))
        assert folder.plan_of(at(day)) is None
    assert known(folder, at(4)) == {"a": "3"}
    assert known(folder, at(3)) == {"a": MAYBE_CHANGED}
    with pytest.raises(OutputError, match=r"Changes\(keep=\)"):
        folder.known_before(at(2))
