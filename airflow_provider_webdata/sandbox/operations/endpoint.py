"""One call that an operation answers."""

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
    """The calls that a handler answers, and their rate limit, key, and body rules.

    :param path: a regular expression. ``{name}`` stands for a part that the call receives.
    :param rate_class: the class of the rate limit that the call counts against.
    :param keyless: whether it can do without a key.
    :param free_ids: whether the parts of its path are other ids than UUIDs.
    :param upload: whether it accepts a form with a file instead of JSON.
    :param raw: whether it accepts a file as the body. It needs no key: its address is one.
    :param own_latency: whether the handler waits for the latency itself, against its own timeout.
    :param activity: the name under which the team's activity lists it; not listed when absent.
    :param target: the field of the body that says what the activity was about.
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
