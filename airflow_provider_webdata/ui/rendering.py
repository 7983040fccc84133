# SPDX-License-Identifier: Apache-2.0
"""HTML rendering: templates, and filters for times, numbers, sizes, and URLs."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import pendulum
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.filters import do_urlencode
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from airflow_provider_webdata import __version__
from airflow_provider_webdata.api.errors import error_text
from airflow_provider_webdata.common.page_urls import UI_PATH, task_tab
from airflow_provider_webdata.common.url_secrets import without_secrets
from airflow_provider_webdata.results.files.csv_rows import guarded
from airflow_provider_webdata.ui.isolation import FILTER, IsolateText

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.requests import Request

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""Response headers of every page. They forbid third-party content and caching."""

_MAX_VALUE = 2000
# Characters that change the direction of the text after them, also of ours: `<bdi>` ends at the last of them.
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")


def render(template: str, request: Request, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a template as a response."""
    root = request.scope.get("root_path", "").rstrip("/")
    text = _ENVIRONMENT.get_template(template).render(
        root=root,
        airflow=airflow_root(request),
        path=request.url.path.removeprefix(root),
        query=request.query_params,
        version=__version__,
        status=status,
        **values,
    )
    return HTMLResponse(text, status, headers=HEADERS)


def csv_file(name: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> Response:
    """Return a table as a CSV file.

    Secrets in URLs are masked. A text that a spreadsheet would run as a formula gets a leading apostrophe.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(heads)
    writer.writerows([_csv_value(value) for value in row] for row in rows)
    headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}"'}
    return Response(text.getvalue(), media_type="text/csv", headers=headers)


def _csv_value(value: Any) -> Any:
    return guarded(without_secrets(value)) if isinstance(value, str) else value


def airflow_root(request: Request) -> str:
    """Return the path below which Airflow's UI is published; empty for none."""
    root: str = request.scope.get("root_path", "").rstrip("/")
    return root.removesuffix(UI_PATH)


def moment_markup(value: datetime | None, *, missing: str = "never") -> Markup:
    """Return a time and its age. The page's script prints the time in the zone chosen in Airflow.

    :param value: timezone-aware.
    :param missing: text for None.
    """
    if value is None:
        return Markup('<span class="faint">{}</span>').format(missing)
    value = in_utc(value)
    text = value.isoformat()
    # No part needs escaping, and Markup's own format would take a tenth of the time of a list.
    return Markup(  # noqa: S704
        f'<span class="moment"><time datetime="{text}">{text[:10]} {text[11:19]} UTC</time> '
        f'<span class="ago">{pendulum.instance(value).diff_for_humans()}</span></span>'
    )


def span(value: timedelta) -> str:
    """Format a duration in its largest unit, such as `5 minutes`."""
    start = pendulum.from_timestamp(0)
    return start.diff_for_humans(start + value, absolute=True)


def in_utc(value: datetime) -> datetime:
    """Convert a time to UTC, clamped to the range of `datetime`.

    :param value: timezone-aware.
    """
    try:
        return value.astimezone(timezone.utc)
    except OverflowError:
        edge = datetime.min if value.year == 1 else datetime.max
        return edge.replace(tzinfo=timezone.utc)


def number(value: float | None, *, missing: str = "unknown") -> str:
    """Format a number with thousands separators.

    :param missing: text for None.
    """
    if value is None:
        return missing
    # An integer may be too large for a float.
    return (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:,.0f}"
        if value.is_integer()
        else f"{value:,.1f}"
        if abs(value) >= 10
        else f"{value:.3g}"
    )


def size(value: int) -> str:
    """Format a number of bytes.

    :param value: not negative.
    """
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1024:
            return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024  # type: ignore[assignment]
    return f"{value:.1f} GiB"


def outside(url: Any) -> Markup:
    """Return a link to another site, or plain text if the URL is unsafe to open.

    :param url: untrusted text. A URL with a password or token is text in which they are masked.
    """
    text = without_secrets(str(url))
    try:
        parts = urlsplit(text)
    except ValueError:
        return escape(isolated(text))
    if (
        len(text) > _MAX_VALUE
        or text != url
        or parts.scheme not in {"http", "https"}
        or not parts.netloc
        or any(ord(sign) <= ord(" ") for sign in text)
    ):
        return escape(isolated(text))
    return Markup('<a class="outside" href="{}" rel="noopener noreferrer" target="_blank">{}</a>').format(
        text, isolated(text)
    )


