# SPDX-License-Identifier: Apache-2.0
"""The data of `make up DATA=1`: every page answers, and shows what was seeded, also in a real browser."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx
import pytest
from playwright.sync_api import ConsoleMessage, Download, FrameLocator, Locator, Page, expect

from airflow_provider_webdata.common.links import error_link
from airflow_provider_webdata.common.page_urls import UI_PATH, monitor_page, task_page
from airflow_provider_webdata.inbox.wire import INBOX_PATH
from demo.data import DAG_IDS
from tests.support.browser import SCHEMES, WIDTHS, faults, opened, violations, wait_for_parts
from tests.support.ports import free_port
from tests.support.seeded_rows import disagreements
from tests.support.seeded_service import Service, live, spend
from tests.support.service import CONNECTION_ID, SECRET_HEADER, WEBHOOK_SECRET, connection_text
from tests.support.waiting import PATIENCE, wait_until
from tests.support.warm import Warm, airflow_environ
from webdata_sandbox.server import SandboxServer
from webdata_sandbox.testing.migrated_database import MigratedDatabase

UNREACHABLE = "unreachable"
"""A connection whose service has never responded."""
SERVER = Path(__file__).with_name("pages_server.py")


@dataclass(frozen=True)
class Full:
    """The pages, and what they should show."""

    client: httpx.Client
    tokens: dict[str, str]
    sandbox: SandboxServer
    service: Service
    seeded: dict[str, Any]
    folder: Path

    def get(self, path: str, **params: Any) -> str:
        """Return the text of a page, without its markup.

        :param path: below `UI_PATH`, or with it.
        """
        path = path if path.startswith(UI_PATH) else f"{UI_PATH}{path}"
        answer = self.client.get(path, params=params or None)
        assert answer.status_code == 200, (path, answer.text[:500])
        return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())

    def link(self, path: str, page: str, parameter: str, **params: Any) -> str:
        """Return the first address of a page with a parameter, from the links of another page."""
        answer = self.client.get(f"{UI_PATH}{path}", params=params)
        found = re.search(rf'href="({UI_PATH}/{page}\?{parameter}=[^"]*)"', answer.text)
        assert found is not None, answer.text
        return unescape(found[1])

    def task_page(self, dag_id: str, task_id: str, index: int = -1) -> str:
        """Return the path of a task's page in the newest run."""
        return task_page(dag_id, self.seeded["runs"][dag_id], task_id, index)

    def attention(self) -> str:
        """Return the markup of what needs attention in the last days."""
        return self.client.get(f"{UI_PATH}/attention?days=7").text

    @property
    def check_page(self) -> str:
        """The path of the newest check that found changes."""
        prices = "Competitor prices"
        return monitor_page(CONNECTION_ID, self.service.monitors[prices], self.service.checks[prices][-1].id)

    def task(self, dag_id: str, task_id: str, index: int = -1) -> str:
        """Return the text of a task's page in the newest run."""
        return self.get(self.task_page(dag_id, task_id, index))


@pytest.fixture(scope="module")
def full(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: MigratedDatabase, warm: Warm
) -> Iterator[Full]:
    folder = tmp_path_factory.mktemp("full")
    migrated_database.copy_to(folder)
    state, port, now = folder / "sandbox.db", free_port(), datetime.now(timezone.utc)
    service = live(state, now)
    env = airflow_environ(
        folder,
        AIRFLOW__WEBDATA__INBOX="True",
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE=str(folder / "passwords.json"),
        AIRFLOW_CONN_WEBDATA_DEFAULT=connection_text(
            f"http://127.0.0.1:{port}", webhook_secret=WEBHOOK_SECRET
        ),
        **{f"AIRFLOW_CONN_{UNREACHABLE.upper()}": connection_text("http://127.0.0.1:9")},
    )
    with (folder / "errors.log").open("wb") as errors:
        process = warm.start(
            [str(SERVER)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"service": service.as_dict(), "now": now.timestamp()}) + "\n")
    process.stdin.flush()
    serving = next((line for line in process.stdout if line.startswith("SERVING ")), None)
    assert serving is not None, (folder / "errors.log").read_text()[-3000:]
    threading.Thread(target=process.stdout.read, daemon=True).start()
    server = json.loads(serving.removeprefix("SERVING "))
    spend(state, server["seeded"]["elsewhere"])
    headers = {"Authorization": f"Bearer {server['tokens']['admin']}"}
    with (
        SandboxServer(state=str(state), port=port) as sandbox,
        httpx.Client(base_url=server["url"], headers=headers, timeout=PATIENCE, trust_env=False) as client,
    ):
        yield Full(client, server["tokens"], sandbox, service, server["seeded"], folder)
    process.terminate()
    process.wait(PATIENCE)


