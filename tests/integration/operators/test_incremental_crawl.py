# SPDX-License-Identifier: Apache-2.0
"""Incremental crawls over nights: which pages are read, what they cost, and what a retry knows."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
from airflow_provider_webdata.options import Changes, Quality
from airflow_provider_webdata.runs.jobs.job import JobRun
from tests.support import direct
from tests.support.direct import Outcome, StateStore, TaskInstance
from webdata_sandbox.server import SandboxServer

HOST = "https://corner.example"
HOME = f"{HOST}/"
SITEMAP = f"{HOME}sitemap.xml"
CREDITS = 10_000


class Found(NamedTuple):
    """What a night found and cost.

    :param emitted: change and name of each emitted item.
    :param read: names of the pages that its batches requested.
    """

    emitted: list[str]
    read: list[str]
    credits: int


class Site:
    """A site in the sandbox, and one task that crawls it night after night."""

    def __init__(self, sandbox: SandboxServer, folder: Path) -> None:
        self.control, self.folder = sandbox.control, folder
        self.control.configure(credits=CREDITS)
        self.arguments: dict[str, Any] = {}
        self.states: dict[str, dict[str, str]] = {}
        self.show(a="first", b="second")
        self.date()

    def show(self, **pages: str) -> None:
        """Create pages, to which the first page links."""
        for name, text in pages.items():
            self.control.set_page(f"{HOME}{name}", f"<main><p>{text}</p></main>")
        self.control.set_page(HOME, "<main>home</main>")

    def date(self, **dates: str) -> None:
        """Create the sitemap."""
        urls = "".join(
            f"<url><loc>{HOME}{name}</loc><lastmod>{date}</lastmod></url>" for name, date in dates.items()
        )
        self.control.set_page(SITEMAP, f"<urlset>{urls}</urlset>")

    def run(self, night: int, store: StateStore | None = None, **more: Any) -> Outcome:
        more = {**self.arguments, **more}
        options = {name: more.pop(name) for name in Changes.__struct_fields__ if name in more}
        given: dict[str, Any] = {
            "url": HOME,
            "refresh_after": timedelta(days=30),
            "max_age": 0,
            "changes": Changes(**{"folder": str(self.folder / "seen"), **options}),
            "save_to": f"{self.folder}/out/*.jsonl",
            "poll_interval": 1,
            **more,
        }
        with DAG("d", schedule=None):
            task = WebDataIncrementalCrawlOperator(task_id="t", **given)
            task >> EmptyOperator(task_id="use")
        return direct.run(task, store or StateStore(), day=day(night), states=self.states)

    def night(self, number: int, **more: Any) -> Found:
        """Run the task, which must succeed."""
        before, jobs = self.credits, len(self.control.jobs("batch_scrape"))
        done = self.run(number, **more)
        assert done.state == "success", done.error
        new_jobs = self.control.jobs("batch_scrape")[jobs:]
        read = [url for job in new_jobs for url in job["request"]["urls"]]
        return Found(emitted(done), sorted(map(name_of, read)), before - self.credits)

    @property
    def credits(self) -> int:
        left: int = self.control.state()["credits"]
        return left

    def maps(self) -> int:
        return len(self.control.requests("/v2/map", "POST"))

    def use(self, night: int, state: str) -> None:
        """Set the state of the task downstream in a night's run."""
        self.states[direct.run_id_of(day(night))] = {"use": state}


def day(night: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=night)


def name_of(url: str) -> str:
    return url.removeprefix(HOME)


def emitted(done: Outcome) -> list[str]:
    items = [json.loads(line) for line in Path(done.xcom["path"]).read_text().splitlines()]
    return sorted(f"{item['change']} {name_of(item.get('page', ''))}" for item in items)


@pytest.fixture
def site(here: SandboxServer, tmp_path: Path) -> Site:
    return Site(here, tmp_path)


