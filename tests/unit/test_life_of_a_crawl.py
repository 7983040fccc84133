# SPDX-License-Identifier: Apache-2.0
"""The page that walks the files of a crawl names files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import airflow_provider_webdata

PACKAGE = Path(airflow_provider_webdata.__file__).parent
PAGE = PACKAGE.parent / "docs/contributing/life_of_a_crawl.md"


def test_its_files_exist() -> None:
    named = re.findall(r"`([\w/]+\.(?:py|json))`", PAGE.read_text())
    assert len(named) > 40
    assert [path for path in named if not (PACKAGE / path).exists()] == []
