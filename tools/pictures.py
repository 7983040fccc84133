# SPDX-License-Identifier: Apache-2.0
"""Pictures of the pages that `make up DATA=1` shows, in Airflow's frame, and of Airflow's own beside them.

    python -m tools.pictures FOLDER [--pages overview,task-*] [--widths 390,1440] [--schemes light,dark]
    python -m tools.pictures docs/images --docs

Without `--pages`, it opens all of them; `--list` prints their names. A picture is as long as its page. `--docs` takes
the pictures of the docs instead.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

import httpx
from playwright.sync_api import Error, expect

from airflow_provider_webdata.common.page_urls import UI_PATH, monitor_page
from demo.data import DAG_IDS
from tests.support.browser import logged_in, save_small
from tests.support.service import CONNECTION_ID
from tests.support.stack import HOMES, Stack
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Page

WIDTHS = (390, 768, 1024, 1440)
SCHEMES = ("light", "dark")
LONGEST = 6000
DOCS = {
    "ui-overview": ("overview", 1300, 1400),
    "ui-monitor": ("check-prices", 1300, 900),
    "ui-task": ("task-failed", 1300, 640),
}
"""Pictures of the docs by file name: page, width, and height."""
FRAME = "iframe[title='Web Data']"


def pages_of(stack: Stack) -> dict[str, str]:
    """Return the path of each page by its name: ours below `UI_PATH`, tabs and Airflow's own as its router has them."""
    runs = {dag_id: _newest(stack, dag_id) for dag_id in DAG_IDS}
    deferred = stack.api.runs("news_digest")[-2]["dag_run_id"]
    manual = [
        one["dag_run_id"] for one in stack.api.runs("supplier_catalog_crawl") if one["run_type"] == "manual"
    ]
    with httpx.Client(
        base_url=stack.sandbox_url, headers={"Authorization": f"Bearer {stack.api_key}"}, timeout=PATIENCE
    ) as service:
        monitors = {one["name"]: one["id"] for one in service.get("/v2/monitor").json()["data"]}
        checks = {
            name: service.get(f"/v2/monitor/{monitor_id}/checks").json()["data"]
            for name, monitor_id in monitors.items()
        }
    prices, docs, tenders = "Competitor prices", "Lakehouse docs", "Bridge tenders"
    failed = next((one["id"] for one in checks[docs] if one["status"] == "failed"), checks[docs][0]["id"])
    partial = next(
        (one["id"] for one in checks[tenders] if one["status"] == "partial"), checks[tenders][0]["id"]
    )
    changed = next(one["id"] for one in checks[prices] if one["summary"]["changed"])
    found = {
        "overview": f"{UI_PATH}/",
        "monitors": f"{UI_PATH}/monitors",
        "monitor-prices": monitor_page(CONNECTION_ID, monitors[prices]),
        "monitor-docs": monitor_page(CONNECTION_ID, monitors[docs]),
        "check-prices": monitor_page(CONNECTION_ID, monitors[prices], changed),
        "check-failed": monitor_page(CONNECTION_ID, monitors[docs], failed),
        "check-partial": monitor_page(CONNECTION_ID, monitors[tenders], partial),
        "inbox": f"{UI_PATH}/inbox",
        "inbox-none": f"{UI_PATH}/inbox?find=nothing-has-this-id",
        "inbox-check": f"{UI_PATH}/inbox?{urlencode({'event': 'monitor.check.completed'})}",
        "delivery": f"{UI_PATH}/inbox?id=1",
        "task-alone": f"{UI_PATH}/task?"
        + urlencode(
            {"dag_id": "competitor_prices", "run_id": runs["competitor_prices"], "task_id": "scrape_prices"}
        ),
        "airflow-home": "/",
        "airflow-dags": "/dags",
        "airflow-dag": "/dags/competitor_prices",
        "airflow-runs": "/dag_runs",
        "airflow-tasks": "/task_instances",
        "airflow-run": _run("competitor_prices", runs["competitor_prices"]),
        "airflow-task": _task("competitor_prices", runs["competitor_prices"], "scrape_prices", tab=""),
        "airflow-xcoms": _task("competitor_prices", runs["competitor_prices"], "scrape_prices", tab="xcom"),
        "airflow-connections": "/connections",
    }
    tasks: dict[str, tuple[str, str, str, int]] = {
        "task-rejected": ("competitor_prices", runs["competitor_prices"], "scrape_prices", -1),
        "task-mapped": ("competitor_prices", runs["competitor_prices"], "find_offers", 1),
        "task-failed-pages": ("docs_rag_refresh", runs["docs_rag_refresh"], "crawl_docs", -1),
        "task-check": ("docs_rag_refresh", runs["docs_rag_refresh"], "wait_for_check", -1),
        "task-not-begun": ("news_digest", runs["news_digest"], "search_news", -1),
        "task-failed": ("news_digest", runs["news_digest"], "scrape_articles", 2),
        "task-killed": ("news_digest", runs["news_digest"], "scrape_articles", 4),
        "task-late": ("news_digest", deferred, "await_editor", -1),
        "task-waiting": ("supplier_catalog_crawl", runs["supplier_catalog_crawl"], "crawl_catalog", -1),
        "task-in-worker": ("supplier_catalog_crawl", manual[-1], "wait_for_export", -1),
        "task-over-limit": ("supplier_catalog_crawl", manual[0], "crawl_catalog", -1),
        "task-invalid": ("company_research", runs["company_research"], "extract_profile", -1),
        "task-agent-failed": ("company_research", runs["company_research"], "research_agent", -1),
        "task-step-failed": ("company_research", runs["company_research"], "read_register", -1),
        "task-retry": ("company_research", runs["company_research"], "scrape_press", -1),
        "task-other": ("company_research", runs["company_research"], "update_crm", -1),
    }
    return found | {name: _task(*names[:3], index=names[3]) for name, names in tasks.items()}


