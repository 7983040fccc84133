"""Billed responses, stored for reuse by later attempts of the task."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
import secrets
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta
from typing_extensions import Required, TypedDict

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.common.stored_record import Count, Credits, damage_of
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.files.storage import WholeFile, storage_errors, storage_path
from airflow_provider_webdata.runs.failures import UnpublishedResponseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.sdk import Context, ObjectStoragePath

log = logging.getLogger(__name__)

Record = dict[str, Any]
"""A JSON object with the key `key`."""


class _Fields(TypedDict, total=False):
    key: Required[str]
    id: str
    answer: dict[Any, Any]
    skipped: Count
    query: str
    account: str
    creditsUsed: Credits | None
    ambiguous: str
    results: dict[Any, list[dict[Any, Any]]]


class _Index(TypedDict):
    values: Annotated[int, Meta(ge=0)]
    bytes: int


MAX_STORED_BYTES = 16 * 2**20
"""Maximum JSON in Airflow's task state store, which is the metadata database."""

_STORE_KEY = "webdata_paid"
# Airflow warns of values above 65,535 bytes of JSON, in which each character may have two.
_VALUE_BYTES = 2**15 - 2
_MAX_VALUES = 10**4
_PART = re.compile(r"\d{8}-[0-9a-f]{8}\.part")


class FileRecords:
    """Records in small files beside the output, one per call of `save`, each complete or absent.

    Object stores cannot append, so each call writes a separate file. The folder belongs to one task instance: another
    run with the same output does not read it.

    :param output: URL of the output.
    :param account: name of the billed account, see `ClientConfig.account`; records of another account are not read.
    :raises OutputError: the output's storage is unavailable on this worker.
    """

    lasts = True
    """True if a later attempt can read all saved records."""

    def __init__(self, output: str, context: Context, account: str | None = None) -> None:
        self._account = account
        instance = json.dumps(Attempt(context).instance)
        name = hashlib.sha256(instance.encode()).hexdigest()[:16]
        self._folder: ObjectStoragePath = storage_path(f"{output}.partial/{name}")
        self.place = str(self._folder)
        self._parts: list[ObjectStoragePath] = []
        with storage_errors(str(self._folder), "read"):
            if self._folder.exists():
                # The partial file of a killed process has another name.
                parts = (path for path in self._folder.iterdir() if _PART.fullmatch(path.name))
                self._parts = sorted(parts, key=lambda path: path.name)
        self._number = max((int(path.name.partition("-")[0]) for path in self._parts), default=0)

    def read(self) -> Iterator[Record]:
        """Yield the records of all attempts, one at a time."""
        for part in self._parts:
            with storage_errors(str(part), "read"), part.open("rb") as file:  # type: ignore[no-untyped-call]
                line = None
                for line in file:
                    if (record := _read(line, str(part))).pop("account", None) == self._account:
                        yield record
                if line is None:
                    raise damaged(str(part), "it is empty")

    def save(self, records: list[Record]) -> None:
        """Write a file of records, durable once this returns."""
        self._number += 1
        # An attempt that Airflow abandoned may still be writing.
        path = self._folder / f"{self._number:08d}-{secrets.token_hex(4)}.part"
        with WholeFile(path) as file:
            for record in _named(records, self._account):
                file.write(json_text(record).encode() + b"\n")
        self._parts.append(path)

    def forget(self) -> None:
        """Remove the files and, on a file system, the empty folders."""
        self._parts = []
        with contextlib.suppress(FileNotFoundError):
            # In one request, where the storage can.
            self._folder.fs.rm(self._folder.path, recursive=True)
        with contextlib.suppress(OSError, NotImplementedError):
            if self._folder.parent.exists() and not any(self._folder.parent.iterdir()):
                self._folder.parent.rmdir()


