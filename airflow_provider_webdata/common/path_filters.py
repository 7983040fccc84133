"""Path filters of a crawl that cannot work: globs among regular expressions, and a start that they exclude."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def expression_of(text: str) -> re.Pattern[str] | None:
    """Return a regular expression, or None if Python cannot read it."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError):
        # The service reads them as JavaScript does; most of what fails here fails there too, such as '*.html'.
        return None


def expression_of_glob(text: str) -> str | None:
    """Return the regular expression that a glob stands for, such as `^/blog/.*$` for `/blog/*`; None for any other."""
    if re.search(r"[\^$()\[\]|+\\]|\.\*", text) or not re.search(r"(?:^|/)\*+(?:$|/|\.\w)", text):
        return None
    start = "" if text.startswith(("/", "*")) else "/"
    meant = re.sub(r"\*+", ".*", re.sub(r"([.?])", r"[\1]", text))
    return f"^{start}{meant}$"


def matches_start(url: str, expressions: Sequence[str], *, full_url: bool) -> bool | None:
    """Return whether an expression matches the start of a crawl; None if none does and one cannot be read.

    :param url: the start, with or without a protocol.
    :param full_url: whether they are matched against the whole URL instead of its path.
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


def globs(name: str, expressions: Iterable[str]) -> list[str]:
    """Return a sentence for each glob among regular expressions."""
    return [
        f"{name}: {text!r} is a glob, and regular expressions are expected: write {meant!r}"
        for text in expressions
        if (meant := expression_of_glob(text))
    ]
