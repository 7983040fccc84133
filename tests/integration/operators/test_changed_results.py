# SPDX-License-Identifier: Apache-2.0
"""Only changed results: each operator over several runs of a changing web, with cleared, rejected, and skipped runs."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.observability.stats import Stats

from airflow_provider_webdata.common.item_urls import url_of
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.results.files.formats import SUFFIXES
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support import direct
from tests.support.direct import Outcome, StateStore
from webdata_sandbox.server import SandboxServer

HOME = "https://corner.example/"
WAITING: dict[str, Any] = {"deferrable": False, "poll_interval": 1}
CRAWL: tuple[Any, dict[str, Any]] = (
    WebDataCrawlOperator,
    {"url": HOME, "scrape_options": {"max_age": 0}, **WAITING},
)
ALL = [HOME, f"{HOME}a", f"{HOME}b"]
SOON = timedelta(days=1)


def night(day: int) -> datetime:
    return datetime(2026, 1, day, tzinfo=timezone.utc)


class Site:
    """A small site in the sandbox, and the folder of a task's state."""

    def __init__(self, sandbox: SandboxServer, folder: Path) -> None:
        self.control, self.folder = sandbox.control, folder
        self.show(a="<p>first</p>", b="<p>second</p>")

    def show(self, **pages: str) -> None:
        links = "".join(f'<a href="/{name}">{name}</a> ' for name in "abc")
        self.control.set_page(HOME, f"<main>{links}</main>")
        for name, html in pages.items():
            self.control.set_page(f"{HOME}{name}", f"<main>{html}</main>")

    def run(self, day: int, task: tuple[Any, dict[str, Any]] = CRAWL, **more: Any) -> Outcome:
        operator, arguments = task
        options = {name: more.pop(name) for name in Changes.__struct_fields__ if name in more}
        changes = Changes(**{"folder": str(self.folder / "seen"), **options})
        states, map_index = more.pop("states", None), more.pop("map_index", -1)
        given = {"task_id": "t", "changes": changes, **arguments, **more}
        return direct.run(operator(**given), StateStore(), day=night(day), states=states, map_index=map_index)

    def crawl(self, day: int, **more: Any) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """Return the counts of a day's crawl, and change and URL of the emitted results."""
        done = self.run(day, save_to=str(self.folder / "*.jsonl"), **more)
        assert done.state == "success", done.error
        items = [json.loads(line) for line in Path(done.value["path"]).read_text().splitlines()]
        found = [(item["change"], (url_of(item) or "").rpartition("/")[2]) for item in items]
        return done.xcom["changes"], sorted(found)

    def item(self, day: int, **more: Any) -> dict[str, Any]:
        done = self.run(day, **more)
        [item] = done.value["data"]
        return dict(item)


