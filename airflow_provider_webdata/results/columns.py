"""The columns of tables: flat, with stable names, and without loss of data.

Each documented field has its own column, in snake_case; nested data is JSON text. Fields without a column, and values
that do not match their column's type (a page may have three titles), are in the column `extra`, one JSON object with
the names that the service used. A column is null if the service sent nothing or null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from airflow_provider_webdata.common.surrogates import is_utf8
from airflow_provider_webdata.results.encoding import json_text

ColumnType = Literal["text", "integer", "number", "boolean", "json"]

_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    :param name: its name, in snake_case.
    :param path: where its value is in an item: wire names, from the outside in.
    :param type: `text`; `integer` (64 bits); `number` (64 bits, binary); `boolean`; `json` (JSON text of any value).
    :param is_copy: whether another column holds the value as well: null where it is not of this one's type.
    """

    name: str
    path: tuple[str, ...]
    type: ColumnType
    is_copy: bool = False


CHANGES = (
    Column("change", ("change",), "text"),
    Column("last_seen", ("lastSeen",), "text"),
    Column("page", ("page",), "text"),
)
"""What a manifest says of an item; behind the others where a task has one."""

EXTRA = Column("extra", (), "json")
"""What fits no other column, as one JSON object; null when there is nothing."""


def _columns(type_: ColumnType, **paths: str) -> tuple[Column, ...]:
    return tuple(Column(name, tuple(path.split(".")), type_) for name, path in paths.items())


_CONTENT = (
    *_columns(
        "text",
        markdown="markdown",
        summary="summary",
        html="html",
        raw_html="rawHtml",
        screenshot="screenshot",
        audio="audio",
        video="video",
        answer="answer",
    ),
    *_columns(
        "json",
        highlights="highlights",
        links="links",
        images="images",
        json="json",
        change_tracking="changeTracking",
        branding="branding",
        product="product",
        menu="menu",
        attributes="attributes",
        pages="pages",
        blocks="blocks",
        actions="actions",
        kept_media="keptMedia",
    ),
    *_columns("text", warning="warning"),
)
_PAGE = (
    *_columns("text", source_url="metadata.sourceURL", language="metadata.language"),
    *_columns("integer", status_code="metadata.statusCode"),
    *_columns(
        "text",
        content_type="metadata.contentType",
        page_error="metadata.error",
        scrape_id="metadata.scrapeId",
        source_file="metadata.sourceFile",
    ),
    *_columns("integer", num_pages="metadata.numPages", total_pages="metadata.totalPages"),
    *_columns(
        "text",
        proxy_used="metadata.proxyUsed",
        cache_state="metadata.cacheState",
        cached_at="metadata.cachedAt",
    ),
    *_columns("number", page_credits_used="metadata.creditsUsed"),
)
_FOUND_PAGE = _columns(
    "text", page_url="metadata.url", page_title="metadata.title", page_description="metadata.description"
)
# `query` and `source` are not the service's: they tell the results of several searches or sources apart.
_FOUND = _columns("text", query="query", source="source")
_POSITION = _columns("integer", position="position")

_WEB = _columns("text", url="url", title="title", description="description", category="category")
_NEWS = _columns(
    "text",
    url="url",
    title="title",
    snippet="snippet",
    date="date",
    image_url="imageUrl",
    category="category",
)
_IMAGES = _columns("text", url="url", title="title", image_url="imageUrl")
_SIZE = _columns("integer", image_width="imageWidth", image_height="imageHeight")


