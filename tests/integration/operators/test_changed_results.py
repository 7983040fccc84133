"""Only changed results: each operator over several runs of a changing web, with cleared and skipped runs."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.observability.stats import Stats

from airflow_provider_webdata.common.item_urls import url_of
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Changes, Quality
from airflow_provider_webdata.results.files.formats import SUFFIXES, rejected_url
from airflow_provider_webdata.runs.publishing.compare import Compare
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support import direct
from tests.support.direct import Outcome, StateStore, TaskInstance
from webdata_sandbox.server import SandboxServer

HOME = "https://corner.example/"
WAITING: dict[str, Any] = {"deferrable": False, "poll_interval": 1}
CRAWL: tuple[Any, dict[str, Any]] = (
    WebDataCrawlOperator,
    {"url": HOME, "scrape_options": {"max_age": 0}, **WAITING},
)
ALL = [HOME, f"{HOME}a", f"{HOME}b"]


class Site:
    """A small site in the sandbox, and the folder of one task's manifests."""

    def __init__(self, sandbox: SandboxServer, folder: Path) -> None:
        self.control, self.folder = sandbox.control, folder
        self.show(a="<p>first</p>", b="<p>second</p>")

    def show(self, **pages: str) -> None:
        links = "".join(f'<a href="/{name}">{name}</a> ' for name in "abc")
        self.control.set_page(HOME, f"<main>{links}</main>")
        for name, html in pages.items():
            self.control.set_page(f"{HOME}{name}", f"<main>{html}</main>")

    def run(self, day: int, task: tuple[Any, dict[str, Any]], **more: Any) -> Outcome:
        operator, arguments = task
        changes: dict[str, Any] = {"manifest": str(self.folder / "seen"), "emit": "changed"}
        for option in Changes.__struct_fields__:
            if option in more:
                changes[option] = more.pop(option)
        given = {"changes": Changes(**changes), **arguments, **more}
        if "{{" not in (path := given.get("save_to", "{{ }}")):
            # A literal path would be refused, because each run replaces the file.
            given["save_to"] = f"{{{{ dag_run and '{path}' }}}}"
        when = datetime(2026, 1, day, tzinfo=timezone.utc)
        return direct.run(operator(**{"task_id": "t", **given}), StateStore(), day=when)

    def crawl(self, day: int, **more: Any) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """Return the counts of a day's crawl, and change and URL of the emitted results."""
        output = self.folder / f"{day}.jsonl"
        done = self.run(day, CRAWL, save_to=str(output), **more)
        assert done.state == "success", done.error
        items = [json.loads(line) for line in output.read_text().splitlines()]
        found = [(item["change"], (url_of(item) or "").rpartition("/")[2]) for item in items]
        return done.xcom["changes"], sorted(found)


@pytest.fixture
def site(here: SandboxServer, tmp_path: Path) -> Site:
    return Site(here, tmp_path)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], set[str]]:
    """Return a function that loads a file into a table, and returns the names of the table's pages."""
    database = tmp_path / "pages.db"
    sqlite3.connect(database).close()
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps({"conn_type": "sqlite", "host": str(database)}))

    def load_and_read(path: Path) -> set[str]:
        task = WebDataToTableOperator(task_id="load", path=str(path), table="pages", conn_id="warehouse")
        done = direct.run(task)
        assert done.state == "success", done.error
        with sqlite3.connect(database) as connection:
            urls = connection.execute("SELECT source_url FROM pages").fetchall()
        return {url.rpartition("/")[2] for (url,) in urls}

    return load_and_read


@pytest.fixture
def night(site: Site, rows: Callable[[Path], set[str]]) -> Callable[[int], set[str]]:
    """Return a function that crawls and loads a day, and returns the names of the table's pages."""

    def crawl_and_load(day: int) -> set[str]:
        site.crawl(day)
        return rows(site.folder / f"{day}.jsonl")

    return crawl_and_load


def counts(**given: int) -> dict[str, int]:
    return dict.fromkeys(("new", "changed", "same", "removed", "failed"), 0) | given