@pytest.fixture
def site(here: SandboxServer, tmp_path: Path) -> Site:
    return Site(here, tmp_path)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty database with the connection `warehouse`."""
    path = tmp_path / "pages.db"
    sqlite3.connect(path).close()
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps({"conn_type": "sqlite", "host": str(path)}))
    return path


def counts(emit: str = "changed", **given: int) -> dict[str, Any]:
    zeros = dict.fromkeys(("new", "changed", "same", "removed", "failed", "emitted_again"), 0)
    return {"emit": emit, **zeros, **given}


def test_a_site_over_its_runs(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gauges: dict[tuple[str, str | None], float] = {}
    monkeypatch.setattr(
        Stats, "gauge", lambda name, number, tags: gauges.update({(name, tags.get("change")): number})
    )
    assert site.crawl(1) == (counts(new=3, failed=1), [("new", ""), ("new", "a"), ("new", "b")])
    expected = dict.fromkeys(("changed", "same", "removed"), 0) | {"new": 3, "failed": 1}
    assert gauges == {("webdata.changes", change): number for change, number in expected.items()}
    assert site.crawl(2) == (counts(same=3, failed=1), [])
    site.show(b="<p>second, changed</p>", c="<p>third</p>")
    second = site.crawl(3, deferrable=True)
    assert second == (counts(new=1, changed=1, same=2), [("changed", "b"), ("new", "c")])
    site.control.delete_page(f"{HOME}a")
    for day in (4, 7, 10):
        assert site.crawl(day) == (counts(same=3, failed=1), []), "missing for less than 7 days"
    done = site.run(11)
    assert done.xcom["changes"] == counts(same=3, failed=1, removed=1)
    [tombstone] = done.value["data"]
    assert isinstance(tombstone.pop("webdata_version"), int)
    assert tombstone == {
        "change": "removed",
        "page": f"{HOME}a",
        "url": f"{HOME}a",
        "lastSeen": "2026-01-03T00:00:00+00:00",
        "webdata_removed_at": "2026-01-11T00:00:00+00:00",
        "webdata_source": "d/t",
    }
    assert site.crawl(12) == (counts(same=3, failed=1), []), "it is removed once"
    site.show(a="<p>first</p>")
    assert site.crawl(13) == (counts(new=1, same=3), [("new", "a")]), "a page that returns is new"
    assert [path.name for path in (tmp_path / "seen" / "localhost" / "d").iterdir()] == ["t"]
    [state] = (tmp_path / "seen" / "localhost" / "d" / "t").iterdir()
    assert state.match("seen-*.jsonl.gz")


def test_a_cleared_run_emits_what_it_emitted_before(site: Site) -> None:
    assert site.crawl(1)[0] == counts(new=3, failed=1)
    assert site.crawl(1) == (
        counts(new=3, failed=1, emitted_again=3),
        [("new", ""), ("new", "a"), ("new", "b")],
    )
    assert site.crawl(2)[1] == []


@pytest.mark.usefixtures("database")
def test_a_page_is_emitted_until_the_run_that_emitted_it_was_consumed(site: Site, log: Any) -> None:
    states: dict[str, dict[str, str | None]] = {}

    def crawl(day: int, load: str | None) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        run_id = direct.run_id_of(night(day))
        states[run_id] = {"load": "scheduled"}
        with DAG("d", schedule=None, start_date=night(1)):
            operator, arguments = CRAWL
            path = str(site.folder / "*.jsonl")
            pages = operator(task_id="t", changes=str(site.folder / "seen"), save_to=path, **arguments)
            WebDataToTableOperator(task_id="load", path=pages.output, table="pages", conn_id="warehouse")
        done = direct.run(pages, StateStore(), day=night(day), states=states)
        assert done.state == "success", done.error
        states[run_id] = {"load": load}
        items = [json.loads(line) for line in Path(done.value["path"]).read_text().splitlines()]
        return done.xcom["changes"], sorted((item["change"], item["page"][-1]) for item in items)

    assert crawl(1, "failed")[0] == counts(new=3, failed=1)
    site.show(b="<p>second, changed</p>")
    new = [("new", "/"), ("new", "a"), ("new", "b")]
    assert crawl(2, "skipped") == (counts(new=3, failed=1, emitted_again=2), new), "no consumer had them"
    assert crawl(3, "success") == (counts(new=3, failed=1, emitted_again=3), new), "the load skipped the file"
    assert "2 of these were emitted before, and are again: the tasks downstream of an earlier run" in log()
    site.show(b="<p>second, changed again</p>")
    assert crawl(4, "up_for_retry") == (counts(changed=1, same=2, failed=1), [("changed", "b")])
    assert crawl(5, "success") == (
        counts(changed=1, same=2, failed=1, emitted_again=1),
        [("changed", "b")],
    )
    assert crawl(6, "success") == (counts(same=3, failed=1), [])


def test_a_run_whose_consumers_all_started_before_is_emitted_again(site: Site, log: Any) -> None:
    def crawl(day: int, load: str) -> dict[str, Any]:
        with DAG("d", schedule=None, start_date=night(1)):
            pages = CRAWL[0](task_id="t", changes=str(site.folder / "seen"), **CRAWL[1])
            pages >> WebDataScrapeOperator(task_id="next", url=HOME)
        states = {direct.run_id_of(night(day)): {"next": load}}
        done = direct.run(pages, StateStore(), day=night(day), states=states)
        assert done.state == "success", done.error
        return dict(done.xcom["changes"])

    assert crawl(1, "success") == counts(new=3, failed=1)
    assert "All tasks downstream have started before, so none will read these results" in log()
    assert crawl(2, "scheduled") == counts(new=3, failed=1, emitted_again=3)


@pytest.mark.parametrize(
    "edit",
    [
        {"scrape_options": {"max_age": 0, "formats": ["markdown", "html"]}},
        {"scrape_options": {"max_age": 0, "only_main_content": False}},
        {"compare": ["markdown"]},
        {"scrape_options": {"max_age": 0, "formats": ["markdown", {"type": "json", "prompt": "Prices."}]}},
        {"documents": True},
    ],
    ids=["format", "option of the content", "compare", "schema", "documents"],
)
def test_an_edit_of_the_request_emits_each_page_once_more(site: Site, log: Any, edit: dict[str, Any]) -> None:
    def run(day: int) -> dict[str, Any]:
        arguments = {**CRAWL[1], **edit}
        options = {"compare": arguments.pop("compare")} if "compare" in arguments else {}
        done = site.run(day, (CRAWL[0], arguments), **options)
        assert done.state == "success", done.error
        return dict(done.xcom["changes"])

    site.crawl(1)
    again = run(2)
    assert (again["new"], again["changed"] + again["emitted_again"]) == (0, 3)
    assert "the request or a load of the file changed" in log() or again["changed"] == 3
    assert run(3) == counts(same=3, failed=1)


def test_what_does_not_concern_the_content_emits_nothing_again(site: Site) -> None:
    site.crawl(1)
    scrape = {"max_age": 0, "timeout": 50_000, "headers": {"X-Token": "of this night"}}
    done = site.run(2, (CRAWL[0], {**CRAWL[1], "scrape_options": scrape, "limit": 50}))
    assert done.xcom["changes"] == counts(same=3, failed=1)


@pytest.mark.usefixtures("database")
def test_another_column_of_a_load_emits_each_page_once_more(site: Site) -> None:
    def crawl(day: int, columns: list[str]) -> int:
        with DAG("d", schedule=None, start_date=night(1)):
            path = str(site.folder / "*.jsonl")
            pages = CRAWL[0](task_id="t", changes=str(site.folder / "seen"), save_to=path, **CRAWL[1])
            load = {"table": "pages", "conn_id": "warehouse", "columns": columns}
            WebDataToTableOperator(task_id="load", path=pages.output, **load)
        done = direct.run(pages, StateStore(), day=night(day))
        assert done.state == "success", done.error
        return int(done.xcom["changes"]["emitted_again"])

    given = (first := ["source_url", "title"]), first, (more := [*first, "markdown"]), more
    assert [crawl(day, columns) for day, columns in enumerate(given, 1)] == [0, 0, 3, 0]


def test_every_requested_format_is_compared(site: Site) -> None:
    arguments = {**CRAWL[1], "scrape_options": {"max_age": 0, "formats": ["markdown", "links"]}}
    site.control.set_page(f"{HOME}a", "<main><p>first</p><a href='/x'>more</a></main>")
    site.run(1, (CRAWL[0], arguments))
    site.control.set_page(f"{HOME}a", "<main><p>first</p><a href='/y'>more</a></main>")
    done = site.run(2, (CRAWL[0], {**arguments, "scrape_options": {"max_age": 0, "formats": ["links"]}}))
    assert done.xcom["changes"]["changed"] >= 1


def test_two_airflows_that_share_a_folder_are_quiet(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for day, emitted in ((1, 3), (2, 0), (3, 0)):
        for name in ("", "staging/2"):
            monkeypatch.setenv("AIRFLOW__WEBDATA__ENVIRONMENT", name)
            assert len(site.crawl(day)[1]) == emitted
    assert sorted(path.name for path in (site.folder / "seen").iterdir()) == ["localhost", "staging-2"]


def test_tasks_share_a_folder(site: Site) -> None:
    assert site.crawl(1)[0]["new"] == 3
    assert site.crawl(1, task_id="other")[0]["new"] == 3
    assert site.crawl(2)[1] == site.crawl(2, task_id="other")[1] == []
    assert sorted(path.name for path in (site.folder / "seen" / "localhost" / "d").iterdir()) == [
        "other",
        "t",
    ]


def test_a_mapped_instance_is_known_by_its_url_and_not_by_its_index(site: Site) -> None:
    other = "https://other.example/"
    site.control.set_page(other, "<main>other</main>")

    def crawl(day: int, url: str, index: int) -> dict[str, Any]:
        done = site.run(day, (CRAWL[0], {**CRAWL[1], "url": url}), map_index=index, removed_after=timedelta())
        assert done.state == "success", done.error
        return dict(done.xcom["changes"])

    assert [crawl(1, HOME, 0), crawl(1, other, 1)] == [counts(new=3, failed=1), counts(new=1)]
    for day in (2, 3):
        assert [crawl(day, other, 0), crawl(day, HOME, 1)] == [counts(same=1), counts(same=3, failed=1)]
    names = sorted(
        path.name.rpartition("-")[0] for path in (site.folder / "seen" / "localhost" / "d" / "t").iterdir()
    )
    assert names == ["https-corner-example", "https-other-example"]


def test_a_mapped_instance_without_a_name_is_refused_before_anything_is_billed(site: Site) -> None:
    searches = (WebDataSearchOperator, {"query": "river"})
    done = site.run(1, searches, map_index=0)
    assert done.state == "failed"
    assert "Set map_index_template, such as map_index_template='{{ task.query }}'" in str(done.error)
    assert site.control.requests() == []
    with DAG("d", schedule=None, start_date=night(1)):
        named = WebDataSearchOperator(
            task_id="t",
            query="river",
            changes=str(site.folder / "seen"),
            map_index_template="{{ task.query }}",
        )
    done = direct.run(named, StateStore(), day=night(1), map_index=0)
    assert done.state == "success", done.error
    [folder] = (site.folder / "seen" / "localhost" / "d" / "t").iterdir()
    assert folder.name.startswith("river-")


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
}


@pytest.mark.parametrize("name", TASKS)
def test_every_operator(site: Site, name: str) -> None:
    first, second = (site.run(day, TASKS[name]) for day in (1, 2))
    seen = first.xcom["changes"]["new"]
    assert seen > 0
    assert changes_in({**first.value, "changes": None} if isinstance(first.value, dict) else first.value) == (
        ["new"] * seen
    )
    assert first.xcom["changes"] == counts(new=seen)
    assert second.xcom["changes"] == counts(same=seen)


@pytest.mark.parametrize(
    ("task", "on_unchanged", "state"),
    [(CRAWL, "skip", "skipped"), (CRAWL, "empty", "success"), (TASKS["scrape"], "skip", "skipped")],
    ids=["crawl", "crawl, empty", "scrape"],
)
def test_nothing_changed(site: Site, task: Any, on_unchanged: str, state: str) -> None:
    assert site.run(1, task, on_unchanged=on_unchanged).state == "success"
    assert site.run(2, task, on_unchanged=on_unchanged).state == state
    # What is emitted again is a reason to run the tasks downstream.
    assert site.run(1, task, on_unchanged=on_unchanged).state == "success"


def test_a_task_that_emits_unchanged_pages_again_is_not_skipped(site: Site) -> None:
    """Else the tasks downstream would be skipped, too, and count as consumers."""
    edited = (CRAWL[0], {**CRAWL[1], "documents": True})
    failed = {direct.run_id_of(night(2)): {"t": "failed"}}
    found = [site.run(1), site.run(2, edited), site.run(3, edited, on_unchanged="skip", states=failed)]
    assert [one.state for one in found] == ["success"] * 3
    assert [one.xcom["changes"]["emitted_again"] for one in found] == [0, 3, 3]
    assert site.run(4, edited, on_unchanged="skip").state == "skipped"


def test_runs_in_a_real_airflow(run_dag: Any, sandbox: SandboxServer, tmp_path: Path) -> None:
    """Pages are emitted until the tasks downstream have them; without changes, these tasks are skipped."""
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
            task_id="t", url="{HOME}a", save_to="{tmp_path}/*.jsonl",
            changes=Changes("{tmp_path}/seen", on_unchanged="skip"),
        )
        load(pages.output["count"]) >> publish()
        """,
        """
        from airflow.sdk.exceptions import AirflowSkipException
        from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
        logical_dates = [f"2026-01-0{day}T00:00:00+00:00" for day in (1, 2, 3, 4)]
        """,
    )
    found = [run["xcom"]["t.changes"] for run in done.runs]
    assert found == [
        counts(new=1),
        counts(new=1, emitted_again=1),
        counts(new=1, emitted_again=1),
        counts(same=1),
    ]
    assert [run["tasks"]["t"]["state"] for run in done.runs] == [*["success"] * 3, "skipped"]


