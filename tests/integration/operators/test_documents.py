# SPDX-License-Identifier: Apache-2.0
"""Flat documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from tests.support import direct
from webdata_sandbox.server import SandboxServer


@pytest.fixture(autouse=True)
def two_sites(here: SandboxServer) -> None:
    for name in ("one", "two"):
        here.control.set_page(
            f"https://{name}.example/",
            f"<html><head><title>{name}</title></head><body><p>The {name}.</p></body></html>",
        )


def batch(**arguments: Any) -> Any:
    return direct.run(
        WebDataBatchScrapeOperator(
            task_id="t",
            urls=["https://one.example/", "https://two.example/"],
            poll_interval=1,
            **arguments,
        )
    ).value


def test_flat_documents() -> None:
    ids = []
    for _ in range(2):
        found = batch(documents=True)["data"]
        assert {(row["url"], row["title"], row["text"]) for row in found} == {
            (f"https://{name}.example/", name, f"The {name}.") for name in ("one", "two")
        }
        ids.append({row["id"] for row in found})
    assert ids[0] == ids[1]
    assert len(ids[0]) == 2


def test_an_edited_file_keeps_its_id(tmp_path: Path) -> None:
    """A table by `id` gets the new text in place of the old one."""
    file = tmp_path / "levels.html"

    def parsed(text: str) -> dict[str, Any]:
        file.write_text(f"<html><body><p>{text}</p></body></html>")
        task = WebDataParseOperator(task_id="t", file=str(file), documents=True)
        (row,) = direct.run(task).value["data"]
        return dict(row)

    before, after = parsed("Low."), parsed("High.")
    assert (before["text"], after["text"]) == ("Low.", "High.")
    assert before["id"] == after["id"]
    assert after["url"] == str(file)
