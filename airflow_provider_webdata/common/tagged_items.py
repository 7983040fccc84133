"""Result items with tags in front: where one came from, and whether it is new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_OWN = "own_"


def tagged(item: Mapping[str, Any], **tags: Any) -> dict[str, Any]:
    """Return a result with tags in front. An existing field named like a tag becomes `own_...`.

    :param tags: such as `source`, and `query` where there are several.
    """
    return tags | {f"{_OWN}{name}" if name in tags else name: value for name, value in item.items()}


def untagged(item: Mapping[str, Any], *tags: str) -> dict[str, Any]:
    """Return what `tagged` returned, or what was made of it, without its tags."""
    own = {f"{_OWN}{tag}": tag for tag in tags}
    return {own.get(name, name): value for name, value in item.items() if name not in tags}
