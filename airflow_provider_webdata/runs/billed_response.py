# SPDX-License-Identifier: Apache-2.0
"""Billed responses, stored on receipt for the task's next attempts until Airflow has stored the result."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from typing_extensions import TypedDict

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.common.stored_record import Count, damage_of
from airflow_provider_webdata.hooks.environment import shared_identity
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.files.storage import WholeFile, storage_errors, storage_path
from airflow_provider_webdata.runs.failures import UnpublishedResponseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context, ObjectStoragePath

    from airflow_provider_webdata.api.models.base import Answer

MAX_STORED_BYTES = 64_000
"""Maximum size of a value in Airflow's task state store, which warns above 65,535."""

_STORE_KEY = "webdata_paid"
_NAME_LENGTH = 50


class _Response(TypedDict):
    """A stored response.

    :param key: digest of the request and the account.
    :param id: id of the call.
    """

    key: str
    id: str
    answer: dict[Any, Any]
    skipped: Count


def digest_of(*parts: Any) -> str:
    """Return the name of a stored response: a digest of the request, the account, and other JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


class ResponseFolder:
    """A task instance's stored responses, beside its output: a file each, complete or absent.

    Readers of the output's folder skip it, because its name begins with `_`.

    :param output: path or URL of the output.
    :raises OutputError: the output's storage is unavailable on this worker.
    """

    def __init__(self, output: str, attempt: Attempt) -> None:
        name = output.rpartition("/")[2]
        instance = hashlib.sha256(json.dumps(shared_identity(attempt)).encode()).hexdigest()[:16]
        url = f"{output.removesuffix(name)}_{name[:_NAME_LENGTH]}.partial/{instance}"
        self._folder: ObjectStoragePath = storage_path(url)

    def path_of(self, name: str) -> str:
        """Return the path of a file."""
        return str(self._folder / name)

    def names(self) -> list[str]:
        """Return the names of the files; none if the folder does not exist.

        :raises StorageError: the folder cannot be listed.
        """
        fs = self._folder.fs
        # Some storages cache listings, which would hide the file of an earlier attempt.
        fs.invalidate_cache()
        with contextlib.suppress(FileNotFoundError), storage_errors(str(self._folder), "read"):
            return sorted(str(path).rpartition("/")[2] for path in fs.ls(self._folder.path, detail=False))
        return []

    def read(self, name: str, kind: Any) -> dict[str, Any]:
        """Return the content of a file.

        :param kind: its type.
        :raises FileNotFoundError: there is no such file.
        :raises StorageError: it cannot be read.
        :raises UnpublishedResponseError: it is damaged.
        """
        with storage_errors(where := self.path_of(name), "read"):
            text = (self._folder / name).read_bytes()
        return _parsed(text, kind, where)

    def write(self, name: str, value: Any) -> None:
        """Write a file, durable once this returns.

        :raises StorageError: it cannot be written.
        """
        with WholeFile(self._folder / name) as file:
            file.write(json_text(value).encode())

    def delete(self) -> None:
        """Delete the files and, on a file system, the empty folders."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            # In one request, where the storage can.
            self._folder.fs.rm(self._folder.path, recursive=True)
        with contextlib.suppress(OSError, NotImplementedError):
            if self._folder.parent.exists() and not any(self._folder.parent.iterdir()):
                self._folder.parent.rmdir()


class _File:
    """The response of a task's only call, in a folder beside its output."""

    def __init__(self, output: str, attempt: Attempt, key: str) -> None:
        self._folder = ResponseFolder(output, attempt)
        self._name = f"{key}.response.json"
        self.where = self._folder.path_of(self._name)

    def read(self) -> dict[str, Any] | None:
        with contextlib.suppress(FileNotFoundError):
            return self._folder.read(self._name, _Response)
        return None

    def write(self, response: dict[str, Any]) -> bool:
        self._folder.write(self._name, response)
        return True

    def delete(self) -> None:
        self._folder.delete()


class _StoredValue:
    """The response of a task's only call, in Airflow's task state store (3.3)."""

    where = f"the key {_STORE_KEY} of the task state store"

    def __init__(self, store: Any, key: str) -> None:
        self._store = store
        self._key = key

    def read(self) -> dict[str, Any] | None:
        if (text := self._store.get(_STORE_KEY)) is None:
            return None
        response = _parsed(text, _Response, self.where)
        return response if response["key"] == self._key else None

    def write(self, response: dict[str, Any]) -> bool:
        # As text: the store cannot encode each character that a page may contain.
        text = json_text(response)
        if len(json.dumps(text)) > MAX_STORED_BYTES:
            return False
        self._store.set(_STORE_KEY, text)
        return True

    def delete(self) -> None:
        self._store.delete(_STORE_KEY)


