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
from typing import Any, Literal
from urllib.parse import unquote, urlencode

import httpx
import pytest
from playwright.sync_api import ConsoleMessage, Download, Locator, Page, expect

from airflow_provider_webdata.common.links import error_link
from airflow_provider_webdata.common.page_urls import UI_PATH, check_page, job_page, monitor_page
from demo.data import DAG_IDS
from tests.support.browser import opened, overflow, violations, wait_for_parts
from tests.support.ports import free_port
from tests.support.seeded_service import Service, live, spend
from tests.support.service import CONNECTION_ID, connection_text
from tests.support.waiting import PATIENCE, wait_until
from tests.support.warm import Warm, airflow_environ
from webdata_sandbox.server import SandboxServer
from webdata_sandbox.testing.migrated_database import MigratedDatabase

UNREACHABLE = "unreachable"
"""A connection whose service has never responded."""
SCHEMES: dict[Literal["light", "dark"], int] = {"light": 1300, "dark": 390}
SERVER = Path(__file__).with_name("pages_server.py")


@dataclass(frozen=True)
class Full:
    """The pages, and what they should show."""

    client: httpx.Client
    tokens: dict[str, str]
    sandbox: SandboxServer
    service: Service
    seeded: dict[str, Any]

    def get(self, path: str, **params: Any) -> str:
        """Return the text of a page, without its markup.

        :param path: below `UI_PATH`, or with it.
        """
        path = path if path.startswith(UI_PATH) else f"{UI_PATH}{path}"
        answer = self.client.get(path, params=params or None)
        assert answer.status_code == 200, (path, answer.text[:500])
        return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())

    def link(self, path: str, start: str, **params: Any) -> str:
        """Return the first address of a page that begins so, from the links of another page."""
        answer = self.client.get(f"{UI_PATH}{path}", params=params)
        found = re.search(rf'href="({UI_PATH}/{start}[^"]*)"', answer.text)
        assert found is not None, answer.text
        return unescape(found[1])

    def task_page(self, dag_id: str, task_id: str, index: int = -1) -> str:
        """Return the path of a task's page in the newest run."""
        run_id = self.seeded["runs"][dag_id]
        query = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": index}
        return f"{UI_PATH}/task?{urlencode(query)}"

    @property
    def check_page(self) -> str:
        """The path of the newest check that found changes."""
        prices = "Competitor prices"
        return check_page(CONNECTION_ID, self.service.monitors[prices], self.service.checks[prices][-1].id)

    def task(self, dag_id: str, task_id: str, index: int = -1) -> str:
        """Return the text of a task's page in the newest run."""
        return self.get(self.task_page(dag_id, task_id, index))


@pytest.fixture(scope="module")
def full(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: MigratedDatabase, warm: Warm
) -> Iterator[Full]:
    folder = tmp_path_factory.mktemp("full")
    migrated_database.copy_to(folder)
    state, port = folder / "sandbox.db", free_port()
    service = live(state, datetime.now(timezone.utc))
    env = airflow_environ(
        folder,
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE=str(folder / "passwords.json"),
        AIRFLOW_CONN_WEBDATA_DEFAULT=connection_text(f"http://127.0.0.1:{port}"),
        **{f"AIRFLOW_CONN_{UNREACHABLE.upper()}": connection_text("http://127.0.0.1:9")},
    )
    with (folder / "errors.log").open("wb") as errors:
        process = warm.start(
            [str(SERVER)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"service": service.as_dict()}) + "\n")
    process.stdin.flush()
    serving = next((line for line in process.stdout if line.startswith("SERVING ")), None)
    assert serving is not None, (folder / "errors.log").read_text()[-3000:]
    threading.Thread(target=process.stdout.read, daemon=True).start()
    server = json.loads(serving.removeprefix("SERVING "))
    spend(state, sum(server["seeded"]["credits"].values()))
    headers = {"Authorization": f"Bearer {server['tokens']['admin']}"}
    with (
        SandboxServer(state=str(state), port=port) as sandbox,
        httpx.Client(base_url=server["url"], headers=headers, timeout=PATIENCE, trust_env=False) as client,
    ):
        yield Full(client, server["tokens"], sandbox, service, server["seeded"])
    process.terminate()
    process.wait(PATIENCE)


