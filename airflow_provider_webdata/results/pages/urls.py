# SPDX-License-Identifier: Apache-2.0
"""Canonical URLs, which are equal for all URLs of a page."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_plus, urlsplit

_TRACKING = (
    r"utm_\w+|gclid|dclid|gbraid|wbraid|gad_source|gad_campaignid|srsltid|fbclid|msclkid|twclid|ttclid|li_fat_id|"
    r"yclid|igshid|mc_cid|mc_eid|_ga|_gl|mkt_tok|oly_anon_id|oly_enc_id|vero_id|_hsenc|_hsmi"
)
# Most URLs are canonical. Matching them is ten times as fast as splitting them.
_SIMPLE = re.compile(r"(https?://[a-z0-9._-]+/[^\s?#]*)(?:\?([^\s#]*))?")
_MAYBE_TRACKING = re.compile(rf"%|(?:^|&)(?:{_TRACKING})(?:[=&]|$)", re.IGNORECASE)
_TRACKING_NAME = re.compile(_TRACKING, re.IGNORECASE)
# In HTML, `&` is written as an entity.
_AND = r"&(?:amp;|#0*38;|#x0*26;)?"
_PARAMETER_IN_TEXT = rf"(?:{_TRACKING})=[^\s&#\"'<>)\]]*"
_LATER_IN_TEXT = re.compile(rf"{_AND}{_PARAMETER_IN_TEXT}", re.IGNORECASE)
_FIRST_IN_TEXT = re.compile(rf"(\?){_PARAMETER_IN_TEXT}{_AND}|\?{_PARAMETER_IN_TEXT}", re.IGNORECASE)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def canonical_url(url: str, *, ignore_query: bool = False) -> str:
    """Return the canonical form of a page's URL.

    It has no default port, no tracking parameters such as `utm_source`, and no fragment, unless this is a route of an
    application (`#/b`, `#!b`). Scheme and host are in lower case. The root path is `/`.

    :param ignore_query: remove the whole query.
    """
    if simple := _SIMPLE.fullmatch(url):
        page, query = simple.groups()
        if query is None:
            return url
        if ignore_query or not query:
            return page
        if not _MAYBE_TRACKING.search(query):
            return url
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    if not parts.netloc:
        return url
    host = parts.netloc.lower().removesuffix(_DEFAULT_PORTS.get(parts.scheme, ":"))
    query = "" if ignore_query else _without_tracking(parts.query)
    route = f"#{parts.fragment}" if parts.fragment.startswith(("/", "!")) else ""
    return f"{parts.scheme}://{host}{parts.path or '/'}{'?' if query else ''}{query}{route}"


def is_canonical(key: Any, url: str | None) -> bool:
    """Return whether `key` is a URL's `canonical_url`, with or without its query."""
    return (
        isinstance(key, str)
        and url is not None
        and key in (canonical_url(url), canonical_url(url, ignore_query=True))
    )


def _without_tracking(query: str) -> str:
    # Cut from the text: encoding the query again would merge and split pages (`?q=%E4`, `?tags=a,b`).
    return "&".join(
        part
        for part in query.split("&")
        if not _TRACKING_NAME.fullmatch(unquote_plus(part.partition("=")[0]))
    )


def without_tracking(text: str) -> str:
    """Remove tracking parameters from the links in a text."""
    if "=" not in text:
        return text
    return _FIRST_IN_TEXT.sub(r"\1", _LATER_IN_TEXT.sub("", text))
