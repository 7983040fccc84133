# SPDX-License-Identifier: Apache-2.0
"""Result items with tags such as their source and change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_OWN = "own_"


def own_name(name: str, taken: Collection[str]) -> str:
    """Return the name of a result's own field: `own_<name>` if the name is taken.

    Names such as `own_source` get the prefix too if `source` is taken, so that different names stay different.
    """
    bare = name
    while bare.startswith(_OWN):
        bare = bare.removeprefix(_OWN)
    return f"{_OWN}{name}" if bare in taken else name


def tagged(item: Mapping[str, Any], **tags: Any) -> dict[str, Any]:
    """Return a result with tags as its first fields. Its own fields are renamed by `own_name`.

    :param tags: tags such as `source` and `query`.
    """
    return tags | {own_name(name, tags): value for name, value in item.items()}


def untagged(item: Mapping[str, Any], *tags: str) -> dict[str, Any]:
    """Remove the tags from an item that `tagged` returned, even if it was modified."""
    return {
        name if own_name(name, tags) == name else name.removeprefix(_OWN): value
        for name, value in item.items()
        if name not in tags
    }
