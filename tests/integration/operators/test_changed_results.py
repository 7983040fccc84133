"""Only what changed: each operator over several runs of a changing web, cleared runs and skipped ones included."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.sandbox.server import SandboxServer
from tests.support.dag_runner import Outcome

IMPORTS = """
from datetime import datetime
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
logical_dates = ["2026-01-{day:02}T00:00:00+00:00"]
"""
CRAWL = """WebDataCrawlOperator(task_id="t", url="https://shop.example/", scrape_options={"max_age": 0}, deferrable=False, MORE)"""
ALL = '["https://shop.example/", "https://shop.example/a", "https://shop.example/b"]'


class Site:
    """A small site in the sandbox, and the folder of one task's manifests."""

    def __init__(self, run_dag: Callable[..., Outcome], sandbox: SandboxServer, folder: Path) -> None:
        self.control, self.folder = sandbox.control, folder
        self._run_dag = run_dag
        self.show(a="<p>first</p>", b="<p>second</p>")

    def show(self, **pages: str) -> None:
        links = "".join(f'<a href="/{name}">{name}</a> ' for name in "abc")
        self.control.set_page("https://shop.example/", f"<main>{links}</main>")
        for name, html in pages.items():
            self.control.set_page(f"https://shop.example/{name}", f"<main>{html}</main>")

    def run(self, day: int, operator: str, **more: Any) -> Outcome:
        given = {"manifest": str(self.folder / "seen"), "emit": "changed", **more}
        arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return self._run_dag(operator.replace("MORE", arguments), IMPORTS.format(day=day))

    def crawl(self, day: int, **more: Any) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """Return the counts of a day's crawl, and change and URL of what flowed on."""
        output = self.folder / f"{day}.jsonl"
        done = self.run(day, CRAWL, output=str(output), **more)
        assert done.state("t") == "success", done.log[-3000:]
        items = [json.loads(line) for line in output.read_text().splitlines()]
        found = [(item["change"], item["metadata"]["sourceURL"].rpartition("/")[2]) for item in items]
        return done.xcom["t.changes"], sorted(found)


@pytest.fixture
def site(run_dag: Callable[..., Outcome], sandbox: SandboxServer, tmp_path: Path) -> Site:
    return Site(run_dag, sandbox, tmp_path)


def counts(**given: int) -> dict[str, int]:
    return dict.fromkeys(("new", "changed", "same", "removed", "failed"), 0) | given


def test_a_site_over_its_runs(site: Site, tmp_path: Path) -> None:
    assert site.crawl(1) == (counts(new=3, failed=1), [("new", ""), ("new", "a"), ("new", "b")])
    assert site.crawl(2) == (counts(same=3, failed=1), [])
    site.show(b="<p>second, changed</p>", c="<p>third</p>")
    second = site.crawl(3)
    assert second == (counts(new=1, changed=1, same=2), [("changed", "b"), ("new", "c")])
    site.control.delete_page("https://shop.example/a")
    assert site.crawl(4) == (counts(same=3, failed=1), []), "missing once is not removed"
    assert site.crawl(5) == (counts(same=3, failed=1, removed=1), [("removed", "a")])
    tombstone = json.loads((tmp_path / "5.jsonl").read_text())
    assert tombstone == {
        "change": "removed",
        "lastSeen": "2026-01-03T00:00:00+00:00",
        "metadata": {"url": "https://shop.example/a", "sourceURL": "https://shop.example/a"},
    }
    assert site.crawl(6) == (counts(same=3, failed=1), []), "it is removed once"
    # Cleared: each compares with what was before it.
    five, manifests = (tmp_path / "5.jsonl").read_bytes(), sorted((tmp_path / "seen").iterdir())
    before = [file.read_bytes() for file in manifests]
    assert site.crawl(5)[1] == [("removed", "a")]
    assert (tmp_path / "5.jsonl").read_bytes() == five
    again = sorted((tmp_path / "seen").iterdir())
    assert len(again) == len(manifests) + 1, "the run of another DAG has a file of its own"
    assert before[4] in [file.read_bytes() for file in again] or len(before) == 6


