# SPDX-License-Identifier: Apache-2.0
"""Results on the local file system: there when complete, and not before."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.results.columns import EXTRA, Column, columns_of
from airflow_provider_webdata.results.errors import OutputError, StorageError
from airflow_provider_webdata.results.files.formats import FORMATS, SUFFIXES, rejected_url
from airflow_provider_webdata.results.files.output import OutputFile, check_output
from airflow_provider_webdata.results.files.storage import check_file, check_folder
from airflow_provider_webdata.results.tables.items import ResultsFile
from tests.support.rows import item_of
from tests.support.tables import each_row
from tests.support.warm import airflow_environ

COLUMNS = columns_of("document")
# Half a surrogate pair is valid in JSON, but not in UTF-8.
TEXT = st.text(st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from([*{column.path[0] for column in COLUMNS if column.path}, "extra", "other"])
METADATA_NAMES = st.sampled_from(
    [*{column.path[1] for column in COLUMNS if len(column.path) == 2}, "ogTitle"]
)
DOCUMENTS = st.dictionaries(NAMES | TEXT, JSON, max_size=6).flatmap(
    lambda item: st.dictionaries(METADATA_NAMES, JSON, max_size=4).map(
        lambda facts: {**item, "metadata": facts}
    )
)


def without_nulls(item):
    """What a table keeps: a column is null where nothing came and where null came."""
    paths = {column.path for column in COLUMNS}
    kept = {name: value for name, value in item.items() if value is not None or (name,) not in paths}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict) and metadata:
        left = {
            name: value
            for name, value in metadata.items()
            if value is not None or ("metadata", name) not in paths
        }
        kept = {**kept, "metadata": left} if left else {k: v for k, v in kept.items() if k != "metadata"}
    return kept


def lines_of(path):
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


@given(items=st.lists(DOCUMENTS | JSON, max_size=6))
@pytest.mark.parametrize("end", FORMATS[".jsonl"].suffixes)
def test_any_json_survives_lines(tmp_path, end, items):
    path = tmp_path / f"items{end}"
    with OutputFile(str(path), COLUMNS) as file:
        file.write(items)
    assert lines_of(path) == items
    assert (file.count, file.bytes) == (len(items), path.stat().st_size)


@given(items=st.lists(DOCUMENTS, max_size=6))
@pytest.mark.parametrize("end", [end for end in SUFFIXES if FORMATS[end].columns])
def test_any_document_survives_rows_of_each_format(tmp_path, end, items):
    """Whatever its fields hold, right or wrong by the documented types; only null reads as absent."""
    path = tmp_path / f"items{end}"
    with OutputFile(str(path), COLUMNS) as file:
        file.write(items)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as data:
        content = FORMATS[end].load("reader")(data, lambda _: COLUMNS)
        found = [item_of(values, COLUMNS) for values in content.records]
    assert [column.name for column in content.columns] == [column.name for column in COLUMNS]
    assert found == [without_nulls(item) for item in items]
    if end == ".parquet":
        table = pq.read_table(path)
        assert table.column_names == [column.name for column in COLUMNS]
        assert [item_of(values, COLUMNS) for values in table.to_pylist()] == found
    assert (file.count, file.bytes) == (len(items), path.stat().st_size)


@each_row("end", SUFFIXES)
def test_url_and_folders(tmp_path, end):
    """A `file://` URL is a path, missing folders are created, and the file has the usual permissions."""
    path = tmp_path / end / "b" / f"items{end}"
    with OutputFile(f"file://{path}", COLUMNS) as file:
        file.write([{"markdown": "x"}])
    assert [found.name for found in path.parent.iterdir()] == [path.name]
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize("end", SUFFIXES)
def test_an_error_leaves_what_was_there(tmp_path, end):
    path = tmp_path / f"items{end}"
    with OutputFile(str(path), COLUMNS) as file:
        file.write([{"markdown": "old"}])
    before = path.read_bytes()

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def failing():
        yield {"markdown": "new"}
        # As on a disk that is full: what is in the buffer cannot be written.
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        raise ConnectionError("the next page did not come")

    try:
        with pytest.raises(ConnectionError), OutputFile(str(path), COLUMNS) as file:
            file.write(failing())
        del file
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@contextlib.contextmanager
def room_for(size):
    """As on a disk that is full: files end at a size, but empty ones can be created."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.says("The message has the path and the storage's reason")
