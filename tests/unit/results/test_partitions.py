"""Outputs by partition: a file for each, and a list that is there when all of them are."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.operators.to_table import WebDataToTableOperator
from airflow_provider_webdata.results.assets import partition_key
from airflow_provider_webdata.results.columns import columns_of
from airflow_provider_webdata.results.errors import OutputError, StorageError
from airflow_provider_webdata.results.files import partitions
from airflow_provider_webdata.results.files.formats import SUFFIXES
from airflow_provider_webdata.results.files.partitions import (
    PartitionedOutput,
    files_of,
    host_of,
    list_url,
    value_at,
)
from airflow_provider_webdata.results.files.quarantine import publish
from airflow_provider_webdata.results.tables.items import ResultsFile

PAGES = columns_of("document")
DAY = "2026-01-31"
# Of Airflow's asset events.
MAX_CHARACTERS_OF_A_KEY = 250


def page(url: str, text: str = "x") -> dict[str, Any]:
    return {"markdown": text, "metadata": {"sourceURL": url}}


def write(
    url: str, items: list[Any], by: Any = "host", day: str = DAY, run: str | None = "run"
) -> partitions.PartitionedOutput:
    with PartitionedOutput(url, PAGES, by, day, run) as output:
        output.write(items)
    return output


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_each_host_has_a_file_and_all_are_listed(tmp_path: Path, suffix: str) -> None:
    items = [
        page("https://B.example:8/1"),
        page("https://a.example/"),
        page("https://b.example/2"),
        {"markdown": "?"},
    ]
    output = write(f"{tmp_path}/run{suffix}", items)
    hosts = ["__HIVE_DEFAULT_PARTITION__", "a.example", "b.example"]
    assert names(tmp_path) == {"run.files.json", *(f"host={host}/run{suffix}" for host in hosts)}
    assert [(file["partition"], file["count"]) for file in output.files] == [
        ({"host": None}, 1),
        ({"host": "a.example"}, 1),
        ({"host": "b.example"}, 2),
    ]
    assert (output.url, output.count) == (f"{tmp_path}/run.files.json", 4)
    assert output.bytes == sum(Path(file["path"]).stat().st_size for file in output.files)
    listed = [{**file, "path": file["path"].removeprefix(f"{tmp_path}/")} for file in output.files]
    assert json.loads(Path(output.url).read_text()) == {"run": "run", "files": listed}
    assert files_of(output.url) == [file["path"] for file in output.files]
    with ResultsFile(output.files[-1]["path"]) as last:
        found = [row["source_url"] for row in last.rows() if isinstance(row, dict)]
    assert found == ["https://B.example:8/1", "https://b.example/2"]


def test_a_date_is_that_of_the_run(tmp_path: Path) -> None:
    output = write(f"{tmp_path}/a/run.jsonl", [page("https://a.example"), 7], "date")
    assert names(tmp_path) == {"a/run.files.json", f"a/date={DAY}/run.jsonl"}
    assert output.files[0]["partition"] == {"date": DAY}


def test_nothing_is_written_where_there_is_nothing(tmp_path: Path) -> None:
    assert write(f"{tmp_path}/run.jsonl", []).files == []
    assert names(tmp_path) == {"run.files.json"}


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    def items() -> Any:
        yield page("https://a.example")
        raise RuntimeError("the service")

    with (
        pytest.raises(RuntimeError),
        PartitionedOutput(f"{tmp_path}/run.jsonl", PAGES, "host", DAY) as output,
    ):
        output.write(items())
    assert names(tmp_path) == set()


def test_a_file_that_cannot_be_written_leaves_the_former_files(tmp_path: Path) -> None:
    url = f"{tmp_path}/run.jsonl"
    write(url, [page("https://a.example"), page("https://b.example")])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    blocked = tmp_path / "host=b.other"
    blocked.write_text("")
    with pytest.raises(StorageError, match=r"host=b\.other"):
        write(url, [page(f"https://{host}", "new") for host in ("a.example", "b.example", "b.other")])
    blocked.unlink()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("product_category_name", "あ" * 26),
        ("c" * 64, "x" * 190),
        ("c" * 64, "x" * 191),
        ("c", "x" * 241),
    ],
)
def test_a_value_too_long_for_a_folder_is_no_value(tmp_path: Path, column: str, value: str) -> None:
    (file,) = write(f"{tmp_path}/run.jsonl", [{"json": {column: value}}], f"json.{column}").files
    size = len(f"{column}={quote(value)}")
    assert file["partition"] == {column: value if size <= 255 and column != "c" else None}
    assert files_of(f"{tmp_path}/run.files.json") == [file["path"]]


def test_a_run_keeps_the_files_of_other_runs(tmp_path: Path) -> None:
    """Its list names its own files alone."""
    url = f"{tmp_path}/prices.jsonl"
    for day in ("2026-01-01", "2026-01-02"):
        write(url, [page("https://a.example")], "date", day, run=day)
    assert names(tmp_path) == {
        "prices.files.json",
        "date=2026-01-01/prices.jsonl",
        "date=2026-01-02/prices.jsonl",
    }
    assert files_of(f"{tmp_path}/prices.files.json") == [f"{tmp_path}/date=2026-01-02/prices.jsonl"]
    for run, hosts in {"1": "ab", "2": "b", "3": "b"}.items():
        write(f"{tmp_path}/pages.jsonl", [page(f"https://{host}.example") for host in hosts], run=run)
    assert {name for name in names(tmp_path) if "pages.jsonl" in name} == {
        "host=a.example/pages.jsonl",
        "host=b.example/pages.jsonl",
    }
    # Neither run is known.
    write(f"{tmp_path}/pages.jsonl", [page("https://c.example")], run=None)
    write(f"{tmp_path}/pages.jsonl", [], run=None)
    assert (tmp_path / "host=c.example/pages.jsonl").exists()


def test_a_repeated_run_replaces_all_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    url = f"{tmp_path}/run.jsonl"
    write(url, [page("https://a.example"), page("https://b.example")])
    (tmp_path / "host=b.example" / "other.jsonl").write_text("")
    write(url, [page("https://a.example", "new"), page("https://c.example")])
    assert names(tmp_path) == {
        "run.files.json",
        "host=a.example/run.jsonl",
        "host=b.example/other.jsonl",
        "host=c.example/run.jsonl",
    }
    assert (
        "Deleted 1 files that this run had written and did not write again: "
        f"{tmp_path}/host=b.example/run.jsonl"
    ) in caplog.messages
    assert json.loads((tmp_path / "host=a.example" / "run.jsonl").read_text())["markdown"] == "new"


def test_the_same_items_give_the_same_bytes(tmp_path: Path) -> None:
    items = [page(f"https://h{number % 7}.example/{number}") for number in range(50)]
    first, second = (write(f"{tmp_path}/{name}/run.jsonl", items) for name in "ab")
    for one, other in zip(first.files, second.files, strict=True):
        assert Path(one["path"]).read_bytes() == Path(other["path"]).read_bytes()


def test_few_files_are_open_at_a_time(tmp_path: Path) -> None:
    def items() -> Any:
        for number in range(300):
            yield page(f"https://h{number % 150}.example/")
            most.append(len(os.listdir("/proc/self/fd")))

    most: list[int] = []
    before = len(os.listdir("/proc/self/fd"))
    output = write(f"{tmp_path}/run.jsonl", items())  # type: ignore[arg-type]
    assert max(most) - before <= 70
    assert [file["count"] for file in output.files] == [2] * 150


HOSTS = st.text(st.characters(exclude_categories=()), max_size=8) | st.just("ä" * 200)


def test_half_a_surrogate_pair_is_no_host() -> None:
    assert host_of(page("https://a\ud83d.example/")) == host_of(page("no address"))


@given(st.lists(HOSTS, max_size=8))
def test_no_host_leads_out_of_the_folder_and_no_item_is_lost(tmp_path_factory: Any, hosts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("any")
    items = [page(f"https://{host}/x", str(number)) for number, host in enumerate(hosts)]
    output = write(f"{folder}/run.jsonl", items)
    assert all(Path(file["path"]).parent.parent == folder for file in output.files)
    lines = [
        json.loads(line) for path in files_of(output.url) for line in Path(path).read_bytes().splitlines()
    ]
    assert sorted(item["markdown"] for item in lines) == sorted(item["markdown"] for item in items)
    counts = Counter(map(host_of, items))
    assert sorted(file["count"] for file in output.files) == sorted(counts.values())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        ("{}", "not a list of files"),
        ("x", "not a list of files"),
        ("[]", "not a list of files"),
        ('{"files": [7]}', "not a list of files"),
        ('{"files": {"path": 1}}', "not a list of files"),
        ('{"files": [{"path": 7}]}', "names 7, "),
        ('{"files": [{"path": null}]}', "names None, "),
        ("[" * 99_999, "not a list of files"),
    ],
)
def test_what_is_no_list_is_named(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "x.files.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(OutputError, match=words):
        files_of(str(path))


def test_a_list_moves_with_its_files(tmp_path: Path) -> None:
    write(f"{tmp_path}/dev/run.jsonl", [page("https://a.example"), page("https://b.example")])
    dev = names(tmp_path / "dev")
    shutil.copytree(tmp_path / "dev", tmp_path / "prod")
    assert files_of(f"{tmp_path}/prod/run.files.json")[0] == f"{tmp_path}/prod/host=a.example/run.jsonl"
    write(f"{tmp_path}/prod/run.jsonl", [page("https://a.example")])
    assert names(tmp_path / "dev") == dev
    assert names(tmp_path / "prod") == {"run.files.json", "host=a.example/run.jsonl"}


OUTSIDE = [
    *("{0}/precious.jsonl", "file://{0}/precious.jsonl", "s3://bucket/precious.jsonl", "../precious.jsonl"),
    *(
        "host=a/../../precious.jsonl",
        "host=a/../run.jsonl",
        "run.files.json",
        "other.jsonl",
        "host=a/other.jsonl",
    ),
    *("{0}/out/../precious.jsonl", "{0}/out/host=a/other.jsonl", "host=a/b/run.jsonl", "host=a\\b/run.jsonl"),
    *("host=/run.jsonl", "x.y=a/run.jsonl", "host=a/run.jsonl\n", "host=a/run.exe", "", "/", "."),
]


@pytest.mark.parametrize("listed", OUTSIDE)
def test_a_list_names_its_own_files_alone(tmp_path: Path, listed: str) -> None:
    listed = listed.format(tmp_path)
    folder = tmp_path / "out"
    precious = ["precious.jsonl", "out/other.jsonl", "out/host=a/other.jsonl", "out/host=a/b/run.jsonl"]
    for name in precious:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (folder / "run.files.json").write_text(json.dumps({"files": [{"path": listed}]}))
    with pytest.raises(OutputError, match="which is not a partition's file below its folder"):
        files_of(f"{folder}/run.files.json")
    write(f"{folder}/run.jsonl", [page("https://a.example")])
    assert names(tmp_path) == {*precious, "out/run.files.json", "out/host=a.example/run.jsonl"}


def test_the_list_is_beside_the_files() -> None:
    assert list_url("s3://b/k/run.jsonl.gz") == "s3://b/k/run.files.json"


@given(
    values=st.lists(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()))
)
def test_each_value_in_an_item_has_a_file(values: list[Any]) -> None:
    """All items are in the files once, each in the file of its value, whose name is a partition key."""
    items = [{"json": {"kind": value}, "number": number} for number, value in enumerate(values)]
    with tempfile.TemporaryDirectory() as folder:
        output = write(f"{folder}/run.jsonl", items, "json.kind")
        found = {
            partition_key(entry): [
                json.loads(line)["number"] for line in Path(entry["path"]).read_bytes().splitlines()
            ]
            for entry in output.files
        }
        assert files_of(output.url) == [entry["path"] for entry in output.files]
    assert sorted(number for numbers in found.values() for number in numbers) == [*range(len(items))]
    for key, numbers in found.items():
        assert key.strip()
        assert len(key) <= MAX_CHARACTERS_OF_A_KEY
        assert {value_at(items[number], "json.kind") for number in numbers} == {key}


def test_no_rejected_result_is_published_if_one_is_missing(tmp_path: Path) -> None:
    before = write(f"{tmp_path}/run.jsonl", [page("https://a.example", "old")]).files
    with PartitionedOutput(f"{tmp_path}/run.jsonl", PAGES, "host", DAY, "other") as output:
        output.write([page(f"https://{host}.example", "new") for host in "ab"])
        output.quarantine()
    rejected = files_of(f"{output.url}.rejected")
    assert [b"new" in Path(path).read_bytes() for path in rejected] == [True, True]
    assert WebDataToTableOperator(task_id="t", path=f"{output.url}.rejected", table="t", conn_id="c").paths()
    lost = tmp_path / "host=b.example" / "run.jsonl.rejected"
    content = lost.read_bytes()
    lost.unlink()
    with pytest.raises(OutputError, match=r"names .*host=b.example/run.jsonl, but neither"):
        publish(output.url)
    assert files_of(output.url) == [entry["path"] for entry in before]
    assert b"old" in Path(before[0]["path"]).read_bytes()
    lost.write_bytes(content)
    publish(output.url)
    assert all(b"new" in Path(path).read_bytes() for path in files_of(output.url))
    assert len(files_of(output.url)) == 2


def test_a_day_without_items_has_a_file(tmp_path: Path) -> None:
    assert [entry["count"] for entry in write(f"{tmp_path}/run.jsonl", [], "date").files] == [0]
    assert names(tmp_path) == {"run.files.json", f"date={DAY}/run.jsonl"}