def test_the_days_agree_with_themselves(full: Full) -> None:
    """Each row of the database and of the service: times, ids, and sums."""
    wrong = disagreements(full.folder / "airflow.db", full.folder / "sandbox.db")
    assert wrong == [], "\n".join(wrong)


def test_pages_of_the_service(full: Full) -> None:
    """Each shows what the service and the tasks know; the credits of DAGs and of the team add up."""
    week = full.get("/attention", days=7)
    for text in (
        "Rejected 36 credits spent competitor_prices.scrape_prices",
        "5 of 41 pages failed",
        "HTTP 403 at docs.lakehouse.example",
        "max_error_ratio=0.13 Copy Failed 2 tasks, 1 DAG, 72 credits spent",
        "4 of 12 searches were not started",
        "WD-031",
        "after its deadline",
        f"Connection {UNREACHABLE} does not work The host is unreachable",
    ):
        assert text in week, week
    changed = full.get("/changes", days=7)
    assert re.search(
        r"/house-blend Competitor prices \S+ \S+ UTC .*? price [\d.]+ [\d.]+ [+-][\d.]+%", changed
    ), changed
    assert re.search(r"docs_rag_refresh.crawl_docs and \d earlier runs", changed), changed
    credits = full.get("/credits", conn_id=CONNECTION_ID)
    for dag_id in DAG_IDS:
        assert re.search(rf"{dag_id} ↗ (\S+ ){{2}}{full.seeded['credits'][dag_id]:,.0f} ", credits), credits
    for one in full.service.jobs.values():
        job = full.get("/task/job", conn_id=CONNECTION_ID, operation=one.kind, job_id=one.id)
        assert "credits" in job, job
        assert ("5 of 41 pages failed" in job) is (one == full.service.jobs["docs"])
    monitors = full.get("/monitors/list", conn_id=CONNECTION_ID)
    for name, monitor_id in full.service.monitors.items():
        assert name in monitors
        assert len(full.service.checks[name]) > 9
        page = full.get(monitor_page(CONNECTION_ID, monitor_id))
        assert page.startswith(f"{name} · Web Data"), page
    # Its webhook names no task.
    assert "declared by docs_rag_refresh.declare_monitor" in monitors
    assert {"completed", "partial", "failed"} == {
        check.status for checks in full.service.checks.values() for check in checks
    }
    prices = "Competitor prices"
    ids = {"monitor_id": full.service.monitors[prices], "check_id": full.service.checks[prices][-1].id}
    values = full.get("/monitors/values", conn_id=CONNECTION_ID, monitor_id=full.service.monitors[prices])
    assert "kettleworld.example/house-blend price" in values
    assert "250 g:" in full.get("/monitors/check", conn_id=CONNECTION_ID, **ids)


