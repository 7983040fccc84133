"""Search responses of a given size, and a server process for each."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PARAGRAPH = (
    "## Prices of wheat\n\nThe price rose by 3 % in June — the *third* rise in a row.\n\n"
    '| month | price |\n| --- | --- |\n| May | "211" |\n| June | "217" |\n\n'
    "See [the report](https://data.example/reports/wheat?year=2026) and its [sources](/sources).\n\n"
)

SIZES = {"3 kB": 0, "1 MB": 10**6, "10 MB": 10**7}
"""Name of a size and the bytes of page content, spread over 10 results; 0 is a search without scraping."""


def search_response(content_bytes: int) -> bytes:
    """Return a search response with 10 results and about `content_bytes` of markdown in all."""
    markdown = (PARAGRAPH * (content_bytes // 10 // len(PARAGRAPH) + 1))[: content_bytes // 10]
    web = []
    for n in range(10):
        item: dict[str, object] = {
            "url": f"https://data.example/reports/{n}?ref=search",
            "title": f"Report {n}: wheat, barley and rye in the first half of the year",
            "description": "Monthly prices at the exchange, with the sources and a comparison " * 2,
            "position": n + 1,
        }
        if content_bytes:
            item["markdown"] = markdown
            item["metadata"] = {
                "title": f"Report {n}",
                "sourceURL": f"https://data.example/reports/{n}",
                "statusCode": 200,
                "og:image": ["https://data.example/a.png", "https://data.example/b.png"],
            }
        web.append(item)
    body = {
        "success": True,
        "data": {"web": web},
        "id": "4f0c9f4e-4b8e-4c51-9c1f-000000000000",
        "creditsUsed": 2,
    }
    return json.dumps(body, ensure_ascii=False).encode()


@contextlib.contextmanager
def canned_server(body: bytes, seconds: float = 0.0) -> Iterator[str]:
    """Run a server process that answers with `body`, each time after so many seconds; yields its base URL."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "body.json"
        path.write_bytes(body)
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.canned_server", str(path), str(seconds)],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()
            process.wait()
