# SPDX-License-Identifier: Apache-2.0
"""Search responses of various sizes, and a server process for a response."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SIZES = {"3 kB": 0, "1 MB": 10**6, "10 MB": 10**7}
"""The bytes of page content in all results, by name; 0: a search without scraping."""

_ASCII = """the price of wheat rose by three percent in june which is the third rise in a row while barley fell and rye
did not move at all as the exchange reports with its [sources](https://data.example/sources?year=2026)"""
_ACCENTS = """Während größere Flüsse über die Ufer traten hörte man für Öl Später blé à côté du marché élevé où señores
niños mañana também São preços Łódź kościół żyto źródło příliš žluťoučký kůň"""
_WIDE = """小麦 価格は 六月に 上昇した 取引所 발표 시장 가격 报告 数据 来源 农业 🌾 📈 👩‍🌾
цены на пшеницу растут أسعار القمح"""
_ALL = f"{_ASCII} {_ACCENTS} {_WIDE}"
_ESCAPED = (
    '"211"',
    "C:\\data\\june",
    "line\nbreak",
    "tab\tstop",
    '{"a": "b"}',
    "a\r\nb",
    "\x01",
    "</p>",
    "price",
)


@dataclass(frozen=True)
class Mix:
    """The content of a response.

    :param words: words for the texts, which are drawn at random with a fixed seed.
    :param results: number of results with scraped pages; without scraping, always 10.
    :param meta_tags: number of additional meta tags per page.
    :param escaped: write non-ASCII characters as `\\u....`.
    """

    words: Sequence[str]
    results: int = 10
    meta_tags: int = 2
    escaped: bool = False


MIXES = {
    "ASCII": Mix(_ASCII.split()),
    "accents": Mix(_ACCENTS.split()),
    "CJK, Cyrillic, Arabic, emoji": Mix(_WIDE.split()),
    "quotes, line breaks, backslashes": Mix(_ESCAPED),
    "all alphabets as \\u....": Mix(_ALL.split(), escaped=True),
    "all alphabets, 100 results, 30 meta tags each": Mix(_ALL.split(), 100, 30),
}


def search_response(content_bytes: int, mix: Mix = MIXES["accents"]) -> bytes:
    """Return a search response with about `content_bytes` of markdown in total."""
    rng = random.Random(1)
    results = mix.results if content_bytes else 10
    web = []
    for n in range(results):
        item: dict[str, object] = {
            "url": f"https://data.example/reports/{n}?ref=search",
            "title": _text(rng, mix, 60),
            "description": _text(rng, mix, 130),
            "position": n + 1,
        }
        if content_bytes:
            item["markdown"] = _text(rng, mix, content_bytes // results)
            item["metadata"] = {
                "title": _text(rng, mix, 40),
                "sourceURL": f"https://data.example/reports/{n}",
                "statusCode": 200,
                "og:image": ["https://data.example/a.png", "https://data.example/b.png"],
                **{f"og:tag:{number}": _text(rng, mix, 40) for number in range(mix.meta_tags)},
            }
        web.append(item)
    body = {
        "success": True,
        "data": {"web": web},
        "id": "4f0c9f4e-4b8e-4c51-9c1f-000000000000",
        "creditsUsed": 2,
    }
    return json.dumps(body, ensure_ascii=mix.escaped).encode()


def _text(rng: random.Random, mix: Mix, least_bytes: int) -> str:
    """Return words with about this many bytes in the body."""
    words: list[str] = []
    size = 0
    while size < least_bytes:
        words.append(rng.choice(mix.words))
        size += len(json.dumps(words[-1], ensure_ascii=mix.escaped).encode()) - 1
    return " ".join(words)


@contextlib.contextmanager
def canned_server(body: bytes, seconds: float = 0.0) -> Iterator[str]:
    """Run a server process that responds to each request with `body` after a delay in seconds; yield its base URL."""
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
