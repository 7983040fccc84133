"""Only what changed: each operator over several runs of a changing web, cleared runs and skipped ones included."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.results.item_urls import url_of
from airflow_provider_webdata.sandbox.server import SandboxServer
from tests.support.dag_runner import Outcome

IMPORTS = """
from datetime import datetime
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.to_table import WebDataToTableOperator
logical_dates = ["2026-01-{day:02}T00:00:00+00:00"]
"""
CRAWL = (
    'WebDataCrawlOperator(task_id="t", url="https://corner.example/", scrape_options={"max_age": 0}, '
    "deferrable=False, poll_interval=1, MORE)"
)
ALL = '["https://corner.example/", "https://corner.example/a", "https://corner.example/b"]'


class Site:
    """A small site in the sandbox, and the folder of one task's manifests."""

    def __init__(self, run_dag: Callable[..., Outcome], sandbox: SandboxServer, folder: Path) -> None:
        self.control, self.folder = sandbox.control, folder
        self.run_dag = run_dag
        self.show(a="<p>first</p>", b="<p>second</p>")

    def show(self, **pages: str) -> None:
        links = "".join(f'<a href="/{name}">{name}</a> ' for name in "abc")
        self.control.set_page("https://corner.example/", f"<main>{links}</main>")
        for name, html in pages.items():
            self.control.set_page(f"https://corner.example/{name}", f"<main>{html}</main>")

    def run(self, day: int, operator: str, connection: dict[str, Any] | None = None, **more: Any) -> Outcome:
        given = {"manifest": str(self.folder / "seen"), "emit": "changed", **more}
        arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return self.run_dag(
            operator.replace("MORE", arguments), IMPORTS.format(day=day), **(connection or {})
        )

    def crawl(self, day: int, **more: Any) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """Return the counts of a day's crawl, and change and URL of what flowed on."""
        output = self.folder / f"{day}.jsonl"
        done = self.run(day, CRAWL, output=str(output), **more)
        assert done.state("t") == "success", done.log[-3000:]
        items = [json.loads(line) for line in output.read_text().splitlines()]
        found = [(item["change"], (url_of(item) or "").rpartition("/")[2]) for item in items]
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
    site.control.delete_page("https://corner.example/a")
    assert site.crawl(4) == (counts(same=3, failed=1), []), "missing once is not removed"
    assert site.crawl(5) == (counts(same=3, failed=1, removed=1), [("removed", "a")])
    tombstone = json.loads((tmp_path / "5.jsonl").read_text())
    assert tombstone == {
        "change": "removed",
        "page": "https://corner.example/a",
        "url": "https://corner.example/a",
        "lastSeen": "2026-01-03T00:00:00+00:00",
    }
    assert site.crawl(6) == (counts(same=3, failed=1), []), "it is removed once"
    # Cleared: each compares with what was before it.
    five = (tmp_path / "5.jsonl").read_bytes()
    assert site.crawl(5)[1] == [("removed", "a")]
    assert (tmp_path / "5.jsonl").read_bytes() == five


def changes_in(value: Any) -> list[str]:
    """Return the changes of all items in a task's return value, wherever they are."""
    if isinstance(value, dict):
        own = [value["change"]] if "change" in value else []
        return own + [change for part in value.values() for change in changes_in(part)]
    return [change for part in value for change in changes_in(part)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    "operator",
    [
        'WebDataScrapeOperator(task_id="t", url="https://corner.example/a", MORE)',
        f'WebDataBatchScrapeOperator(task_id="t", urls={ALL}, deferrable=False, poll_interval=1, MORE)',
        'WebDataMapOperator(task_id="t", url="https://corner.example/", MORE)',
        'WebDataSearchOperator(task_id="t", query="river", sources=["web", "news"], MORE)',
        'WebDataSearchOperator(task_id="t", query="river", returns="web", MORE)',
        'WebDataBatchSearchOperator(task_id="t", queries=["river", "levels"], MORE)',
    ],
    ids=["scrape", "batch scrape", "map", "search", "search of one kind", "batch search"],
)
def test_every_operator(site: Site, operator: str) -> None:
    first, second = (site.run(day, operator).xcom for day in (1, 2))
    seen = first["t.changes"]["new"]
    assert seen > 0
    assert changes_in(first["t.return_value"]) == ["new"] * seen
    assert first["t.changes"] == counts(new=seen)
    assert second["t.changes"] == counts(same=seen)
    assert changes_in(second.get("t.return_value")) == []