def tree(value: Any, address: str, at: str = "", start: int = 0) -> Markup:
    """Render a JSON value as a collapsible tree of at most `MAX_NODES` values, with links to the others.

    :param address: URL of the page that shows a part of the value, with a query string.
    :param at: path of the value in the whole document: the index of each child, joined by dots.
    :param start: number of children to skip.
    """
    shown = {at: 0}
    # Breadth first, and the smallest parts first, so that a large part does not use up its siblings' share.
    level, left = [(at, value, start)], MAX_NODES
    while level and left:
        below = []
        level.sort(key=lambda part: len(part[1]) if _has_parts(part[1]) else 0)
        for position, (where, item, first) in enumerate(level):
            share = left // (len(level) - position)
            children = list(islice(_children(item), first, first + share))
            if children:
                shown[where] = first + len(children)
                left -= len(children)
            below += [
                (_below(where, index), child, 0)
                for index, (_, child) in enumerate(children, first)
                if _has_parts(child)
            ]
        level = below
    return _tree(value, address, at, start, shown, 0)


MAX_NODES = 200
_OPEN_LEVELS = 2
_MAX_NAME = 200


def _tree(value: Any, address: str, at: str, start: int, shown: Mapping[str, int], depth: int) -> Markup:
    if isinstance(value, str):
        return _text(value, address, at, whole=depth == 0)
    if not _has_parts(value):
        return Markup("<code>{}</code>").format(json.dumps(value))
    kind = f"{{{len(value)}}}" if isinstance(value, dict) else f"[{len(value)}]"
    if at not in shown:
        return _more(kind, address, at, 0)
    end = shown[at]
    inner = Markup().join(
        Markup('<li><span class="key">{}</span> {}</li>').format(
            isolated(_cut(str(name), _MAX_NAME)), _tree(item, address, _below(at, index), 0, shown, depth + 1)
        )
        for index, (name, item) in enumerate(islice(_children(value), start, end), start)
    )
    if end < len(value):
        inner += Markup("<li>{}</li>").format(
            _more(f"… and {number(len(value) - end)} more", address, at, end)
        )
    return Markup("<details{}><summary>{}</summary><ul>{}</ul></details>").format(
        Markup(" open") if depth < _OPEN_LEVELS else "", kind, inner
    )


def _text(value: str, address: str, at: str, *, whole: bool) -> Markup:
    value = without_secrets(value)
    if len(value) > _MAX_VALUE:
        shown = Markup("<pre>{}</pre>").format(_DIRECTIONS.sub("", value if whole else value[:_MAX_VALUE]))
        return Markup("<details{}><summary>{}… ({} characters)</summary>{}{}</details>").format(
            Markup(" open") if whole else "",
            isolated(value[:80]),
            number(len(value)),
            shown,
            "" if whole else _more("Show all", address, at, 0),
        )
    if value.startswith(("http://", "https://")):
        return outside(value)
    return Markup('<span class="text">{}</span>').format(isolated(value))


def _more(text: str, address: str, at: str, start: int) -> Markup:
    return Markup('<a class="more" href="{}&amp;{}">{}</a>').format(
        address, urlencode({"at": at, "start": start}), text
    )


def _children(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()


def _has_parts(value: Any) -> bool:
    return isinstance(value, (dict, list)) and bool(value)


def _below(at: str, index: int) -> str:
    return f"{at}.{index}" if at else str(index)


def _cut(value: Any, longest: int = _MAX_VALUE) -> Any:
    """Mask the secrets in a text's URLs, drop marks that turn the text after them, and truncate; change no markup."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = _DIRECTIONS.sub("", without_secrets(value))
    return f"{text[:longest]}…" if len(text) > longest else text


def isolated(value: Any) -> Any:
    """Return text in `<bdi>`, so that it cannot change the direction of the text around it; other values unchanged."""
    text = _cut(value)
    if not isinstance(text, str) or isinstance(text, Markup) or text.isascii():
        return text
    return Markup("<bdi>{}</bdi>").format(text)


def page_url(root: str, path: str, values: Mapping[str, Any]) -> str:
    """Return the URL of a page."""
    return f"{root}/{path}?{do_urlencode(values)}"


_ENVIRONMENT = Environment(
    loader=PackageLoader("airflow_provider_webdata.ui"),
    autoescape=True,
    finalize=_cut,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    extensions=[IsolateText],
)
_ENVIRONMENT.globals["page_url"] = page_url
_ENVIRONMENT.filters |= {
    FILTER: isolated,
    "moment": moment_markup,
    "number": number,
    "outside": outside,
    "reason": error_text,
    # Jinja's `urlencode` keeps slashes, with which an id could lead to another page, such as the logout.
    "segment": lambda value: quote(str(value), safe=""),
    "size": size,
    "span": span,
    "tab": task_tab,
    "tree": tree,
}