def _united(*groups: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(dict.fromkeys(column for group in groups for column in group))


TABLES: Mapping[str, tuple[Column, ...]] = {
    "document": (
        *_columns("text", url="metadata.url", title="metadata.title", description="metadata.description"),
        *_PAGE,
        *_CONTENT,
        EXTRA,
    ),
    "search_web": (*_FOUND, *_POSITION, *_WEB, *_FOUND_PAGE, *_PAGE, *_CONTENT, EXTRA),
    "search_news": (*_FOUND, *_POSITION, *_NEWS, *_FOUND_PAGE, *_PAGE, *_CONTENT, EXTRA),
    "search_images": (*_FOUND, *_POSITION, *_IMAGES, *_SIZE, EXTRA),
    "search": (
        *_FOUND,
        *_POSITION,
        *_united(_WEB, _NEWS, _IMAGES),
        *_SIZE,
        *_FOUND_PAGE,
        *_PAGE,
        *_CONTENT,
        EXTRA,
    ),
    "data_tool": (
        *_FOUND,
        *_columns("text", id="id", provider="provider", capability="capability", name="name"),
        *_columns("text", description="description"),
        *_columns("number", credits_cost="creditsCost"),
        *_columns("boolean", per_record="perRecord"),
        *_columns("json", options="options", response="response"),
        EXTRA,
    ),
    "developer": (
        *_columns("text", id="id", type="type", url="url", title="title"),
        *_columns("json", passages="passages", license="license"),
        EXTRA,
    ),
    "paper": (
        *_columns("text", paper_id="paperId", primary_id="primaryId", title="title", abstract="abstract"),
        *_columns("number", score="score"),
        *_columns("json", ids="ids", signals="signals"),
        EXTRA,
    ),
    "link": (*_columns("text", url="url", title="title", description="description"), EXTRA),
    "retrieval": (
        *_columns("text", id="id", url="url", title="title", text="text"),
        *_columns("json", metadata="metadata"),
        *_columns("text", digest="digest"),
        EXTRA,
    ),
    "provider_record": (
        *_columns("integer", call="call"),
        *_columns("text", tool="tool"),
        *_columns("json", error="error"),
        EXTRA,
    ),
    "activity": (
        *_columns("text", id="id", endpoint="endpoint", api_version="api_version", created_at="created_at"),
        *_columns("text", target="target"),
        EXTRA,
    ),
    "credit_period": (
        *_columns("text", start_date="startDate", end_date="endDate", api_key="apiKey"),
        *_columns("number", total_credits="totalCredits", credits_used="creditsUsed"),
        EXTRA,
    ),
    "monitor_check": (
        *_columns("text", monitor_name="monitorName", id="id", monitor_id="monitorId", status="status"),
        *_columns("text", trigger="trigger", scheduled_for="scheduledFor", started_at="startedAt"),
        *_columns("text", finished_at="finishedAt"),
        *_columns("number", estimated_credits="estimatedCredits", actual_credits="actualCredits"),
        *_columns("text", billing_status="billingStatus", error="error", created_at="createdAt"),
        *_columns("json", summary="summary"),
        EXTRA,
    ),
    "generic": (EXTRA,),
}
"""The columns by kind of item. New ones may be added at the end of the service's own; none is renamed or retyped."""


def columns_of(kind: str) -> tuple[Column, ...]:
    """Return the columns for items of a kind.

    :param kind: `document` (a scraped page), `search_web`, `search_news`, `search_images`, `search` (results of several
        sources together), `data_tool` (a tool of a data provider), `provider_record` (any, of a data provider),
        `developer` and `paper` (results of those indexes), `link` (of a site map), `activity`,
        `credit_period` and `monitor_check` (of the team's account), `retrieval` (what `retrieval.flat_documents` makes)
        or `generic` (anything: all of it is in `extra`).
    :raises ValueError: there is no such kind.
    """
    if kind not in TABLES:
        raise ValueError(f"kind must be one of {', '.join(TABLES)} (given: {kind!r})")
    return TABLES[kind]


def kind_of_source(source: str) -> str:
    """Return the kind of the results of a search's source, or of a list in its answer."""
    return "data_tool" if source in ("alexandria", "tools") else f"search_{source}"


def kind_of_names(names: Sequence[str]) -> str:
    """Return the kind of items whose columns a table begins with; `generic` if there is none."""
    for kind, columns in TABLES.items():
        if [*names[: len(columns)]] == [column.name for column in columns]:
            return kind
    return "generic"


def row_maker(columns: tuple[Column, ...]) -> Callable[[Any], dict[str, Any]]:
    """Return a function that turns items into rows of a table: a value for each column, None where there is none.

    An item is a JSON object as the service sent it. Another JSON value goes into `extra` as a whole.

    :param columns: the table's columns; `extra` among them.
    """
    empty: dict[str, Any] = {column.name: None for column in columns}
    places: dict[str, Any] = {}
    copies = [column for column in columns if column.is_copy]
    for column in columns:
        if column.path and not column.is_copy:
            *outer, last = column.path
            inner = places
            for name in outer:
                inner = inner.setdefault(name, {})
            inner[last] = column

    def made(item: Any) -> dict[str, Any]:
        values = empty.copy()
        left = _take(item, places, values) if isinstance(item, Mapping) else item
        values[EXTRA.name] = json_text(left) if left or not isinstance(item, Mapping) else None
        for column in copies:
            value = item
            for name in column.path:
                value = value.get(name) if isinstance(value, Mapping) else None
            values[column.name] = None if value is None else _fitting(value, column.type)
        return values

    return made


def _fitting(value: Any, type_: ColumnType) -> Any:
    """Return the value as its column holds it, or None if the column cannot hold it without loss."""
    if type_ == "json":
        return json_text(value)
    if type_ == "text":
        return value if isinstance(value, str) and is_utf8(value) else None
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if type_ == "integer":
        return value if isinstance(value, int) and value in _INT64 else None
    if isinstance(value, int):
        return float(value) if abs(value) <= 2**53 else None
    return value if isinstance(value, float) else None


def _take(item: Mapping[str, Any], places: Mapping[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Put the parts of an item that have a column into `values`, and return the rest."""
    left: dict[str, Any] = {}
    for name, value in item.items():
        place = places.get(name)
        if isinstance(place, Column):
            if value is None:
                continue
            # Most values are plain text, for which a call takes longer than the check.
            is_plain = place.type == "text" and isinstance(value, str) and value.isascii()
            fitting = value if is_plain else _fitting(value, place.type)
            if fitting is None:
                left[name] = value
            else:
                values[place.name] = fitting
        elif place is not None and value and isinstance(value, Mapping):
            if rest := _take(value, place, values):
                left[name] = rest
        else:
            left[name] = value
    return left
