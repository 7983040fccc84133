# SPDX-License-Identifier: Apache-2.0
"""Pagination: query parameters and links to the next page."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.wire import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webdata_sandbox.state.quirks import Quirks

    from .call import Call

WRONG_ORIGIN = "http://internal.invalid:8080"


def page_number(
    query: Mapping[str, str], name: str, low: int, high: int | None = None, *, code: str | None = None
) -> int | None:
    """Return a pagination parameter of a query, or None.

    :param code: the ``code`` of the error.
    :raises ServiceError: 400: the value is not an integer from ``low`` to ``high``.
    """
    text = query.get(name)
    if text is None:
        return None
    number = whole_number(text)
    if number is None or number < low or (high is not None and number > high):
        raise ServiceError(400, "Invalid pagination", code=code)
    return number


def next_link(call: Call, quirks: Quirks, query: Mapping[str, object]) -> str:
    """Return the URL of the next page.

    :param query: pagination parameters of the next page.
    """
    origin = WRONG_ORIGIN if quirks.on("next-wrong-host") else call.origin
    return f"{origin}{call.path}?{urlencode(query)}"
