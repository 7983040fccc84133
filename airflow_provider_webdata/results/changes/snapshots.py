# SPDX-License-Identifier: Apache-2.0
"""The folder of a task's snapshots: usually one file, two after runs that overlapped."""

from __future__ import annotations

import contextlib
import gzip
import secrets
import shutil
import tempfile
import zlib
from contextlib import ExitStack
from itertools import islice
from operator import attrgetter
from typing import IO, TYPE_CHECKING

import msgspec

from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.results.changes.pages import Page, merged_streams
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.storage import (
    WholeFile,
    compressed,
    storage_error,
    storage_errors,
    storage_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow.sdk import ObjectStoragePath
    from typing_extensions import Self

_FORMAT = 1
_PREFIX, _SUFFIX = "seen-", ".jsonl.gz"
_LISTINGS = 10
_BATCH = 1_000
_BLOCK = 2**20
# Each run writes the whole state, so time counts more than size.
_GZIP_LEVEL = 1
_DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error, ValueError)


class Emitter(msgspec.Struct, frozen=True):
    """A run that emitted pages.

    :param tasks: ids of the tasks that can consume its file.
    """

    run_id: str
    map_index: int
    tasks: list[str]


class Header(msgspec.Struct, frozen=True):
    """The first line of a snapshot.

    :param pages: number of pages that the last run had whose results were published; None before the first.
    :param newest: the greatest version in it.
    :param emitters: by their token, the runs whose emissions may still be consumed.
    """

    format: int
    pages: int | None
    newest: int
    emitters: dict[str, Emitter]


_version = attrgetter("version")
_encode = msgspec.json.Encoder().encode_lines
_decode_pages = msgspec.json.Decoder(Page).decode_lines
_decode_header = msgspec.json.Decoder(Header).decode


