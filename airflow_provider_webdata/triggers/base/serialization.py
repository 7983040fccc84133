"""The stored form of a trigger."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.triggers.base import BaseTrigger


def serialized(trigger: BaseTrigger) -> tuple[str, dict[str, Any]]:
    """Return a trigger's class path and its arguments; none of them is a secret.

    An argument at its default is left out, so that one that is added later changes nothing of what is stored: Airflow
    tells asset watchers apart by this, and their cursors are kept under it. A default therefore never changes.

    :param trigger: one that keeps each argument in an attribute of the same name.
    """
    cls = type(trigger)
    parameters = inspect.signature(cls).parameters
    given = {name: getattr(trigger, name) for name in parameters}
    changed = {name: value for name, value in given.items() if value != parameters[name].default}
    return f"{cls.__module__}.{cls.__qualname__}", changed
