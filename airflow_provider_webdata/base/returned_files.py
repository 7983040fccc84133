# SPDX-License-Identifier: Apache-2.0
"""Files of results that an argument names: only a mapping that a task returned does, never an item of its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_webdata.common.arguments import items_of
from airflow_provider_webdata.common.item_urls import url_of

_SUMMARY = {"path", "count", "bytes"}
"""Keys of what a task with `save_to` returns."""


def results_of(task: Any, name: str, written: Any, value: Any) -> tuple[Any, list[str]]:
    """Return a rendered argument, and the paths in it that are fields of items.

    An item may have any field, so its `path` is the text of a site: the worker must not read that file.

    :param task: the operator, which may be one of a mapped task.
    :param name: name of the argument.
    :param written: the argument before rendering.
    :param value: the argument after rendering. Results that are read lazily become a list.
    """
    if (source := _mapped_over(task, name)) is not None:
        # Of a mapped task, one result is what it returned; of another task, it is an item of the returned list.
        is_returned = isinstance(value, Mapping) and _are_returned(source)
    elif isinstance(written, (list, tuple)) and isinstance(value, (list, tuple)):
        pairs = zip(written, value, strict=True)
        parts = [results_of(task, "", before, after) for before, after in pairs]
        return [part for part, _ in parts], [path for _, paths in parts for path in paths]
    elif isinstance(value, Mapping):
        is_returned = _is_returned(written, value)
    else:
        is_returned = False
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes, list, tuple)):
            is_returned, value = _are_returned(written), items_of(value)
    if not is_returned:
        return value, [*_paths(value)]
    items = value if isinstance(value, list) else ()
    return value, [path for one in items if not isinstance(one, Mapping) for path in _paths(one)]


def _mapped_over(task: Any, name: str) -> Any:
    """Return the results that a mapped task's argument is expanded from; None if the argument is not expanded."""
    dag = task.get_dag() if name else None
    origin = None if dag is None else dag.task_dict.get(task.task_id)
    expanded = getattr(getattr(origin, "expand_input", None), "value", None)
    source = expanded.get(name) if isinstance(expanded, Mapping) else expanded
    return source if hasattr(source, "iter_references") else None


def _is_returned(written: Any, value: Mapping[str, Any]) -> bool:
    if isinstance(written, str):
        # A template can select an item.
        return value.keys() >= _SUMMARY
    if not hasattr(written, "iter_references"):
        # The author of the DAG names the file.
        return True
    return all(key == "return_value" for _, key in written.iter_references())


def _are_returned(source: Any) -> bool:
    """Return whether the elements are what the map indexes of a task returned, without a function between."""
    operator = getattr(source, "operator", None)
    return operator is not None and operator.is_mapped and source.key == "return_value"


def _paths(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(path := value.get("path"), str) and url_of(value) is None:
            yield path
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _paths(one)