def test_pages_of_airflow(full: Full) -> None:
    """Each shows the rows of Airflow's tables and of the inbox."""
    assert "docs_rag_refresh.crawl_docs failed its task Failed" in full.get("/inbox")
    assert re.search(r"Batch scrape .* page × \d", full.get("/inbox", event="batch_scrape.page"))
    # Which delivery is the newest depends on the time of day.
    link = full.link("/inbox", "inbox", "id", event="crawl.completed")
    row = full.get(link.replace("/inbox?", "/inbox/delivery?"))
    assert "Other events crawl.page" in row, row
    assert re.search(r"Task (docs_rag_refresh.crawl_docs|supplier_catalog_crawl.crawl_catalog) ", row), row
    late = re.search(r"/runs/([^/]+)/tasks/await_editor/", full.attention())
    assert late is not None
    names = {"dag_id": "news_digest", "run_id": unquote(late[1]), "task_id": "await_editor"}
    assert "Late : should have ended" in full.get("/task", **names)
    # The sensor waited for the next check, whose id it returned.
    check = full.task("docs_rag_refresh", "wait_for_check")
    assert any(one.id in check for one in full.service.checks["Lakehouse docs"])
    shown = {
        ("competitor_prices", "scrape_prices", -1): "2 conditions failed",
        ("competitor_prices", "find_offers", 1): "espresso roast 250 g",
        ("docs_rag_refresh", "crawl_docs", -1): "docs_rag/pages-",
        ("docs_rag_refresh", "wait_for_check", -1): "Connection webdata_default",
        ("news_digest", "search_news", -1): "4 of 12 searches were not started",
        ("news_digest", "scrape_articles", 2): "WD-500",
        ("news_digest", "scrape_articles", 4): "No reason was recorded",
        (
            "supplier_catalog_crawl",
            "crawl_catalog",
            -1,
        ): "by webhook; without one, by polling every 30 s",
        ("company_research", "extract_profile", -1): "1 of 1",
        ("company_research", "research_agent", -1): "WD-031",
        ("company_research", "read_register", -1): "WD-039",
    }
    for (dag_id, task_id, index), text in shown.items():
        found = full.task(dag_id, task_id, index)
        assert text in found, found


@pytest.fixture(scope="module")
def page(full: Full) -> Iterator[Page]:
    token = full.client.headers["Authorization"].removeprefix("Bearer ")
    with opened(str(full.client.base_url), token) as page:
        yield page


@pytest.fixture
def wide(page: Page) -> Page:
    page.set_viewport_size({"width": 1300, "height": 900})
    return page


def opened_page(page: Page, path: str) -> None:
    page.goto(path)
    wait_for_parts(page)


def rows_of(download: Download) -> list[dict[str, str]]:
    """Return the rows of a CSV file that the browser saved."""
    return [*csv.DictReader(download.path().read_text().splitlines())]


def top(element: Locator) -> float:
    """Return where an element begins on the page."""
    box = element.bounding_box()
    assert box is not None
    return box["y"]