class BilledResponse:
    """The response of a task's only call.

    It is stored in Airflow's task state store (3.3) if it has at most `MAX_STORED_BYTES` there, otherwise beside the
    output.

    :param request: the request, as JSON. A stored response is reused only for an equal request.
    :param model: model of the response.
    :param account: name of the billed account. A response of another account is not reused.
    :param output: path or URL of the task's output, if any.
    :ivar answer: the response, once received.
    :ivar is_earlier: True if an earlier attempt was billed for the response.
    """

    def __init__(
        self,
        request: Any,
        model: type[Answer],
        account: str,
        output: str | None,
        context: Context,
        log: Any,
    ) -> None:
        self._model = model
        self._log = log
        self._key = key = digest_of(request, account)
        attempt = Attempt(context)
        self._is_first_attempt = attempt.number == 1
        self._places: list[Callable[[], _File | _StoredValue]] = []
        if (store := attempt.store) is not None:
            self._places.append(lambda: _StoredValue(store, key))
        if output is not None:
            self._places.append(lambda: _File(output, attempt, key))
        self._written: _File | _StoredValue | None = None
        self.answer: Answer | None = None
        self.is_earlier = False
        self.call_id = secrets.token_hex(8)
        """Id of the call that received the response, for all attempts that publish it."""

    @property
    def is_stored(self) -> bool:
        """Whether the next attempt can read the response."""
        return self.is_earlier or self._written is not None

    def or_call(self, call: Callable[[], Answer]) -> Answer:
        """Return the response that an earlier attempt stored; otherwise make the call, and store its response."""
        answer = None if self._is_first_attempt else self._stored()
        self.is_earlier = answer is not None
        if answer is None:
            # Before it is stored: Airflow's timeout may interrupt that.
            self.answer = answer = call()
            self._store(answer)
        else:
            self._log.info("Reusing the response that an earlier attempt received; it is not billed again")
            self.answer = answer
        return answer

    def delete(self) -> None:
        """Delete the stored response."""
        self.answer = None
        # Of another request, an earlier attempt may have stored a response.
        written = () if self._written is None else (self._written,)
        for place in written if self._is_first_attempt else [place() for place in self._places]:
            place.delete()

    def _stored(self) -> Answer | None:
        for place in (open_place() for open_place in self._places):
            if (response := place.read()) is None:
                continue
            try:
                answer = self._model.model_validate(response["answer"])
            except ValidationError as error:
                raise _damaged(place.where, f"{error.error_count()} fields are invalid") from None
            answer._skipped = response["skipped"]
            self.call_id = response["id"]
            return answer
        return None

    def _store(self, answer: Answer) -> None:
        wire = answer.to_wire()
        response = {"key": self._key, "id": self.call_id, "answer": wire, "skipped": answer.skipped}
        found = (place for open_place in self._places if (place := self._written_to(open_place, response)))
        self._written = next(found, None)

    def _written_to(
        self, open_place: Callable[[], _File | _StoredValue], response: dict[str, Any]
    ) -> _File | _StoredValue | None:
        try:
            place = open_place()
            return place if place.write(response) else None
        except Exception as error:  # noqa: BLE001 - storages raise any error, and another one may work
            self._log.warning("Failed to store the response for a retry: %s", brief(error))
            return None


def _parsed(text: Any, kind: Any, place: str) -> dict[str, Any]:
    """Return a stored response.

    :param kind: its type.
    :raises UnpublishedResponseError: it is damaged.
    """
    try:
        # Not msgspec's decoder, which rejects lone surrogates.
        value: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise _damaged(place, f"{type(error).__name__}: {brief(error)}") from None
    if damage := damage_of(value, kind):
        raise _damaged(place, damage)
    return value


def _damaged(place: str, damage: str) -> UnpublishedResponseError:
    return UnpublishedResponseError(
        f"The stored response of an earlier attempt is damaged, in {place} ({damage}). To repeat the call, which is "
        "billed again, delete the stored response and clear the task"
    )