@pytest.mark.parametrize("deferrable", [False, True])
def test_nights(site: Site, deferrable: bool) -> None:
    site.arguments = {"deferrable": deferrable, "removed_after": timedelta(days=2)}
    everything = ["", "a", "b"]
    # A map and a sitemap each night, and the pages.
    assert site.night(1) == ([f"new {name}" for name in everything], everything, 2 + 3)
    assert site.night(2) == ([], [], 2), "nothing is new"
    site.show(a="changed", b="changed, and not dated", c="third")
    site.date(a=f"{day(2):%Y-%m-%d}", b="2025-12-01")
    assert site.night(3) == (["changed a", "new c"], ["a", "c"], 2 + 2)
    site.control.delete_page(f"{HOME}a")
    assert site.night(4) == ([], [], 2)
    assert site.night(5) == ([], [], 2)
    assert site.night(6) == (["removed a"], [], 2), "complete runs have missed it for two days"
    assert site.night(7) == ([], [], 2), "it is removed once"
    week = timedelta(days=6)
    assert site.night(8, refresh_after=week) == (["changed b"], ["", "b"], 2 + 2)
    site.show(a="first")
    assert site.night(9, refresh_after=week) == (["new a"], ["a", "c"], 2 + 2), "a page that returns is new"


def test_a_page_that_is_listed_but_fails_is_removed(site: Site) -> None:
    """Only a page that is listed and not requested, or read, is seen."""
    site.night(1)
    site.control.set_page(f"{HOME}a", "<p>x</p>", status=404)
    options = {"refresh_after": timedelta(days=3), "removed_after": timedelta(days=2)}
    found = {night: site.night(night, **options) for night in range(2, 8)}
    assert [night for night, one in found.items() if "a" in one.read] == [4, 5, 6, 7]
    assert [night for night, one in found.items() if one.emitted] == [6]
    assert found[6].emitted == ["removed a"]


def test_an_incomplete_night_removes_no_page(site: Site) -> None:
    """The map has as many links as its limit, or a page that was requested is missing."""
    site.night(1)
    site.control.delete_page(f"{HOME}a")
    for night in (3, 6, 9):
        assert site.night(night, removed_after=timedelta(days=1), map_options={"limit": 2}).emitted == []


@pytest.mark.rule("map-unread")
@pytest.mark.parametrize("deferrable", [False, True])
def test_a_site_that_cannot_be_listed_loses_no_page(site: Site, deferrable: bool) -> None:
    site.arguments = {
        "deferrable": deferrable,
        "removed_after": timedelta(0),
        "refresh_after": timedelta(days=3),
    }
    site.night(1)
    nowhere = {"map_options": {"include_paths": ["^/elsewhere"]}}
    for night in (2, 5, 9):
        done = site.run(night, **nowhere)
        assert (done.state, emitted(done)) == ("success", [])
        assert done.xcom["incomplete"] == [{"kind": "no_links", "number": 1, "of": 1}]
    assert site.night(10).emitted == []


def test_pages_that_no_task_downstream_has_are_read_again(site: Site, log: Any) -> None:
    site.use(1, "failed")
    site.night(1)
    assert site.night(2) == (["new ", "new a", "new b"], ["", "a", "b"], 2 + 3)
    assert "3 of the pages to scrape are not consumed yet by the tasks downstream" in log()
    site.use(2, "success")
    assert site.night(3) == ([], [], 2)


def test_a_cleared_run_reads_what_it_emitted(site: Site) -> None:
    site.night(1)
    site.show(c="third")
    for _ in ("first", "cleared"):
        assert site.night(2) == (["new c"], ["c"], 2 + 1)


@pytest.mark.says("the log says how many and why", "the log also has their highest price")
def test_a_changed_request_reads_all_pages_and_says_what_they_may_cost(site: Site, log: Any) -> None:
    site.night(1)
    site.show(c="third")
    formats = {"formats": ["markdown", "links"], "proxy": "basic", "parsers": []}
    found = site.night(2, **formats)
    assert found == (["changed ", "changed a", "changed b", "new c"], ["", "a", "b", "c"], 2 + 4)
    told = log()
    assert "1 of the pages to scrape are new" in told
    assert "3 of the pages to scrape are because the request or a load of the file changed" in told
    assert "The changed request costs up to 3 credits for these 3 pages: 3 pages at 1 (page)" in told
    assert told.index("costs up to 3 credits") < told.rindex("Started batch scrape")
    assert site.night(3, **formats) == ([], [], 2)