def test_a_site_over_its_runs(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gauges: dict[tuple[str, str | None], float] = {}
    monkeypatch.setattr(
        Stats, "gauge", lambda name, number, tags: gauges.update({(name, tags.get("change")): number})
    )
    assert site.crawl(1) == (counts(new=3, failed=1), [("new", ""), ("new", "a"), ("new", "b")])
    assert gauges == {
        ("webdata.changes", change): number
        for change, number in {**counts(new=3, failed=1), "known": 0}.items()
    }
    assert site.crawl(2) == (counts(same=3, failed=1), [])
    site.show(b="<p>second, changed</p>", c="<p>third</p>")
    second = site.crawl(3, deferrable=True)
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
        "webdataTombstone": "document",
    }
    assert site.crawl(6) == (counts(same=3, failed=1), []), "it is removed once"
    # Cleared: each compares with what was before it.
    six = (tmp_path / "6.jsonl").read_bytes()
    assert site.crawl(6) == (counts(same=3, failed=1), [])
    assert (tmp_path / "6.jsonl").read_bytes() == six
    assert site.crawl(5) == (counts(same=3, failed=1), []), "the newest run decides what is removed"


@pytest.mark.parametrize("day", [3, 2], ids=["the newest run", "an older run"])
def test_a_row_that_a_cleared_run_deleted_is_loaded_again(
    site: Site, night: Callable[[int], set[str]], day: int
) -> None:
    assert night(1) == {"", "a", "b"}
    site.control.delete_page(f"{HOME}a")
    assert night(2) == {"", "a", "b"}
    assert night(3) == {"", "b"}
    site.show(a="<p>first</p>")
    night(day)
    assert night(4) == {"", "a", "b"}


def test_a_folder_that_reads_another_site_loses_no_page(site: Site, log: Any) -> None:
    """As when the list of a mapped task shifts, and its folders have the map index."""
    other = "https://other.example/"
    site.control.set_page(other, "<main>other</main>")
    task = (WebDataCrawlOperator, {**CRAWL[1], "url": other})
    found = [site.run(day, task if day > 1 else CRAWL, removed_after=1).xcom["changes"] for day in (1, 2, 3)]
    assert found == [counts(new=3, failed=1), counts(new=1), counts(same=1)]
    assert log().count(f"This run reads {other}: it emits all pages, and removes none") == 1


def test_a_list_removes_only_pages_that_were_requested(site: Site, tmp_path: Path) -> None:
    """Pages of an earlier list are kept, even if they are gone by now."""
    output = tmp_path / "out.jsonl"

    def night(day: int, *names: str) -> tuple[dict[str, int], list[str]]:
        urls = [f"{HOME}{name}" for name in names]
        task = (WebDataBatchScrapeOperator, {"urls": urls, "max_age": 0, "save_to": str(output), **WAITING})
        done = site.run(day, task)
        assert done.state == "success", done.error
        items = [json.loads(line) for line in output.read_text().splitlines()]
        return done.xcom["changes"], [item["url"] for item in items if item["change"] == "removed"]

    site.show(c="<p>third</p>")
    assert night(1, "a", "b") == (counts(new=2), [])
    for name in "ab":
        site.control.delete_page(f"{HOME}{name}")
    assert night(2, "c") == (counts(new=1), [])
    assert night(3, "c") == (counts(same=1), [])
    assert night(4, "a", "c") == (counts(same=1, failed=1), [])
    assert night(5, "a", "c") == (counts(same=1, failed=1, removed=1), [f"{HOME}a"])


def test_a_row_that_accepted_results_deleted_is_loaded_again(
    site: Site, rows: Callable[[Path], set[str]], night: Callable[[int], set[str]]
) -> None:
    assert night(1) == {"", "a", "b"}
    site.control.delete_page(f"{HOME}a")
    assert night(2) == {"", "a", "b"}
    output = str(site.folder / "3.jsonl")
    for _ in ("first", "cleared"):
        assert site.run(3, CRAWL, save_to=output, quality=Quality(min_items=50)).state == "failed"
    site.show(a="<p>first</p>")
    assert site.crawl(4) == (counts(same=3, failed=1), []), "the results are rejected"
    Path(rejected_url(output)).replace(output)
    assert rows(Path(output)) == {"", "b"}
    assert night(5) == {"", "a", "b"}
    assert site.crawl(6) == (counts(same=3, failed=1), [])


def test_rejected_results_that_nobody_accepted_change_nothing(site: Site, log: Any) -> None:
    """The file of rejected results stays, so they were not accepted."""
    output = str(site.folder / "pages.jsonl")
    for day in (1, 2, 3, 4):
        site.show(b="<p>broken</p>" if day == 2 else "<p>second</p>")
        done = site.run(day, CRAWL, save_to=output, quality=Quality(min_items=50 if day == 2 else 1))
        assert done.state == ("failed" if day == 2 else "success")
        if day > 2:
            assert done.xcom["changes"] == counts(same=3, failed=1)
    assert "rejected results were accepted" not in log()