def _newest(stack: Stack, dag_id: str) -> str:
    runs = [one for one in stack.api.runs(dag_id) if one["run_type"] == "scheduled"]
    return str(runs[-1]["dag_run_id"])


def _run(dag_id: str, run_id: str) -> str:
    return f"/dags/{dag_id}/runs/{quote(run_id, safe='')}"


def _task(
    dag_id: str, run_id: str, task_id: str, *, index: int = -1, tab: str = "plugin/webdata_task"
) -> str:
    mapped = "" if index < 0 else f"/mapped/{index}"
    return f"{_run(dag_id, run_id)}/tasks/{task_id}{mapped}/{tab}".rstrip("/")


def take(page: Page, name: str, path: str, widths: list[int], folder: Path, scheme: str) -> None:
    """Take the pictures of one page."""
    frame = _opened(page, path)
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(150)
        if frame is not None:
            page.set_viewport_size({"width": width, "height": _height(frame)})
            page.wait_for_timeout(100)
        page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", animations="disabled")


def take_for_docs(stack: Stack, folder: Path) -> None:
    """Take the pictures of the docs in light and dark colors."""
    paths = pages_of(stack)
    with logged_in(stack) as page:
        for scheme, suffix in (("light", ""), ("dark", "-dark")):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.goto("/plugin/webdata")
            for name, (shown, width, height) in DOCS.items():
                page.set_viewport_size({"width": width, "height": height})
                _opened(page, paths[shown])
                page.wait_for_timeout(500)
                save_small(page.screenshot(animations="disabled"), folder / f"{name}{suffix}.png")


def _opened(page: Page, path: str) -> Frame | None:
    """Open a page; return the frame if it is one of ours."""
    is_ours = path.startswith(UI_PATH)
    place = "/plugin/webdata" if is_ours else path
    if not page.url.endswith(place):
        # As Airflow's links do: loading its UI anew takes seconds.
        page.evaluate(
            "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')) }",
            place,
        )
    if is_ours:
        page.wait_for_selector(FRAME)
        page.evaluate("([frame, path]) => { document.querySelector(frame).src = path }", [FRAME, path])
    elif "/plugin/" not in path:
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(700)
        return None
    found: list[Frame] = []
    # Airflow replaces the frame of another page.
    assert wait_until(lambda: bool(_shown(page, path, found)), pause=0.1), path
    expect(found[-1].locator("main")).to_be_visible()
    expect(found[-1].get_by_text("Loading…")).to_have_count(0)
    return found[-1]


def _shown(page: Page, path: str, found: list[Frame]) -> bool:
    shown = path if path.startswith(UI_PATH) else f"{UI_PATH}/"
    with contextlib.suppress(Error):
        element = page.query_selector(FRAME)
        frame = element.content_frame() if element else None
        if frame is not None and shown in frame.url and _concerns(frame.url, path):
            found.append(frame)
            return True
    return False


def _concerns(url: str, path: str) -> bool:
    """Return whether an address of the frame belongs to the page of Airflow, whose former frame may still be there."""
    parts = path.split("/")
    given = parse_qs(urlsplit(url).query)
    wanted = {"dag_id": "dags", "run_id": "runs", "task_id": "tasks"}
    return all(
        given.get(name) == [unquote(parts[parts.index(part) + 1])]
        for name, part in wanted.items()
        if part in parts and not path.startswith(UI_PATH)
    )


def _height(frame: Frame) -> int:
    inside: int = frame.evaluate("document.documentElement.scrollHeight")
    shown: int = frame.evaluate("innerHeight")
    return min(max(900, 900 - shown + inside), LONGEST)


def main() -> int:
    """Take the pictures; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.pictures", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/pictures"))
    parser.add_argument("--pages", default="*", help="names of pages, also with *, separated by commas")
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)))
    parser.add_argument("--schemes", default=",".join(SCHEMES))
    parser.add_argument("--docs", action="store_true", help="take the pictures of the docs")
    parser.add_argument("--list", action="store_true", help="print the pages' names and addresses")
    given = parser.parse_args()
    stack = Stack.running_in(Path(os.environ.get("WEBDATA_DEMO_HOMES") or HOMES) / "up")
    if stack is None:
        print("Nothing runs. Start it with: make up DATA=1", file=sys.stderr)
        return 1
    wanted: list[str] = given.pages.split(",")
    found = {
        name: path for name, path in pages_of(stack).items() if any(fnmatch(name, one) for one in wanted)
    }
    if given.list:
        for name, path in found.items():
            print(f"{name:28} {stack.airflow_url}{path}")
        return 0
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.docs:
        take_for_docs(stack, given.folder)
        return 0
    widths = [int(width) for width in given.widths.split(",")]
    with logged_in(stack) as page:
        for scheme in given.schemes.split(","):
            page.emulate_media(color_scheme=scheme)
            # Airflow follows it only when it starts.
            page.goto("/plugin/webdata")
            for name, path in found.items():
                began = time.monotonic()
                take(page, name, path, widths, given.folder, scheme)
                _say(f"{name}, {scheme}: {time.monotonic() - began:.1f} s")
    return 0


def _say(text: Any) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