def test_a_page_from_the_cache_is_as_old_as_the_cache(site: Site) -> None:
    """Time passes at Airflow alone, so that the service's copies stay those of the first night."""
    today = (datetime.now(timezone.utc) - day(0)).days
    options = {"max_age": 86_400_000, "refresh_after": timedelta(days=5)}
    everything = ["", "a", "b"]
    assert site.night(today, **options).read == everything
    assert site.night(today + 5, **options) == ([], everything, 2 + 3)
    assert site.night(today + 6, **options).read == everything, "the cached copies were no newer"
    assert site.night(today + 7, refresh_after=timedelta(days=5)).read == everything
    assert site.night(today + 8, refresh_after=timedelta(days=5)).read == []


def list_links(site: Site, *links: str) -> None:
    """Make the map return these links, as a service that cuts the last slash and the query."""
    body = {"success": True, "links": [{"url": f"{HOME}{link}"} for link in links]}
    site.control.add_fault("status", path="/v2/map", method="POST", status=200, body=body, times=None)


def test_the_sitemap_s_own_urls_are_requested(site: Site) -> None:
    list_links(site, "", "products", "p", "a", "plain")
    site.show(**{"products/": "all", "p?id=1": "one", "p?id=2": "two", "plain": "no slash"})
    site.control.set_page(SITEMAP, f"<sitemapindex><sitemap><loc>{HOME}s</loc></sitemap></sitemapindex>")

    def sitemap(*names: str) -> None:
        urls = "".join(f"<url><loc>{HOME}{name}</loc></url>" for name in names)
        site.control.set_page(f"{HOME}s", f"<urlset>{urls}</urlset>")

    sitemap("products/", "p?id=1", "p?id=2")
    pages = ["", "a", "p?id=1", "p?id=2", "plain", "products/"]
    options = {"removed_after": timedelta(0), "refresh_after": timedelta(days=2)}
    assert site.night(1, **options)[:2] == ([f"new {name}" for name in pages], pages)
    # The sitemap is not read, or it has other forms: each page keeps its own.
    assert site.night(2, max_sitemaps=1, **options)[:2] == ([], [])
    assert site.night(3, max_sitemaps=1, **options)[:2] == ([], pages)
    sitemap("products", "p?id=1", "plain/")
    assert site.night(4, **options)[:2] == ([], [])
    assert site.night(5, **options)[:2] == ([], pages)


def lacks(number: int, of: int) -> list[dict[str, Any]]:
    return [{"kind": "sitemaps_not_read", "number": number, "of": of}]


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.says("XCom `plan` has the numbers", "The log warns if sitemaps were not read, and XCom")
def test_sitemaps_that_were_not_read_are_reported(site: Site, log: Any, deferrable: bool) -> None:
    names = "xyz"
    entries = "".join(f"<sitemap><loc>{HOME}{name}.xml</loc></sitemap>" for name in names)
    site.control.set_page(SITEMAP, f"<sitemapindex>{entries}</sitemapindex>")
    for name in names:
        site.control.set_page(f"{HOME}{name}.xml", "<urlset></urlset>")
    done = site.run(1, max_sitemaps=2, deferrable=deferrable)
    assert done.xcom["incomplete"] == lacks(2, 4)
    assert done.xcom["credits"]["by_operation"]["scrape"] == 2
    assert done.xcom["plan"] == {
        "read": 3, "listed": 0, "is_whole": True, "sitemaps": 4, "sitemaps_not_read": 2, "credits": 3,
        "reasons": {"new": 3},
    }  # fmt: skip
    told = log()
    assert "Read 2 of 4 sitemaps for 2 credits" in told
    assert "2 sitemaps that may have changed were not read, such as" in told
    assert "raise max_sitemaps (2)" in told
    assert "incomplete" not in site.run(2).xcom


def test_a_site_need_not_have_a_sitemap_unless_it_is_given(site: Site) -> None:
    site.control.delete_page(SITEMAP)
    assert "incomplete" not in site.run(1).xcom
    assert site.run(2, sitemap_url=f"{HOST}/moved.xml").xcom["incomplete"] == lacks(1, 1)