def test_more_than_may_be_removed_is_kept(site: Site, log: Any) -> None:
    assert site.crawl(1)[0]["new"] == 3
    for name in "ab":
        site.control.delete_page(f"{HOME}{name}")
    assert site.crawl(2) == (counts(same=1, failed=3), [])
    assert site.crawl(3, max_removed=0.5) == (counts(same=1, failed=3, held_back=2), [])
    assert "No page is removed: 2 of 3 known pages are missing, but max_removed allows 1" in log()
    site.show(b="<p>second</p>")
    assert site.crawl(4, max_removed=0.5) == (counts(same=2, failed=2, removed=1), [("removed", "a")])


def test_another_task_s_folder_is_refused_before_anything_is_billed(site: Site) -> None:
    assert site.crawl(1)[0]["new"] == 3
    site.control.clear_requests()
    for more, why in (({}, "belongs to task 't' of DAG 'd'"), ({"shared": True}, "belongs to task 't'")):
        done = site.run(2, CRAWL, task_id="other", **more)
        assert done.state == "failed"
        assert why in str(done.error)
    assert site.control.requests() == []
    assert site.crawl(2, shared=True)[0]["same"] == 3
    site.control.delete_page(f"{HOME}a")
    for day, task_id in enumerate(("other", "t", "other", "t"), 3):
        assert site.crawl(day, task_id=task_id, shared=True) == (counts(same=2, failed=2), [])
    assert "belongs to several tasks with shared=True" in str(site.run(7, CRAWL).error)


def test_partitions_are_compared_by_their_own_dates(site: Site, tmp_path: Path) -> None:
    def crawl(day: str) -> dict[str, int]:
        operator = WebDataCrawlOperator(task_id="t", changes=str(tmp_path / "seen"), **CRAWL[1])
        done = direct.run(operator, StateStore(), partition=day)
        assert done.state == "success", done.error
        changes: dict[str, int] = done.xcom["changes"]
        return changes

    # All are run today, in this order.
    assert crawl("2026-01-06") == counts(new=3, failed=1)
    assert crawl("2026-01-05") == counts(new=3, failed=1)
    site.show(b="<p>second, changed</p>")
    assert crawl("2026-01-07") == counts(same=2, changed=1, failed=1)
    assert crawl("2026-01-06") == counts(same=2, changed=1, failed=1), "as the fifth left it"


def changes_in(value: Any) -> list[str]:
    """Return the changes of all items in a task's return value, at any depth."""
    if isinstance(value, dict):
        own = [value["change"]] if "change" in value else []
        return own + [change for part in value.values() for change in changes_in(part)]
    return [change for part in value for change in changes_in(part)] if isinstance(value, list) else []


TASKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "scrape": (WebDataScrapeOperator, {"url": f"{HOME}a"}),
    "batch scrape": (WebDataBatchScrapeOperator, {"urls": ALL, **WAITING}),
    "map": (WebDataMapOperator, {"url": HOME}),
    "search": (WebDataSearchOperator, {"query": "river", "sources": ["web", "news"]}),
    "search of one kind": (WebDataSearchOperator, {"query": "river", "returns": "web"}),
    "batch search": (WebDataBatchSearchOperator, {"queries": ["river", "levels"]}),
}


@pytest.mark.parametrize("name", TASKS)
def test_every_operator(site: Site, name: str) -> None:
    first, second = (site.run(day, TASKS[name]) for day in (1, 2))
    seen = first.xcom["changes"]["new"]
    assert seen > 0
    assert changes_in(first.value) == ["new"] * seen
    assert first.xcom["changes"] == counts(new=seen)
    assert second.xcom["changes"] == counts(same=seen)
    assert changes_in(second.value) == []


@pytest.mark.parametrize(
    ("task", "on_unchanged", "state"),
    [(CRAWL, "skip", "skipped"), (CRAWL, "empty", "success"), (TASKS["scrape"], "skip", "skipped")],
    ids=["crawl", "crawl, empty", "scrape"],
)
def test_nothing_changed(site: Site, task: Any, on_unchanged: str, state: str) -> None:
    site.run(1, task)
    assert site.run(2, task, on_unchanged=on_unchanged).state == state


