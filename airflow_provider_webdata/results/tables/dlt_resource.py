# SPDX-License-Identifier: Apache-2.0
"""Results files as a resource of dlt, for pipelines of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.common.extras import install_command
from airflow_provider_webdata.results.columns import VERSION
from airflow_provider_webdata.results.tables.database import Values, batches
from airflow_provider_webdata.results.tables.errors import MissingPackageError, TableError
from airflow_provider_webdata.results.tables.layout import TableName
from airflow_provider_webdata.results.tables.load import Source, Tally, values_of
from airflow_provider_webdata.results.tables.returned import FAILED

try:
    import dlt
    import pyarrow as pa
except ImportError as error:
    raise MissingPackageError(
        f"webdata_resource needs the package dlt on the workers: {install_command('dlt')}, and the driver of the "
        "destination"
    ) from error

from airflow_provider_webdata.results.files.parquet import arrow_type

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from airflow_provider_webdata.results.tables.layout import Layout


def _read_keys(source: Source) -> tuple[Layout, set[int]] | None:
    """Return the layout, and the numbers of the rows to load; None if the files have no items."""
    with source.open() as files:
        made = source.layout(files)
        if made is None:
            return None
        _check_names(made)
        key = [made.names.index(name) for name in made.key]
        by_version = made.names.index(VERSION) if made.has_versions else None
        rows: dict[Values, tuple[int, int]] = {}
        for number, values in enumerate(values_of(files, made, Tally(), removed=True)):
            # dlt replaces whole rows, so this one would replace the page of an earlier run.
            if made.unreturned and values[-1] == FAILED:
                continue
            known_by = tuple(values[place] for place in key) or (number,)
            version = 0 if by_version is None else values[by_version]
            rows[known_by] = max(rows.get(known_by, (0, 0)), (version, number))
        return made, {number for _, number in rows.values()}


def _arrow_tables(source: Source, made: Layout, kept: Container[int]) -> Iterator[Any]:
    """Yield the rows to load."""
    fields = [
        pa.field(column.name, arrow_type(column.type), nullable=column.name not in made.key)
        for column in made.columns
    ]
    schema = pa.schema(fields)

    def rows() -> Iterator[Values]:
        with source.open() as files:
            for number, values in enumerate(values_of(files, made, Tally(), removed=True)):
                if number in kept:
                    yield _without_nul(values[: len(made.columns)])

    for batch in batches(rows()):
        yield pa.table([*map(pa.array, zip(*batch, strict=True), schema.types)], schema=schema)


def webdata_resource(
    path: str | Sequence[str],
    *,
    name: str = "webdata",
    kind: str | None = None,
    result_schema: Mapping[str, Any] | type | str | None = None,
    key: str | Sequence[str] | None = None,
    columns: Sequence[str] | Mapping[str, str] | None = None,
) -> Any:
    """Return a dlt resource that merges results files by key, for a dlt pipeline.

    Each key is yielded once, in Arrow tables of at most 10,000 rows and about 8 MiB of text. The files are read twice:
    for their keys when this function is called, and for their rows when the pipeline runs. See
    docs/cookbook/into_snowflake_or_bigquery.md.

    Failed pages, and search results whose page failed, are omitted. dlt replaces whole rows of any version: load
    files in the order of their runs. A format that a page did not return becomes null. The row of a removed page
    has only `page`, `webdata_version`, `webdata_removed_at`, and `webdata_source`.

    :param path: path or URL of a results file, or several.
    :param name: name of the resource and its table.
    :param kind: kind of the items, see `results.columns.columns_of`. Default: detected from the first 100 items.
    :param result_schema: schema by which the items were validated; its properties become columns.
    :param key: column or columns that identify a row. Default: as in `WebDataToTableOperator`.
    :param columns: columns to load, or a mapping of these to names in the table. Default: as in
        `WebDataToTableOperator`.
    :return: a `DltResource` with the write disposition `merge`; None if the files have no items.
    :raises TableError: a file is not a results file, or an item has no key.
    """
    source = Source(as_list("path", path), TableName(None, name), kind, result_schema, key, columns)
    found = _read_keys(source)
    if found is None:
        return None
    made, kept = found
    return dlt.resource(
        _arrow_tables(source, made, kept),
        name=name,
        primary_key=[*made.key] or None,
        write_disposition="merge",
    )


def _without_nul(values: Values) -> Values:
    """Replace NUL in texts by U+FFFD, as browsers do. Some destinations reject NUL."""
    if not any(isinstance(value, str) and "\0" in value for value in values):
        return values
    return tuple(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in values)


def _check_names(made: Layout) -> None:
    normalized = dlt.Schema("webdata").naming.normalize_identifier
    names: dict[str, str] = {}
    for name in made.names:
        if (other := names.setdefault(normalized(name), name)) != name:
            raise TableError(
                f"columns: {other!r} and {name!r} are the same name in dlt; rename one in columns"
            )