def test_a_moved_site_replaces_the_former_one(site: Site) -> None:
    site.night(1)
    other = "https://other.example/"
    site.control.set_page(other, "<main>moved</main>")
    options = {"url": other, "removed_after": timedelta(days=1)}
    assert site.night(2, **options).emitted == [f"new {other}"]
    assert site.night(3, **options).emitted == ["removed ", "removed a", "removed b"]
    assert site.night(4, **options).emitted == []


class KilledError(Exception):
    """The worker dies."""


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function by which the next attempt ends once its job has started, after a call of its argument."""
    waiting = JobRun._wait

    def kill_next(then: Any = lambda: None) -> None:
        def dying(*_: Any) -> Any:
            monkeypatch.setattr(JobRun, "_wait", waiting)
            then()
            raise KilledError

        monkeypatch.setattr(JobRun, "_wait", dying)

    return kill_next


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_retry_reads_the_result_of_the_recorded_job(site: Site, kill: Any, deferrable: bool) -> None:
    """It lists nothing: the record has the plan of the job."""
    site.arguments = {"deferrable": deferrable, "removed_after": timedelta(0)}
    site.night(1)
    site.control.delete_page(f"{HOME}b")
    assert site.night(2)[:2] == ([], []), "b is missed"
    site.show(c="third")
    site.control.clear_requests()

    def change_site() -> None:
        site.show(d="fourth")
        site.control.delete_page(f"{HOME}a")
        site.date(c="2026-06-01")

    kill(change_site)
    done = site.run(3, retries=1, quality=Quality(min_items=3, drop_vs_last=0.1))
    assert done.ended == ("success", 2), done.error
    assert emitted(done) == ["new c", "removed b"]
    assert len(site.control.jobs("batch_scrape")) == 2, "one per night with pages"
    assert (site.maps(), len(site.control.requests("/v2/scrape$"))) == (1, 1)
    assert "plan" not in done.xcom
    # The next one misses a for the first time.
    assert site.night(4)[:2] == (["new d"], ["c", "d"])
    assert site.night(5).emitted == ["removed a"]


def test_a_retry_that_attaches_tolerates_one_dead_page(site: Site, kill: Any) -> None:
    """The pages that the site listed in the first attempt count as read."""
    site.night(1)
    site.control.set_page(f"{HOME}dead", "<main>x</main>", error="SCRAPE_TIMEOUT")
    kill()
    done = site.run(2, retries=1)
    assert done.ended == ("success", 2), done.error


def test_a_job_without_a_result_is_replaced_after_another_list(site: Site, kill: Any) -> None:
    site.control.add_fault("fail_batch_scrape", times=1)
    done = site.run(1, retries=1)
    assert done.ended == ("success", 2), done.error
    assert emitted(done) == ["new ", "new a", "new b"]
    assert (site.maps(), len(site.control.jobs("batch_scrape"))) == (2, 2)


@pytest.mark.parametrize(
    "changed",
    [
        {"url": f"{HOME}a"},
        {"map_options": {"limit": 9}},
        {"formats": ["html"]},
        {"sitemap_url": ""},
        {"refresh_after": 60},
    ],
)
def test_a_corrected_task_is_planned_anew(site: Site, kill: Any, changed: dict[str, Any]) -> None:
    """The job of its former arguments may have other pages."""
    store = StateStore()
    kill()
    with pytest.raises(KilledError):
        raise site.run(1, store).error or AssertionError
    done = site.run(1, store, **changed)
    assert done.state == "success", done.error
    assert (site.maps(), len(site.control.jobs("batch_scrape"))) == (2, 2)


@pytest.mark.parametrize("arrives", [True, False])
def test_a_killed_request_is_not_repeated(site: Site, monkeypatch: pytest.MonkeyPatch, arrives: bool) -> None:
    start = WebDataHook.start_batch_scrape

    def dying(hook: WebDataHook, *request: Any, **more: Any) -> Any:
        if arrives:
            start(hook, *request, **more)
        raise KilledError

    monkeypatch.setattr(WebDataHook, "start_batch_scrape", dying)
    done = site.run(1, retries=3)
    assert done.ended == ("failed", 2)
    assert "neither a key nor a delivery names its job" in str(done.error)
    assert all(job["id"] in str(done.error) for job in site.control.jobs("batch_scrape"))
    assert site.maps() == 1


def test_a_rate_limited_start_lists_the_site_again(site: Site, here: SandboxServer, connect: Any) -> None:
    connect(here, retry_budget=0)
    headers = {"Retry-After": "1"}
    site.control.add_fault("status", path="/v2/batch/scrape", status=429, headers=headers, times=1)
    before = site.credits
    done = site.run(1)
    assert (done.state, done.reschedules) == ("success", 1), done.error
    assert site.maps() == 2
    assert done.xcom["credits"]["used"] == before - site.credits == 2 * 2 + 3


def test_a_result_that_airflow_did_not_store_is_published_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [OSError("the database is down")]
    push = TaskInstance.xcom_push

    def failing(ti: TaskInstance, key: str, value: Any) -> None:
        if key == "status" and failures:
            raise failures.pop()
        push(ti, key, value)

    monkeypatch.setattr(TaskInstance, "xcom_push", failing)
    done = site.run(1, retries=1, multiple_outputs=True)
    assert done.ended == ("success", 2), done.error
    assert (site.maps(), len(site.control.jobs("batch_scrape"))) == (1, 1)
    assert emitted(done) == ["new ", "new a", "new b"]


def test_a_deferred_task_without_xcom_removes_pages(site: Site) -> None:
    site.arguments = {"deferrable": True, "removed_after": timedelta(days=1), "do_xcom_push": False}
    assert site.run(1).state == "success"
    site.control.delete_page(f"{HOME}a")
    for night in (2, 3):
        site.show(c=f"as of {night}")
        assert site.run(night, refresh_after=60).state == "success"
    files = sorted((site.folder / "out").iterdir(), key=lambda file: file.stat().st_mtime)
    assert '"removed"' in files[-1].read_text()


def test_what_was_spent_before_a_deferral_is_reported(site: Site) -> None:
    """By the worker that resumes the task."""
    before = site.credits
    with DAG("d", schedule=None):
        task = WebDataIncrementalCrawlOperator(
            task_id="t",
            url=HOME,
            refresh_after=60,
            max_age=0,
            deferrable=True,
            changes=str(site.folder / "seen"),
            poll_interval=1,
            credit_limit=50,
        )
    done = direct.run(task, StateStore(), day=day(1))
    credits = done.xcom["credits"]
    assert credits["by_operation"] == {"map": 1, "scrape": 1, "batch_scrape": 3}
    assert credits["used"] == sum(credits["by_connection"].values()) == before - site.credits == 5


def test_a_sitemap_is_not_read_beyond_the_credit_limit(site: Site) -> None:
    before = site.credits
    done = site.run(1, credit_limit=5)
    assert done.state == "failed"
    assert "scrape: nothing was sent: it may exceed credit_limit=5, after 1 credits that were" in str(
        done.error
    )
    assert before - site.credits == 1


def test_a_map_that_scans_urls_counts_them(site: Site) -> None:
    site.control.configure(entitlements=["threatProtection"])
    scans = {"map_options": {"limit": 9, "threat_protection": {"mode": "normal"}}}
    assert site.run(1, **scans).xcom["credits"]["unknown"] == 1
    refused = site.run(2, **scans, credit_limit=20)
    assert "map: nothing was sent: it may exceed credit_limit=20: it may cost up to 21" in str(refused.error)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"save_to": "{{ '/proc/no/*.jsonl' }}"}, "/proc/no"),
        ({"map_options": {"limit": "{{ 0 }}"}}, "limit"),
    ],
    ids=["file", "map"],
)
def test_an_impossible_batch_is_not_billed(site: Site, wrong: dict[str, Any], said: str) -> None:
    before = site.credits
    done = site.run(1, **wrong)
    assert done.state == "failed"
    assert said in str(done.error)
    assert site.credits == before