@pytest.mark.parametrize("on_unchanged", ["skip", "empty"])
@pytest.mark.parametrize(
    "operator",
    [CRAWL, 'WebDataScrapeOperator(task_id="t", url="https://corner.example/a", MORE)'],
    ids=["crawl", "scrape"],
)
def test_nothing_changed(site: Site, operator: str, on_unchanged: str) -> None:
    body = operator + ' >> WebDataScrapeOperator(task_id="next", url="https://corner.example/b")'
    site.run(1, operator)
    done = site.run(2, body, on_unchanged=on_unchanged)
    skipped = on_unchanged == "skip"
    assert (done.state("t"), done.state("next")) == (("skipped",) * 2 if skipped else ("success",) * 2)


def test_all_with_their_changes(site: Site) -> None:
    site.run(1, CRAWL)
    site.show(a="<p>changed</p>")
    done = site.run(2, CRAWL, emit="all")
    changes = {
        item["metadata"]["sourceURL"][-1]: item["change"] for item in done.xcom["t.return_value"]["data"]
    }
    assert changes == {"/": "same", "a": "changed", "b": "same", "c": "failed"}


def test_a_limit_hides_pages_and_removes_none(site: Site) -> None:
    site.crawl(1, removed_after=1)
    told, found = site.crawl(2, limit=2, removed_after=1)
    assert (told["removed"], found) == (0, [])
    assert site.crawl(3, removed_after=1)[0] == counts(same=3, failed=1)


def test_a_site_that_is_down_loses_no_page(site: Site) -> None:
    site.crawl(1, removed_after=1)
    site.control.delete_page("https://corner.example/")
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


INCREMENTAL = (
    'WebDataIncrementalCrawlOperator(task_id="t", url="https://corner.example/", refresh_after=3 * 86400, max_age=0, '
    "deferrable=False, poll_interval=1, MORE)"
)
SITEMAP = "https://corner.example/sitemap.xml"


def show_sitemap(site: Site, **dates: str) -> None:
    pages = "".join(
        f"<url><loc>https://corner.example/{name}</loc><lastmod>{date}</lastmod></url>"
        for name, date in dates.items()
    )
    site.control.set_page(SITEMAP, f"<urlset>{pages}</urlset>")


def spent(site: Site) -> int:
    return 10_000 - site.control.state()["credits"]


def test_a_site_is_read_in_part(site: Site, tmp_path: Path) -> None:
    """What is new, old, or dated after it was read is asked for, and nothing else is paid for."""
    site.control.configure(credits=10_000)
    site.show(c="<p>third</p>")

    def run(day: int) -> tuple[dict[str, int], list[str], int]:
        before = spent(site)
        done = site.run(day, INCREMENTAL, output=str(tmp_path / "out.jsonl"))
        assert done.state("t") == "success", done.log[-3000:]
        items = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        found = [f"{item['change']} {item['metadata']['sourceURL'].rpartition('/')[2]}" for item in items]
        return done.xcom["t.changes"], sorted(found), spent(site) - before

    told = {}
    told[1] = run(1)
    show_sitemap(site, a="2026-01-01", b="2025-12-24T10:00:00Z")
    site.show(a="<p>changed</p>", b="<p>changed as well, and not dated</p>")
    told[2] = run(2)
    told[3] = run(3)
    told[4] = run(4)
    assert told == {
        1: (counts(new=4), ["new ", "new a", "new b", "new c"], 1 + 4),
        2: (counts(changed=1, known=3), ["changed a"], 1 + 1 + 1),
        3: (counts(known=4), [], 1 + 1),
        4: (counts(same=2, changed=1, known=1), ["changed b"], 1 + 1 + 3),
    }


def test_sitemaps_of_sitemaps(site: Site) -> None:
    """An index, another below it, and what they list: those that may have news, the newest first, up to the bound."""
    site.control.configure(credits=10_000)
    site.show(c="<p>third</p>")
    host = "https://corner.example"
    site.run(1, INCREMENTAL)

    def show(name: str, kind: str, **dates: str | None) -> None:
        entries = "".join(
            f"<{kind}><loc>{host}/{found}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</{kind}>"
            for found, date in dates.items()
        )
        site.control.set_page(f"{host}/{name}", f"<x>{entries}</x>")

    show("sitemap.xml", "sitemap", old="2025-12-31", index=None, of_b="2026-01-02")
    show("index", "sitemap", of_a="2026-01-01", index=None, broken="2026-01-01T12:00:00Z")
    show("of_a", "url", a="2026-01-01")
    show("of_b", "url", b="2026-01-02")
    show("old", "url", c="2026-01-02")
    site.show(a="<p>changed</p>", b="<p>changed</p>", c="<p>changed, and nobody says so</p>")
    site.control.clear_requests()

    def asked() -> list[str]:
        found = [request["body"]["url"] for request in site.control.requests("/v2/scrape$", "POST")]
        site.control.clear_requests()
        return [url.rpartition("/")[2] for url in found]

    few = site.run(2, INCREMENTAL, max_sitemaps=3)
    assert asked() == ["sitemap.xml", "index", "of_b"]
    assert few.xcom["t.changes"] == counts(changed=1, known=3)
    assert few.xcom["t.credits"]["byOperation"] == {"map": 1, "scrape": 3, "batch_scrape": 1}
    assert "Read 3 of 6 sitemaps for 3 credits" in few.log
    assert "2 sitemaps were not read that may have news, such as https://corner.example/of_a" in few.log
    assert "raise max_sitemaps (3)" in few.log

    all_of_them = site.run(2, INCREMENTAL)
    assert asked() == ["sitemap.xml", "index", "of_b", "of_a", "broken"]
    assert all_of_them.xcom["t.changes"] == counts(changed=2, known=2)
    assert "sitemaps were not read" not in all_of_them.log