def test_a_run_that_was_deleted_has_not_consumed(
    run_dag: Any, sandbox: SandboxServer, tmp_path: Path
) -> None:
    sandbox.control.set_page(f"{HOME}a", "<main>first</main>")
    done = run_dag(
        f"""
        @task
        def delete_earlier_runs(run_id):
            with create_session() as session:
                for run in session.scalars(select(DagRun).where(DagRun.dag_id == "DAG_ID", DagRun.run_id != run_id)):
                    session.delete(run)

        delete_earlier_runs() >> WebDataScrapeOperator(
            task_id="t", url="{HOME}a", save_to="{tmp_path}/*.jsonl", changes="{tmp_path}/seen"
        )
        """,
        """
        from airflow.models.dagrun import DagRun
        from airflow.utils.session import create_session
        from sqlalchemy import select
        from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
        logical_dates = [f"2026-01-0{day}T00:00:00+00:00" for day in (1, 2)]
        """,
    )
    assert done.runs[-1]["xcom"]["t.changes"] == counts(new=1, emitted_again=1), done.log[-3000:]


def test_all_with_their_changes_and_the_removed_pages(site: Site) -> None:
    site.run(1)
    site.show(a="<p>changed</p>")
    site.control.delete_page(f"{HOME}b")
    site.run(2, removed_after=SOON)
    done = site.run(3, emit="all", removed_after=SOON)
    changes = {item.get("page", "")[-1]: item["change"] for item in done.value["data"] if "page" in item}
    assert changes == {"/": "same", "a": "same", "b": "removed", "c": "failed"}
    assert done.xcom["changes"] == counts("all", same=2, removed=1, failed=2)
    versions = {item["webdata_version"] for item in done.value["data"] if item["change"] != "failed"}
    assert len(versions) == 1, "each page is an emission of this attempt"


