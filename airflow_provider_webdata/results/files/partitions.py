"""Files by partition, and their list, which is written last: readers of the list see all files or none."""

from __future__ import annotations

import json
import logging
import re
import tempfile
from collections import OrderedDict
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.item_urls import url_of
from airflow_provider_webdata.common.supported_airflow import PARTITION_EVENTS, airflow_release
from airflow_provider_webdata.common.surrogates import is_utf8
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.formats import (
    LIST_SUFFIX,
    QUARANTINE,
    SUFFIXES,
    format_of,
    suffix_of,
)
from airflow_provider_webdata.results.files.output import OutputFile
from airflow_provider_webdata.results.files.storage import (
    StagedFiles,
    WholeFile,
    storage_errors,
    storage_path,
)
from airflow_provider_webdata.results.item_paths import at_path
from airflow_provider_webdata.results.tombstones import marked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self

    from airflow_provider_webdata.results.columns import Column

log = logging.getLogger(__name__)

_PATH = re.compile(r"[A-Za-z_]\w{0,63}(?:\.\w{1,64}){0,15}", re.ASCII)
_ANY_SUFFIX = "|".join(map(re.escape, SUFFIXES))
# Hive's name for a missing value, which other readers of partitions also support.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_MAX_VALUE = 240
# Maximum for a folder's name, with the column's.
_MAX_BYTES = 255
# A quoted value: printable ASCII without slashes.
_VALUE = r"[ -.0-\[\]-~]{1,245}"
# Operating systems limit a process to about a thousand open files.
_MAX_OPEN = 64


def list_url(url: str) -> str:
    """Return the URL of a partitioned output's list of files.

    :param url: see `output.OutputFile`.
    """
    return url.removesuffix(suffix_of(url)) + LIST_SUFFIX


def checked_partition(partition_by: object, emit_partitions: object, path: object) -> str:
    """Return the partitioning: `date`, `host`, or a path in an item such as `json.country`.

    :param partition_by: argument of `Output`.
    :param emit_partitions: argument of `Output`; each file then becomes a partition of the task's asset events.
    :param path: argument of `Output`.
    :raises ArgumentError: an argument is invalid, `partition_by` and `emit_partitions` differ, `path` is None, or
        Airflow is too old.
    """
    for name, given in {"partition_by": partition_by, "emit_partitions": emit_partitions}.items():
        if given is not None and not (isinstance(given, str) and _PATH.fullmatch(given)):
            raise ArgumentError(
                f"Output({name}=) must be 'date', 'host', or the path of a value in an item such as 'json.country' "
                f"(given: {given!r})"
            )
        if given is not None and path is None:
            raise ArgumentError(f"Output({name}=) requires a path")
    if partition_by is not None and emit_partitions not in (None, partition_by):
        raise ArgumentError(
            f"Output(emit_partitions={emit_partitions!r}) emits one event per file, but partition_by={partition_by!r} "
            "writes other files; omit partition_by"
        )
    if emit_partitions is not None and airflow_release() < PARTITION_EVENTS:
        raise ArgumentError(
            f"Output(emit_partitions=) requires Airflow {'.'.join(map(str, PARTITION_EVENTS))} or later: tasks of "
            "older versions cannot emit partition events"
        )
    return str(partition_by or emit_partitions)


def partition_url(url: str, partition_by: str, value: str) -> str:
    """Return the URL of a partition's file: `folder/host=a.example/name.parquet` for `folder/name.parquet`."""
    folder, slash, name = url.rpartition("/")
    return f"{folder}{slash}{_column(partition_by)}={quote(value, safe=' ')}/{name}"


def files_of(url: str, suffix: str = "") -> list[str]:
    """Return the files in a list, which are below the list's folder; see `partition_files`.

    A quarantined list, whose name ends in the suffix, has quarantined files. Any other URL is a single file.
    """
    if url.endswith(LIST_SUFFIX + QUARANTINE):
        files = files_of(url.removesuffix(QUARANTINE), QUARANTINE)
        return [path + QUARANTINE for path in files]
    if not url.endswith(LIST_SUFFIX):
        return [url]
    return [entry["path"] for entry in partition_files(url, suffix)]


def partition_files(url: str, suffix: str = "") -> list[dict[str, Any]]:
    """Return `path`, `partition`, `count`, and `bytes` of each file in a list.

    The list's paths are relative to its folder, so that it can be copied with its files.

    :param url: URL of the list.
    :param suffix: additional suffix of the list's name; see `quarantine`.
    :raises OutputError: the list is missing or malformed, or names a file outside its folder.
    """
    return _read_list(url, suffix)[1]


