# SPDX-License-Identifier: Apache-2.0
"""The documentation site builds without a warning, and no link within it is dead."""

from __future__ import annotations

import re
import sys
import zlib
from pathlib import Path

import pytest

from airflow_provider_webdata import __version__
from airflow_provider_webdata.common.links import SITE, error_link
from airflow_provider_webdata.common.remedies import REMEDIES
from tests.support.snippets import ROOT
from tests.support.warm import Warm, airflow_environ


@pytest.mark.timeout(600)
@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="what builds the site needs Python 3.11; see pyproject.toml"
)
def test_the_site_is_built(warm: Warm, tmp_path: Path) -> None:
    """In the folder of `make docs`: what has not changed since the last build is not built again."""
    done = warm.run(["-m", "tools.docs_site"], env=airflow_environ(tmp_path), cwd=ROOT)

    assert (done.returncode, done.stderr) == (0, "")
    site = ROOT / "build" / "docs" / "html"
    start = (site / "index.html").read_text(encoding="utf-8")
    assert f"airflow-provider-webdata {__version__}" in start
    for caption in ("Basics", "Guides", "References", "Resources"):
        assert f'<span class="caption-text">{caption}</span>' in start
    crawl = (site / "reference" / "operators" / "WebDataCrawlOperator.html").read_text(encoding="utf-8")
    assert 'href="../../service.html#crawl-limit"' in crawl
    guide = (site / "operators" / "crawl.html").read_text(encoding="utf-8")
    assert 'href="../reference/operators/WebDataCrawlOperator.html"' in guide
    assert "<summary>Other arguments of" in guide
    assert f'<link rel="canonical" href="{SITE}operators/crawl.html"' in guide
    # Each error's address leads to its section.
    for code in REMEDIES:
        page, _, anchor = error_link(code).removeprefix(SITE).partition("#")
        assert f'id="{anchor}"' in (site / page).read_text(encoding="utf-8"), code
    # The sidebar marks the page itself.
    assert re.search(
        r'<li class="[^"]*\bcurrent-page"><a class="current reference internal" href="#">', guide
    )
    # Sphinx has a page named `search`, which the guide must not replace.
    assert "<h1>Searching" in (site / "searching.html").read_text(encoding="utf-8")
    assert 'id="search-results"' in (site / "search.html").read_text(encoding="utf-8")
    # Airflow's own providers have these paths, and other projects link to classes by their import paths.
    moved = (site / "connections" / "webdata.html").read_text(encoding="utf-8")
    assert '<meta content="0; url=../connection.html" http-equiv="refresh" />' in moved
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    crawl_operator = "airflow_provider_webdata.operators.crawl.WebDataCrawlOperator"
    assert f"{crawl_operator} py:class 1 reference/operators/WebDataCrawlOperator.html -\n" in inventory
    search = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "WebDataCrawlOperator" in search
    sidebar = start.partition('<div class="sidebar-tree">')[2].partition("</aside>")[0]
    listed = set(re.findall(r'<a class="reference internal" href="([^"#]+)"', sidebar))
    assert {"waiting.html", "service.html", "contributing/promises.html", "reference/hook.html"} <= listed
    # A page below another one is there only.
    assert sidebar.count('href="webhooks.html"') == 1
    # The front page is the README's screen, with cards.
    assert '<div class="cards docutils container">' in start
    assert "Why not call the API in a" in start
    assert start.count("<h2>") < 10
