# SPDX-License-Identifier: Apache-2.0
"""Values in an item by dotted path, such as `json.price`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def at_path(item: Any, path: str) -> Any:
    """Return the value at a path of keys and indexes; None if it is missing.

    :param path: such as `json.price` or `images.0.url`.
    """
    for name in path.split("."):
        if isinstance(item, Sequence) and not isinstance(item, str) and name.isdecimal():
            item = item[int(name)] if int(name) < len(item) else None
        else:
            item = item.get(name) if isinstance(item, Mapping) else None
    return item
