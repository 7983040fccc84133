# SPDX-License-Identifier: Apache-2.0
"""Endpoints of the service."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .call import Call, Reply


@dataclass(frozen=True)
class Endpoint:
    """A route with its handler, its rate limit, and the rules for its key and body.

    :param path: a regular expression, in which ``{name}`` is a path parameter.
    :param rate_class: class of the rate limit.
    :param keyless: whether the API key is optional.
    :param free_ids: whether path parameters need not be UUIDs.
    :param upload: whether the body may be a form with a file instead of JSON.
    :param raw: whether the body is a file. The URL is the credential, so the request needs no key.
    :param own_latency: whether the handler applies the latency itself, within its timeout.
    :param activity: name in the team's activity; unlisted when absent.
    :param target: body field with the target of the activity.
    """

    method: str
    path: str
    handler: Callable[[Call], Awaitable[Reply]]
    rate_class: str
    keyless: bool = False
    free_ids: bool = False
    upload: bool = False
    raw: bool = False
    own_latency: bool = False
    activity: str | None = None
    target: str | None = None

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled path."""
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.path))