class StoreRecords:
    """Records in Airflow's task state store (3.3), as JSON Lines; both each value and the total are bounded.

    :param store: the task state store. If None, as on Airflow 3.2, the records end with this attempt.
    :param account: as for `FileRecords`.
    :ivar lasts: True if a later attempt can read all saved records.
    """

    def __init__(self, store: Any, account: str | None = None) -> None:
        self._account = account
        self.lasts = store is not None
        self._store = store
        index = None if store is None else store.get(_STORE_KEY)
        if index is None:
            index = {"values": 0, "bytes": 0}
        self.place = place = f"the keys {_STORE_KEY}* of the task state store"
        if damage := damage_of(index, _Index):
            raise damaged(place, damage)
        self._values, self._bytes = index["values"], index["bytes"]
        parts = [store.get(f"{_STORE_KEY}_{number}") for number in range(min(self._values, _MAX_VALUES))]
        if damage := damage_of(parts, list[str]):
            raise damaged(place, damage)
        text = "".join(parts)
        kept = [_read(line, place) for line in text.splitlines()]
        self._records = [record for record in kept if record.pop("account", None) == account]
        if len(text) != self._bytes:
            raise damaged(place, f"{len(text)} characters in place of {self._bytes}")

    def read(self) -> Iterator[Record]:
        """Yield all records."""
        yield from self._records

    def save(self, records: list[Record]) -> None:
        """Add records to the store until it reaches its limit."""
        self._records += records
        # ASCII only: a page may contain characters that the store cannot encode, such as a lone surrogate.
        text = "".join(f"{json.dumps(record)}\n" for record in _named(records, self._account))
        if not self.lasts or self._bytes + len(text) > MAX_STORED_BYTES:
            if self.lasts:
                log.warning(
                    "The results exceed %d MiB, the limit in the task state store. A retry would be billed again for "
                    "all further results; set save_to= to store all of them",
                    MAX_STORED_BYTES // 2**20,
                )
            self.lasts = False
            return
        for begin in range(0, len(text), _VALUE_BYTES):
            self._store.set(f"{_STORE_KEY}_{self._values}", text[begin : begin + _VALUE_BYTES])
            self._values += 1
        self._bytes += len(text)
        # Written last, so that an incomplete write is ignored.
        self._store.set(_STORE_KEY, {"values": self._values, "bytes": self._bytes})

    def forget(self) -> None:
        """Delete everything from the store."""
        if self._values:
            self._store.delete(_STORE_KEY)
        for number in range(self._values):
            self._store.delete(f"{_STORE_KEY}_{number}")
        self._values = self._bytes = 0
        self._records = []


PaidRecords = FileRecords | StoreRecords
"""Storage for records across the attempts of a task."""


def records_of(output: str | None, context: Context, account: str | None = None) -> PaidRecords:
    """Return the record storage of a task: beside its output, or in the task state store if available.

    :param output: URL of the output, if any.
    :raises OutputError: the output's storage is unavailable on this worker.
    """
    if output is not None:
        return FileRecords(output, context, account)
    return StoreRecords(Attempt(context).store, account)


def _named(records: list[Record], account: str | None) -> list[Record]:
    return records if account is None else [{**record, "account": account} for record in records]


def _read(line: str | bytes, place: str) -> Record:
    try:
        # Not msgspec's decoder, which rejects lone surrogates.
        record: Record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise damaged(place, f"{type(error).__name__}: {brief(error)}") from None
    damage = damage_of(record, _Fields)
    if (
        not damage
        and "answer" not in record
        and not ("query" in record and record.keys() & {"ambiguous", "results"})
    ):
        damage = "it has no response"
    if damage:
        raise damaged(place, damage)
    return record


def damaged(place: str, damage: str) -> UnpublishedResponseError:
    """Return the error for a stored response that cannot be read."""
    return UnpublishedResponseError(
        f"The stored response of an earlier attempt is damaged, in {place} ({damage}). To repeat the call, which is "
        "billed again, delete the stored response and clear the task"
    )
