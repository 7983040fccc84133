"""What Airflow stores of a trigger."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.triggers.base import BaseTrigger


def serialized(trigger: BaseTrigger) -> tuple[str, dict[str, Any]]:
    """Return a trigger's class path and its arguments; none of them is a secret.

    :param trigger: one that keeps each argument in an attribute of the same name.
    """
    cls = type(trigger)
    names = inspect.signature(cls).parameters
    return f"{cls.__module__}.{cls.__qualname__}", {name: getattr(trigger, name) for name in names}
