# SPDX-License-Identifier: Apache-2.0
"""The first rows of results in XCom."""

from __future__ import annotations

import json

from airflow_provider_webdata.results.pages.preview import preview_row


def test_a_row_is_what_xcom_holds() -> None:
    row = preview_row(
        {
            "odd\0": "a\0b \ud83d c",
            "long": "x " * 1_000,
            "metadata": {"title": "t"},
            "list": [1],
            "count": 1,
            "price": 1.5,
            "paid": True,
            "none": None,
            "nan": float("nan"),
        }
    )
    assert row == {
        "title": "t",
        "odd\ufffd": "a\ufffdb ? c",
        "long": f"{'x ' * 80}…",
        "metadata": {},
        "list": [],
        "count": 1,
        "price": 1.5,
        "paid": True,
        "none": None,
        "nan": "nan",
    }
    json.dumps(row, ensure_ascii=False, allow_nan=False).encode()
    assert len(preview_row({str(number): number for number in range(100)})) == 20
