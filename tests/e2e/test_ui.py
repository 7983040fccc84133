# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser with a whole Airflow: its frame, its links, and what changes while a page is open."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

import httpx
import pytest
from playwright.sync_api import FrameLocator, Locator, Page, expect

from airflow_provider_webdata.common.page_urls import UI_PATH, monitor_page
from tests.e2e.conftest import API_KEY
from tests.e2e.run import Run
from tests.support.browser import wait_for_parts
from tests.support.service import CONNECTION_ID
from tests.support.stack import Stack
from tests.support.waiting import PATIENCE, wait_until
from webdata_sandbox.control import SandboxControl

DAG = "webdata_wait"
HEADINGS = ("Monitors", "Inbox", "Overview")


PAGE = "https://prices.example/plans"


@dataclass(frozen=True)
class Shown:
    """A run, and a check that found a page changed."""

    run_id: str
    run_check_id: str
    monitor_id: str
    check_id: str

    @property
    def pages(self) -> dict[str, str]:
        """Name and path of each page, alone."""
        task = {"dag_id": DAG, "run_id": self.run_id, "task_id": "run_check", "map_index": "-1"}
        return {
            "overview": f"{UI_PATH}/",
            "inbox": f"{UI_PATH}/inbox",
            "delivery": f"{UI_PATH}/inbox?id=1",
            "monitors": f"{UI_PATH}/monitors",
            "monitor": monitor_page(CONNECTION_ID, self.monitor_id),
            "check": monitor_page(CONNECTION_ID, self.monitor_id, self.check_id),
            "task": f"{UI_PATH}/task?{urlencode(task)}",
            "results": f"{UI_PATH}/task?{urlencode(task | {'task_id': 'search'})}",
        }


@pytest.fixture(scope="module")
def shown(stack: Stack, start: Callable[..., Run], control: SandboxControl) -> Iterator[Shown]:
    control.clear_faults()
    stack.api.unpause(DAG)
    run = start(DAG)
    with httpx.Client(
        base_url=stack.sandbox_url, headers={"Authorization": f"Bearer {API_KEY}"}, timeout=PATIENCE
    ) as service:
        targets = [{"type": "scrape", "urls": [PAGE]}]
        monitor = {"name": "Plans", "schedule": {"cron": "0 9 * * 1-5"}, "targets": targets}
        monitor_id = service.post("/v2/monitor", json=monitor).json()["data"]["id"]
        for price in ("8 EUR", "9 EUR"):
            control.set_page(
                PAGE, markdown=f"# Plans\n\nHouse coffee, 250 g: {price}\n\nShipped in two days\n"
            )
            check_id = service.post(f"/v2/monitor/{monitor_id}/run").json()["id"]
            control.settle()
        run.succeed()
        yield Shown(run.id, run.xcom("run_check", "check_id"), monitor_id, check_id)
        service.delete(f"/v2/monitor/{monitor_id}")


def test_in_airflows_menu(page: Page, stack: Stack, shown: Shown) -> None:
    """The card on Home and the frame open every page; a link to a task moves Airflow."""
    page.set_viewport_size({"width": 1300, "height": 900})
    page.emulate_media(color_scheme="light")
    page.goto("/")
    card = page.locator(".webdata-card")
    expect(card.get_by_role("link", name=PAGE)).to_be_visible()
    card.get_by_role("link", name="What changed").click()
    page.wait_for_url(f"**{UI_PATH}/#changes")
    page.goto("/plugin/webdata")
    frame = page.frame_locator("iframe[title='Web Data']")
    wait_for_parts(frame)
    # The frame follows the theme that is chosen in Airflow, while it is shown.
    expect(frame.locator("html")).to_have_attribute("data-theme", "light")
    page.evaluate("document.documentElement.className = 'dark'")
    expect(frame.locator("html")).to_have_attribute("data-theme", "dark")
    menu = frame.get_by_role("navigation", name="Web Data")
    for name in HEADINGS:
        menu.get_by_role("link", name=name, exact=True).click()
        expect(menu.get_by_role("link", name=name, exact=True)).to_have_attribute("aria-current", "page")
        wait_for_parts(frame)
    _open_until_answered(frame, "Overview", frame.get_by_role("link", name="Plans").first)
    declared = frame.get_by_role("link", name=f"{DAG}.keep_monitor").first
    _open_until_answered(frame, "Monitors", declared)
    declared.click()
    page.wait_for_url(f"**/dags/{DAG}/tasks/keep_monitor**")


