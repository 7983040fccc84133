"""The credits by day and DAG as CSV."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterable
from datetime import date
from types import SimpleNamespace
from typing import Any

from airflow_provider_webdata.ui.pages import overview


def test_the_event_loop_does_not_build_the_file() -> None:
    threads = []

    class Day(Counter[str]):
        def items(self) -> Any:
            threads.append(threading.current_thread())
            return super().items()

    async def credit_usage(conn_id: str) -> tuple[None, None]:
        return None, None

    async def spent_by_day(since: date) -> Any:
        days = {date(2026, 1, day): Day(shop=day, hidden=9) for day in (2, 1)}
        return {"market": days}, Counter()

    def readable(dag_ids: Iterable[str]) -> set[str]:
        return {*dag_ids} - {"hidden"}

    page: Any = SimpleNamespace(
        text=lambda name: "market",
        lookups=SimpleNamespace(credit_usage=credit_usage, spent_by_day=spent_by_day),
        visitor=SimpleNamespace(readable=readable),
    )
    answer = asyncio.run(overview.spend_csv(page))
    assert bytes(answer.body) == b"day,dag_id,credits\r\n2026-01-01,shop,1\r\n2026-01-02,shop,2\r\n"
    assert len(threads) == 2
    assert threading.current_thread() not in threads
