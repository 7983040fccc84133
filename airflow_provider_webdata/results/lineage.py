# SPDX-License-Identifier: Apache-2.0
"""OpenLineage metadata of a task's inputs and outputs, if that provider is installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from airflow_provider_webdata.assets.uri import dataset, monitor_uri
from airflow_provider_webdata.common.page_urls import page_url, shown_id, shown_monitor
from airflow_provider_webdata.common.url_secrets import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_provider_webdata.results.columns import Column

_MAX_INPUTS = 100
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "": "file", "local": "file"}


class Assertion(NamedTuple):
    """A condition on results, and its outcome.

    :param condition: such as `coverage`.
    :param field: path of the values; None: the condition covers all results.
    """

    condition: str
    field: str | None
    expected: str
    actual: str
    passed: bool

    @property
    def name(self) -> str:
        """Name of the condition with its field."""
        return self.condition if self.field is None else f"{self.condition} {self.field}"


@dataclass(frozen=True)
class Measurements:
    """The number of a file's items, the number of values by field, and the conditions."""

    items: int
    filled: Mapping[str, int]
    assertions: Sequence[Assertion]


@dataclass(frozen=True)
class WrittenFile:
    """A file that a task wrote; it has columns if it contains rows, and measurements if its items were measured."""

    url: str
    count: int
    bytes: int
    columns: tuple[Column, ...] = ()
    quality: Measurements | None = None


def dataset_of_file(url: str) -> tuple[str, str]:
    """Return a file's namespace and name in OpenLineage's naming.

    `s3://bucket` and the key; `gs://bucket` and the object; `abfss://container@account...` and the path; `file` and
    the absolute path. A connection id in the URL is removed.
    """
    parts = urlsplit(url)
    scheme = _SAME_STORE.get(parts.scheme, parts.scheme)
    if scheme == "file":
        path = parts.path if parts.scheme else url
        return "file", str(Path(path).absolute())
    userinfo, _, host = parts.netloc.rpartition("@")
    # abfss keeps `container@account`; in other schemes, the part before @ is a connection id.
    keep_user = scheme in {"abfss", "wasbs"} and "." in host
    return f"{scheme}://{parts.netloc if keep_user and userinfo else host}", parts.path.lstrip("/")


def dataset_of_input(given: str, conn_id: str) -> tuple[str, str]:
    """Return the namespace and name of a task's input.

    For a URL: its origin, and its path with the query, without secrets. Any other text is a query to the service:
    `webdata://` with the connection's id, and the text.
    """
    given = without_secrets(given)
    try:
        parts = urlsplit(given)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme in {"http", "https"} and parts.hostname:
        port = parts.netloc.rpartition("@")[2]
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return f"{parts.scheme}://{port}", path
    return f"webdata://{conn_id}", given


def operator_lineage(
    inputs: Iterable[str], written: WrittenFile | None, conn_id: str, page: str = "", job_id: str = ""
) -> Any | None:
    """Return the lineage of a task, or None if the OpenLineage provider is not installed.

    :param inputs: query or URLs; the first 100 are included.
    :param page: path of the page that shows the task's job, monitor, check, or delivery, if any. The facet
        `externalQuery` links to it, and a monitor is an input.
    :param job_id: id of the task's job, if any.
    """
    read = [dataset_of_input(given, conn_id) for given in [*inputs][:_MAX_INPUTS]]
    if monitor := shown_monitor(page):
        read.append(dataset(monitor_uri(monitor, conn_id)))
    if written is None:
        return _lineage(read, None, page, job_id)
    columns = {column.name: column.type for column in written.columns}
    output = dataset_of_file(written.url), written.count, written.bytes, columns
    return _lineage(read, output, page, job_id, written.quality)


def load_lineage(
    files: Iterable[str], table: tuple[str, str], rows: int, columns: Mapping[str, str]
) -> Any | None:
    """Return the lineage of a load into a table, or None if the OpenLineage provider is not installed.

    :param files: paths or URLs of the files.
    :param table: namespace and name of the table.
    :param rows: number of rows from the files.
    :param columns: column types by name.
    """
    return _lineage(map(dataset_of_file, files), (table, rows, None, columns))


def _lineage(
    read: Iterable[tuple[str, str]],
    written: tuple[tuple[str, str], int, int | None, Mapping[str, str]] | None,
    page: str = "",
    job_id: str = "",
    quality: Measurements | None = None,
) -> Any | None:
    """Return a lineage.

    :param written: the output, its rows, its bytes, and its column types.
    :param quality: quality of the output, which is then also an input: OpenLineage attaches them only to inputs.
    """
    try:
        from airflow.providers.openlineage.extractors import OperatorLineage
        from openlineage.client.event_v2 import InputDataset, OutputDataset
        from openlineage.client.facet_v2 import (
            data_quality_assertions_dataset,
            data_quality_metrics_input_dataset,
            external_query_run,
            output_statistics_output_dataset,
            schema_dataset,
        )
    except ImportError:
        return None

    inputs = [InputDataset(*named) for named in dict.fromkeys(read)]
    outputs = []
    if written is not None:
        named, rows, size, columns = written
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=rows, size=size
        )
        fields = [
            schema_dataset.SchemaDatasetFacetFields(name=name, type=type_) for name, type_ in columns.items()
        ]
        outputs = [
            OutputDataset(
                *named,
                facets={"schema": schema_dataset.SchemaDatasetFacet(fields=fields)} if fields else {},
                outputFacets={"outputStatistics": statistics},
            )
        ]
        if quality is not None:
            metrics = data_quality_metrics_input_dataset
            counts = {
                field: metrics.ColumnMetrics(count=filled, nullCount=quality.items - filled)
                for field, filled in quality.filled.items()
            }
            checks = data_quality_assertions_dataset
            assertions = [
                checks.Assertion(assertion=found.condition, success=found.passed, column=found.field)
                for found in quality.assertions
            ]
            facets = {
                "dataQualityMetrics": metrics.DataQualityMetricsInputDatasetFacet(
                    counts, rowCount=quality.items
                ),
                "dataQualityAssertions": checks.DataQualityAssertionsDatasetFacet(assertions),
            }
            inputs.append(InputDataset(*named, inputFacets=facets))
    run_facets = {}
    if page and (url := page_url(page)):
        run_facets["externalQuery"] = external_query_run.ExternalQueryRunFacet(
            externalQueryId=job_id or shown_id(page), source=url
        )
    return OperatorLineage(inputs=inputs, outputs=outputs, run_facets=run_facets)