def paths_of_run(url: str, run: str | None, suffix: str = "") -> list[str]:
    """Return the files in a list that a run wrote; none if the list is missing, malformed, or another run's.

    :param url: URL of the list.
    :param run: see `PartitionedOutput`.
    :param suffix: see `partition_files`.
    """
    with suppress(OutputError):
        writer, files = _read_list(url, suffix)
        if run is not None and writer == run:
            return [entry["path"] for entry in files]
    return []


def writer_of(url: str, suffix: str = "") -> str | None:
    """Return the run that wrote a list; None if the list does not name it.

    :raises OutputError: see `partition_files`.
    """
    return _read_list(url, suffix)[0]


def _read_list(url: str, suffix: str) -> tuple[str | None, list[dict[str, Any]]]:
    folder, slash, name = url.rpartition("/")
    file_name = rf"{re.escape(name.removesuffix(LIST_SUFFIX))}(?:{_ANY_SUFFIX})"
    own = re.compile(rf"\w{{1,64}}={_VALUE}/{file_name}", re.ASCII)
    try:
        path: Any = storage_path(url + suffix)
        with storage_errors(url + suffix, "read"), path.open("rb") as file:
            text = file.read()
        content = json.loads(text)
        listed = [{**entry, "path": entry["path"]} for entry in content["files"]]
    except FileNotFoundError as error:
        known = (
            "the output of a task that rejected its results" if suffix else "a list of Output(partition_by=)"
        )
        raise OutputError(
            f"{url}{suffix} does not exist; name {known}, on the machine or in the storage where it was written"
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise OutputError(f"{url}{suffix} is not a list of files: {error}") from error
    files = []
    for entry in listed:
        path = entry["path"]
        relative = path if isinstance(path, str) else ""
        if not own.fullmatch(relative):
            raise OutputError(
                f"{url}{suffix} names {path!r}, which is not a partition's file below its folder. Run the task "
                "that writes the list again, or name the files themselves"
            )
        files.append({**entry, "path": f"{folder}{slash}{relative}"})
    return content.get("run"), files


class PartitionedOutput:
    """Files of items by partition, to write in a `with` block.

    Until the block ends, the items are in local temporary files. Then each partition's file is written atomically, and
    finally the list, a JSON object with `files`. On a local file system, all files are complete before the first is
    replaced; in an object store, they are replaced one by one. Files that only an earlier attempt of the run listed are
    deleted; those of other runs stay.

    :param url: `folder/name.parquet` is written to `folder/host=a.example/name.parquet` and so on, with the list in
        `folder/name.files.json`.
    :param columns: columns of each table.
    :param partition_by: `host` of the page's URL, `date`, or a path in an item; see `checked_partition`.
    :param day: the run's date, such as `2026-01-31`.
    :param run: identity of the run that writes, the same for all its attempts. None: no file is deleted.
    :ivar url: URL of the list of files.
    :ivar format: format of each file.
    :ivar count: number of items written so far.
    :ivar bytes: total size of the files, once the `with` block has ended.
    :ivar files: `path`, `partition`, `count`, and `bytes` of each file, once the `with` block has ended.
    :raises OutputError: the format or storage is unsupported on this worker, or a package is missing.
    """

    def __init__(
        self, url: str, columns: Iterable[Column], partition_by: str, day: str, run: str | None = None
    ) -> None:
        self.url = list_url(url)
        self.format = format_of(url)
        self.columns = tuple(columns)
        self.count = 0
        self.bytes = 0
        self.files: list[dict[str, Any]] = []
        self._target = url
        self._by = partition_by
        self._day = day
        self._run = run
        self._suffix = ""
        self._open = self._opened()
        self._spool: _Spool | None = None

    def __enter__(self) -> Self:
        """Create temporary files for the items."""
        self._spool = self._open.__enter__()
        return self

    @contextmanager
    def _opened(self) -> Iterator[_Spool]:
        with closing(_Spool()) as spool:
            yield spool
            self._publish(spool)

    def write(self, items: Iterable[Any]) -> None:
        """Write items, JSON objects as the service sent them, one by one as the iterable yields them."""
        if self._spool is None:
            raise ValueError(f"{self.url} is not open")
        for item in items:
            self._spool.add(self._partition_of(item), marked(item))
            self.count += 1

    def quarantine(self) -> None:
        """Write the files and the list beside their destinations; see the module `quarantine`."""
        self._suffix = QUARANTINE

    def __exit__(self, *error: Any) -> None:
        """Write the files, then the list; after an error, write no file."""
        self._spool = None
        self._open.__exit__(*error)

    def _partition_of(self, item: Any) -> str:
        if self._by == "date":
            return self._day
        return host_of(item) if self._by == "host" else value_at(item, self._by)

    def _publish(self, spool: _Spool) -> None:
        # A day without items also has a file, because its consumer always runs.
        values = spool.partitions() or ([self._day] if self._by == "date" else [])
        with closing(StagedFiles()) as staged:
            for value in values:
                url = partition_url(self._target, self._by, value)
                with OutputFile(url + self._suffix, self.columns, staged=staged) as file:
                    file.write_marked(spool.items(value))
                entry = {"path": url, "partition": {_column(self._by): None if value == NO_VALUE else value}}
                self.files.append({**entry, "count": file.count, "bytes": file.bytes})
                self.bytes += file.bytes
            # An earlier attempt may have had other partitions.
            before = paths_of_run(self.url, self._run, self._suffix)
            folder = self.url.rpartition("/")[0]
            listed = [{**entry, "path": entry["path"].removeprefix(f"{folder}/")} for entry in self.files]
            with WholeFile(storage_path(self.url + self._suffix), staged=staged) as out:
                out.write(
                    json_text({**({} if self._run is None else {"run": self._run}), "files": listed}).encode()
                )
            staged.publish()
        delete_stale(before, [entry["path"] for entry in self.files], self._suffix)


def delete_stale(before: Iterable[str], files: Iterable[str], suffix: str = "") -> list[str]:
    """Delete files that a run listed before and did not write again; return their paths.

    :param suffix: additional suffix of quarantined files.
    """
    stale = [path + suffix for path in sorted({*before} - {*files})]
    for path in stale:
        with suppress(FileNotFoundError), storage_errors(path, "deleted"):
            storage_path(path).unlink()
    if stale:
        log.info(
            "Deleted %d files that this run had written and did not write again: %s",
            len(stale),
            ", ".join(stale),
        )
    return stale


def host_of(item: Any) -> str:
    """Return the host of an item's page, in lower case."""
    key = url_of(item)
    try:
        host = urlsplit(key).hostname if key else None
    except ValueError:
        host = None
    return _usable(host or "", "host")


def value_at(item: Any, path: str) -> str:
    """Return the text, number, or truth value at a path in an item, as a partition's name."""
    value = at_path(item, path)
    if isinstance(value, bool):
        return str(value).lower()
    return _usable(str(value), _column(path)) if isinstance(value, (str, int, float)) else NO_VALUE


def _usable(value: str, column: str) -> str:
    # File systems and Airflow's partition keys limit the length.
    size = len(quote(value)) if is_utf8(value) else _MAX_BYTES
    fits = size <= _MAX_VALUE and len(f"{column}=") + size <= _MAX_BYTES
    return value if value.strip() and fits else NO_VALUE


def _column(partition_by: str) -> str:
    return partition_by.rpartition(".")[2]


class _Spool:
    """Items by partition in temporary files, with a limited number of open files."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="webdata-partitions-")
        self._numbers: dict[str, int] = {}
        self._open: OrderedDict[str, Any] = OrderedDict()

    def add(self, value: str, item: Any) -> None:
        with storage_errors(self._folder.name):
            file = self._open.get(value)
            if file is None:
                if len(self._open) >= _MAX_OPEN:
                    self._open.popitem(last=False)[1].close()
                self._numbers.setdefault(value, len(self._numbers))
                file = self._open[value] = self._file(value).open("ab")
            self._open.move_to_end(value)
            file.write(json_text(item).encode() + b"\n")

    def partitions(self) -> list[str]:
        """Return the partitions, in an order independent of the items' order."""
        with storage_errors(self._folder.name):
            while self._open:
                self._open.popitem()[1].close()
        return sorted(self._numbers)

    def items(self, value: str) -> Iterator[Any]:
        if value not in self._numbers:
            return
        with self._file(value).open("rb") as file:
            for line in file:
                yield json.loads(line)

    def close(self) -> None:
        try:
            # After an error, raise that one, not one from flushing a buffer.
            for file in self._open.values():
                with suppress(OSError):
                    file.close()
        finally:
            self._folder.cleanup()

    def _file(self, value: str) -> Path:
        return Path(self._folder.name, str(self._numbers[value]))