def test_an_incomplete_run_misses_no_page(site: Site) -> None:
    site.crawl(1, removed_after=SOON)
    for day in (2, 9):
        told, found = site.crawl(day, limit=2, removed_after=SOON)
        assert (told["removed"], found) == (0, [])
    assert site.crawl(10, removed_after=SOON)[0] == counts(same=3, failed=1)


def test_a_page_is_never_removed_after_one_miss(site: Site) -> None:
    site.crawl(1, task_id="cleared")
    site.control.delete_page(f"{HOME}b")
    for _ in ("first", "cleared"):
        assert site.crawl(2, task_id="cleared", removed_after=timedelta())[0]["removed"] == 0
    site.show(b="<p>second</p>")
    site.crawl(1)
    site.control.delete_page(f"{HOME}b")
    assert site.crawl(28) == (counts(same=2, failed=2), [])
    assert site.crawl(29, removed_after=SOON)[1] == [("removed", "b")]


def test_a_list_removes_only_pages_that_were_requested(site: Site) -> None:
    def scrape(day: int, *names: str) -> tuple[dict[str, int], list[str]]:
        urls = [f"{HOME}{name}" for name in names]
        task = (WebDataBatchScrapeOperator, {"urls": urls, "max_age": 0, **WAITING})
        done = site.run(day, task, removed_after=SOON)
        assert done.state == "success", done.error
        return done.xcom["changes"], [
            item["url"] for item in done.value["data"] if item["change"] == "removed"
        ]

    site.show(c="<p>third</p>")
    assert scrape(1, "a", "b") == (counts(new=2), [])
    for name in "ab":
        site.control.delete_page(f"{HOME}{name}")
    assert scrape(2, "c") == (counts(new=1), [])
    assert scrape(4, "c") == (counts(same=1), [])
    assert scrape(5, "a", "c") == (counts(same=1, failed=1), [])
    assert scrape(6, "a", "c") == (counts(same=1, failed=1, removed=1), [f"{HOME}a"])