def test_a_sitemap_is_not_read_beyond_the_credit_limit(site: Site) -> None:
    site.control.configure(credits=10_000)
    site.run(1, INCREMENTAL)
    before = spent(site)
    done = site.run(2, INCREMENTAL, credit_limit=5)
    assert done.state("t") == "failed"
    assert (
        "scrape: nothing was sent, because it may exceed credit_limit=5, after 1 that were spent" in done.log
    )
    assert spent(site) == before + 1


def test_a_later_attempt_keeps_to_the_plan(site: Site) -> None:
    site.control.configure(credits=10_000)
    headers = {"Retry-After": "1"}
    site.control.add_fault("status", path="/v2/batch/scrape", status=429, headers=headers, times=1)
    done = site.run(1, INCREMENTAL, {"retry_budget": 0})
    assert done.state("t") == "success", done.log[-3000:]
    assert len(done.run["reschedules"]) == 1
    assert len(site.control.requests("/v2/map")) == 1
    assert not [file for file in (site.folder / "seen").iterdir() if file.name.endswith(".plan.json")]


@pytest.mark.parametrize("documents", [False, True])
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    "spellings, ignore_query",
    [
        (("a?utm_source=mail", "a?utm_source=feed", "a#top"), False),
        (("a?session=1", "a?session=2&x", "a"), True),
    ],
    ids=["tracking", "query"],
)
def test_a_page_has_one_row_however_its_url_is_spelled(
    site: Site, tmp_path: Path, documents: bool, format: str, spellings: tuple[str, ...], ignore_query: bool
) -> None:
    database = tmp_path / "pages.db"
    sqlite3.connect(database).close()
    warehouse = {"AIRFLOW_CONN_WAREHOUSE": json.dumps({"conn_type": "sqlite", "host": str(database)})}

    def run(day: int, *names: str) -> dict[str, str]:
        """Return the texts of the table's pages by their names after a day's run."""
        for name in names:
            site.show(**{name: f"<p>As of day {day}.</p>"})
        given = {
            "manifest": str(tmp_path / "seen"),
            "emit": "changed",
            "ignore_query": ignore_query,
            "removed_after": 1,
            "documents": documents,
            "output": str(tmp_path / f"{day}.{format}"),
        }
        urls = [f"https://corner.example/{name}" for name in ("b", *names)]
        arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
        body = f"""
            WebDataBatchScrapeOperator(
                task_id="t", urls={urls}, max_age=0, deferrable=False, poll_interval=1, {arguments}
            ) >> WebDataToTableOperator(task_id="load", path={given["output"]!r}, table="pages", conn_id="warehouse")
        """
        done = site.run_dag(body, IMPORTS.format(day=day), environ=warehouse)
        assert done.run["state"] == "success", done.log[-3000:]
        columns = "url, text" if documents else "source_url, markdown"
        with sqlite3.connect(database) as connection:
            found = connection.execute(f"SELECT {columns} FROM pages").fetchall()
        assert len(dict(found)) == len(found)
        return {url.rpartition("/")[2]: text for url, text in found}

    for day, spelling in enumerate(spellings, 1):
        assert run(day, spelling) == {"a": f"As of day {day}.", "b": "second"}
    assert run(9) == {"b": "second"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"output": "{{ '/proc/no/out.jsonl' }}"}, "/proc/no"),
        ({"formats": ["{{ 'markdwon' }}"]}, "formats[0]"),
        ({"wait_by": "webhook"}, "has no webhook_url"),
        ({"max_error_ratio": "{{ 'two' }}"}, "max_error_ratio"),
        ({"map_options": {"limit": "{{ 0 }}"}}, "limit"),
    ],
    ids=["output", "format", "webhook", "ratio", "map"],
)
def test_nothing_is_paid_for_a_batch_that_cannot_work(site: Site, wrong: dict[str, Any], said: str) -> None:
    site.control.configure(credits=10_000)
    done = site.run(1, INCREMENTAL, **wrong)
    assert done.state("t") == "failed"
    assert said in done.log
    assert spent(site) == 0