def test_runs_in_a_real_airflow(run_dag: Any, sandbox: SandboxServer, tmp_path: Path) -> None:
    """Each run compares with the one before it; tasks after one without changes are skipped."""
    sandbox.control.set_page(f"{HOME}a", "<main>first</main>")
    done = run_dag(
        f"""
        WebDataScrapeOperator(
            task_id="t", url="{HOME}a",
            changes=Changes("{tmp_path}/{{{{ dag.dag_id }}}}", emit="changed", on_unchanged="skip"),
        ) >> WebDataScrapeOperator(task_id="next", url="{HOME}a")
        """,
        """
        from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
        logical_dates = ["2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"]
        """,
    )
    first, second = done.runs
    assert first["xcom"]["t.changes"] == counts(new=1)
    assert second["xcom"]["t.changes"] == counts(same=1)
    assert [run["tasks"][task]["state"] for run in done.runs for task in ("t", "next")] == [
        *("success", "success"),
        *("skipped", "skipped"),
    ]


def test_pages_are_emitted_until_downstream_tasks_have_consumed_them(
    run_dag: Any, sandbox: SandboxServer, tmp_path: Path
) -> None:
    sandbox.control.set_page(f"{HOME}a", "<main>first</main>")
    done = run_dag(
        f"""
        @task
        def load(count, **context):
            if not count:
                raise AirflowSkipException("no pages")

        @task
        def publish(**context):
            assert context["logical_date"].day > 2, "the first two runs fail"

        pages = WebDataScrapeOperator(
            task_id="t", url="{HOME}a", save_to="{tmp_path}/{{{{ ds }}}}.jsonl",
            changes=Changes("{tmp_path}/seen", emit="changed", commit="downstream"),
        )
        load(pages.output["count"]) >> publish()
        """,
        """
        from airflow.sdk.exceptions import AirflowSkipException
        from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
        logical_dates = [f"2026-01-0{day}T00:00:00+00:00" for day in (1, 2, 3, 4)]
        """,
    )
    assert [run["xcom"]["t.changes"]["new"] for run in done.runs] == [1, 1, 1, 0]
    assert done.log.count("so this run emits the same pages again") == 2


def test_what_is_consumed_downstream_needs_a_task_downstream(site: Site) -> None:
    done = site.run(1, CRAWL, commit="downstream")
    assert "commit='downstream') needs a task downstream" in str(done.error)
    assert site.control.requests() == []


def test_all_with_their_changes(site: Site) -> None:
    site.run(1, CRAWL)
    site.show(a="<p>changed</p>")
    found = site.run(2, CRAWL, emit="all").value["data"]
    changes = {item["metadata"]["sourceURL"][-1]: item["change"] for item in found}
    assert changes == {"/": "same", "a": "changed", "b": "same", "c": "failed"}


@pytest.mark.parametrize("emit", ["all", "changed"])
def test_all_results_lack_removed_pages_and_the_log_says_so(site: Site, log: Any, emit: str) -> None:
    site.run(1, CRAWL)
    site.control.delete_page(f"{HOME}b")
    done = site.run(2, CRAWL, emit=emit, removed_after=1)
    assert done.xcom["changes"]["removed"] == 1
    emitted = "removed" in [item["change"] for item in done.value["data"]]
    assert emitted is (emit == "changed")
    assert ("The results do not contain the 1 removed pages" in log()) is not emitted


def test_a_limit_hides_pages_and_removes_none(site: Site) -> None:
    site.crawl(1, removed_after=1)
    told, found = site.crawl(2, limit=2, removed_after=1)
    assert (told["removed"], found) == (0, [])
    assert site.crawl(3, removed_after=1)[0] == counts(same=3, failed=1)


def test_no_results_after_some_are_a_warning(site: Site, log: Any) -> None:
    site.crawl(1)
    operator, arguments = CRAWL
    empty = site.run(2, (operator, {**arguments, "include_paths": ["^/elsewhere"]}), on_unchanged="skip")
    assert (empty.state, str(empty.error)) == ("skipped", "No results, but earlier runs saw 3 pages")
    assert empty.xcom["changes"]["known_before"] == 3
    assert empty.xcom["incomplete"] == [{"kind": "no_results", "number": 3, "of": 3}]
    assert "This run has no results, but earlier runs saw 3 pages" in log()