def test_a_search_result_whose_page_failed_is_emitted_once(site: Site) -> None:
    """Only its page is missing."""
    searches = (
        WebDataSearchOperator,
        {"query": "first", "returns": "web", "scrape_options": {"formats": ["markdown"]}},
    )
    site.control.set_page(f"{HOME}a", "<main>first</main>", error="SCRAPE_SITE_ERROR")
    found = site.run(1, searches)
    [failed] = [item for item in found.value if item["page"] == f"{HOME}a"]
    assert failed["change"] == "new"
    assert isinstance(failed["webdata_version"], int)
    assert site.run(2, searches).value == []


def test_no_results_after_some_are_a_warning(site: Site, log: Any) -> None:
    site.crawl(1)
    operator, arguments = CRAWL
    empty = site.run(2, (operator, {**arguments, "include_paths": ["^/elsewhere"]}), on_unchanged="skip")
    assert empty.state == "skipped"
    assert empty.xcom["incomplete"] == [{"kind": "no_results", "number": 3, "of": 3}]
    assert "This run has no results, but earlier runs saw 3 pages" in log()


@pytest.mark.rule("map-unread")
@pytest.mark.parametrize("name", ["map", "crawl"])
def test_no_results_remove_no_page(site: Site, name: str) -> None:
    """The service may respond to a site that is down as to one without pages."""
    operator, arguments = {**TASKS, "crawl": CRAWL}[name]
    assert site.run(1, (operator, arguments)).xcom["changes"]["new"] >= 3
    for day in (2, 5):
        nowhere = {**arguments, "include_paths": ["^/elsewhere"]}
        down = site.run(day, (operator, nowhere), removed_after=timedelta())
        assert down.state == "success", down.error
        assert (down.state, down.xcom["changes"]["removed"]) == ("success", 0)
        assert [lack["kind"] for lack in down.xcom["incomplete"]] == ["no_results"]