class Snapshot:
    """A snapshot, copied to a temporary file of the worker, so that another run may delete it.

    :param url: its URL, for errors.
    """

    def __init__(self, url: str, copy: IO[bytes]) -> None:
        self.url = url
        self._copy = copy
        with self._lines() as lines, self._undamaged():
            self.header = _decode_header(lines.readline())
        if self.header.format > _FORMAT:
            raise OutputError(
                f"{url} was written by a newer airflow-provider-webdata. Install that version on the workers, or use "
                "another folder in changes"
            )

    def check(self) -> None:
        """Read the whole snapshot.

        :raises OutputError: it is damaged.
        """
        with self._lines() as lines, self._undamaged():
            while lines.read(_BLOCK):
                pass

    def pages(self) -> Iterator[Page]:
        """Yield the pages, sorted by key; those whose emission no task will consume have `by` None."""
        emitters = self.header.emitters
        with self._lines() as lines, self._undamaged():
            lines.readline()
            while block := lines.read(_BLOCK):
                for page in _decode_pages(block + lines.readline()):
                    if page.consumed or page.by is None or page.by in emitters:
                        yield page
                    else:
                        yield msgspec.structs.replace(page, by=None)

    def _lines(self) -> gzip.GzipFile:
        self._copy.seek(0)
        return gzip.GzipFile(fileobj=self._copy)

    @contextlib.contextmanager
    def _undamaged(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGE as error:
            raise OutputError(
                f"{self.url} is damaged ({type(error).__name__}: {plain_reason(error)}). Delete it: the next run then "
                "emits the pages that no other file of the folder has"
            ) from error


class State:
    """The merge of all snapshots of a folder, while their copies are open."""

    def __init__(self, names: list[str], snapshots: list[Snapshot]) -> None:
        self.names = names
        self._snapshots = snapshots

    def check(self) -> None:
        """Read all snapshots.

        :raises OutputError: one is damaged.
        """
        for snapshot in self._snapshots:
            snapshot.check()

    @property
    def emitters(self) -> dict[str, Emitter]:
        """The runs whose emissions may still be consumed, by their token."""
        return {token: one for snapshot in self._snapshots for token, one in snapshot.header.emitters.items()}

    @property
    def newest(self) -> int:
        """The greatest version; 0 without pages."""
        return max((snapshot.header.newest for snapshot in self._snapshots), default=0)

    @property
    def last_count(self) -> int | None:
        """Number of pages that the last run had whose results were published; None before the first."""
        headers = [snapshot.header for snapshot in self._snapshots]
        counts = [(header.newest, header.pages) for header in headers if header.pages is not None]
        return max(counts)[1] if counts else None

    def pages(self) -> Iterator[Page]:
        """Yield the pages, sorted by key."""
        return merged_streams(snapshot.pages() for snapshot in self._snapshots)


class SnapshotFolder:
    """A folder of snapshots.

    :param url: path or URL of the folder, in any storage that Airflow supports.
    :raises OutputError: the storage is unavailable on this worker.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._path: ObjectStoragePath = storage_path(self.url)

    @contextlib.contextmanager
    def opened(self) -> Iterator[State]:
        """Open all snapshots; without any, the state has no pages.

        :raises OutputError: a snapshot is damaged.
        :raises StorageError: the folder cannot be listed, or a snapshot cannot be read.
        """
        with ExitStack() as stack:
            yield self._opened(stack)

    def _opened(self, stack: ExitStack) -> State:
        for _ in range(_LISTINGS):
            names = self.names()
            # Another run may delete a snapshot after it was listed.
            with contextlib.suppress(FileNotFoundError):
                return State(
                    names, [Snapshot(f"{self.url}/{name}", self._copy(name, stack)) for name in names]
                )
        raise OutputError(
            f"{self.url} changes too often to be read: are several runs of the task active? Lower its "
            "max_active_tis_per_dag"
        )

    def _copy(self, name: str, stack: ExitStack) -> IO[bytes]:
        path = self._path / name
        copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        with storage_errors(f"{self.url}/{name}", "read"), path.fs.open(path.path, "rb") as file:
            shutil.copyfileobj(file, copy, _BLOCK)
        return copy

    def names(self) -> list[str]:
        """Return the names of the snapshots; none if the folder does not exist.

        :raises StorageError: the folder cannot be listed.
        """
        fs = self._path.fs
        # Some storages cache listings, which would hide another run's file.
        fs.invalidate_cache()
        try:
            paths = fs.ls(self._path.path, detail=False)
        except FileNotFoundError:
            return []
        except Exception as error:
            raise storage_error(self.url, error, "listed") from error
        names = [str(path).rstrip("/").rpartition("/")[2] for path in paths]
        return sorted(name for name in names if name.startswith(_PREFIX) and name.endswith(_SUFFIX))

    def draft(self) -> SnapshotDraft:
        """Return a new snapshot to write; use it as a context manager."""
        return SnapshotDraft(self._path / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}")

    def delete(self, names: list[str]) -> None:
        """Delete snapshots that a new one contains."""
        for name in names:
            # Another run may have merged the same files.
            with contextlib.suppress(FileNotFoundError), storage_errors(f"{self.url}/{name}", "deleted"):
                (self._path / name).unlink()


class SnapshotDraft:
    """A snapshot that is being written, in a temporary file of the worker until it is published."""

    def __init__(self, path: ObjectStoragePath) -> None:
        self._path = path
        self._open = ExitStack()
        self._newest = 0
        self._tokens: set[str | None] = set()

    def __enter__(self) -> Self:
        """Open the temporary file."""
        self._file = self._open.enter_context(tempfile.TemporaryFile())
        self._lines = compressed(self._file, _GZIP_LEVEL)
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the temporary file."""
        self._open.close()

    def write(self, pages: Iterable[Page]) -> None:
        """Write the pages, which are sorted by key."""
        stream = iter(pages)
        while batch := [*islice(stream, _BATCH)]:
            self._lines.write(_encode(batch))
            self._newest = max(self._newest, max(map(_version, batch)))
            self._tokens.update(page.by for page in batch if not page.consumed)

    def publish(self, pages: int | None, emitters: Mapping[str, Emitter]) -> str:
        """Write the snapshot with its header, and return its URL; see `Header`.

        :param emitters: runs by their token; those are written that have pages in the snapshot.
        :raises StorageError: it cannot be written.
        """
        self._lines.close()
        self._file.seek(0)
        with WholeFile(self._path) as file:
            # A gzip file may have several parts. The header depends on what was found while the pages were written.
            used = {token: emitter for token, emitter in emitters.items() if token in self._tokens}
            with compressed(file, _GZIP_LEVEL) as lines:
                lines.write(_encode([Header(_FORMAT, pages, self._newest, used)]))
            shutil.copyfileobj(self._file, file, _BLOCK)
        return str(self._path)