@pytest.mark.rule("map-unread")
@pytest.mark.parametrize("name", ["map", "crawl", "incremental crawl"])
def test_no_results_remove_no_page(site: Site, name: str) -> None:
    """The service may respond to a site that is down as to one without pages."""
    operator, arguments = {**TASKS, "crawl": CRAWL, "incremental crawl": INCREMENTAL}[name]
    assert site.run(1, (operator, arguments)).xcom["changes"]["new"] >= 3
    filters = {"include_paths": ["^/elsewhere"]}
    filters = {"map_options": filters} if name == "incremental crawl" else filters
    for day in (2, 5):
        down = site.run(day, (operator, {**arguments, **filters}), removed_after=1)
        assert (down.state, down.xcom["changes"]["removed"]) == ("success", 0)
        assert [lack["kind"] for lack in down.xcom["incomplete"]] == ["no_results"]


def test_a_retry_knows_that_the_map_had_no_links(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    operator, arguments = INCREMENTAL
    site.run(1, INCREMENTAL)
    written, failures = Compare.written, [1]

    def failing_once(self: Compare) -> None:
        if failures:
            raise RuntimeError(failures.pop())
        written(self)

    monkeypatch.setattr(Compare, "written", failing_once)
    nowhere = {"map_options": {"include_paths": ["^/elsewhere"]}, "retries": 1}
    down = site.run(5, (operator, {**arguments, **nowhere}))
    assert down.ended == ("success", 2)
    assert down.xcom["incomplete"][0]["kind"] == "no_results"


def test_a_site_that_is_down_loses_no_page(site: Site) -> None:
    site.crawl(1, removed_after=1)
    site.control.delete_page("https://corner.example/")
    down = site.run(2, CRAWL, removed_after=1)
    assert (down.state, down.xcom["changes"]) == ("failed", counts(failed=1))


@pytest.mark.rule("metadata-status", "job-errors")
def test_pages_that_fail_for_nights_are_not_removed(site: Site) -> None:
    """One has an error status, one is in the job's list of errors, and one is forbidden; another is not found."""
    site.show(c="<p>third</p>", d="<p>fourth</p>")
    site.control.set_page(HOME, "".join(f'<a href="/{name}">{name}</a> ' for name in "abcd"))
    assert site.crawl(1)[0]["new"] == 5
    site.control.set_page(f"{HOME}a", "<p>Out of order</p>", status=503)
    site.control.set_page(f"{HOME}b", "<p>x</p>", error="SCRAPE_SITE_ERROR")
    site.control.delete_page(f"{HOME}d")
    site.control.set_site("corner.example", robots="User-agent: *\nDisallow: /c")
    assert site.crawl(2)[1] == []
    told, removed = site.crawl(3)
    assert (told["removed"], removed) == (1, [("removed", "d")])
    site.control.set_page(f"{HOME}a", "<main><p>first</p></main>")
    site.control.set_page(f"{HOME}b", "<main><p>second, after the outage</p></main>", error=None)
    site.control.set_site("corner.example", robots=None)
    assert site.crawl(4) == (counts(same=3, changed=1, failed=1), [("changed", "b")])


def test_pages_behind_a_page_that_fails_for_nights_are_not_removed(site: Site) -> None:
    """Nothing else links to one of them. Once the page can be read again, or failed before, the runs count."""
    hub, deep, other = f"{HOME}c", f"{HOME}deep", f"{HOME}other"
    links = f'<main><a href="{deep}">d</a> <a href="{other}">o</a></main>'
    site.control.set_page(hub, links)
    site.show(deep="<p>deep</p>", other="<p>other</p>")
    assert site.crawl(1)[0]["new"] == 6
    site.control.set_page(hub, "<p>Out of order</p>", status=503)
    for day in (2, 3, 4):
        assert site.crawl(day) == (counts(same=3, failed=1), [])
    site.control.set_page(hub, links)
    assert site.crawl(5) == (counts(same=6), [])
    site.control.set_page(hub, "<p>Out of order</p>", status=503)
    site.control.set_page(
        HOME, f'<main><a href="/a">a</a> <a href="/b">b</a> <a href="/c">c</a> {links}</main>'
    )
    assert site.crawl(6)[0] == counts(same=4, changed=1, failed=1)
    site.control.set_page(HOME, '<main><a href="/a">a</a> <a href="/b">b</a> <a href="/c">c</a></main>')
    assert site.crawl(7)[0]["removed"] == 0
    assert site.crawl(8)[1] == [("removed", "deep"), ("removed", "other")]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"manifest": "{{ none }}"}, "changes must name a folder"),
        ({"manifest": "/etc/hostname/seen"}, "cannot be written on this machine"),
    ],
)
def test_nothing_is_billed_where_the_manifest_cannot_be_written(site: Site, more: Any, said: str) -> None:
    done = site.run(1, CRAWL, **more)
    assert done.state == "failed"
    assert said in str(done.error)
    assert site.control.jobs("crawl") == []