@pytest.mark.parametrize(
    ("operator", "first", "second", "value"),
    [
        (
            'WebDataScrapeOperator(task_id="t", url="https://shop.example/a", MORE)',
            counts(new=1),
            counts(same=1),
            None,
        ),
        (
            f'WebDataBatchScrapeOperator(task_id="t", urls={ALL}, deferrable=False, MORE)',
            counts(new=3),
            counts(same=3),
            [],
        ),
        ('WebDataMapOperator(task_id="t", url="https://shop.example/", MORE)', None, None, []),
        ('WebDataSearchOperator(task_id="t", query="river", sources=["web", "news"], MORE)', None, None, {}),
        ('WebDataBatchSearchOperator(task_id="t", queries=["river", "levels"], MORE)', None, None, []),
    ],
    ids=["scrape", "batch scrape", "map", "search", "batch search"],
)
def test_every_operator(site: Site, operator: str, first: Any, second: Any, value: Any) -> None:
    xcoms = [site.run(day, operator).xcom for day in (1, 2)]
    told = [xcom["t.changes"] for xcom in xcoms]
    seen = told[0]["new"]
    assert seen > 0
    assert told == [first or counts(new=seen), second or counts(same=seen)]
    found = xcoms[1].get("t.return_value")
    if isinstance(value, dict):
        assert found["data"] == {"web": [], "news": []} if "data" in found else found["web"] == []
    elif isinstance(found, dict):
        left = found.get("data", found.get("links", found.get("results")))
        assert left == [] or all(result["web"] == [] for result in left)
    else:
        assert found == value


@pytest.mark.parametrize("on_unchanged", ["skip", "empty"])
@pytest.mark.parametrize(
    "operator",
    [CRAWL, 'WebDataScrapeOperator(task_id="t", url="https://shop.example/a", MORE)'],
    ids=["crawl", "scrape"],
)
def test_nothing_changed(site: Site, operator: str, on_unchanged: str) -> None:
    body = operator + ' >> WebDataScrapeOperator(task_id="next", url="https://shop.example/b")'
    site.run(1, operator)
    done = site.run(2, body, on_unchanged=on_unchanged)
    skipped = on_unchanged == "skip"
    assert (done.state("t"), done.state("next")) == (("skipped",) * 2 if skipped else ("success",) * 2)


def test_all_with_their_changes(site: Site) -> None:
    site.run(1, CRAWL)
    site.show(a="<p>changed</p>")
    done = site.run(2, CRAWL, emit="all")
    changes = {item["metadata"]["sourceURL"][-1]: item["change"] for item in done.xcom["t.return_value"]["data"]}
    assert changes == {"/": "same", "a": "changed", "b": "same", "c": "failed"}


def test_a_limit_hides_pages_and_removes_none(site: Site) -> None:
    site.crawl(1, removed_after=1)
    told, found = site.crawl(2, limit=2, removed_after=1)
    assert (told["removed"], found) == (0, [])
    assert site.crawl(3, removed_after=1)[0] == counts(same=3, failed=1)


def test_a_site_that_is_down_loses_no_page(site: Site) -> None:
    site.crawl(1, removed_after=1)
    site.control.delete_page("https://shop.example/")
    assert site.crawl(2, removed_after=1)[0] == counts(failed=1)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"manifest": "{{ none }}"}, "manifest must name a folder"),
        ({"manifest": "/etc/hostname/seen"}, "cannot be written on this machine"),
    ],
)
def test_nothing_is_paid_where_the_manifest_cannot_be_written(site: Site, more: Any, said: str) -> None:
    done = site.run(1, CRAWL, **more)
    assert done.state("t") == "failed"
    assert said in done.log
    assert site.control.jobs("crawl") == []
