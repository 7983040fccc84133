# SPDX-License-Identifier: Apache-2.0
"""Detection of ineffective path filters of a crawl: globs instead of regular expressions, or an excluded start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_webdata.common.literals import is_template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_LACKING = re.compile(r"(?P<lacking>\(\?<?[=!]|\\\d|\\k<)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
"""A token of a regular expression: look-around, a backreference, or another one."""


def expression_of(text: str) -> re.Pattern[str] | None:
    """Compile a regular expression; return None if Python cannot compile it."""
    try:
        return re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", text))
    except (re.error, OverflowError, RecursionError):
        # The service's expressions have another syntax, but most invalid ones, such as '*.html', are invalid in both.
        return None


def unsupported(expressions: Iterable[str]) -> list[str]:
    """Return a message per expression that the service ignores or refuses (sandbox/docs/service.md#crawl-paths)."""
    return [
        f"{text[:80]!r} uses look-around or a backreference, which the service's regular expressions lack: it would "
        "refuse the call, or ignore the expression"
        for text in expressions
        if any(token["lacking"] for token in _LACKING.finditer(text))
    ]


def expression_of_glob(text: str, *, full_url: bool = False) -> str | None:
    """Convert a glob to a regular expression, such as `/blog/*` to `^/blog/.*$`; return None for other text.

    :param full_url: match the whole URL instead of its path.
    """
    if re.search(r"[\^$()\[\]|+\\]|\.\*", text) or not re.search(r"(?:^|/)\*+(?:$|/|\.\w)", text):
        return None
    is_url = "://" in text
    if is_url and not full_url:
        text = "/" + text.split("://", 1)[1].partition("/")[2]
    start = "^" if is_url or not full_url else ""
    if not full_url and not text.startswith(("/", "*")):
        start += "/"
    return start + re.sub(r"\*+", ".*", re.sub(r"([.?])", r"[\1]", text)) + "$"


def matches_start(url: str, expressions: Sequence[str], *, full_url: bool) -> bool | None:
    """Return whether an expression matches the start of a crawl, or None if one that cannot be compiled may match.

    :param url: the start, with or without a protocol.
    :param full_url: match the whole URL instead of its path.
    """
    start = url if "://" in url else f"http://{url}"
    try:
        tested = start if full_url else urlsplit(start).path or "/"
    except ValueError:
        return None
    found = [expression_of(text) for text in expressions]
    if any(expression is not None and expression.search(tested) for expression in found):
        return True
    return None if None in found else False


def globs(name: str, expressions: Iterable[str], *, full_url: bool = False) -> list[str]:
    """Return a message for each glob among regular expressions.

    :param full_url: see `expression_of_glob`.
    """
    return [
        f"{name}: {text!r} is a glob, not a regular expression; write {meant!r}"
        for text in expressions
        if (meant := expression_of_glob(text, full_url=full_url))
    ]


def literal_filters(fields: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the literal expressions of `include_paths` and `exclude_paths`.

    :param fields: fields of a request, by their Python names.
    """
    return {
        name: [text for text in given if isinstance(text, str) and not is_template(text)]
        if isinstance(given := fields.get(name), (list, tuple))
        else []
        for name in ("include_paths", "exclude_paths")
    }


def wrong_filters(filters: Mapping[str, Iterable[str]], *, full_url: bool = False) -> list[str]:
    """Return a message for each glob and each unsupported expression.

    :param filters: return value of `literal_filters`.
    :param full_url: see `expression_of_glob`.
    """
    return [
        problem
        for name, texts in filters.items()
        for problem in (
            *globs(name, texts, full_url=full_url),
            *(f"{name}: {text}" for text in unsupported(texts)),
        )
    ]