def test_pages_of_the_service(full: Full) -> None:
    """Each shows what the service and the tasks know; the credits of DAGs and of the team add up."""
    assert "webdata_default" in full.get("/")
    week = full.get("/attention", days=7)
    for text in (
        "Rejected competitor_prices.scrape_prices",
        "Incomplete docs_rag_refresh.crawl_docs",
        "4 of 12 searches were not started",
        "WD-031",
        "after its deadline",
    ):
        assert text in week, week
    credits = full.get("/spend", conn_id=CONNECTION_ID)
    for dag_id in DAG_IDS:
        assert re.search(rf"{dag_id} ↗ (\S+ ){{2}}{full.seeded['credits'][dag_id]:,.0f} ", credits), credits
    jobs = full.get("/jobs/list", conn_id=CONNECTION_ID)
    assert "5 of 41 pages failed" in jobs
    assert "docs_rag_refresh" in jobs
    for kind, job_id in full.service.jobs.values():
        assert job_id in full.get(job_page(CONNECTION_ID, kind, job_id))
    monitors = full.get("/monitors/list", conn_id=CONNECTION_ID)
    for name, monitor_id in full.service.monitors.items():
        assert name in monitors
        assert len(full.service.checks[name]) > 9
        assert monitor_id in full.get(monitor_page(CONNECTION_ID, monitor_id))
    # Its webhook names no task.
    assert "declared by docs_rag_refresh.declare_monitor" in monitors
    assert {"completed", "partial", "failed"} == {
        check.status for checks in full.service.checks.values() for check in checks
    }
    prices = "Competitor prices"
    ids = {"monitor_id": full.service.monitors[prices], "check_id": full.service.checks[prices][-1].id}
    values = full.get("/monitors/values", conn_id=CONNECTION_ID, monitor_id=full.service.monitors[prices])
    assert "kettleworld.example/house-blend price" in values
    assert "250 g:" in full.get("/monitors/check/part", conn_id=CONNECTION_ID, **ids)


