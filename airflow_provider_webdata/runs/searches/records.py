"""The stored outcomes of a batch's searches: JSON objects, and the result items in them.

A completed search has `key`, `query`, `id`, `creditsUsed`, `warning`, and `results`, the items by source. When it is
published, it also has `labels`, the fields that tell the searches of a batch apart, such as `country`. A search
without a response, which may have been billed, has `key`, `query`, `creditsUsed` (the reservation), and `ambiguous`
(the error).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.numbers import known_credits
from airflow_provider_webdata.results.tagged_items import tagged, untagged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_webdata.runs.money.paid_records import Record
    from airflow_provider_webdata.runs.searches.batch_queries import BatchQuery


def answer_record(query: BatchQuery, answer: dict[str, Any]) -> Record:
    """Return the record of a completed search.

    :param answer: the response in wire form.
    """
    return {
        "key": query.key,
        "query": query.text,
        "id": answer.get("id"),
        "creditsUsed": known_credits(answer.get("creditsUsed")),
        "warning": answer.get("warning"),
        "results": {
            source: [item if isinstance(item, dict) else {"value": item} for item in found]
            for source, found in (answer.get("data") or {}).items()
            if found and isinstance(found, list)
        },
    }


def ambiguous_record(query: BatchQuery, error: str, reserved: float) -> Record:
    """Return the record of a search that may have been billed."""
    return {"key": query.key, "query": query.text, "creditsUsed": reserved, "ambiguous": error}


def answered(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records of completed searches, each search once, oldest first."""
    seen: set[str] = set()
    for record in records:
        if "ambiguous" not in record and record["key"] not in seen:
            seen.add(record["key"])
            yield record


def items_of(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Yield the records' result items, each tagged with its query, its source, and its labels."""
    for record in records:
        for source, found in record.get("results", {}).items():
            for item in found:
                yield tagged(item, query=record["query"], source=source, **record.get("labels", {}))


def with_items(record: Record, items: Iterator[dict[str, Any] | None]) -> Record:
    """Return a record with its result items replaced.

    :param items: the new items, in the order of `items_of`; consumes one per item of the record. None drops an item.
    """
    if "results" not in record:
        return record
    tags = ("query", "source", *record.get("labels", ()))
    results = {
        source: [untagged(item, *tags) for _ in found if (item := next(items)) is not None]
        for source, found in record["results"].items()
    }
    return {**record, "results": results}


def by_search(records: Iterable[Record], items: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """Return the XCom form of each record, from items in the order of `items_of`."""
    rest = iter(items)
    names = ("query", "id", "creditsUsed", "warning")
    return [
        {
            **{name: record.get(name) for name in names},
            **record.get("labels", {}),
            **with_items(record, rest)["results"],
        }
        for record in records
    ]