INCREMENTAL: tuple[Any, dict[str, Any]] = (
    WebDataIncrementalCrawlOperator,
    {"url": HOME, "refresh_after": 3 * 86400, "max_age": 0, **WAITING},
)
SITEMAP = f"{HOME}sitemap.xml"


def show_sitemap(site: Site, **dates: str) -> None:
    pages = "".join(
        f"<url><loc>{HOME}{name}</loc><lastmod>{date}</lastmod></url>" for name, date in dates.items()
    )
    site.control.set_page(SITEMAP, f"<urlset>{pages}</urlset>")


def plans(site: Site) -> list[str]:
    """Return the plans that remain, finished or not."""
    return [path.name for path in (site.folder / "seen").iterdir() if "plan" in path.name]


def spent(site: Site) -> int:
    return 10_000 - site.control.state()["credits"]


def test_a_site_is_read_in_part(site: Site, tmp_path: Path) -> None:
    """New, old, and pages dated after they were read are requested, and nothing else is billed."""
    site.control.configure(credits=10_000)
    site.show(c="<p>third</p>")

    def run(day: int) -> tuple[dict[str, int], list[str], int]:
        before = spent(site)
        done = site.run(day, INCREMENTAL, save_to=str(tmp_path / "out.jsonl"))
        assert done.state == "success", done.error
        items = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        found = [f"{item['change']} {item['metadata']['sourceURL'].rpartition('/')[2]}" for item in items]
        return done.xcom["changes"], sorted(found), spent(site) - before

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


def lacks(number: int, of: int) -> list[dict[str, Any]]:
    return [{"kind": "sitemaps_not_read", "number": number, "of": of}]


def test_a_page_that_changes_before_its_partition_ends_is_read_again(site: Site, tmp_path: Path) -> None:
    def run(day: datetime) -> dict[str, int]:
        operator, arguments = INCREMENTAL
        task = operator(task_id="t", changes=str(tmp_path / "seen"), **arguments)
        done = direct.run(task, StateStore(), partition=f"{day:%Y-%m-%d}")
        assert done.state == "success", done.error
        return done.xcom["changes"]

    today = datetime.now(timezone.utc)
    assert run(today) == counts(new=3)
    site.show(a="<p>changed</p>")
    show_sitemap(site, a=datetime.now(timezone.utc).isoformat())
    assert run(today + timedelta(days=1)) == counts(changed=1, known=2)


def test_sitemaps_of_sitemaps(site: Site, log: Any) -> None:
    """An index, another below it, and their lists: those that may have news, the newest first, up to the bound."""
    site.control.configure(credits=10_000)
    site.show(c="<p>third</p>")
    host = "https://corner.example"
    site.run(1, INCREMENTAL)
    # A site need not have one, unless its address is given.
    assert "incomplete" not in site.run(2, INCREMENTAL).xcom
    assert site.run(2, INCREMENTAL, sitemap_url=f"{host}/moved.xml").xcom["incomplete"] == lacks(1, 1)

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
    assert few.xcom["changes"] == counts(changed=1, known=3)
    assert few.xcom["credits"]["by_operation"] == {"map": 1, "scrape": 3, "batch_scrape": 1}
    assert few.xcom["incomplete"] == lacks(2, 5)
    logged = log()
    assert "Read 3 of 6 sitemaps for 3 credits" in logged
    not_read = "2 sitemaps that may have changed were not read, such as https://corner.example/of_a"
    assert not_read in logged
    assert "raise max_sitemaps (3)" in logged

    all_of_them = site.run(2, INCREMENTAL)
    assert asked() == ["sitemap.xml", "index", "of_b", "of_a", "broken"]
    assert all_of_them.xcom["changes"] == counts(changed=2, known=2)
    assert all_of_them.xcom["incomplete"] == lacks(1, 5), "broken is no sitemap"
    assert "were not read" not in log().removeprefix(logged).replace(not_read, "")