def test_a_full_disk_is_found_before_there_is_anything_to_write(tmp_path):
    path = f"{tmp_path}/x.jsonl"
    with room_for(1000), pytest.raises(StorageError) as error:
        check_output(path)
    assert error.value.text() == (
        f"{path} cannot be written: File too large. Free space, or raise the quota, on the machine that "
        "runs the task"
    )
    assert [*tmp_path.iterdir()] == []


@each_row("name", [f"{'x' * 250}.jsonl", f"{'ü' * 125}.jsonl", f"{'x' * 256}/x.jsonl"])
def test_a_name_that_is_too_long_is_found_before_its_folder_exists(tmp_path, name):
    """Only a folder that exists rejects it."""
    with pytest.raises(OutputError, match="File name too long"):
        check_output(f"{tmp_path}/new/{name}")
    # The name for rejected results is longer than that of the output.
    path = f"{tmp_path}/other/{'x' * 245}.jsonl"
    check_output(path)
    with pytest.raises(OutputError, match="File name too long"):
        check_file(rejected_url(path), movable=True)


def test_what_persists_has_its_own_next_step(tmp_path):
    (tmp_path / "x.jsonl").mkdir()
    (tmp_path / "file").touch()
    steps = {"x.jsonl": "Correct the path", "file/x.jsonl": "Correct the path", "x" * 252 + ".csv": "Shorten"}
    for name, step in steps.items():
        with pytest.raises(StorageError, match=f"(?s)cannot be written: .*{step}"):
            with OutputFile(f"{tmp_path}/{name}", COLUMNS) as file:
                file.write([{"markdown": "x"}])


def test_a_file_of_another_user_in_a_sticky_folder(tmp_path, monkeypatch):
    """As in `/tmp`: its owner alone may replace it."""
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "x.jsonl").touch()
    folder.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(OutputError, match="another user's file in a sticky folder"):
        check_output(f"{folder}/x.jsonl")
    check_output(f"{folder}/mine.jsonl")


def test_a_disk_that_becomes_full_is_named(tmp_path):
    path = f"{tmp_path}/x.jsonl"
    with (
        room_for(1000),
        pytest.raises(StorageError, match=rf"{path} cannot be written: [\s\S]*Free space[\s\S]*WD-065"),
    ):
        with OutputFile(path, COLUMNS) as file:
            file.write([{"markdown": "x" * 2**16}])
    assert [*tmp_path.iterdir()] == []


def test_a_file_that_cannot_be_read(tmp_path):
    (tmp_path / "x.jsonl").mkdir()
    with (
        pytest.raises(StorageError, match=r"x\.jsonl cannot be read: [\s\S]*WD-065"),
        ResultsFile(f"{tmp_path}/x.jsonl"),
    ):
        pass


TEXTS = {
    "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1",
    "\n=1": "'\n=1", "＝1": "'＝1", "＋1": "'＋1", "－1": "'－1", "＠1": "'＠1", "'＝1": "''＝1",
    "'=1": "''=1", "'": "'", "'a": "'a", "a=1": "a=1", " =1": " =1", "": "", 'a,"b"\r\nc\n': 'a,"b"\r\nc\n',
    "ü💧\u2028": "ü💧\u2028", "x" * 200_000: "x" * 200_000,
}  # fmt: skip