def test_the_overview_begins_with_what_needs_attention(wide: Page) -> None:
    """With the reason and a link, of 24 hours and of 7 days; then what changed, and credits, by DAG and as a file."""
    page = wide
    opened_page(page, f"{UI_PATH}/")
    assert page.locator("h2").all_inner_texts() == ["Needs attention", "What changed", "Credits"]
    block = page.locator("section[aria-labelledby=attention]")
    expect(block.get_by_role("link", name="24 hours")).to_have_attribute("aria-current", "true")
    of_a_day = block.locator("tbody tr").count()
    block.get_by_role("link", name="7 days").click()
    page.wait_for_url("**days=7**")
    wait_for_parts(page)
    expect(block.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    assert block.locator("tbody tr").count() > of_a_day > 0
    rejected = block.locator("tr", has_text="competitor_prices.scrape_prices").first
    expect(rejected).to_contain_text("Rejected")
    expect(rejected).to_contain_text("2 conditions of data quality failed")
    link = rejected.get_by_role("link", name="competitor_prices").get_attribute("href") or ""
    assert re.fullmatch(r"/dags/competitor_prices/runs/[^/]+/tasks/scrape_prices/plugin/webdata_task", link)
    credits = page.locator("section[aria-labelledby=credits]")
    dag = credits.get_by_role("link", name="docs_rag_refresh", exact=True)
    dag.scroll_into_view_if_needed()
    place = top(dag)
    dag.click()
    expect(credits.get_by_role("heading", name="Tasks of docs_rag_refresh")).to_be_visible()
    assert "dag=docs_rag_refresh" in page.url
    assert top(dag) == place > 0
    # The next step of who spends most.
    expect(credits.locator(".command pre")).to_have_text(re.compile(r"credit_limit=\d+"))
    expect(block.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    expect(credits.locator(".legend li")).to_have_text(["docs_rag_refresh"])
    with page.expect_download() as saved:
        credits.get_by_role("link", name="by DAG").click()
    rows = rows_of(saved.value)
    assert rows[0].keys() == {"dag_id", "used", "tasks", "unknown"}
    assert {row["dag_id"] for row in rows} == {*DAG_IDS}


def test_the_tab_of_a_task_begins_with_why_it_failed(wide: Page, full: Full) -> None:
    """In red: the message, its code, and what to do; for rejected results the conditions, and both files."""
    page = wide
    opened_page(page, full.task_page("news_digest", "scrape_articles", 2))
    first = page.locator("main :is(.problem, dl, h2, table, svg)").first
    box = page.locator(".problem").first
    expect(box).to_contain_text("The upstream site did not respond")
    expect(box.get_by_role("link")).to_have_attribute("href", error_link("WD-500"))
    red, green, blue, _ = box.evaluate(
        """box => {
            const canvas = document.createElement("canvas").getContext("2d");
            canvas.fillStyle = getComputedStyle(box).borderLeftColor;
            canvas.fillRect(0, 0, 1, 1);
            return [...canvas.getImageData(0, 0, 1, 1).data];
        }"""
    )
    assert red > 2 * max(green, blue)
    expect(first).to_have_class("problem")
    opened_page(page, full.task_page("competitor_prices", "scrape_prices"))
    expect(box).to_contain_text("Rejected: 2 conditions failed")
    expect(box.locator("tbody tr")).to_have_count(2)
    for text in ("Expected", "Got", "Last runs", "_latest.jsonl.rejected", "Last good"):
        expect(box).to_contain_text(text)
    expect(first).to_have_class("problem")
    expect(page.locator("h1 .badge")).to_have_text("Failed")
    expect(page.get_by_role("heading", name="Rejected results")).to_be_visible()
    # A limit is shown also where no run missed it.
    expect(page.get_by_text("at least 30")).to_be_visible()
    expect(page.locator(".chart line.limit")).to_have_count(1)


def test_a_check_shows_both_sides(wide: Page, full: Full) -> None:
    """Changed words are marked on each side, and the sides are beside each other."""
    opened_page(wide, full.check_page)
    line = wide.locator(".diff .line").first
    before, after = line.locator("del"), line.locator("ins")
    for side in (before, after):
        marked = "".join(side.locator("mark").all_inner_texts())
        assert 0 < len(marked) < len(side.inner_text())
    assert top(before) == top(after)
    sides = before.bounding_box(), after.bounding_box()
    assert sides[0] is not None
    assert sides[1] is not None
    assert sides[0]["x"] + sides[0]["width"] <= sides[1]["x"]


def test_a_list_keeps_its_order_and_filters_at_once(wide: Page) -> None:
    page = wide
    opened_page(page, f"{UI_PATH}/inbox")
    page.get_by_role("button", name="Sort by Received").click()
    order = page.locator("tbody tr").all_inner_texts()
    assert len(order) > 5
    page.evaluate("load(document.querySelector('main'), false)")
    expect(page.locator("#updated")).to_be_visible()
    expect(page.locator("th", has_text="Received")).to_have_attribute("aria-sort", "ascending")
    firsts = [row.split("\t")[0] for row in page.locator("tbody tr").all_inner_texts()]
    assert firsts == [row.split("\t")[0] for row in order]
    page.locator("input[name=event]").fill("crawl.completed")
    page.locator("input[name=event]").blur()
    page.wait_for_url("**event=crawl.completed**")
    shown = page.locator("tbody tr").count()
    assert shown > 0
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download as CSV").click()
    rows = rows_of(saved.value)
    assert len(rows) >= shown
    assert {row["event"] for row in rows} == {"crawl.completed"}
    opened_page(page, f"{UI_PATH}/monitors")
    expect(page.get_by_text(re.compile(r"^\d+ monitors$"))).to_be_visible()


def test_a_row_of_the_inbox_opens_in_place(wide: Page) -> None:
    """With its body and the other events of its job."""
    page = wide
    opened_page(page, f"{UI_PATH}/inbox?event=crawl.completed")
    rows, link = page.locator("main > table > tbody > tr"), page.locator("a.opens").first
    before = rows.count()
    link.click()
    wait_for_parts(page)
    expect(rows).to_have_count(before + 1)
    expect(link).to_have_attribute("aria-expanded", "true")
    opened = page.locator("tr.opened")
    expect(opened.get_by_text("Other events")).to_be_visible()
    expect(opened.locator(".tree .key").first).to_be_visible()
    assert page.url.endswith("/inbox?event=crawl.completed")
    link.focus()
    page.keyboard.press("Enter")
    expect(opened).to_have_count(0)
    expect(link).to_have_attribute("aria-expanded", "false")
    link.click()
    page.get_by_role("button", name="Sort by Received").click()
    expect(opened).to_have_count(0)
    # A link to a delivery shows it alone, open.
    address = link.get_attribute("href") or ""
    opened_page(page, address)
    expect(rows).to_have_count(2)
    expect(page.locator("a.opens")).to_have_attribute("aria-expanded", "true")
    expect(opened.get_by_text("Other events")).to_be_visible()
    page.get_by_role("link", name="All", exact=True).click()
    expect(opened).to_have_count(0)


def test_with_the_service_down_the_overview_names_the_connection(wide: Page, full: Full) -> None:
    """And shows what Airflow knows."""
    page = wide
    block = page.locator("section[aria-labelledby=attention]")
    line = block.locator("tr", has_text=f"Connection {CONNECTION_ID} does not")
    opened_page(page, f"{UI_PATH}/")
    expect(block.locator("tr", has_text=f"Connection {UNREACHABLE} does not")).to_be_visible()
    expect(line).to_have_count(0)
    full.sandbox.stop()
    try:

        def is_noticed() -> bool:
            opened_page(page, f"{UI_PATH}/")
            return line.is_visible()

        # Answers are cached for 15 seconds.
        assert wait_until(is_noticed, pause=5.0)
        expect(line).to_contain_text("No answer")
        expect(page.locator("section[aria-labelledby=credits] .chart")).to_be_visible()
    finally:
        full.sandbox.start()


def test_a_viewer_without_the_right_to_connections(page: Page, full: Full) -> None:
    """Empty pages name the missing right, and no next step that needs it; credits of their DAGs remain."""
    browser = page.context.browser
    assert browser is not None
    url = str(full.client.base_url)
    with browser.new_context(base_url=url, reduced_motion="reduce") as context:
        context.add_cookies([{"name": "_token", "value": full.tokens["viewer"], "url": url}])
        viewed = context.new_page()
        for path in ("/monitors", "/inbox", "/"):
            opened_page(viewed, f"{UI_PATH}{path}")
            expect(viewed.get_by_text("You do not have permission to read any connection")).to_be_visible()
            expect(viewed.get_by_text("airflow webdata init")).to_have_count(0)
        # That nothing failed cannot be known without the right.
        expect(viewed.get_by_text("only of connections that you may read")).to_be_visible()
        credits = viewed.locator("section[aria-labelledby=credits]")
        for dag_id in DAG_IDS:
            expect(credits.get_by_role("link", name=dag_id, exact=True)).to_be_visible()
        opened_page(viewed, full.task_page("docs_rag_refresh", "crawl_docs"))
        expect(viewed.get_by_text("You do not have permission to read the connection")).to_be_visible()
    opened_page(page, f"{UI_PATH}/inbox?find=nothing-has-this-id")
    expect(page.get_by_text("No delivery that you may read matches the filters")).to_be_visible()
    expect(page.get_by_text("Webhook URL")).to_have_count(0)


def test_an_expired_session_keeps_what_is_shown(page: Page, full: Full) -> None:
    """And says since when it is not updated, with a link to the login; the next answer ends it."""
    browser, url = page.context.browser, str(full.client.base_url)
    assert browser is not None
    with browser.new_context(base_url=url, reduced_motion="reduce") as context:
        context.add_cookies([{"name": "_token", "value": full.tokens["admin"], "url": url}])
        cookies: Any = context.cookies()
        page = context.new_page()
        note, renew = page.locator("#outdated"), "load(document.querySelector('main'), false)"
        opened_page(page, f"{UI_PATH}/inbox")
        rows = page.locator("tbody tr").count()
        context.clear_cookies()
        page.evaluate(renew)
        text = r"Not updated since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\. Your session has expired\. Log in"
        expect(note).to_have_text(re.compile(text), use_inner_text=True)
        assert page.locator("tbody tr").count() == rows > 0
        context.add_cookies(cookies)
        page.evaluate(renew)
        expect(note).to_be_hidden()
        context.clear_cookies()
        page.evaluate(renew)
        note.get_by_role("link", name="Log in").click()
        page.wait_for_url(lambda at: "login" in at and quote(f"{UI_PATH}/inbox", safe="") in at)


@dataclass
class Person:
    """Someone on call, whose clicks are counted."""

    page: Page
    clicks: int = 0

    def begins_at(self, path: str) -> None:
        self.page.set_viewport_size({"width": 1440, "height": 900})
        self.page.goto(path)

    def clicks_on(self, link: Locator) -> None:
        link.click()
        self.clicks += 1

    @property
    def card(self) -> Locator:
        return self.page.locator(".webdata-card")

    def line_of_home(self, name: str | re.Pattern[str]) -> Locator:
        """Open Home until its card has a line. Answers, and failed ones of an earlier test, are cached."""
        line = self.card.get_by_role("link", name=name).first

        def is_shown() -> bool:
            self.begins_at("/")
            expect(self.card).to_be_visible()
            return line.is_visible()

        assert wait_until(is_shown, pause=1.0)
        return line

    def content(self) -> Page | FrameLocator:
        """Return what is shown of the pages: in Airflow's frame; before Airflow 3.3, some are alone."""
        self.page.wait_for_url(re.compile("/webdata"))
        is_alone = urlsplit(self.page.url).path.startswith(UI_PATH)
        shown = self.page if is_alone else self.page.frame_locator("iframe[title='Web Data']")
        wait_for_parts(shown)
        return shown


def test_last_nights_crawl_failed(page: Page) -> None:
    """From Home, two clicks to the reason, the job, and a step that bills nothing."""
    person = Person(page)
    person.begins_at("/")
    person.clicks_on(person.card.get_by_role("link", name="Web Data: needs attention"))
    row = person.content().locator("tr", has_text="HTTP 403 at docs.lakehouse.example").first
    expect(row).to_contain_text("Crawl failed: The site refused every request: HTTP 403.")
    expect(row).to_contain_text("inspect the job before a retry starts another one, which is billed")
    expect(row.get_by_role("link", name="Clear")).to_have_count(0)
    person.clicks_on(row.get_by_role("link", name="docs_rag_refresh.crawl_docs"))
    page.wait_for_url("**/tasks/crawl_docs/plugin/webdata_task")
    tab = person.content()
    expect(tab.locator(".problem").first).to_contain_text("The site refused every request")
    expect(tab.locator(".problem").first).to_contain_text("Inspect the job before a retry starts another one")
    expect(tab.get_by_role("button", name="Copy").first).to_be_visible()
    assert person.clicks == 2


def test_a_price_changed(page: Page) -> None:
    """Home has both values; one click shows them in their place, and the page."""
    person = Person(page)
    alert = person.line_of_home(re.compile(r"price: [\d.]+ → [\d.]+ \([+-][\d.]+%\)"))
    text = alert.inner_text()
    url, before, after = re.findall(r"^\S+|[\d.]+(?= →)|(?<=→ )[\d.]+", text)
    person.clicks_on(alert)
    check = person.content()
    found = check.locator(".found", has_text=url).first
    expect(found.locator("tr", has_text="price")).to_contain_text(re.compile(f"{before}.*{after}", re.DOTALL))
    expect(found.locator(".diff del")).to_have_count(found.locator(".diff ins").count())
    expect(found.get_by_role("link", name=url)).to_have_attribute("href", url)
    assert person.clicks == 1


def test_who_spent_most(page: Page, full: Full) -> None:
    """From Home, two clicks to the task of the first DAG, and to the line that limits it."""
    person = Person(page)
    person.begins_at("/")
    person.clicks_on(person.card.get_by_role("link", name="Web Data: needs attention"))
    credits = person.content().locator("section[aria-labelledby=credits]")
    most = max(full.seeded["credits"], key=full.seeded["credits"].__getitem__)
    first = credits.locator("tbody a.row").first
    expect(first).to_have_text(most)
    person.clicks_on(first)
    expect(credits.get_by_role("heading", name=f"Tasks of {most}")).to_be_visible()
    task = credits.locator("h3 + table tbody a").first.inner_text()
    expect(credits.get_by_text(f"To cap {task} at twice its average, set:")).to_be_visible()
    expect(credits.locator(".command pre")).to_have_text(re.compile(r"^credit_limit=\d+$"))
    expect(credits.locator(".command").get_by_role("button", name="Copy")).to_be_visible()
    assert person.clicks == 2


def test_a_webhook_did_not_arrive(page: Page, full: Full) -> None:
    """From Home, two clicks to the reason and to the connection whose secret differs."""
    event = {"type": "crawl.completed", "id": full.service.jobs["docs"].id, "success": True, "data": []}
    refused = full.client.post(
        f"{INBOX_PATH}/{CONNECTION_ID}", json=event, headers={SECRET_HEADER: "another"}
    )
    assert refused.status_code == 401, refused.text
    person = Person(page)
    line = person.line_of_home("1 delivery with a wrong webhook secret was refused")
    person.clicks_on(line)
    inbox = person.content()
    row = inbox.locator("tr", has_text="with a wrong webhook secret")
    expect(row).to_contain_text(CONNECTION_ID)
    expect(inbox.get_by_text('enter its secret as "Webhook secret"')).to_be_visible()
    person.clicks_on(inbox.get_by_role("link", name="Edit the connection"))
    page.wait_for_url("**/connections")
    assert person.clicks == 2


def test_a_wait_hangs(page: Page, full: Full) -> None:
    """From the task's page, two clicks to the reason, and to a command on the clipboard."""
    late = re.search(r"/dags/news_digest/runs/[^/]+/tasks/await_editor", full.attention())
    assert late is not None
    person = Person(page)
    person.begins_at(late[0])
    person.clicks_on(page.locator('a[href*="/plugin/webdata_task"]'))
    tab = person.content()
    expect(tab.get_by_text("Triggerer: no triggerer is running")).to_be_visible()
    expect(tab.get_by_text("Start one with `airflow triggerer`")).to_be_visible()
    expect(tab.get_by_text(re.compile("Late: should have ended .*"))).to_be_visible()
    command = tab.locator(".command")
    expect(command.locator("pre")).to_have_text("airflow webdata doctor")
    person.clicks_on(command.get_by_role("button", name="Copy"))
    expect(command.get_by_role("button")).to_have_text(re.compile("^(Copied|Selected)$"))
    assert person.clicks == 2


def test_every_page_is_accessible_and_fits(page: Page, full: Full) -> None:
    """Axe finds nothing, and the browser reports no error."""
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(f"{message.text} {message.location.get('url')}")

    page.on("console", note)
    late = re.search(r"/runs/([^/]+)/tasks/await_editor", full.attention())
    assert late is not None
    paths = [
        *(f"{UI_PATH}{path}" for path in ("/", "/?dag=docs_rag_refresh", "/monitors")),
        *(
            f"{UI_PATH}/inbox?{query}"
            for query in ("event=agent.completed", "id=1", "find=nothing-has-this-id")
        ),
        monitor_page(CONNECTION_ID, full.service.monitors["Competitor prices"]),
        full.check_page,
        full.task_page("competitor_prices", "scrape_prices"),
        full.task_page("docs_rag_refresh", "crawl_docs"),
        full.task_page("news_digest", "scrape_articles", 2),
        full.task_page("supplier_catalog_crawl", "crawl_catalog"),
        full.task_page("company_research", "update_crm"),
        task_page("news_digest", unquote(late[1]), "await_editor", -1),
    ]
    wrong = [one for path in paths for one in faults(page, path)]
    page.remove_listener("console", note)
    wrong += faults(page, f"{UI_PATH}/inbox?since=yesterday", 400)
    page.goto("/")
    expect(page.locator(".webdata-card")).to_be_visible()
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            wrong += [("card", scheme, width, one) for one in violations(page, ".webdata-card")]
    assert (wrong, errors) == ([], [])
