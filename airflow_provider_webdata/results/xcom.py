# SPDX-License-Identifier: Apache-2.0
"""A warning about results that are large for XCom. They are pushed anyway, because they are billed."""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_webdata.common.logs import logger

DEFAULT_WARNING_KB = 1024.0

_log = logger(__name__)

_FOR_RESULTS = (
    "To write it to a file, and only path and counts to XCom, set save_to='s3://bucket/*.jsonl' "
    "or another path"
)


def size_of(value: Any) -> int:
    """Return the approximate size of a JSON value in XCom, in bytes."""
    # Non-ASCII characters are escaped, so characters equal bytes.
    return len(json.dumps(value, default=str))


def warning_bytes() -> float:
    """Return the size above which a warning is logged: `[webdata] xcom_warning_kb`; 0 disables it."""
    from airflow.sdk import conf

    given = conf.get("webdata", "xcom_warning_kb", fallback=str(DEFAULT_WARNING_KB))
    try:
        kilobytes = float(given)
    except ValueError:
        # Do not fail: the result to push is billed.
        _log.warning(
            "[webdata] xcom_warning_kb must be a number (given: %r); using %g", given, DEFAULT_WARNING_KB
        )
        kilobytes = DEFAULT_WARNING_KB
    return float("inf") if kilobytes <= 0 else kilobytes * 1024


def warn_if_large(value: Any, log: Any = _log, advice: str = _FOR_RESULTS) -> bool:
    """Warn if a value that is about to be pushed is too large for XCom, and return whether it is.

    :param advice: how to push less.
    """
    most, size = warning_bytes(), size_of(value)
    if size <= most:
        return False
    log.warning(
        "This result has about %.0f kB in XCom, more than [webdata] xcom_warning_kb (%.0f). It is pushed anyway",
        size / 1024,
        most / 1024,
    )
    log.warning("%s", advice)
    return True
