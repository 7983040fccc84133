"""A billed response, stored for the task's next attempt until Airflow has stored the result."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.runs.money.paid_records import (
    MAX_STORED_BYTES,
    FileRecords,
    StoreRecords,
    damaged,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models.base import Answer
    from airflow_provider_webdata.runs.money.paid_records import PaidRecords

# Each 32 KiB takes a request to Airflow, and another one to delete them.
MAX_BYTES_ON_RECEIPT = 2**18
"""Maximum JSON of a response in the task state store of an attempt that has not failed."""


class PaidResponse:
    """The response of a task's one call.

    It is stored in Airflow's task state store (3.3) if it fits there, otherwise beside the output. A response above
    `MAX_BYTES_ON_RECEIPT` is stored there only if the attempt fails.

    :param request: the request, as JSON. A stored response is reused only for an equal request.
    :param model: model of the response.
    :param account: name of the billed account. A response of another account is not reused.
    :param output: URL of the task's output, if any.
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
        self._stored: PaidRecords | None = None
        self._key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
        self._log = log
        self.answer: Answer | None = None
        attempt = Attempt(context)
        self._is_first_attempt = attempt.number == 1
        self._places: list[Callable[[], PaidRecords]] = []
        if (store := attempt.store) is not None:
            self._places.append(lambda: StoreRecords(store, account))
        if output is not None:
            self._places.append(lambda: FileRecords(output, context, account))
        self.is_earlier = False
        self.call_id = secrets.token_hex(8)
        """Id of the call that received the response, for all attempts that publish it."""

    def or_call(self, call: Callable[[], Answer]) -> Answer:
        """Return the response that an earlier attempt stored; otherwise make the call, and store its response."""
        self.answer = None if self._is_first_attempt else self._kept()
        self.is_earlier = self.answer is not None
        if self.answer is None:
            self.answer = call()
            self._store(self.answer, MAX_BYTES_ON_RECEIPT)
        else:
            self._log.info("Reusing the response that an earlier attempt received; it is not billed again")
        return self.answer

    def _kept(self) -> Answer | None:
        stored = (
            (record, records.place)
            for records in (place() for place in self._places)
            for record in records.read()
            if record["key"] == self._key
        )
        if (found := next(stored, None)) is None:
            return None
        record, place = found
        try:
            answer = self._model.model_validate(record["answer"])
        except ValidationError as error:
            raise damaged(place, f"{error.error_count()} fields of the response are invalid") from None
        answer._skipped = record.get("skipped", 0)
        self.call_id = record.get("id", self.call_id)
        return answer

    def keep(self) -> bool:
        """Return whether the next attempt can read the response, if there is one; try again to store it."""
        if self.answer is None or self.is_earlier:
            return True
        if self._stored is None and not self._store(self.answer, MAX_STORED_BYTES):
            return False
        self._log.info("Stored the response: the next attempt publishes it without being billed again")
        return True

    def _store(self, answer: Answer, most: int) -> bool:
        record = {"key": self._key, "answer": answer.to_wire(), "skipped": answer.skipped, "id": self.call_id}
        size = len(json.dumps(record))
        for place in self._places:
            try:
                records = place()
                if isinstance(records, StoreRecords) and size > most:
                    continue
                records.save([record])
            except Exception as error:  # noqa: BLE001 - storage backends raise any error, and another backend may work
                self._log.warning("Failed to store the response for a retry: %s", brief(error))
                continue
            if records.lasts:
                self._stored = records
                return True
        return False

    def forget(self) -> None:
        """Delete the stored response."""
        self.answer = None
        if self._stored is not None:
            self._stored.forget()
        if not self._is_first_attempt:
            for place in self._places:
                place().forget()
