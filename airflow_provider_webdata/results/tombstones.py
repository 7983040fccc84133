"""Items that stand for removed pages, and the mark by which a load of their file knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MARK = "webdataTombstone"
"""Field of a tombstone in a file; its value is the kind of the file's items, see `columns.columns_of`."""


class Tombstone(dict[str, Any]):
    """An item that stands for a removed page.

    Only a task with a manifest creates one. Content of the service, a site, or a model is never of this class.

    :param kind: of the page's own items, see `columns.columns_of`.
    :param values: the item.
    """

    def __init__(self, kind: str, **values: Any) -> None:
        super().__init__(values)
        self.kind = kind


def marked(item: Any) -> Any:
    """Return an item in its file form: a tombstone gets the mark, and any other item cannot have it.

    A field of another item that is named like the mark becomes `own_webdataTombstone`.
    """
    if isinstance(item, Tombstone):
        return {**item, MARK: item.kind}
    if isinstance(item, Mapping) and MARK in item:
        return {f"own_{name}" if name == MARK else name: value for name, value in item.items()}
    return item
