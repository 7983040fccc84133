"""A step of a delivery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_webdata.results.columns import Column


@dataclass(frozen=True)
class Results:
    """What a call or a job returned.

    :param items: JSON objects as the service sent them; they may come page by page.
    :param kind: of the items, see `results.columns.columns_of`.
    :param summary: facts with wire names (`id`, `creditsUsed`, ...); read after the last item, so that it may be filled
        meanwhile.
    :param inputs: the query or the URLs, for OpenLineage.
    :param known: keys of pages that exist and were not requested.
    :param covers_all: whether a call that returned so many results saw everything.
    :param media_kept: the links of media were replaced before.
    :param columns: of a table of the items. Default: those of the kind.
    :param key: returns what identifies an item in all runs. Default: its URL.
    """

    items: Iterable[Any]
    kind: str
    summary: Mapping[str, Any]
    inputs: Sequence[str] = ()
    known: Sequence[str] = ()
    covers_all: Callable[[int], bool] = lambda count: True  # noqa: ARG005
    media_kept: bool = False
    columns: tuple[Column, ...] | None = None
    key: Callable[[Mapping[str, Any]], str | None] | None = None


class Step:
    """Base of the steps; each method does nothing."""

    def prepare(self) -> None:
        """Fail before anything is billed.

        :raises OutputError: the step cannot work.
        """

    def columns(self, columns: tuple[Column, ...], kind: str) -> tuple[Column, ...]:  # noqa: ARG002
        """Return the columns of a table of the items.

        :param columns: so far.
        :param kind: of the items.
        """
        return columns

    def items(self, items: Iterable[Any], results: Results) -> Iterator[Any]:  # noqa: ARG002
        """Yield the items, transformed."""
        yield from items

    def facts(self) -> Mapping[str, Any]:
        """Return what XCom says about the items, after the last one."""
        return {}

    def written(self) -> None:
        """Finish, after all items are written."""

    def verdict(self) -> None:
        """Fail or skip the task, after its results are delivered.

        :raises CodedError: the results cannot be accepted.
        :raises AirflowSkipException: nothing changed.
        """