@pytest.mark.parametrize("open_file", [open, gzip.open])
def test_csv_has_no_formulas(tmp_path, open_file):
    """Text is guarded, numbers and JSON are not; another reader sees the guard, and ours removes it."""
    end = ".csv" if open_file is open else ".csv.gz"
    path = tmp_path / f"items{end}"
    columns = (
        *(Column("=text", ("text",), "text"), Column("number", ("number",), "number")),
        *(Column("json", ("json",), "json"), Column("yes", ("yes",), "boolean"), EXTRA),
    )
    items = [{"text": text, "number": -1.5, "json": -7, "yes": True, "change": "-"} for text in TEXTS]
    items += [{"text": None, "json": ["=1"], "yes": False}]
    with OutputFile(str(path), columns) as file:
        file.write(items)
    before = csv.field_size_limit(2**20)
    try:
        with open_file(path, "rt", encoding="utf-8", newline="") as data:
            rows = [*csv.reader(data, strict=True)]
    finally:
        csv.field_size_limit(before)
    more = ["-1.5", "-7", "true", '{"change":"-"}']
    assert rows == [
        ["'=text", "number", "json", "yes", "extra"],
        *([text, *more] for text in TEXTS.values()),
        ["", "", '["=1"]', "false", ""],
    ]
    with open_file(path, "rb") as data:
        lines = data.read()
        data.seek(0)
        found = [*FORMATS[end].load("reader")(data, lambda _: columns).records]
    assert lines.startswith(b'"\'=text","number","json","yes","extra"\r\n"\'=1+1",-1.5,"-7","true",')
    assert lines.endswith(b'\r\n,,"[""=1""]","false",\r\n')
    assert [item_of(row, columns) for row in found] == [
        {name: value for name, value in item.items() if value is not None} for item in items
    ]


@each_row(
    "content, words",
    [
        (b"", "no header"),
        (b'"a","b"\r\n"1","2', "last row is truncated"),
        (b'"a","b"\r\n"1","2"', "truncated, or is not CSV"),
        (b'"a","b"\r\n"1",2', "truncated, or is not CSV"),
        (b'"a","b"\r\n"1"\r\n', "1 fields, but the header has 2"),
        (b'"a","b"\r\n5"",2\r\n', "not CSV"),
        (b'"a"\r\n"\xff"\r\n', "utf-8"),
    ],
)
def test_csv_that_is_damaged(content, words):
    with pytest.raises(ValueError, match=words):
        [*FORMATS[".csv"].load("reader")(io.BytesIO(content), text_columns).records]


def text_columns(names):
    return tuple(Column(name, (name,), "text") for name in names)


def test_same_items_make_the_same_file(tmp_path):
    """A retry that gets the same items changes nothing for whoever compares files."""
    made = []
    for _ in range(2):
        with OutputFile(str(tmp_path / "x.jsonl.gz"), COLUMNS) as file:
            file.write([{"markdown": "x"}])
        made.append((tmp_path / "x.jsonl.gz").read_bytes())
    assert made[0] == made[1]


def test_readers_see_the_old_file_or_the_new_one(tmp_path):
    """While a file is replaced again and again, every read of it is whole."""
    path = tmp_path / "items.jsonl"
    over = threading.Event()
    seen, halves = set(), []

    def read():
        while not over.is_set():
            lines = path.read_text().splitlines()
            ids = {json.loads(line)["round"] for line in lines}
            seen.update(ids)
            if len(lines) != 200 or len(ids) != 1:
                halves.append(lines)

    def write(number):
        with OutputFile(str(path), COLUMNS) as file:
            file.write({"round": number, "markdown": "x" * 1000} for _ in range(200))

    write(0)
    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for number in range(1, 40):
            write(number)
        while len(seen) < 2:
            write(40)
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert halves == []


# One of each writer, and one that is compressed.
WRITERS = (".jsonl.gz", ".csv", ".parquet")


