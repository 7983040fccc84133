"""The answer of a billed call that could not be delivered, kept for the task's next attempt."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.runs.kept_records import FileRecords, StoreRecords

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context

    from airflow_provider_webdata.runs.kept_records import KeptRecords


class KeptAnswer:
    """The answer of a task's one call.

    It is kept in Airflow's task state store (3.3) if it fits there, else beside the output.

    :param request: the request, as JSON: an answer is found again for an equal request only.
    :param account: name of the account that the call is billed to; that of another one is not found.
    :param output: URL of the task's output, if there is one.
    :ivar answer: in wire form, once there is one.
    :ivar is_earlier: whether an earlier attempt was billed for the answer.
    """

    def __init__(self, request: Any, account: str, output: str | None, context: Context, log: Any) -> None:
        self._key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
        self._log = log
        self.answer: dict[str, Any] | None = None
        attempt = Attempt(context)
        self._is_first_attempt = attempt.number == 1
        self._places: list[Callable[[], KeptRecords]] = []
        if (store := attempt.store) is not None:
            self._places.append(lambda: StoreRecords(store, account))
        if output is not None:
            self._places.append(lambda: FileRecords(output, context, account))
        self.is_earlier = False
        self.name = f"{self._key[:16]}/{account}/{attempt.max_tries}"
        """Names the call, for all attempts until the task is cleared."""

    def or_call(self, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the answer that an earlier attempt kept, else that of the call.

        :param call: makes the call, and returns its answer in wire form.
        """
        self.answer = None if self._is_first_attempt else self._kept()
        self.is_earlier = self.answer is not None
        if self.answer is None:
            self.answer = call()
        else:
            self._log.info(
                "An earlier attempt got the answer and could not deliver it; it is not paid for again"
            )
        # Who delivers it may take it apart.
        return dict(self.answer)

    def _kept(self) -> dict[str, Any] | None:
        records = (record for place in self._places for record in place().read())
        return next((record["answer"] for record in records if record["key"] == self._key), None)

    def keep(self) -> bool:
        """Keep the answer, and return whether the next attempt finds it."""
        if self.is_earlier:
            return True
        for place in self._places:
            try:
                records = place()
                records.save([{"key": self._key, "answer": self.answer}])
            except Exception as error:  # noqa: BLE001 - storages raise any error, and another storage may work
                self._log.warning("The answer cannot be kept for a retry: %s", error)
                continue
            if records.lasts:
                self._log.info(
                    "The answer is kept: the next attempt delivers it, and does not pay for it again"
                )
                return True
        return False

    def delivered(self) -> None:
        """Drop what earlier attempts kept."""
        if self._is_first_attempt:
            return
        try:
            for place in self._places:
                place().forget()
        except Exception as error:  # noqa: BLE001 - the result is delivered despite any storage error
            self._log.warning("What an earlier attempt kept could not be deleted: %s", error)
