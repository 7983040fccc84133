# SPDX-License-Identifier: Apache-2.0
"""How large a result is for XCom."""

from __future__ import annotations

import json
import logging

# Configures logging, which would later replace the handlers of `caplog`.
import airflow.settings  # noqa: F401
import pytest

from airflow_provider_webdata.results.xcom import size_of, warn_if_large, warning_bytes
from tests.support.tables import each_row


@each_row("value", [None, [], {"a": [1, "ä" * 100]}, "x" * 10_000])
def test_size_is_that_of_the_json(value):
    assert size_of(value) == len(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("kilobytes", "size", "warned"), [("1", 1500, True), ("1", 900, False), ("0", 10**6, False), (None, 10**6, False),
                                      (None, 1100 * 1024, True)]
)  # fmt: skip
def test_warning(monkeypatch, caplog, kilobytes, size, warned):
    """It names what to do, and the option; 0 turns it off; the default is a megabyte."""
    if kilobytes is not None:
        monkeypatch.setenv("AIRFLOW__WEBDATA__XCOM_WARNING_KB", kilobytes)
    log = logging.getLogger("test_xcom")
    with caplog.at_level("WARNING", "test_xcom"):
        assert warn_if_large("x" * size, log) is warned
    assert ("save_to='s3://" in caplog.text) is warned
    assert ("[webdata] xcom_warning_kb" in caplog.text) is warned


def test_an_option_that_is_no_number(monkeypatch, caplog):
    """A paid result is not lost for it."""
    monkeypatch.setenv("AIRFLOW__WEBDATA__XCOM_WARNING_KB", "1 MB")
    assert warning_bytes() == 2**20
    assert "[webdata] xcom_warning_kb must be a number (given: '1 MB')" in caplog.text
