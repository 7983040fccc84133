# SPDX-License-Identifier: Apache-2.0
"""Items that represent removed pages, and their mark in files, for loads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_webdata.results.tagged_items import own_name

MARK = "webdataTombstone"
"""Field of a tombstone in a file; its value is the kind of the file's items, see `columns.columns_of`."""


class Tombstone(dict[str, Any]):
    """An item that represents a removed page.

    Only a task with `changes` creates one. Content of the service, a site, or a model never has this class.

    :param kind: kind of the page's own items, see `columns.columns_of`.
    :param values: the item.
    """

    def __init__(self, kind: str, **values: Any) -> None:
        super().__init__(values)
        self.kind = kind


def marked(item: Any) -> Any:
    """Return an item in its file form: only a tombstone has the mark.

    In other items, a field with the mark's name becomes `own_webdataTombstone`; see `tagged_items.own_name`.
    """
    if isinstance(item, Tombstone):
        return {**item, MARK: item.kind}
    if isinstance(item, Mapping) and MARK in item:
        return {own_name(name, (MARK,)): value for name, value in item.items()}
    return item
