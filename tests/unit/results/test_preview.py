"""The first rows of results in XCom."""

from __future__ import annotations

import json

from airflow_provider_webdata.results.preview import preview_row


def test_a_row_is_text_that_xcom_holds() -> None:
    row = preview_row(
        {"odd\0": "a\0b \ud83d c", "long": "x " * 1_000, "metadata": {"title": "t"}, "list": [1]}
    )
    assert row == {"title": "t", "odd\ufffd": "a\ufffdb ? c", "long": f"{'x ' * 80}…"}
    json.dumps(row, ensure_ascii=False).encode()
    assert len(preview_row({str(number): number for number in range(100)})) == 20
