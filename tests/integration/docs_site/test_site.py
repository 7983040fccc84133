"""The documentation site is built, without a warning and without a dead link within it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_webdata import __version__
from tests.support.snippets import ROOT
from tests.support.waiting import PATIENCE


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="what builds the site needs Python 3.11; see pyproject.toml"
)
def test_the_site_is_built(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.docs_site", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert (done.returncode, done.stderr) == (0, "")
    site = tmp_path / "html"
    start = (site / "index.html").read_text(encoding="utf-8")
    assert f"airflow-provider-webdata {__version__}" in start
    for caption in ("Start", "Guides", "Operators", "Reference", "Operating", "Contributing"):
        assert f'<span class="caption-text">{caption}</span>' in start
    crawl = (site / "reference" / "operators" / "WebDataCrawlOperator.html").read_text(encoding="utf-8")
    assert 'href="../../service.html#crawl-limit"' in crawl
    guide = (site / "operators" / "crawl.html").read_text(encoding="utf-8")
    assert 'href="../reference/operators/WebDataCrawlOperator.html"' in guide
    # Sphinx has a page of its own whose name a guide must not have.
    assert "<h1>Searching" in (site / "searching.html").read_text(encoding="utf-8")
    assert 'id="search-results"' in (site / "search.html").read_text(encoding="utf-8")
    search = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "WebDataCrawlOperator" in search
    # Every page of the documentation is in the sidebar.
    listed = set(re.findall(r'<a class="reference internal" href="([^"#]+)"', start))
    assert {"waiting.html", "service.html", "contributing/coverage.html", "reference/hook.html"} <= listed