def test_a_site_that_is_down_loses_no_page(site: Site) -> None:
    site.crawl(1)
    site.control.delete_page(HOME)
    for day in (2, 20):
        down = site.run(day, removed_after=SOON)
        assert (down.state, down.xcom["changes"]) == ("failed", counts(failed=1))


@pytest.mark.rule("metadata-status", "job-errors")
def test_any_reason_of_not_seeing_a_page_counts_the_same(site: Site) -> None:
    """One has an error status, one is in the job's list of errors, one is forbidden, one is not found."""
    site.show(c="<p>third</p>", d="<p>fourth</p>")
    site.control.set_page(HOME, "".join(f'<a href="/{name}">{name}</a> ' for name in "abcd"))
    assert site.crawl(1)[0]["new"] == 5
    site.control.set_page(f"{HOME}a", "<p>Out of order</p>", status=503)
    site.control.set_page(f"{HOME}b", "<p>x</p>", error="SCRAPE_SITE_ERROR")
    site.control.delete_page(f"{HOME}d")
    site.control.set_site("corner.example", robots="User-agent: *\nDisallow: /c")
    assert site.crawl(2)[1] == []
    assert site.crawl(9)[1] == [("removed", name) for name in "abcd"]
    site.control.set_page(f"{HOME}a", "<main><p>first</p></main>")
    assert site.crawl(10)[1] == [("new", "a")]


@pytest.mark.parametrize(
    ("folder", "said"),
    [("{{ '/proc/none' }}", "/proc/none"), ("{{ '' }}", "changes must name a folder")],
    ids=["not writable", "empty"],
)
def test_nothing_is_billed_where_the_state_cannot_be_written(site: Site, folder: str, said: str) -> None:
    done = site.run(1, folder=folder)
    assert done.state == "failed"
    assert said in str(done.error)
    assert site.control.requests() == []


