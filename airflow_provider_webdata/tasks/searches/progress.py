"""Where the records of a batch are kept, so that no later attempt pays for the same searches again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
import secrets
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.sdk import Context, ObjectStoragePath

    from airflow_provider_webdata.tasks.searches.records import Record

log = logging.getLogger(__name__)

MOST_STORED_BYTES = 16 * 2**20
"""Most JSON that is put into Airflow's task state store, which is its metadata database."""

_STORE_KEY = "webdata_searches"
_PART = re.compile(r"\d{8}-[0-9a-f]{8}\.part")


class Progress(Protocol):
    """Keeps records across the attempts of a task.

    :ivar lasts: whether a later attempt finds what is kept.
    """

    lasts: bool

    def read(self) -> Iterator[Record]:
        """Yield all records kept so far, by earlier attempts and this one, one at a time."""

    def save(self, records: list[Record]) -> None:
        """Keep new records; when it returns, they outlive this process."""

    def forget(self) -> None:
        """Drop everything."""


class FileProgress:
    """Records in small files beside the output, one per call of `save`, each whole or not there.

    Object stores cannot append, so each call writes a file of its own. The folder belongs to one task instance:
    another run with the same output does not find them.

    :param output: URL of the output.
    :param context: the task's context.
    """

    lasts = True

    def __init__(self, output: str, context: Context) -> None:
        from airflow_provider_webdata.results.storage import storage_path

        self._folder: ObjectStoragePath = storage_path(f"{output}.partial/{_instance_name(context)}")
        self._parts: list[ObjectStoragePath] = []
        if self._folder.exists():
            # What a killed process was still writing has another name.
            parts = (path for path in self._folder.iterdir() if _PART.fullmatch(path.name))
            self._parts = sorted(parts, key=lambda path: path.name)
        self._number = max((int(path.name.partition("-")[0]) for path in self._parts), default=0)

    def read(self) -> Iterator[Record]:
        """Yield all records, file by file."""
        for part in self._parts:
            with part.open("rb") as file:  # type: ignore[no-untyped-call]
                for line in file:
                    yield json.loads(line)

    def save(self, records: list[Record]) -> None:
        """Write a file of records."""
        from airflow_provider_webdata.results.encoding import json_text
        from airflow_provider_webdata.results.storage import WholeFile

        self._number += 1
        # An attempt that Airflow gave up may still be writing.
        path = self._folder / f"{self._number:08d}-{secrets.token_hex(4)}.part"
        with WholeFile(path) as file:
            for record in records:
                file.write(json_text(record).encode() + b"\n")
        self._parts.append(path)

    def forget(self) -> None:
        """Remove the files and, where there are folders, the empty folders."""
        self._parts = []
        with contextlib.suppress(FileNotFoundError):
            for path in self._folder.iterdir():
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError, NotImplementedError):
            for folder in (self._folder, self._folder.parent):
                if folder.exists() and not any(folder.iterdir()):
                    folder.rmdir()


class StoreProgress:
    """Records in Airflow's task state store (3.3), for batches without output; bounded, for it is a database.

    :param store: the task state store.
    """

    def __init__(self, store: Any) -> None:
        self.lasts = True
        self._store = store
        self._records: list[Record] = []
        index = store.get(_STORE_KEY)
        given = index if isinstance(index, dict) else {}
        self._parts: int = given.get("parts", 0)
        self._bytes: int = given.get("bytes", 0)
        for number in range(self._parts):
            self._records += json.loads(store.get(f"{_STORE_KEY}_{number}") or "[]")

    def read(self) -> Iterator[Record]:
        """Yield all records."""
        yield from self._records

    def save(self, records: list[Record]) -> None:
        """Put records into the store, while there is room."""
        self._records += records
        # As text: what a page holds (half a surrogate pair, say) need not be what the store can carry.
        text = json.dumps(records)
        if not self.lasts or self._bytes + len(text) > MOST_STORED_BYTES:
            if self.lasts:
                log.warning(
                    "The results exceed %d MiB, the most that is kept in the task state store. A retry would search "
                    "again for what comes from here on; set output= to keep all of them",
                    MOST_STORED_BYTES // 2**20,
                )
            self.lasts = False
            return
        self._store.set(f"{_STORE_KEY}_{self._parts}", text)
        self._parts += 1
        self._bytes += len(text)
        # Last, so that a part that was not written whole does not count.
        self._store.set(_STORE_KEY, {"parts": self._parts, "bytes": self._bytes})

    def forget(self) -> None:
        """Delete everything from the store."""
        if self._parts:
            self._store.delete(_STORE_KEY)
        for number in range(self._parts):
            self._store.delete(f"{_STORE_KEY}_{number}")
        self._parts = self._bytes = 0
        self._records = []


class MemoryProgress:
    """Records of this attempt only: for Airflow 3.2, which has no task state store, and batches without output."""

    lasts = False

    def __init__(self) -> None:
        self._records: list[Record] = []

    def read(self) -> Iterator[Record]:
        """Yield all records."""
        yield from self._records

    def save(self, records: list[Record]) -> None:
        """Hold records."""
        self._records += records

    def forget(self) -> None:
        """Drop everything."""
        self._records = []


def progress_of(output: str | None, context: Context) -> Progress:
    """Return where the records of a task are kept.

    :param output: URL of the output, if there is one.
    :raises OutputError: the output's storage cannot be used here.
    """
    if output is not None:
        return FileProgress(output, context)
    store = context.get("task_state_store")
    return MemoryProgress() if store is None else StoreProgress(store)


def _instance_name(context: Context) -> str:
    ti: Any = context.get("ti")
    parts = [getattr(ti, name, None) for name in ("dag_id", "run_id", "task_id", "map_index")]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