@pytest.mark.parametrize("end", WRITERS)
def test_killed_while_writing(tmp_path, warm, end):
    """A process that is killed leaves what was there, and a hidden file that no reader takes for results."""
    path = tmp_path / f"items{end}"
    path.write_bytes(b"old")
    code = """
        import os, sys
        from airflow_provider_webdata.results.columns import columns_of
        from airflow_provider_webdata.results.files.output import OutputFile
        with OutputFile(sys.argv[1], columns_of("document")) as file:
            file.write({"markdown": os.urandom(512 * 1024).hex()} for _ in range(20))
            print("written", flush=True)
            sys.stdin.read()
    """
    process = warm.start(
        ["-c", textwrap.dedent(code), str(path)],
        env=airflow_environ(tmp_path.parent),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert any("written" in line for line in process.stdout)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert path.read_bytes() == b"old"
    (draft,) = [found for found in tmp_path.iterdir() if found != path]
    assert draft.name.startswith(f".items{end}.")
    with OutputFile(str(path), COLUMNS) as file:
        file.write([{"markdown": "new"}])
    assert path.stat().st_size == file.bytes


@pytest.mark.parametrize("end", WRITERS)
def test_memory_does_not_grow_with_the_items(tmp_path, warm, end):
    """100 MB of pages go through a process that never holds more than a row group of them."""
    code = """
        import resource, sys
        from airflow_provider_webdata.results.columns import columns_of
        from airflow_provider_webdata.results.files.output import OutputFile
        page = {"markdown": "0123456789abcdef" * 4096, "metadata": {"url": "https://x.example/"}}
        def written(count):
            with OutputFile(sys.argv[1], columns_of("document")) as file:
                file.write(dict(page) for _ in range(count))
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(written(400), written(1600))
    """
    argv = ["-c", textwrap.dedent(code), str(tmp_path / f"x{end}")]
    done = warm.run(argv, env=airflow_environ(tmp_path))
    assert done.returncode == 0, done.stderr
    first, all_of_it = map(int, done.stdout.split()[-2:])
    assert all_of_it - first < 50_000, "kB"


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"), OutputFile(str(tmp_path / "file" / "x.jsonl"), COLUMNS):
        pass


def test_no_handle_is_left_open(tmp_path):
    for end in SUFFIXES:
        with pytest.raises(TypeError), OutputFile(str(tmp_path / f"x{end}"), COLUMNS) as file:
            file.write([{"markdown": "x"}, {"markdown": object()}])
    held = []
    for handle in Path("/proc/self/fd").iterdir():
        # The one that lists them is gone.
        with contextlib.suppress(FileNotFoundError):
            held.append(os.readlink(handle))
    assert held
    assert [name for name in held if str(tmp_path) in name] == []


REFUSED = {
    "no suffix": ("/tmp/x", "ends in one of .jsonl, .jsonl.gz, .parquet"),
    "another suffix": ("s3://b/x.xlsx", "x.xlsx"),
    "nothing but a suffix": ("/tmp/.jsonl", "ends in one of"),
    "empty": ("", "ends in one of"),
    "unknown storage": (
        "martian://b/x.jsonl",
        "martian://b/x.jsonl: this storage is unavailable on this worker",
    ),
}


@each_row("url, words", REFUSED.values())
def test_what_cannot_be_written_is_refused(url, words):
    with pytest.raises(OutputError, match=words):
        check_output(url)


def test_missing_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    check_output(f"{tmp_path}/x.jsonl")
    with pytest.raises(OutputError, match=r"pip install pyarrow \(the extra parquet\)"):
        check_output(f"{tmp_path}/x.parquet")


def test_a_name_is_as_long_as_the_file_system_allows(tmp_path):
    path = tmp_path / f"{'川' * 83}.jsonl"
    check_output(str(path))
    with OutputFile(str(path), COLUMNS) as file:
        file.write([{"markdown": "x"}])
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_the_umask_holds(tmp_path):
    before = os.umask(0o077)
    try:
        with OutputFile(str(tmp_path / "x.jsonl"), COLUMNS):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x.jsonl").stat().st_mode) == 0o600


def test_a_folder_may_hold_any_other(tmp_path):
    (tmp_path / "any").mkdir()
    check_folder(str(tmp_path))
    assert [found.name for found in tmp_path.iterdir()] == ["any"]