def test_nothing_is_billed_where_the_state_is_damaged(site: Site) -> None:
    site.crawl(1)
    [state] = (site.folder / "seen" / "localhost" / "d" / "t").iterdir()
    state.write_bytes(state.read_bytes()[:-20])
    site.control.clear_requests()
    done = site.run(2)
    assert done.state == "failed"
    assert f"{state} is damaged" in str(done.error)
    assert site.control.requests() == []
    state.unlink()
    assert site.crawl(2)[0] == counts(new=3, failed=1)


TRACKING = ("a?utm_source=x", "a", "a#top")
QUERY = ("a?x=1", "a?x=2", "a")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("documents", [False, True], ids=["pages", "documents"])
@pytest.mark.parametrize(
    ("spellings", "ignore_query"), [(TRACKING, False), (QUERY, True)], ids=["tracking", "query"]
)
def test_a_page_has_one_row_however_its_url_is_spelled(
    site: Site,
    tmp_path: Path,
    database: Path,
    spellings: tuple[str, ...],
    ignore_query: bool,
    documents: bool,
    suffix: str,
) -> None:
    def run(day: int, name: str) -> dict[str, str]:
        """Return the texts of the table's pages by their names after a day's run."""
        if day < 9:
            site.show(**{name: f"<p>As of day {day}.</p>"})
        else:
            site.control.delete_page(f"{HOME}{name}")
        urls = [f"{HOME}{name}" for name in ("b", name)]
        done = site.run(
            day,
            (WebDataBatchScrapeOperator, {"urls": urls, "max_age": 0, **WAITING}),
            ignore_query=ignore_query,
            removed_after=SOON,
            save_to=str(tmp_path / f"*{suffix}"),
            documents=documents,
        )
        assert done.state == "success", done.error
        path = done.value["path"]
        load = WebDataToTableOperator(task_id="load", path=path, table="pages", conn_id="warehouse")
        loaded = direct.run(load)
        assert loaded.state == "success", loaded.error
        text = "text" if documents else "markdown"
        with sqlite3.connect(database) as connection:
            found = connection.execute(
                f"SELECT page, {text} FROM pages WHERE webdata_removed_at IS NULL"
            ).fetchall()
        assert len(dict(found)) == len(found)
        return {url.rpartition("/")[2]: text for url, text in found}

    for day, spelling in enumerate(spellings, 1):
        assert run(day, spelling) == {"a": f"As of day {day}.", "b": "second"}
    run(9, spellings[0])
    assert run(10, spellings[0]) == {"b": "second"}


def test_a_page_that_a_run_finds_several_times_is_new_once(site: Site) -> None:
    queries = ["river", {"query": "river", "limit": 4}]
    output = f"{site.folder}/*.jsonl"
    searches: Any = (WebDataBatchSearchOperator, {"queries": queries, "save_to": output})

    def urls_of(outcome: direct.Outcome) -> list[str]:
        lines = Path(outcome.value["path"]).read_text().splitlines()
        return [json.loads(line)["url"] for line in lines]

    found = site.run(1, searches, emit="all")
    urls = urls_of(found)
    site.folder = site.folder / "again"
    once = site.run(1, searches)
    emitted = urls_of(once)
    assert site.run(2, searches).xcom["changes"] == counts(same=len(emitted))
    assert len(urls) > len({*urls})
    assert sorted(emitted) == sorted({*urls})
    assert once.xcom["changes"] == counts(new=len(emitted))
    assert found.xcom["changes"] == counts("all", new=len(emitted))


def test_a_url_that_no_database_can_index_is_one_page_every_night(site: Site) -> None:
    name = "a?q=" + "ü" * 3_000
    site.control.set_page(f"{HOME}{name}", "<main>long</main>")
    task = (WebDataBatchScrapeOperator, {"urls": [f"{HOME}{name}"], "max_age": 0, **WAITING})
    done = site.run(1, task)
    assert done.state == "success", done.error
    [item] = done.value["data"]
    assert len(item["page"].encode()) <= 2_000
    assert site.run(2, task).xcom["changes"] == counts(same=1)