def test_every_link_leads_somewhere(page: Page, stack: Stack, shown: Shown) -> None:
    """In the frame as alone: a page of ours, or one of Airflow's."""
    found: set[str] = set()
    for path in shown.pages.values():
        page.goto(path)
        wait_for_parts(page)
        links = page.eval_on_selector_all(
            "a[href]:not(.login)", "links => links.map(link => [link.href, link.className])"
        )
        for href, kind in links:
            assert (kind == "outside") is not href.startswith(stack.airflow_url), href
            if kind != "outside":
                found.add(href)
    ours = sorted(href for href in found if UI_PATH in href)
    assert len(ours) > 10
    for href in ours:
        answer = page.request.get(href)
        assert answer.status == 200, (href, answer.text()[:300])
    # Airflow's pages are one program, which reads what is shown from the path: one link of each kind.
    airflows = {re.sub(r"(?<=/dags/|/runs/)[^/?]+|(?<=/tasks/)[^/?]+", "*", href): href for href in found}
    airflows = {kind: href for kind, href in airflows.items() if UI_PATH not in href}
    assert airflows
    for href in airflows.values():
        page.goto(href)
        # The task or DAG that all kinds are about, but the list of connections.
        names = re.findall(r"/(?:dags|tasks)/([^/?]+)|/connections$", href)
        expect(page.get_by_text(unquote(names[-1]) or "Connections").first).to_be_visible()
        expect(page.get_by_text("Page not found")).to_have_count(0)


def test_tabs(page: Page, stack: Stack, shown: Shown) -> None:
    run = f"/dags/{DAG}/runs/{quote(shown.run_id, safe='')}"
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1300, "height": 1040})
    page.goto(run)
    expect(page.get_by_text("wait_for_check").first).to_be_visible()
    frame = page.frame_locator("iframe[title='Web Data']")
    _open_tab_of_task(page, run, "wait_for_check")
    sign = frame.get_by_role("link", name=shown.run_check_id).first
    assert wait_until(sign.is_visible), frame.locator("body").inner_text()
    _open_tab_of_task(page, run, "search")
    found = frame.get_by_role("cell", name="https://shop.example/plans")
    expect(found).to_be_visible()
    # Without popups, as in Airflow 3.2.1.
    page.evaluate("document.querySelector('iframe').sandbox = 'allow-scripts allow-same-origin allow-forms'")
    frame.locator("html").evaluate("() => location.reload()")
    page.context.route("https://shop.example/**", lambda route: route.fulfill(body="Plans"))
    with page.context.expect_page() as other:
        found.get_by_role("link").click()
    expect(other.value.get_by_text("Plans")).to_be_visible()
    assert other.value.url == "https://shop.example/plans"
    assert other.value.evaluate("opener") is None
    other.value.close()
    _open_tab_of_task(page, run, "report_changes")
    expect(frame.get_by_text("This task does not use the web data service")).to_be_visible()
    expect(frame.get_by_role("navigation")).to_have_count(0)


def test_a_refresh_keeps_focus_scroll_and_what_is_open(page: Page, shown: Shown) -> None:
    """What differs is replaced, and one sentence says so."""
    page.set_viewport_size({"width": 1300, "height": 300})
    page.goto(f"{UI_PATH}/inbox")
    page.evaluate(
        """async () => {
            window.link = [...document.querySelectorAll("main a.row")].at(-1);
            link.focus();
            scrollTo(0, 150);
            window.at = scrollY;
            await load(document.querySelector("main"), false);
        }"""
    )
    assert page.evaluate("document.activeElement === link && scrollY === at && at > 0")
    expect(page.locator("#updated")).to_contain_text("updated")
    expect(page.locator("#news")).to_be_empty()
    page.evaluate("document.querySelector('main tbody td').textContent = 'old'")
    page.evaluate("load(document.querySelector('main'), false)")
    expect(page.locator("#news")).to_have_text(re.compile("The page changed at .*"))
    expect(page.get_by_text("old", exact=True)).to_have_count(0)
    page.goto(f"{UI_PATH}/")
    wait_for_parts(page)
    details = page.locator(".part details:visible").first
    is_open = details.evaluate("one => one.open = !one.open")
    details.evaluate("one => load(one.closest('.part'), false)")
    expect(page.locator("#updated")).to_be_visible()
    assert details.evaluate("one => one.open") is is_open


