"""Results files as a resource of dlt, for pipelines of your own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.common.extras import install_command
from airflow_provider_webdata.results.tables.database import Values, batches
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.layout import TableName
from airflow_provider_webdata.results.tables.load import Source, values_of
from airflow_provider_webdata.results.tables.returned import FAILED

try:
    import dlt
    import pyarrow as pa
except ImportError as error:
    raise TableError(
        f"webdata_resource needs the package dlt on the workers: {install_command('dlt')}, and the driver of the "
        "destination"
    ) from error

from airflow_provider_webdata.results.files.parquet import arrow_type

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from airflow_provider_webdata.results.tables.layout import Layout

REMOVED = "webdata_removed"
"""The column whose value `true` makes dlt delete a row; it is never true in the destination."""


@dataclass
class _Keys:
    """The keys of files.

    :param rows: for each key, the number of its last row, and its value of `removal_key`.
    :param removed: values of the layout's `removal_key` whose rows are deleted.
    """

    layout: Layout
    rows: dict[Values, tuple[int, Any]]
    removed: dict[str, None]

    @property
    def kept(self) -> set[int]:
        """Numbers of the rows to load."""
        # The files have the rows of removed pages first, and their removal later.
        return {number for number, page in self.rows.values() if page not in self.removed}


def _read_keys(source: Source) -> _Keys | None:
    """Read the keys; None if the files have no items."""
    with source.open() as files:
        made = source.layout(files)
        if made is None:
            return None
        _check_names(made)
        key = [made.names.index(name) for name in made.key]
        by_page = None if made.removal_key is None else made.names.index(made.removal_key)
        keys = _Keys(made, {}, {})
        for number, values in enumerate(values_of(files, made, keys.removed, delete=True)):
            # dlt replaces whole rows, so this one would replace the page of an earlier run.
            if made.unreturned and values[-1] == FAILED:
                continue
            known_by = tuple(values[place] for place in key) or (number,)
            keys.rows[known_by] = (number, None if by_page is None else values[by_page])
    return keys


def _arrow_tables(
    source: Source, made: Layout, kept: Container[int], gone: Sequence[Values]
) -> Iterator[Any]:
    """Yield the rows to load, and one row for each key to delete."""
    fields = [
        pa.field(column.name, arrow_type(column.type), nullable=column.name not in made.key)
        for column in made.columns
    ]
    schema = pa.schema([*fields, pa.field(REMOVED, pa.bool_())])

    def rows() -> Iterator[Values]:
        with source.open() as files:
            for number, values in enumerate(values_of(files, made, {}, delete=False)):
                if number in kept:
                    yield (*_without_nul(values[: len(made.columns)]), False)
        for key in gone:
            known = dict(zip(made.key, key, strict=True))
            yield (*map(known.get, made.names), True)

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

    Removed pages (see `results.tombstones`) are rows with only their key and `webdata_removed`, which dlt deletes. Each
    key is yielded once, in Arrow tables of at most 10,000 rows and about 8 MiB of text. The files are read twice: for
    their keys when this function is called, and for their rows when the pipeline runs. See
    docs/cookbook/into_snowflake_or_bigquery.md.

    Failed pages, and search results whose page failed, are omitted. dlt replaces whole rows, so a format that a page
    did not return becomes null.

    :param path: path or URL of a results file, or several.
    :param name: name of the resource and its table.
    :param kind: kind of the items, see `results.columns.columns_of`. Default: detected from the first 100 items.
    :param result_schema: schema by which the items were validated; its properties become columns.
    :param key: column or columns that identify a row. Default: as in `WebDataToTableOperator`.
    :param columns: columns to load, or a mapping of these to names in the table. Default: all but `change`,
        `last_seen`, and `page`.
    :return: a `DltResource` with the write disposition `merge`; None if the files have no items.
    :raises TableError: a file is not a results file, an item has no key, or the key cannot delete a removed page.
    """
    source = Source(as_list(path), TableName(None, name), kind, result_schema, key, columns)
    keys = _read_keys(source)
    if keys is None:
        return None
    if keys.removed and keys.layout.key != (keys.layout.removal_key,):
        raise TableError(
            f"key: dlt deletes rows by the whole key ({', '.join(keys.layout.key)}), but the file identifies removed "
            f"pages only by {keys.layout.removal_key}; use only that column as key"
        )
    return dlt.resource(
        _arrow_tables(source, keys.layout, keys.kept, [(page,) for page in keys.removed]),
        name=name,
        primary_key=[*keys.layout.key] or None,
        write_disposition="merge",
        columns={REMOVED: {"hard_delete": True}},
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
        if normalized(name) == REMOVED:
            raise TableError(f"columns: {name!r} is the name of a hidden column in dlt; rename it in columns")
        if (other := names.setdefault(normalized(name), name)) != name:
            raise TableError(
                f"columns: {other!r} and {name!r} are the same name in dlt; rename one in columns"
            )
