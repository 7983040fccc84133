# SPDX-License-Identifier: Apache-2.0
"""Numbers of credits as text."""

from __future__ import annotations

from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.hooks.ledger import in_words


def test_large_numbers_have_all_digits() -> None:
    assert [credits_text(value) for value in (None, 0, 4.5, 0.1 + 0.2, 1_250_000, 98_765_432.5)] == [
        *("unknown", "0", "4.5", "0.3", "1250000", "98765432.5")
    ]
    credits = {
        "used": 1_234_567,
        "saved": 0,
        "unknown": 0,
        "by_operation": {"crawl": 1_234_567},
        "by_format": {},
    }
    assert "e+" not in in_words(credits)