def test_a_sitemap_is_not_read_beyond_the_credit_limit(site: Site) -> None:
    site.control.configure(credits=10_000)
    site.run(1, INCREMENTAL)
    before = spent(site)
    done = site.run(2, INCREMENTAL, credit_limit=5)
    assert done.state == "failed"
    told = "scrape: nothing was sent: it may exceed credit_limit=5, after 1 credits that were"
    assert told in str(done.error)
    assert spent(site) == before + 1


def test_a_map_that_scans_urls_counts_them(site: Site) -> None:
    site.control.configure(entitlements=["threatProtection"], credits=10_000)
    scans = {"map_options": {"limit": 9, "threat_protection": {"mode": "normal"}}}
    assert site.run(1, INCREMENTAL, **scans).xcom["credits"]["unknown"] == 1
    refused = site.run(2, INCREMENTAL, **scans, credit_limit=20)
    assert "map: nothing was sent: it may exceed credit_limit=20: it may cost up to 21" in str(refused.error)


def test_a_later_attempt_keeps_to_the_plan(site: Site, here: SandboxServer, connect: Any) -> None:
    connect(here, retry_budget=0)
    site.control.configure(credits=10_000)
    headers = {"Retry-After": "1"}
    site.control.add_fault("status", path="/v2/batch/scrape", status=429, headers=headers, times=1)
    done = site.run(1, INCREMENTAL)
    assert (done.state, done.reschedules) == ("success", 1), done.error
    assert len(site.control.requests("/v2/map")) == 1
    assert plans(site) == []


