# SPDX-License-Identifier: Apache-2.0
"""Peak memory of a 10 MB search response, as a multiple of the body, for one call and for twenty calls.

Linux only: the high-water mark of the resident set is reset through /proc before the calls.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.bodies import SIZES, canned_server, search_response
from benchmarks.contenders import CONTENDERS


def run() -> list[dict[str, object]]:
    """Return a row per contender with the peak divided by the body's size."""
    body = search_response(SIZES["10 MB"])
    rows: list[dict[str, object]] = []
    with canned_server(search_response(0)) as small, canned_server(body) as large:
        for name in CONTENDERS:
            row: dict[str, object] = {"client": name}
            for calls in (1, 20):
                # A separate process for each contender, so that none reuses memory that another one allocated.
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.peak_memory", name, small, large, str(calls)],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                row[f"peak over body, {calls} calls"] = round(json.loads(done.stdout) / len(body), 1)
            rows.append(row)
    return rows


def resident(field: str) -> int:
    """Return a memory figure of the process, such as `VmRSS` or `VmHWM`, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def _measure(name: str, small: str, large: str, calls: int) -> int:
    CONTENDERS[name](small)()
    search = CONTENDERS[name](large)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    for _ in range(calls):
        search()
    return resident("VmHWM") - before


if __name__ == "__main__":
    print(_measure(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