def test_times_are_in_the_zone_chosen_in_airflow(page: Page, shown: Shown) -> None:
    """In lists and in filters."""
    page.goto(f"{UI_PATH}/inbox")
    page.evaluate("localStorage.setItem('timezone', JSON.stringify('Asia/Kolkata'))")
    page.reload()
    time = page.locator("time").first
    moment = datetime.fromisoformat(str(time.get_attribute("datetime")))
    local = moment.astimezone(timezone(timedelta(hours=5, minutes=30)))
    expect(time).to_have_text(f"{local:%Y-%m-%d %H:%M:%S}")
    page.get_by_label("Since").fill("2026-01-31T10:00")
    page.get_by_label("Since").blur()
    page.wait_for_url("**since=**")
    assert parse_qs(urlsplit(page.url).query)["since"] == ["2026-01-31T04:30:00.000Z"]
    expect(page.get_by_label("Since")).to_have_value("2026-01-31T10:00")
    page.evaluate("localStorage.removeItem('timezone')")


def test_lists_sort_filter_and_copy(page: Page, shown: Shown) -> None:
    page.set_viewport_size({"width": 1300, "height": 900})
    page.goto(f"{UI_PATH}/inbox")
    expect(page.get_by_role("cell", name=re.compile(r"\bstarted\b"))).to_have_count(0)
    for order in ("ascending", "descending"):
        page.get_by_role("button", name="Sort by Received").click()
        expect(page.locator("th", has_text="Received")).to_have_attribute("aria-sort", order)
        times = page.eval_on_selector_all(
            "tbody time", "times => times.map(one => one.getAttribute('datetime'))"
        )
        assert times == sorted(times, reverse=order == "descending")
    page.get_by_label("Show started events").check()
    page.wait_for_url("**started=1**")
    page.goto(shown.pages["monitor"])
    page.get_by_role("button", name=f"Copy {shown.monitor_id}").click()
    expect(page.get_by_text(re.compile("^(Copied|Selected)$"))).to_be_visible()


def test_by_keyboard(page: Page, shown: Shown) -> None:
    page.goto(f"{UI_PATH}/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{UI_PATH}/inbox")
    page.get_by_role("textbox", name="Event").focus()
    page.keyboard.type("monitor.check.completed")
    page.keyboard.press("Enter")
    page.wait_for_url("**event=monitor.check.completed**")
    expect(page.get_by_role("cell", name="check.completed").first).to_be_visible()


def _go_in_airflow(page: Page, path: str) -> None:
    """Go to another page of Airflow's UI as its links do. Loading the UI costs two CPU seconds."""
    page.evaluate(
        "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')) }", path
    )


def _open_tab_of_task(page: Page, run: str, task_id: str) -> None:
    """Go to a task of a run, and open its tab. The former page's tab may still be there meanwhile."""
    _go_in_airflow(page, f"{run}/tasks/{task_id}")
    page.locator(f'a[href*="/tasks/{task_id}/plugin/"]', has_text="Web Data").click()


def _open_until_answered(frame: FrameLocator, heading: str, sign: Locator) -> None:
    """Open a page until it shows the service's answer, which on a slow machine may come after the page's deadline."""

    def answered() -> bool:
        frame.get_by_role("navigation", name="Web Data").get_by_role("link", name=heading, exact=True).click()
        wait_for_parts(frame)
        return sign.is_visible()

    assert wait_until(answered, pause=1.0), frame.locator("main").inner_text()