def test_a_plan_remains_until_airflow_has_stored_the_result(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [OSError("the database is down")]
    push = TaskInstance.xcom_push

    def failing(ti: TaskInstance, key: str, value: Any) -> None:
        if key == "data" and failures:
            raise failures.pop()
        push(ti, key, value)

    monkeypatch.setattr(TaskInstance, "xcom_push", failing)
    done = site.run(1, INCREMENTAL, retries=1, multiple_outputs=True)
    assert done.ended == ("success", 2), done.error
    assert [len(site.control.requests(path)) for path in ("/v2/map", "/v2/batch/scrape$")] == [1, 1]
    assert plans(site) == []


def test_what_was_spent_before_a_deferral_is_reported(site: Site) -> None:
    """On Airflow 3.2, which has no task state store, by the worker that resumes the task."""
    site.control.configure(credits=10_000)
    changes = Changes(str(site.folder / "seen"))
    operator, arguments = INCREMENTAL
    task = operator(task_id="t", **{**arguments, "deferrable": True, "changes": changes, "credit_limit": 50})
    done = direct.run(task, None, day=datetime(2026, 1, 1, tzinfo=timezone.utc))
    credits = done.xcom["credits"]
    assert credits["by_operation"] == {"map": 1, "batch_scrape": 3}
    assert credits["used"] == sum(credits["by_connection"].values()) == spent(site) == 4
    assert credits["unknown"] == 0


def test_a_corrected_task_is_planned_anew(site: Site) -> None:
    """The plan of its former `url` or `map_options` lists pages that it must not read."""
    other = "https://other.example/"
    site.control.set_page(other, "<main>other</main>")
    refused: Any = {"status": 402, "body": {"success": False, "error": "Insufficient credits"}}
    site.control.add_fault("status", path="/v2/batch/scrape$", times=3, **refused)
    for more in ({}, {}, {"map_options": {"limit": 2}}):
        assert site.run(1, INCREMENTAL, **more).state == "failed"
    operator, arguments = INCREMENTAL
    done = site.run(1, (operator, {**arguments, "url": other}))
    assert [url_of(item) for item in done.value["data"]] == [other]
    maps = [
        request["body"].get("limit") or request["body"]["url"] for request in site.control.requests("/v2/map")
    ]
    assert maps == [HOME, 2, other]


def test_an_interrupted_plan_is_continued(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate limit at each second sitemap: neither the map nor a sitemap is billed twice."""
    site.control.configure(credits=10_000)
    nested = [f"{HOME}of_{name}.xml" for name in "abc"]
    index = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in nested)
    site.control.set_page(SITEMAP, f"<sitemapindex>{index}</sitemapindex>")
    for url in nested:
        site.control.set_page(
            url, f"<urlset><url><loc>{HOME}a</loc><lastmod>2026-01-01</lastmod></url></urlset>"
        )
    site.run(1, INCREMENTAL)
    before = spent(site)
    site.control.clear_requests()
    scrape, calls = WebDataHook.scrape, itertools.count()

    def limited(hook: WebDataHook, *args: Any, **more: Any) -> Any:
        if next(calls) % 2:
            site.control.add_fault("status", path="/v2/scrape$", status=429, headers={"Retry-After": "60"})
        return scrape(hook, *args, **more)

    monkeypatch.setattr(WebDataHook, "scrape", limited)
    done = site.run(2, INCREMENTAL)
    assert (done.state, done.reschedules) == ("success", 3), done.error
    scraped = [
        request["body"]["url"] for request in site.control.requests("/v2/scrape$") if request["status"] == 200
    ]
    assert sorted(scraped) == sorted([SITEMAP, *nested])
    assert len(site.control.requests("/v2/map")) == 1
    used = sum(done.xcom["credits"]["by_operation"].values())
    assert used == spent(site) - before
    assert plans(site) == []


TRACKING = ("a?utm_source=mail", "a?utm_source=feed", "a#top")
QUERY = ("a?session=1", "a?session=2&x", "a")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("documents", [False, True], ids=["pages", "documents"])
@pytest.mark.parametrize(
    ("spellings", "ignore_query"), [(TRACKING, False), (QUERY, True)], ids=["tracking", "query"]
)
def test_a_page_has_one_row_however_its_url_is_spelled(
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spellings: tuple[str, ...],
    ignore_query: bool,
    documents: bool,
    suffix: str,
) -> None:
    database = tmp_path / "pages.db"
    sqlite3.connect(database).close()
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps({"conn_type": "sqlite", "host": str(database)}))

    def run(day: int, name: str) -> dict[str, str]:
        """Return the texts of the table's pages by their names after a day's run."""
        if day < 9:
            site.show(**{name: f"<p>As of day {day}.</p>"})
        else:
            site.control.delete_page(f"{HOME}{name}")
        output = str(tmp_path / f"{day}{suffix}")
        urls = [f"{HOME}{name}" for name in ("b", name)]
        done = site.run(
            day,
            (WebDataBatchScrapeOperator, {"urls": urls, "max_age": 0, **WAITING}),
            ignore_query=ignore_query,
            removed_after=1,
            save_to=output,
            documents=documents,
        )
        assert done.state == "success", done.error
        load = WebDataToTableOperator(task_id="load", path=output, table="pages", conn_id="warehouse")
        assert direct.run(load).state == "success"
        columns = "url, text" if documents else "source_url, markdown"
        with sqlite3.connect(database) as connection:
            found = connection.execute(f"SELECT {columns} FROM pages").fetchall()
        assert len(dict(found)) == len(found)
        return {url.rpartition("/")[2]: text for url, text in found}

    for day, spelling in enumerate(spellings, 1):
        assert run(day, spelling) == {"a": f"As of day {day}.", "b": "second"}
    assert run(9, spellings[0]) == {"b": "second"}


def test_a_page_that_a_run_finds_several_times_is_new_once(site: Site) -> None:
    searches: Any = (WebDataBatchSearchOperator, {"queries": ["river", {"query": "river", "limit": 4}]})
    found = site.run(1, searches, emit="all")
    urls = [item["url"] for search in found.value["results"] for item in search["web"]]
    site.folder = site.folder / "again"
    once = site.run(1, searches)
    emitted = [item["url"] for search in once.value["results"] for item in search.get("web", ())]
    assert len(urls) > len({*urls})
    assert sorted(emitted) == sorted({*urls})
    assert found.xcom["changes"] == once.xcom["changes"] == counts(new=len(emitted))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"save_to": "{{ '/proc/no/out.jsonl' }}"}, "/proc/no"),
        ({"map_options": {"limit": "{{ 0 }}"}}, "limit"),
    ],
    ids=["file", "map"],
)
def test_an_impossible_batch_is_not_billed(site: Site, wrong: dict[str, Any], said: str) -> None:
    site.control.configure(credits=10_000)
    done = site.run(1, INCREMENTAL, **wrong)
    assert done.state == "failed"
    assert said in str(done.error)
    assert spent(site) == 0
