# SPDX-License-Identifier: Apache-2.0
"""Serialization of triggers."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.triggers.base import BaseTrigger


def serialized(trigger: BaseTrigger) -> tuple[str, dict[str, Any]]:
    """Return a trigger's class path and its arguments, which contain no secrets.

    Arguments with default values are omitted, so that adding an argument later does not change the stored value, which
    identifies asset watchers and their cursors. Therefore, a default must never change.

    :param trigger: a trigger that stores each argument in an attribute of the same name.
    """
    cls = type(trigger)
    parameters = inspect.signature(cls).parameters
    given = {name: getattr(trigger, name) for name in parameters}
    changed = {name: value for name, value in given.items() if value != parameters[name].default}
    return f"{cls.__module__}.{cls.__qualname__}", changed
