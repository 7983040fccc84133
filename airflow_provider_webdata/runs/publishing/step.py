# SPDX-License-Identifier: Apache-2.0
"""A step of a publication."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from airflow_provider_webdata.results.columns import Column
    from airflow_provider_webdata.results.lineage import Measurements
    from airflow_provider_webdata.runs.failures import RejectedResultsError
    from airflow_provider_webdata.runs.publishing.page_errors import PageErrors
    from airflow_provider_webdata.states.shortfalls import Shortfall


@dataclass(frozen=True)
class Results:
    """The results of a call or a job.

    :param items: JSON objects as the service sent them, possibly fetched page by page.
    :param kind: of the items; see `results.columns.columns_of`.
    :param summary: values with wire names (`id`, `creditsUsed`, ...); read after the last item, so iterating may fill
        it.
    :param inputs: the query or the URLs, for OpenLineage.
    :param known: number of existing pages that were not requested.
    :param site: the site whose pages a complete result covers. None: it has only the requested `inputs`.
    :param errors: the known failed pages that are not among the items, to which those among the items are added.
    :param covers_all: returns whether a call with this number of results saw everything.
    :param columns: table columns of the items. Default: those of the kind.
    :param tag_columns: table columns of the fields that steps add, which follow `columns`.
    :param key: returns the identity of an item across runs. Default: its URL.
    :param source: URL or path of an item that has no URL.
    """

    items: Iterable[Any]
    kind: str
    summary: Mapping[str, Any]
    inputs: Sequence[str] = ()
    known: int = 0
    site: str | None = None
    errors: PageErrors | None = None
    covers_all: Callable[[int], bool] = lambda count: True  # noqa: ARG005
    columns: tuple[Column, ...] | None = None
    tag_columns: tuple[Column, ...] = ()
    key: Callable[[Mapping[str, Any]], str | None] | None = None
    source: str | None = None


class Step:
    """Base class of the steps. By default, each method does nothing."""

    pushes_summary = True
    """True if the summary is also in XComs beside the return value."""

    reports_missing = False
    """True if the step itself logs that there are no results."""

    @property
    def holds_back(self) -> bool:
        """True if the step may reject results, which are then written beside the output."""
        return False

    def prepare(self) -> None:
        """Fail before any call is billed.

        :raises OutputError: an option of the step is invalid.
        """

    def transform(self, results: Results) -> Results:
        """Return the results with a stream of transformed items, and with their columns."""
        return results

    def judge(self, url: str | None) -> RejectedResultsError | None:  # noqa: ARG002
        """Return an error if the items must not replace the output, after the last one.

        :param url: URL of the output; None if the results are pushed to XCom.
        """
        return None

    def measurements(self) -> Measurements | None:
        """Return the measurements of the items, for OpenLineage, or None."""
        return None

    def summary(self) -> Mapping[str, Any]:
        """Return values about the items for XCom, after the last one."""
        return {}

    def shortfalls(self) -> Sequence[Shortfall]:
        """Return what the results lack because of this step, after the last item."""
        return ()

    def rejected(self) -> None:
        """Finish after results are rejected."""

    def written(self) -> None:
        """Finish after all items are written."""

    def verdict(self) -> None:
        """Fail or skip the task after its results are published.

        :raises CodedError: the results cannot be accepted.
        :raises AirflowSkipException: nothing changed.
        """
