# SPDX-License-Identifier: Apache-2.0
"""Loggers that clean their arguments, and never the format."""

from __future__ import annotations

import logging
from numbers import Number
from typing import Any

from airflow_provider_webdata.common.clean_text import OwnLines, cleaned
from airflow_provider_webdata.common.coded_errors import CodedError


class CleanLogger(logging.Logger):
    """Logger beside the one of the same name, which decides about levels, filters, and handlers.

    Arguments are cleaned in the record, so that a line that is not emitted costs nothing, and a record keeps its call
    site. Tracebacks of `exc_info` are unchanged.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._named = self.parent = logging.getLogger(name)

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802, D102
        return self._named.isEnabledFor(level)

    def makeRecord(  # noqa: N802, D102
        self, name: str, level: int, fn: str, lno: int, msg: object, args: Any, *more: Any, **named: Any
    ) -> logging.LogRecord:
        return super().makeRecord(name, level, fn, lno, msg, tuple(map(_clean, args)), *more, **named)

    def handle(self, record: logging.LogRecord) -> None:  # noqa: D102
        self._named.handle(record)

    def __reduce__(self) -> Any:
        return logger, (self.name,)


class _Shown:
    """An argument whose text is cleaned when the line is formatted."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        # An error cleans its own text, which has lines.
        return str(self._value) if isinstance(self._value, CodedError) else cleaned(str(self._value))

    def __repr__(self) -> str:
        return cleaned(repr(self._value))


def logger(name: str) -> logging.Logger:
    """Return a logger that cleans its arguments.

    :param name: of the module, `__name__`.
    """
    return CleanLogger(name)


def task_logger(task: Any) -> logging.Logger:
    """Return the logger of a task, named like Airflow's own."""
    name = task._logger_name or f"{type(task).__module__}.{type(task).__name__}"
    return logger(f"airflow.task.operators.{name}")


def _clean(value: Any) -> Any:
    if value is None or isinstance(value, (Number, OwnLines)):
        return value
    return cleaned(value) if type(value) is str else _Shown(value)
