# SPDX-License-Identifier: Apache-2.0
"""Run the benchmarks of the command line, or all of them, and save the tables as Markdown."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from types import ModuleType

from benchmarks import (
    batch_search,
    changes_cost,
    check_bursts,
    check_latency,
    crawl_memory,
    delivery_latency,
    import_cost,
    inbox_throughput,
    page_cost,
    peak_memory,
    search_cost,
    self_hosted,
    table_load,
    waiting_cost,
)

BENCHMARKS: dict[str, ModuleType] = {
    "search_cost": search_cost,
    "peak_memory": peak_memory,
    "batch_search": batch_search,
    "crawl_memory": crawl_memory,
    "import_cost": import_cost,
    "inbox_throughput": inbox_throughput,
    "delivery_latency": delivery_latency,
    "check_latency": check_latency,
    "check_bursts": check_bursts,
    "waiting_cost": waiting_cost,
    "page_cost": page_cost,
    "changes_cost": changes_cost,
    "table_load": table_load,
    "self_hosted": self_hosted,
}


def table(rows: list[dict[str, object]]) -> str:
    """Return the rows as a Markdown table."""
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    lines += ["| " + " | ".join(str(row.get(column, "")) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def main(names: list[str]) -> None:
    """Run the named benchmarks and write each table to `benchmarks/results`."""
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores\n")
    for name in names or BENCHMARKS:
        module = BENCHMARKS[name]
        print(f"## {name}\n\n{module.__doc__}")
        text = table(module.run())
        (results / f"{name}.md").write_text(text + "\n")
        print(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
