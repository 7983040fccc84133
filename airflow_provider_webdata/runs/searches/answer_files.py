# SPDX-License-Identifier: Apache-2.0
"""The answers of a batch's searches, each in a file beside the output from its receipt on, and what they cost."""

from __future__ import annotations

import secrets
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.numbers import known_credits
from airflow_provider_webdata.common.stored_record import Credits  # noqa: TC001 - msgspec reads it
from airflow_provider_webdata.hooks.task_memory import memory_of
from airflow_provider_webdata.runs.billed_response import ResponseFolder, digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow.sdk import Context

    from airflow_provider_webdata.hooks.ledger import Ledger
    from airflow_provider_webdata.runs.searches.batch_queries import BatchQuery

Answer = dict[str, Any]
"""A file's content: an `_Answer`, or an `_AmbiguousCall`."""

OPERATION = "batch_search"

_SUFFIX = ".search.json"
_AMBIGUOUS_SUFFIX = ".ambiguous.json"
_READS = 8


class _Answer(TypedDict):
    """The answer of a search.

    :param attempt: the attempt that was billed for it: its round and its number.
    :param reserved: its highest price, which counts if its cost is unknown.
    :param results: its result items by source.
    """

    query: str
    attempt: str
    reserved: Credits
    creditsUsed: Credits | None
    results: dict[Any, list[dict[Any, Any]]]


class _AmbiguousCall(TypedDict):
    """A search without a response, which may have been billed.

    :param ambiguous: the error.
    """

    query: str
    attempt: str
    reserved: Credits
    ambiguous: str


@dataclass(frozen=True)
class _Cost:
    attempt: str
    used: float | None
    reserved: float


def answer_of(wire: Mapping[str, Any]) -> Answer:
    """Return the part of a response that is stored.

    :param wire: the response in wire form.
    """
    return {
        "creditsUsed": known_credits(wire.get("creditsUsed")),
        "results": {
            source: [item if isinstance(item, dict) else {"value": item} for item in found]
            for source, found in (wire.get("data") or {}).items()
            if found and isinstance(found, list)
        },
    }


class AnswerFiles:
    """The answers of a task instance's searches, of all its attempts until it succeeds.

    A file's name is a digest of the request and the account. The files also say what the searches cost, which `report`
    enters in the ledger: what a killed attempt did not enter, the next one does.

    :param output: path or URL of the output.
    :param account: name of the billed account. Answers of another account are not reused.
    """

    def __init__(self, output: str, context: Context, account: str, ledger: Ledger) -> None:
        attempt = Attempt(context)
        self._folder = ResponseFolder(output, attempt)
        self._account = account
        self._attempt = f"{memory_of(context).record.round}/{attempt.number}"
        self._ledger = ledger
        self._costs: dict[str, _Cost] = {}
        self.delete = self._folder.delete

    def earlier(self, queries: Mapping[str, BatchQuery]) -> Iterator[tuple[str, Answer]]:
        """Read the files of earlier attempts, and yield the key and the content of those of the given queries.

        :param queries: the queries by key.
        """
        keys = {self._digest(key): key for key in queries}
        names = [name for name in self._folder.names() if name.endswith((_SUFFIX, _AMBIGUOUS_SUFFIX))]
        for name, answer in self._read(names):
            self._costs[name] = self._cost(answer)
            if (key := keys.get(name.partition(".")[0])) is not None:
                yield key, answer

    def save(self, query: BatchQuery, answer: Answer, reserved: float) -> None:
        """Write the file of a search, durable once this returns. May be called in several threads.

        :param answer: of `answer_of`, or with the error of a call of unknown outcome as `ambiguous`.
        :param reserved: the highest price of the search.
        """
        answer = {**answer, "query": query.text, "attempt": self._attempt, "reserved": reserved}
        name = self._digest(query.key)
        # A search is answered once, but each of its calls may have been billed.
        name += f".{secrets.token_hex(4)}{_AMBIGUOUS_SUFFIX}" if "ambiguous" in answer else _SUFFIX
        self._folder.write(name, answer)
        self._costs[name] = self._cost(answer)

    def results(self, queries: Iterable[BatchQuery]) -> Iterator[tuple[BatchQuery, str, Any]]:
        """Yield the result items of answered queries, in order, each with its query and its source."""
        by_name = {f"{self._digest(query.key)}{_SUFFIX}": query for query in queries}
        names = [name for name in by_name if name in self._costs]
        for name, answer in self._read(names):
            for source, found in answer["results"].items():
                for item in found:
                    yield by_name[name], source, item

    def report(self) -> None:
        """Enter in the ledger what the files cost. Entering it again, also by a later attempt, changes nothing."""
        for name in dict.fromkeys(cost.attempt for cost in self._costs.values()):
            costs = [cost for cost in self._costs.values() if cost.attempt == name]
            used = sum(cost.used for cost in costs if cost.used is not None)
            unknown = [cost.reserved for cost in costs if cost.used is None]
            if used:
                self._ledger.settle("", used, OPERATION, call=name)
            if unknown:
                call = f"{name}/unknown"
                self._ledger.settle(
                    "", None, OPERATION, call=call, unknown=len(unknown), reserved=sum(unknown)
                )

    def _cost(self, answer: Answer) -> _Cost:
        return _Cost(answer["attempt"], self._ledger.cost(answer.get("creditsUsed")), answer["reserved"])

    def _digest(self, key: str) -> str:
        return digest_of(key, self._account)

    def _read(self, names: Iterable[str]) -> Iterator[tuple[str, Answer]]:
        """Read files in order, a few of them ahead."""
        with ThreadPoolExecutor(_READS, thread_name_prefix="webdata-answers") as threads:
            ahead: deque[tuple[str, Any]] = deque()
            for name in names:
                kind = _Answer if name.endswith(_SUFFIX) else _AmbiguousCall
                ahead.append((name, threads.submit(self._folder.read, name, kind)))
                if len(ahead) == _READS:
                    name, read = ahead.popleft()
                    yield name, read.result()
            for name, read in ahead:
                yield name, read.result()
