"""Result items with tags such as their source and change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_OWN = "own_"


def tagged(item: Mapping[str, Any], **tags: Any) -> dict[str, Any]:
    """Return a result with tags as its first fields. An existing field with the name of a tag becomes `own_...`.

    :param tags: tags such as `source` and `query`.
    """
    return tags | {f"{_OWN}{name}" if name in tags else name: value for name, value in item.items()}


def untagged(item: Mapping[str, Any], *tags: str) -> dict[str, Any]:
    """Remove the tags from an item that `tagged` returned, even if it was modified."""
    own = {f"{_OWN}{tag}": tag for tag in tags}
    return {own.get(name, name): value for name, value in item.items() if name not in tags}
