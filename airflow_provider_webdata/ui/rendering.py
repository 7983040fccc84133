"""From values to HTML: the templates, and how moments, numbers, sizes and addresses are written."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from airflow_provider_webdata import __version__
from airflow_provider_webdata.page_urls import UI_PATH

if TYPE_CHECKING:
    from starlette.requests import Request

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""Of every page. Nothing is loaded from elsewhere, and nothing of it stays in the browser."""

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_LONGEST_VALUE = 2000


def render(template: str, request: Request, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page.

    :param template: its file in `templates`.
    :param request: what it answers.
    :param status: of the response.
    :param values: what the template shows.
    """
    root = request.scope.get("root_path", "").rstrip("/")
    airflow = root.removesuffix(UI_PATH)
    text = _ENVIRONMENT.get_template(template).render(
        root=root,
        airflow=airflow,
        path=request.url.path.removeprefix(root),
        query=request.query_params,
        version=__version__,
        **values,
    )
    return HTMLResponse(text, status, headers=HEADERS)


def moment_markup(value: datetime | None, *, missing: str = "never") -> Markup:
    """Return how long ago a moment is, as an element whose title the page's script writes in the viewer's time zone.

    :param value: aware.
    :param missing: what stands for None.
    """
    if value is None:
        return Markup('<span class="faint">{}</span>').format(missing)
    value = value.astimezone(timezone.utc)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        value.isoformat(), value.strftime("%Y-%m-%d %H:%M:%S"), ago(value)
    )


def ago(value: datetime, now: datetime | None = None) -> str:
    """Return how long ago a moment is, or how far ahead, such as `5 minutes ago` and `in 2 hours`.

    :param value: aware.
    :param now: aware; the present by default.
    """
    distance = value - (now or datetime.now(timezone.utc))
    words = span(abs(distance))
    return f"in {words}" if distance > timedelta(0) else f"{words} ago"


def span(value: timedelta) -> str:
    """Return a length of time in its largest unit, such as `5 minutes`.

    :param value: not negative.
    """
    seconds = value.total_seconds()
    length, unit = next(((length, unit) for length, unit in _UNITS if seconds >= length), (1, "second"))
    count = int(seconds / length)
    return f"{count} {unit}{'' if count == 1 else 's'}"


def number(value: float | None, *, missing: str = "unknown") -> str:
    """Return a number with its thousands apart.

    :param value: the number.
    :param missing: what stands for None.
    """
    if value is None:
        return missing
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def size(value: int) -> str:
    """Return a number of bytes in words.

    :param value: not negative.
    """
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1024:
            return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024  # type: ignore[assignment]
    return f"{value:.1f} GiB"


def outside(url: Any) -> Markup:
    """Return a link to another site, or the plain text where it is no address that a browser should open.

    :param url: what came from outside.
    """
    text = str(url)
    shown = text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
    try:
        parts = urlsplit(text)
    except ValueError:
        return escape(shown)
    if (
        parts.scheme not in {"http", "https"}
        or not parts.netloc
        or any(ord(sign) <= ord(" ") for sign in text)
    ):
        return escape(shown)
    return Markup('<a class="outside" href="{}" rel="noopener noreferrer" target="_blank">{}</a>').format(
        text, shown
    )


def tree(value: Any, depth: int = 0) -> Markup:
    """Return a JSON value as a tree whose parts fold.

    :param value: any JSON value.
    :param depth: how far down in the whole; the first two levels are open.
    """
    if isinstance(value, (dict, list)) and value:
        items = list(value.items() if isinstance(value, dict) else enumerate(value))
        inner = Markup().join(
            Markup('<li><span class="key">{}</span> {}</li>').format(name, tree(item, depth + 1))
            for name, item in items[:_MOST_ITEMS]
        )
        if len(items) > _MOST_ITEMS:
            inner += Markup("<li>… and {} more</li>").format(number(len(items) - _MOST_ITEMS))
        kind = f"{{{len(items)}}}" if isinstance(value, dict) else f"[{len(items)}]"
        return Markup("<details{}><summary>{}</summary><ul>{}</ul></details>").format(
            Markup(" open") if depth < _OPEN_LEVELS else "", kind, inner
        )
    if isinstance(value, str):
        if value.startswith(("http://", "https://")):
            return outside(value)
        if len(value) > _LONGEST_VALUE:
            return Markup("<details><summary>{}… ({} characters)</summary><pre>{}</pre></details>").format(
                value[:80], number(len(value)), value[:_LONGEST_TEXT]
            )
        return Markup('<span class="text">{}</span>').format(value)
    return Markup("<code>{}</code>").format(json.dumps(value))


_MOST_ITEMS = 200
_OPEN_LEVELS = 2
_LONGEST_TEXT = 200_000


_ENVIRONMENT = Environment(
    loader=PackageLoader("airflow_provider_webdata.ui"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {
    "moment": moment_markup,
    "number": number,
    "outside": outside,
    "size": size,
    "span": span,
    "tree": tree,
}
