# SPDX-License-Identifier: Apache-2.0
"""The URLs of results that were written to a file: those of the same results in XCom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.common.item_urls import urls_in
from airflow_provider_webdata.results.files.formats import SUFFIXES
from airflow_provider_webdata.results.tables.items import urls_of_file
from tests.support.emissions import Night

A, B, LOGIN = "https://a.example/", "https://b.example/", "https://a.example/login"
PAGES = [
    {"markdown": "a", "metadata": {"sourceURL": A, "url": LOGIN}},
    {"markdown": "b", "metadata": {"sourceURL": B}},
]
FOUND = [{"url": A, "title": "a", "metadata": {"sourceURL": LOGIN, "url": LOGIN}, "markdown": "a"}]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("kind", "items"), [("document", PAGES), ("search_web", FOUND), ("link", [{"url": A}, {"url": B}])]
)
def test_a_file_gives_the_urls_of_its_items(
    tmp_path: Path, suffix: str, kind: str, items: list[dict[str, Any]]
) -> None:
    url = Night(1, kind=kind).emit(*items).remove(LOGIN).write(f"{tmp_path}/found{suffix}")
    assert urls_of_file(url) == urls_in(items)