def test_pages_of_airflow(full: Full) -> None:
    """Each shows the rows of Airflow's tables and of the inbox."""
    deliveries = full.get("/deliveries")
    assert "crawl.failed" in deliveries
    assert "batch_scrape.page" in full.get("/deliveries", event="batch_scrape.page")
    # Which delivery is the newest depends on the time of day.
    assert "crawl.completed" in full.get(
        full.link("/deliveries", "deliveries/delivery", event="crawl.completed")
    )
    waits = full.get("/waits")
    assert "3 tasks wait" in waits
    late = re.search(
        r"/runs/([^/]+)/tasks/await_editor/.*?>Late<", full.client.get(f"{UI_PATH}/waits").text, re.DOTALL
    )
    assert late is not None
    names = {"dag_id": "news_digest", "run_id": unquote(late[1]), "task_id": "await_editor"}
    assert "Late should have ended" in full.get("/task", **names)
    run = full.get("/run", dag_id="news_digest", run_id=full.seeded["runs"]["news_digest"])
    assert run.index("search_news") < run.index("find_papers"), "it has not started"
    # The sensor waited for the next check, whose id it returned.
    check = full.task("docs_rag_refresh", "wait_for_check")
    assert any(one.id in check for one in full.service.checks["Lakehouse docs"])
    for dag_id, run_id in full.seeded["runs"].items():
        assert "Tasks that use the web data service" in full.get("/run", dag_id=dag_id, run_id=run_id)
    shown = {
        ("competitor_prices", "scrape_prices", -1): "2 conditions failed",
        ("competitor_prices", "find_offers", 1): "espresso roast 250 g",
        ("docs_rag_refresh", "crawl_docs", -1): "docs_rag/pages.parquet",
        ("docs_rag_refresh", "wait_for_check", -1): "WebDataMonitorCheckSensor with connection",
        ("news_digest", "search_news", -1): "4 of 12 searches were not started",
        ("news_digest", "scrape_articles", 2): "WD-500",
        ("news_digest", "scrape_articles", 4): "No reason was recorded",
        (
            "supplier_catalog_crawl",
            "crawl_catalog",
            -1,
        ): "by webhook, polling at least every 300 s (60 s with a self",
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
    """With the reason and a link, of 24 hours and of 7 days; then the credits, by DAG and as a file."""
    page = wide
    opened_page(page, f"{UI_PATH}/")
    assert page.locator("h2").all_inner_texts()[:2] == ["Needs attention", "Credits"]
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
    link = rejected.get_by_role("link").get_attribute("href") or ""
    assert re.fullmatch(r"/dags/competitor_prices/runs/[^/]+/tasks/scrape_prices/plugin/webdata_task", link)
    credits = page.locator("section[aria-labelledby=credits]")
    credits.get_by_role("link", name="docs_rag_refresh", exact=True).click()
    page.wait_for_url("**dag=docs_rag_refresh**")
    wait_for_parts(page)
    expect(block.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    expect(credits.locator(".legend li")).to_have_text(["docs_rag_refresh", re.compile("forecast")])
    credits.get_by_text("Credits by day", exact=True).click()
    with page.expect_download() as saved:
        credits.get_by_role("link", name="Download as CSV").click()
    rows = rows_of(saved.value)
    assert rows[0].keys() == {"day", "dag_id", "credits"}
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
    for text in ("Expected", "Got", "Last runs", "latest.jsonl.rejected", "Last good"):
        expect(box).to_contain_text(text)
    expect(first).to_have_class("problem")
    expect(page.locator("h1 .badge")).to_have_text("Failed")
    expect(page.get_by_role("heading", name="Rejected results")).to_be_visible()
    # A limit is shown also where no run missed it.
    expect(page.get_by_text("at least 30")).to_be_visible()
    expect(page.locator(".chart line.limit")).to_have_count(1)
    box.get_by_role("button", name="Copy").click()
    expect(box.get_by_text(re.compile("^(Copied|Selected)$"))).to_be_visible()


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


def test_lists_keep_their_order_and_filter_at_once(wide: Page) -> None:
    page = wide
    for path, renewed, name in (("/deliveries", "main", "Received"), ("/jobs", ".part", "Target")):
        opened_page(page, f"{UI_PATH}{path}")
        page.get_by_role("button", name=f"Sort by {name}").click()
        order = page.locator("tbody tr").all_inner_texts()
        assert len(order) > 5
        page.evaluate(f"load(document.querySelector('{renewed}'), false)")
        expect(page.locator("#updated")).to_be_visible()
        expect(page.locator("th", has_text=name)).to_have_attribute("aria-sort", "ascending")
        firsts = [row.split("\t")[0] for row in page.locator("tbody tr").all_inner_texts()]
        assert firsts == [row.split("\t")[0] for row in order]
    page.locator("select[name=state]").select_option("failed")
    page.wait_for_url("**state=failed**")
    wait_for_parts(page)
    expect(page.get_by_text(re.compile(r"^\d+ of \d+ jobs .* the filters$"))).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download these as CSV").click()
    assert {row["state"] for row in rows_of(saved.value)} == {"failed"}
    opened_page(page, f"{UI_PATH}/deliveries")
    page.locator("input[name=dag]").fill("docs_rag")
    page.locator("input[name=dag]").blur()
    page.wait_for_url("**dag=docs_rag**")
    shown = page.locator("tbody tr").count()
    assert shown > 0
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download as CSV").click()
    assert len(rows_of(saved.value)) >= shown
    opened_page(page, f"{UI_PATH}/waits")
    held = page.locator("tr", has_text="supplier_catalog_crawl.wait_for_export")
    expect(held).to_contain_text(re.compile(r"holds a worker slot since .* minutes ago"))
    expect(page.locator("tbody tr").first).to_contain_text("wait_for_export")
    page.locator("input[name=dag]").fill("news")
    page.locator("input[name=dag]").blur()
    page.wait_for_url("**dag=news**")
    expect(page.get_by_text("1 task waits for the service now.")).to_be_visible()
    expect(held).to_have_count(0)
    opened_page(page, f"{UI_PATH}/monitors")
    expect(page.get_by_text(re.compile(r"^\d+ monitors$"))).to_be_visible()


def test_with_the_service_down_the_credits_keep_their_period(wide: Page, full: Full) -> None:
    """The page says so; of a service that never responded, it shows the calendar month, and says why."""
    page = wide
    credits = page.locator("section[aria-labelledby=credits]")
    sums = credits.locator(".stats > div", has_text="Period since")
    opened_page(page, f"{UI_PATH}/")
    before = sums.inner_text()
    full.sandbox.stop()
    try:

        def is_noticed() -> bool:
            opened_page(page, f"{UI_PATH}/")
            return credits.get_by_text("It does not report it now").is_visible()

        # Answers are cached for 15 seconds.
        assert wait_until(is_noticed, pause=5.0)
        assert sums.inner_text() == before
        expect(credits).to_contain_text("The period is the last that the service reported")
        opened_page(page, f"{UI_PATH}/?conn_id={UNREACHABLE}")
        expect(credits).to_contain_text(
            "The period is the calendar month, because the service does not report its own"
        )
        expect(sums).to_contain_text(f"{datetime.now(timezone.utc):%Y-%m}-01")
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
        for path in ("/jobs", "/monitors", "/deliveries", "/"):
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
    opened_page(page, f"{UI_PATH}/deliveries?find=nothing-has-this-id")
    expect(page.get_by_text("No delivery that you may read matches the filters")).to_be_visible()
    expect(page.get_by_text("Webhook URL")).to_have_count(0)


def test_lists_fit_their_frame(page: Page) -> None:
    """Beside Airflow's menu, on a tablet and on a small desktop."""
    for path in ("/?days=7", "/deliveries", "/monitors", "/jobs", "/waits"):
        opened_page(page, f"{UI_PATH}{path}")
        for width in (690, 768, 1024):
            page.set_viewport_size({"width": width, "height": 900})
            wider = page.eval_on_selector_all(
                "main, .part", "parts => parts.map(one => one.scrollWidth - one.clientWidth)"
            )
            assert max(wider) <= 0, (path, width, wider)


def test_every_full_page(page: Page, full: Full) -> None:
    """Nothing is cut off, the browser reports no error, and axe finds nothing serious."""
    errors: list[str] = []
    wrong: list[Any] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(f"{message.text} {message.location.get('url')}")

    page.on("console", note)
    paths = [
        *(f"{UI_PATH}{path}" for path in ("/?days=7", "/deliveries", "/monitors", "/jobs", "/waits")),
        f"{UI_PATH}/deliveries/delivery?id=1",
        monitor_page(CONNECTION_ID, full.service.monitors["Competitor prices"]),
        full.check_page,
        *(job_page(CONNECTION_ID, kind, job_id) for kind, job_id in [*full.service.jobs.values()][:2]),
        full.task_page("competitor_prices", "scrape_prices"),
        full.task_page("competitor_prices", "load_prices"),
        full.task_page("docs_rag_refresh", "crawl_docs"),
        full.task_page("news_digest", "scrape_articles", 2),
        full.task_page("news_digest", "scrape_articles", 4),
        f"{UI_PATH}/run?{urlencode({'dag_id': 'news_digest', 'run_id': full.seeded['runs']['news_digest']})}",
    ]
    # Colors do not depend on the width, nor does the width on the colors.
    for scheme, width in SCHEMES.items():
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        for path in paths:
            opened_page(page, path)
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
            wrong += [(scheme, path, one) for one in violations(page)]
            if (pixels := overflow(page)) > 0:
                wrong.append((scheme, path, f"{pixels} px wider than the window"))
    page.remove_listener("console", note)
    assert (wrong, errors) == ([], [])
