"""Results that are large for XCom: said, and pushed all the same, because they are paid for."""

from __future__ import annotations

import json
import logging
from typing import Any

DEFAULT_WARNING_KB = 1024.0

_log = logging.getLogger(__name__)


def size_of(value: Any) -> int:
    """Return about how many bytes a value takes in XCom, where Airflow stores it as JSON.

    :param value: a JSON value.
    """
    # Everything outside ASCII is escaped, so that characters are bytes.
    return len(json.dumps(value, default=str))


def warning_bytes() -> float:
    """Return the size from which on a warning is due: `[webdata] xcom_warning_kb`, 0 turns it off."""
    from airflow.sdk.configuration import conf

    kilobytes = conf.getfloat("webdata", "xcom_warning_kb", fallback=DEFAULT_WARNING_KB)
    return float("inf") if kilobytes <= 0 else kilobytes * 1024


def warn_if_large(value: Any, log: Any = _log) -> bool:
    """Warn where a value is too large for XCom's purpose, naming what to do instead.

    :param value: what is going to be pushed.
    :param log: the task's logger.
    :return: whether it was too large.
    """
    most, size = warning_bytes(), size_of(value)
    if size <= most:
        return False
    log.warning(
        "This result takes about %.0f kB in XCom, over the %.0f kB of [webdata] xcom_warning_kb. It is pushed all "
        "the same; with output='s3://bucket/name.jsonl' (or .jsonl.gz, .parquet, any object storage or path) it "
        "would go to a file, and XCom would carry the path and the counts",
        size / 1024,
        most / 1024,
    )
    return True
