# SPDX-License-Identifier: Apache-2.0
"""The content of each page, from a real database and a real service."""

from __future__ import annotations

import csv
import json
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from html import unescape
from typing import Any
from urllib.parse import parse_qsl

import pytest
from markupsafe import escape

from airflow_provider_webdata.common.links import error_link
from airflow_provider_webdata.common.page_urls import UI_PATH
from airflow_provider_webdata.ui import lookups
from airflow_provider_webdata.ui.application import VIEWS
from tests.integration.ui.auth_manager import HIDDEN_CONN_ID, HIDDEN_DAG
from tests.integration.ui.conftest import (
    CONN_ID,
    COUNTED,
    DASHBOARD,
    EMPTY,
    FAILED_DAG,
    FAILURE,
    FILTERED,
    HOSTILE,
    ODD,
    OTHER_DAG,
    PARTLY,
    PREFIX,
    SECRET,
    SHOWN,
    SITE_DAG,
    Pages,
)
from tests.integration.ui.pages_server import SECONDS
from tests.integration.ui.test_access import ids, params_of
from tests.support.airflow_features import FRAME
from tests.support.snippets import ROOT
from tests.support.waiting import wait_until

__all__ = ["ids"]

CONN = {"conn_id": CONN_ID}


def test_overview(pages: Pages, ids: dict[str, Any]) -> None:
    """Its parts follow each other: what needs attention, what changed, and credits."""
    text = pages.get("/").text
    parts = re.findall(r'data-src="[^"]*/webdata-ui/(\w+)\?', text)
    assert parts == ["attention", "changes", "credits"]
    assert re.findall(r'<a href="[^"]*"[^>]*>(\w+)</a>', text.partition("</nav>")[0]) == [
        "Overview",
        "Monitors",
        "Inbox",
    ]


def stat(text: str, name: str) -> str:
    """Return the value below a name."""
    found = re.search(rf"<dt>{re.escape(name)}[^<]*</dt><dd>(.*?)</dd>", text)
    assert found, (name, text)
    return re.sub(r"<[^>]*>", "", found[1])


def test_what_changed(pages: Pages, jobs: dict[str, str]) -> None:
    """Fields of pages before and after, with a link to the check; and the newest counts of each task, with its file."""
    text = pages.get("/changes").text
    checks, _, tasks = text.partition('<th scope="col">File</th>')
    # Several connections lead to one team of the service: each check is listed once.
    listed = re.findall(r"check_id=([\w-]+)", checks)
    assert len(listed) == len({*listed}) >= 3
    ids = f"monitor_id={jobs['pushed monitor']}&amp;check_id={jobs['pushed check']}"
    row = checks.partition(f'{ids}"')[2].partition("</tr>")[0]
    cells = [re.sub(r"<[^>]*>", "", cell).strip() for cell in row.split("<td")[1:4]]
    assert [cell.partition(">")[2] for cell in cells] == [
        "text",
        f"# After hidden: {SECRET}",
        f"# After pushed: {SECRET}",
    ]
    for shown in (tasks, pages.get("/changes", "viewer").text):
        assert ">shop.crawl</a>" in shown
        assert re.findall(r'<td class="number">(\d*)</td>', shown) == ["2", "", ""]
    assert pages.get("/changes", "guest").status_code == 403


def test_the_card_on_home(pages: Pages, ids: dict[str, Any]) -> None:
    """It has the first lines of both lists, of what the visitor may read, and opens them in Airflow."""
    text = pages.get("/card").text
    attention, _, changes = text.partition(">What changed</a>")
    assert attention.count("<li>") == changes.count("<li>") + 1 == 4
    assert re.search(r">\d+ more</a>", attention)
    frame = f"{PREFIX}{FRAME}" if FRAME else ""
    assert f'href="{frame}{PREFIX}{UI_PATH}/monitors/monitor?conn_id=' in changes
    viewed = pages.get("/card", "viewer").text
    assert SECRET not in viewed
    assert f'href="{PREFIX}/dags/shop/runs/run/tasks/crawl/plugin/webdata_task">shop.crawl</a>' in viewed


def test_credits(pages: Pages) -> None:
    """Each visitor sees the credits of the DAGs that they may read, by day and by DAG."""
    text = pages.get("/credits", **CONN).text
    assert {stat(text, name) for name in ("Today", "Last 7 days", "Last 30 days")} == {"114"}
    assert f">{HIDDEN_DAG}</a>" in text
    assert '<svg class="plot"' in text
    assert "The table shows 8 of 10 DAGs" in text
    limited = pages.get("/credits", "op", **CONN).text
    assert stat(limited, "Today") == "15"
    assert "1 DAG that you may not read" in limited
    one = pages.get("/credits", dag="shop", **CONN).text
    assert "shop alone" in one
    assert stat(one, "Today") == "114"
    # The credits of their own DAGs, with any connection.
    viewed = pages.get("/credits", "viewer").text
    assert stat(viewed, "Today") == "100"
    assert HIDDEN_DAG not in viewed


def test_credits_of_a_connection(pages: Pages) -> None:
    """Each connection has the DAGs that spent with it; a connection that is not listed, too."""
    default = pages.get("/credits", conn_id="webdata_default").text
    assert stat(default, "Today") == "40"
    assert f">{OTHER_DAG}</a>" in default
    assert ">shop</a>" not in default
    choices = default.partition('aria-label="Connection">')[2].partition("</nav>")[0]
    assert 'aria-current="true">webdata_default</a>' in choices
    # Tasks name a connection that cannot be listed.
    assert ">in_vault</a>" in choices
    assert stat(pages.get("/credits", conn_id="in_vault").text, "Today") == "52"
    assert 'aria-label="Connection"' not in pages.get("/credits", "viewer").text
    assert "/credits?conn_id=dead" in pages.get("/", conn_id="dead").text


TODAY = datetime.now(timezone.utc).date().isoformat()
SUMS = (
    # Parameters, and the lines that contain the hidden DAG's credits for an admin, and not for an op.
    ({}, "payroll,106,2,0", None),
    ({"by": "task"}, "payroll,secret_declare,99,1,0", None),
    ({"by": "day", "conn_id": CONN_ID}, ",114,13,0", ",15,12,0"),
    ({"by": "month", "conn_id": CONN_ID}, ",114,13,0", ",15,12,0"),
)


@pytest.mark.parametrize(("params", "admins", "ops"), SUMS)
def test_sums_of_credits(pages: Pages, params: dict[str, str], admins: str, ops: str | None) -> None:
    """By DAG, task, month, or day; each visitor gets the sums of their own DAGs."""
    of_admin, of_op = (pages.get("/credits.csv", role, **params) for role in ("admin", "op"))
    assert of_admin.headers["content-type"].startswith("text/csv")
    assert any(line.endswith(admins) for line in of_admin.text.splitlines()), of_admin.text
    assert not any(line.endswith(admins) for line in of_op.text.splitlines()), of_op.text
    assert ops is None or any(line.endswith(ops) for line in of_op.text.splitlines()), of_op.text


def test_the_interval_of_sums(pages: Pages) -> None:
    tomorrow = (datetime.now(timezone.utc) + timedelta(days=1)).date().isoformat()
    assert len(pages.get("/credits.csv", since=TODAY, until=tomorrow).text.splitlines()) > 1
    for interval in ({"since": tomorrow}, {"since": "2020-01-01", "until": "2020-02-01"}):
        assert pages.get("/credits.csv", **interval).text.splitlines() == ["dag_id,used,tasks,unknown"]
    for wrong, said in (
        ({"by": "run"}, "by must be one of dag, task, month, day."),
        ({"since": "soon"}, "since must be a time such as 2026-01-31T10:00."),
        ({"since": TODAY, "until": "2020-02-01"}, f"until must be later than since (since is {TODAY}"),
    ):
        answer = pages.get("/credits.csv", **wrong)
        assert (answer.status_code, answer.text[: len(said)]) == (400, said)


def attention(pages: Pages, role: str = "admin", **params: Any) -> dict[str, str]:
    """Return the causes that need attention, without markup, by the name of each task or other thing."""
    text = pages.get("/attention", role, **params).text
    return {
        unescape(name): " ".join(unescape(re.sub(r"<[^>]*>", " ", row)).split())
        for row in re.findall(r"<tr>\s*(<td>.*?)</tr>", text, re.DOTALL)
        for name in re.findall(r"<li>\s*<a[^>]*>(.*?)</a>", row)
    }


def test_what_needs_attention(pages: Pages, ids: dict[str, Any]) -> None:
    """Failed, rejected, and incomplete tasks, and failed events of the service, of what the visitor may read."""
    check = {"type": "monitor.check.completed", "success": False, "data": {"monitorId": ids["monitor"]}}
    pages.deliver({**check, "id": "a failed check"})
    pages.deliver({"type": "extract.failed", "success": False, "id": "a failed extraction"})
    # Its task is listed.
    pages.deliver({"type": "crawl.failed", "success": False, "id": "a rejected job"})
    rows = attention(pages)
    assert rows[f"{FAILED_DAG}.crawl"].startswith("1 condition of data quality failed")
    assert " Rejected " in rows[f"{FAILED_DAG}.crawl"]
    assert rows[f"{FAILED_DAG}.reported"].startswith("the inbox's tables are missing Create the tables, then")
    # The command to copy, and the task to clear.
    assert re.search("WD-051 airflow webdata doctor .* Clear the task$", rows[f"{FAILED_DAG}.reported"])
    assert "1,234 of 1,300 searches were not started" in rows["shop.crawl"]
    assert f"{FAILED_DAG}.forgiven" not in rows
    assert f"{FAILED_DAG}.killed" not in rows, "it will be retried"
    assert "or a page of it, failed" in rows["Open the check"]
    assert "Extract failed" in rows["a failed extraction"]
    assert "a rejected job" not in rows
    viewed = attention(pages, "viewer")
    assert "secret_crawl" not in "".join(viewed)
    assert "Open the check" not in viewed
    assert rows.keys() >= viewed.keys() >= {f"{FAILED_DAG}.crawl"}


def test_a_row_counts_the_tasks_that_the_visitor_may_read(pages: Pages) -> None:
    """Tasks of two DAGs failed for one reason; one of the DAGs is hidden."""
    assert "2 tasks, 2 DAGs, 12 credits spent" in attention(pages)[f"{SITE_DAG}.crawl"]
    assert attention(pages)[f"{SITE_DAG}.crawl"].startswith("HTTP 403 at docs.example 2 of 9 pages failed")
    assert " Failed 5 credits spent " in attention(pages, "viewer")[f"{SITE_DAG}.crawl"]


def test_a_check_history_that_cannot_be_read_is_not_empty(pages: Pages) -> None:
    monitor = {"id": "m-1", "name": "Plans", "status": "active", "targets": []}
    check = {"id": "c-1", "status": "completed", "summary": {"changed": 1}}

    def answer(path: str) -> tuple[int, bytes]:
        if "/checks/" in path:
            return 500, b"{}"
        if path.partition("?")[0].endswith("/checks"):
            return (200 if "limit=50" in path else 500), json.dumps(
                {"success": True, "data": [check]}
            ).encode()
        found: object = monitor if "m-1" in path else [monitor]
        return 200, json.dumps({"success": True, "data": found}).encode()

    pages.odd.answer = answer
    # The overview may have cached the first part of the list.
    row = pages.get("/monitors/list", conn_id=FILTERED, offset=50).text.partition(">Plans</a>")[2]
    assert ">unknown</span>" in row.partition('class="number"')[0]
    assert (
        "Numbers of some checks are missing"
        in pages.get("/monitors/values", conn_id=FILTERED, monitor_id="m-1").text
    )


def test_a_connection_that_does_not_answer_has_a_line(pages: Pages, ids: dict[str, Any]) -> None:
    """For those who may read it. Other connections have none."""
    rows = attention(pages)
    assert rows["dead"].startswith("Connection dead does not work The host is unreachable")
    assert not {CONN_ID, "webdata_default"} & rows.keys()
    assert "dead" in attention(pages, "op")
    assert "dead" not in attention(pages, "viewer")


def test_a_later_success_ends_a_concern(pages: Pages) -> None:
    text = pages.get("/attention").text
    shown, _, recovered = text.partition("succeeded in a later run</summary>")
    assert f">{FAILED_DAG}.mended</a>" in recovered
    assert ".mended<" not in shown
    assert "the log" in recovered, "no reason was recorded"
    week = attention(pages, days=7)
    assert " 2 tasks, 1 DAG " in week[f"{FAILED_DAG}.mended"]
    assert f"{FAILED_DAG}.reported" in week


def test_an_empty_state_has_code_that_runs(pages: Pages) -> None:
    """A list without content says what to do next: the code can be pasted."""
    pages.odd.answer = lambda path: (200, json.dumps({"success": True, "data": []}).encode())
    found: list[str] = []

    def is_empty() -> bool:
        text = pages.get("/monitors/list", conn_id=EMPTY).text
        found[:] = re.findall(r'<pre class="code"[^>]*>(.*?)</pre>', text, re.DOTALL)
        return bool(found)

    # Another answer may be cached for 15 seconds.
    assert wait_until(is_empty, pause=1.0)
    exec(compile(unescape(found[0]), "monitors", "exec"), {})


NO_LINKS = {"/task/job", "/monitors/values"}


def test_every_link_begins_with_the_path_of_the_api_server(pages: Pages, ids: dict[str, Any]) -> None:
    for path in VIEWS:
        text = pages.get(path, **params_of(path, ids)).text
        links = re.findall(r'(?:href|src|action|data-src)="([^"]*)"', text)
        assert links or path.endswith(".csv") or path in NO_LINKS, path
        assert all(link.startswith((f"{PREFIX}/", "https://", "#")) for link in links), (path, links)


def test_a_connection_that_does_not_exist(pages: Pages) -> None:
    missing = pages.get("/monitors/list", conn_id="nowhere").text
    assert "There is no connection" in missing
    assert "field" not in missing


def test_a_service_that_hangs_is_not_waited_for(pages: Pages) -> None:
    pages.sandbox.control.add_fault("delay", path="/v2/monitor", seconds=3600)
    # No answer of this page is cached.
    text = pages.get("/monitors/list", conn_id=CONN_ID, offset=50).text
    pages.sandbox.control.clear_faults()
    assert f"did not respond within {SECONDS:.0f} seconds" in text
    assert f"wait at most {lookups.DEADLINE:.0f} seconds" in (ROOT / "docs" / "ui.md").read_text()


def test_answers_are_cached(pages: Pages, ids: dict[str, Any]) -> None:
    params = {**CONN, "monitor_id": ids["monitor"]}
    pages.get("/monitors/monitor/part", **params)
    pages.sandbox.control.clear_requests()
    began = time.monotonic()
    for _ in range(20):
        pages.get("/monitors/monitor/part", **params)
    # Two calls each, repeated every 15 seconds at most.
    rounds = 2 + int((time.monotonic() - began) // 15)
    assert len(pages.sandbox.control.requests("/v2/monitor")) <= 2 * rounds


FILTERS: list[tuple[dict[str, str], bool]] = [
    ({}, True),
    ({"conn_id": CONN_ID}, True),
    ({"conn_id": "dead"}, False),
    ({"event": "crawl.completed"}, True),
    ({"event": "completed"}, True),
    ({"event": "agent.completed"}, False),
    ({"find": "filtered-job"}, True),
    ({"find": "filter-key"}, True),
    ({"find": "https://hooks.example/webdata/inbox/market/filter-key"}, True),
    ({"find": "https://shop.example/a?b=1"}, True),
    ({"find": "https://shop.example/a?b=2"}, False),
    ({"find": "DELIVERY"}, True),
    ({"find": "0"}, False),
    ({"since": "2020-01-01T00:00", "until": "TOMORROW"}, True),
    ({"until": "2020-01-01T00:00"}, False),
    ({"since": "TOMORROW"}, False),
    ({"since": "0001-01-01T00:00:00+14:00", "until": "9999-12-31T23:59:59-12:00"}, True),
    ({"since": "9999-12-31"}, False),
    ({"until": "0001-01-01"}, False),
]
"""Filters, and whether they find the delivery of `test_filters_of_deliveries`."""


def test_filters_of_deliveries(pages: Pages) -> None:
    tomorrow = (datetime.now(timezone.utc) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    page = {"metadata": {"sourceURL": "https://shop.example/a?b=1"}}
    body = {"type": "crawl.completed", "id": "filtered-job", "data": [page]}
    delivery = str(pages.deliver(body, key="filter-key"))
    for filters, found in FILTERS:
        params = {
            name: value.replace("DELIVERY", delivery).replace("TOMORROW", tomorrow)
            for name, value in filters.items()
        }
        answer = pages.get("/inbox", **params)
        assert answer.status_code == 200, answer.text
        assert (f'/inbox/delivery?id={delivery}"' in answer.text) is found, filters
        rows = pages.get("/inbox.csv", **params).text.splitlines()
        assert any(row.startswith(f"{delivery},") for row in rows) is found, filters


def test_no_cell_of_a_file_is_a_formula(pages: Pages) -> None:
    pages.deliver({"type": "crawl.completed", "id": "=HYPERLINK(A1)"})
    rows = [*csv.reader(pages.get("/inbox.csv", find="=HYPERLINK(A1)").text.splitlines())]
    assert [dict(zip(rows[0], row, strict=True))["job_or_check_id"] for row in rows[1:]] == [
        "'=HYPERLINK(A1)"
    ]


def test_pages_of_the_inbox(pages: Pages) -> None:
    """Each delivery is on one page, the newest first."""
    made = [pages.deliver({"type": "paged", "id": f"paged-{number}"}) for number in range(120)]
    seen: list[int] = []
    params: dict[str, Any] = {"event": "paged"}
    for _ in range(3):
        text = pages.get("/inbox", **params).text
        seen += [delivery for delivery in reversed(made) if f'/inbox/delivery?id={delivery}"' in text]
        if 'rel="next"' not in text:
            break
        params["before"] = text.partition("before=")[2].partition('"')[0]
    assert seen == sorted(made, reverse=True)
    assert len(pages.get("/inbox.csv", event="paged").text.splitlines()) == 121


def test_a_row_of_the_inbox_is_a_job(pages: Pages, ids: dict[str, Any]) -> None:
    """It has the events, the task, and what they woke."""
    shop = {"metadata": {"dag_id": "shop", "task_id": "crawl"}}
    for success in (True, False):
        pages.deliver({"type": "crawl.page", "id": ids["crawl"], "success": success, **shop})
    pages.deliver({"type": "crawl.completed", "id": ids["crawl"], "success": True, **shop})
    text = pages.get("/inbox", find=ids["crawl"], dag_id="shop").text
    [row] = [
        " ".join(one.split()) for one in re.findall(r"<tr>\n<td><a class=\"row.*?</tr>", text, re.DOTALL)
    ]
    assert '>Crawl</a> <span class="badge success">Completed' in row
    assert re.search(r"completed( × \d)?, page × 2 \(1 failed\)<", row)
    assert f'{PREFIX}/dags/shop/tasks/crawl">shop.crawl</a>' in row
    assert f'{PREFIX}/dags/shop/runs/run/tasks/crawl/plugin/webdata_task">its task</a>' in row


def test_refused_deliveries(pages: Pages) -> None:
    """They are on the first page of the inbox, and only for those who may read the connection."""
    for conn_id in (CONN_ID, HIDDEN_CONN_ID):
        pages.refuse(conn_id)
    assert "Refused deliveries" not in pages.get("/inbox", role="viewer").text
    for role, conn_ids in {"admin": [HIDDEN_CONN_ID, CONN_ID], "op": [CONN_ID]}.items():
        text = pages.get("/inbox", role=role, find="a job whose webhook did not arrive").text
        # A delivery of another test spells the hidden id in upper case.
        shown = [r"<td>(\w+)</td>\n<td>with a wrong webhook secret", r">connection (\w+)</a>"]
        attention = pages.get("/attention", role=role).text
        for pattern, within in zip(shown, (text, attention), strict=True):
            assert [one.lower() for one in re.findall(pattern, within)] == conn_ids
        assert "with a wrong webhook secret was refused</strong>" in attention
        assert "If the service sent them" in attention
    assert "203.0.113.9 via 10.0.0.2" in text
    assert "enter its secret as &#34;Webhook secret&#34;" in text
    assert f"airflow webdata doctor --conn-id {CONN_ID}" in pages.get("/inbox", find="none", **CONN).text
    assert "Refused deliveries" not in pages.get("/inbox", before=10**15).text


def test_an_open_row(pages: Pages, ids: dict[str, Any]) -> None:
    """It has the body, the task, and the other events of the job. A link to a delivery opens its row."""
    job_id = "opened-job"
    named = {"metadata": {"dag_id": "shop", "run_id": "run", "task_id": "crawl"}}
    started = pages.deliver({"type": "crawl.started", "id": job_id})
    ended = pages.deliver({"type": "crawl.failed", "id": job_id, "success": False, "error": "gone", **named})
    text = pages.get("/inbox/delivery", id=ended).text
    assert "/dags/shop/runs/run/tasks/crawl" in text
    assert "<details open>" in text
    assert '<p class="problem" role="status">gone</p>' in text
    assert f'/inbox?id={started}">crawl.started</a>' in text
    page = pages.get("/inbox", id=ended).text
    assert f'data-src="{PREFIX}{UI_PATH}/inbox/delivery?id={ended}"' in page
    assert f"id={started}" not in page
    # Its body names no task, which has pushed the id of its job.
    assert ">shop.crawl</a>" in pages.get("/inbox/delivery", id=pages.deliver({"id": ids["crawl"]})).text
    for path in ("/inbox", "/inbox/delivery", "/inbox/body"):
        assert pages.get(path, id=10**12).status_code == 404


def test_a_wide_delivery(pages: Pages) -> None:
    """Its row is small, and links lead to the rest, as far as there is any."""
    wide = {f"item {number}": {"price": number} for number in range(30_000)}
    delivery = pages.deliver({"type": "wide", "data": [wide], "metadata": {"kind": "wide"}})
    text = pages.get("/inbox/delivery", id=delivery).text
    assert len(text) < 100_000
    path, _, query = unescape(re.findall(r'class="more" href="([^"]*)">… and', text)[-1]).partition("?")
    assert path == f"{PREFIX}{UI_PATH}/inbox/body"
    rest = pages.get("/inbox/body", **dict(parse_qsl(query)))
    assert rest.text.count('class="key">item') == 200
    assert "<code>29999</code>" in pages.get("/inbox/body", id=delivery, at="2.0.29999").text
    for at in ("2.0.30000", "2.0.0.0.0", "7", "x", "2..0", "-1"):
        assert pages.get("/inbox/body", id=delivery, at=at).status_code == 404, at


def test_many_viewers_of_a_slow_service_are_one_call(pages: Pages) -> None:
    """Beside them, the API server answers from threads of its own."""

    def slowly(path: str) -> tuple[int, bytes]:
        time.sleep(0.5)
        return 200, b"{}"

    pages.odd.answer = slowly
    pages.odd.asked.clear()
    began = time.monotonic()
    params = {"conn_id": ODD[0], "operation": "crawl", "job_id": "slow"}
    with ThreadPoolExecutor(50) as viewers:
        answers = list(viewers.map(lambda _: pages.get("/task/job", **params).status_code, range(50)))
    rounds = 1 + int((time.monotonic() - began) // 15)
    assert set(answers) == {200}
    assert max(Counter(pages.odd.asked).values()) <= rounds


def test_the_default_connection_is_shown_first(pages: Pages) -> None:
    """The first connection by name, `dead`, is not."""
    text = pages.get("/monitors").text
    assert "<option selected>webdata_default</option>" in text
    assert "conn_id=webdata_default" in text


def test_monitors(pages: Pages, ids: dict[str, Any]) -> None:
    text = pages.get("/monitors/list", **CONN).text
    assert "At 09:00, Monday through Friday (UTC)" in text
    assert "another webhook" in text
    assert "shop.keep" in text
    assert "3 monitors</p>" in text
    monitor = pages.get("/monitors/monitor/part", **CONN, monitor_id=ids["monitor"]).text
    assert f"<h1><bdi>{escape(SHOWN)}</bdi> " in monitor
    whole = pages.get("/monitors/monitor", **CONN, monitor_id=ids["monitor"]).text
    assert f"<title>{escape(SHOWN[:8])}" in whole
    # What the newest check that found something found, then a strip of all.
    assert monitor.index("monitors/check?") < monitor.index('class="strip"')
    assert ids["check"] in monitor
    assert "monitors/check?" in monitor
    first = re.findall(r'check_id=([^"&]+)', monitor)[0]
    chosen = pages.get("/monitors/monitor/part", **CONN, monitor_id=ids["monitor"], check_id=first).text
    assert f"monitors/check?conn_id={CONN_ID}&amp;monitor_id={ids['monitor']}&amp;check_id={first}" in chosen
    missing = pages.get("/monitors/monitor/part", **CONN, monitor_id="00000000-0000-4000-8000-000000000000")
    assert 'class="problem"' in missing.text


def test_a_check(pages: Pages, ids: dict[str, Any]) -> None:
    params = {**CONN, "monitor_id": ids["monitor"], "check_id": ids["check"]}
    text = pages.get("/monitors/check", **params).text
    assert ">Changed</span>" in text
    assert "<ins><mark>" in text
    assert "<del>" in text


def test_a_check_of_many_pages_loads_the_rest(pages: Pages) -> None:
    """With and without a filter by status."""
    found = [{"url": f"https://a.example/{number}", "status": "same"} for number in range(25)]
    data = {"id": "long", "status": "completed", "pages": found, "pagination": {"total": 60}}
    pages.odd.answer = lambda path: (200, json.dumps({"success": True, "data": data}).encode())
    params = {"conn_id": EMPTY, "monitor_id": "long", "check_id": "long"}
    assert "skip=25" in pages.get("/monitors/check", **params).text
    filtered = pages.get("/monitors/check", **params, status="same").text
    assert "skip=25" in filtered
    assert "status=same" in filtered


def test_the_job_of_a_task(pages: Pages, ids: dict[str, Any]) -> None:
    """The counts of the service leave out failed pages."""
    assert ">Completed</span>" in pages.get("/task/job", **CONN, operation="crawl", job_id=ids["crawl"]).text
    job = {"success": True, "status": "scraping", "completed": 36, "total": 36, "creditsUsed": 36, "data": []}
    errors = {"errors": [{"id": str(n), "url": "https://a.example/", "error": "gone"} for n in range(5)]}
    pages.odd.answer = lambda path: (200, json.dumps(errors if "errors" in path else job).encode())
    text = pages.get("/task/job", conn_id=PARTLY, operation="crawl", job_id="partly-job").text
    for part in ("data-running", "5 of 41 pages failed", "36 of 41 pages", "36 credits", ">5 gone</span>"):
        assert part in text, part


def test_a_job_that_will_not_make_it(pages: Pages) -> None:
    """Its part says so, with what it costs by then; the reason that the tab has stands alone."""
    began = datetime.now(timezone.utc) - timedelta(hours=1)
    job = {
        "status": "scraping",
        "completed": 57,
        "total": 1140,
        "creditsUsed": 57,
        "createdAt": began.isoformat(),
    }
    errors: dict[str, Any] = {"errors": []}
    pages.odd.answer = lambda path: (
        200,
        json.dumps(errors if "errors" in path else job | {"data": []}).encode(),
    )
    params = {"conn_id": PARTLY, "operation": "crawl"}
    until = (began + timedelta(hours=5, minutes=1)).isoformat()

    def part(job_id: str, **more: str) -> str:
        return " ".join(
            re.sub(r"<[^>]*>", "", pages.get("/task/job", **params, job_id=job_id, **more).text).split()
        )

    assert "57 of 1,140 pages 57 credits about 19 hours left at this pace" in part("slow")
    assert (
        "The crawl needs about 19 hours more at this pace, but the task times out in 4 hours: after about 286 of "
        "1,140 pages, and 286 credits. For the next run, raise wait_timeout" in part("slow", until=until)
    )
    job |= {"status": "failed", "error": "The site refuses.", "warning": "Allow the entire domain."}
    assert "The site refuses. Allow the entire domain." in part("refused")
    assert part("refused", shown="reason credits").endswith("57 of 1,140 pages")


def test_reasons_of_any_shape(pages: Pages) -> None:
    """Of failed pages, and of a check and its pages."""
    odd = {"url": "https://a.example/", "status": "error", "error": ["gone", {"since": 7}]}
    bodies = {
        "/errors": {"errors": [odd, {"url": "https://b.example/", "error": {"message": "away"}}]},
        "/checks/": {"data": {"id": "odd", "status": "failed", "error": ["gone"], "pages": [odd]}},
        "/monitor/": {"data": {"id": "odd"}},
        "": {"status": "completed", "data": []},
    }
    pages.odd.answer = lambda path: (
        200,
        json.dumps({"success": True, **next(body for name, body in bodies.items() if name in path)}).encode(),
    )
    job = pages.get("/task/job", conn_id=EMPTY, operation="crawl", job_id="odd-reasons")
    assert (job.status_code, "gone" in job.text, ">1 away</span>" in job.text) == (200, True, True), job.text
    check = pages.get("/monitors/check", conn_id=EMPTY, monitor_id="odd-reasons", check_id="odd")
    assert (check.status_code, check.text.count("gone")) == (200, 2), check.text


@pytest.mark.parametrize("kind", ["crawl", "agent"])
def test_a_job_whose_counts_are_text(pages: Pages, kind: str) -> None:
    """The part shows its state, and no figures."""
    odd = {"status": "scraping", "completed": "ten", "total": ["30"], "creditsUsed": "few", "warning": 7}
    pages.odd.answer = lambda path: (
        200,
        json.dumps({"errors": "none"} if "errors" in path else {"success": True, **odd}).encode(),
    )
    part = pages.get("/task/job", conn_id=COUNTED, operation=kind, job_id=f"odd-{kind}")
    assert (part.status_code, "Scraping" in part.text) == (200, True), part.text
    assert "<progress" not in part.text


def test_the_tab_says_on_what_a_task_waits(pages: Pages) -> None:
    """In a triggerer until when, and in a worker whether it holds a slot."""

    def wait_of(dag_id: str, task_id: str) -> str:
        text = pages.get("/task", dag_id=dag_id, run_id="run", task_id=task_id).text
        found = re.search(r"<p>(Waits for .*?)</p>", text, re.DOTALL)
        return " ".join(re.sub(r"<[^>]*>", "", found[1]).split()) if found else ""

    late = pages.get("/task", dag_id=HIDDEN_DAG, run_id="run", task_id="secret_crawl").text
    assert wait_of(HIDDEN_DAG, "secret_crawl").startswith(
        "Waits for the crawl, by polling every 30 s, since "
    )
    assert "<strong>Late</strong>: should have ended" in late
    assert ">airflow webdata doctor</pre>" in late
    assert late.count("hidden-job") == late.count("hidden-job</code>") + late.count(
        'aria-label="Copy hidden-job"'
    ) + late.count("job_id=hidden-job")
    assert wait_of("shop", "listen").startswith(f"Waits for a delivery (key {escape(SHOWN)}), by webhook")
    assert wait_of("patient", "held").startswith("Waits for job held-job, in a worker slot, since ")
    assert wait_of("patient", "started").startswith("Waits for the crawl, in a worker slot, since ")
    asleep = wait_of("patient", "asleep")
    assert asleep.startswith(
        "Waits for a delivery with key a, without a worker slot between two checks, since "
    )
    assert not wait_of("patient", "busy")
    assert not wait_of("patient", "resumed")


def test_the_tab_of_a_task(pages: Pages, ids: dict[str, Any]) -> None:
    params = {"dag_id": "shop", "run_id": "run", "task_id": "crawl", "map_index": "{MAP_INDEX}"}
    text = pages.get("/task", **params).text
    assert "Against earlier runs: 2 new, 40 same, 1 emitted again</p>" in text
    assert ids["crawl"] in text
    assert "s3://bucket/pages.jsonl" in text
    assert f'href="{DASHBOARD}"' in text
    assert HOSTILE not in text
    assert (stat(text, "Results"), stat(text, "Credits")) == ("7", "3")
    assert "3 of 7 rows" in text
    assert "1,234 of 1,300 searches were not started because of credit_limit" in text
    assert "The job exceeded credit_limit; the results contain the pages scraped until then." in text
    assert "2 of 2 rows were not loaded, because their key is missing or too long" in text
    assert "earlier runs found" not in text, "no number of pages"
    assert "https://river.example/</a></td>" in text
    columns = re.findall(r"<tr><td><code>(?:<bdi>)?([^<]*)(?:</bdi>)?</code></td><td>([^<]*)</td></tr>", text)
    assert columns == [
        ("url", "text"),
        ("title", "text"),
        ("price", "number, nullable"),
        ("tags", "list"),
        (str(escape(SHOWN)), "boolean"),
    ]
    assert "Data quality" in text
    steps = re.findall(r"</span> <div>([A-Z][a-z]+)", text.partition('class="timeline"')[2])
    assert [step for step in steps if step not in {"Sent", "Delivered"}] == [
        "Started",
        "Deferred",
        "Resumed",
        "Succeeded",
    ]
    assert "Sent" in steps
    waiting = pages.get("/task", **{**params, "task_id": "listen"}).text
    assert "Waits for" in waiting
    assert "airflow triggerer" in waiting


def test_the_tab_of_a_task_whose_results_are_too_large(pages: Pages) -> None:
    text = pages.get("/task", dag_id="shop", run_id="run", task_id="scrape", map_index="1").text
    assert "exceeds 64 KiB" in text
    assert "No results, but earlier runs found 3 pages; check the site" in text


def test_the_tab_of_a_failed_task(pages: Pages) -> None:
    """Its XComs are not those of a task that succeeded with less than all."""
    text = pages.get("/task", dag_id="shop", run_id="run", task_id="search", map_index="1").text
    assert ">Failed</span>" in text
    assert "credit_limit" not in text


def test_the_tab_of_a_failed_task_begins_with_the_reason(pages: Pages) -> None:
    def text_of(task_id: str) -> str:
        return pages.get("/task", dag_id=FAILED_DAG, run_id="run", task_id=task_id).text

    reported = text_of("reported")
    box = reported.partition('class="problem"')[2]
    assert box.index(f"<strong>Failed</strong>: {escape(FAILURE['message'])}<") < 60
    assert f'href="{error_link("WD-051")}"' in box
    assert "elsewhere" not in reported
    assert re.search(r"<pre[^>]*>airflow webdata doctor</pre><button[^>]*>Copy", reported)
    # A load has no connection to the service.
    load = text_of("load")
    assert escape(FAILURE["message"]) in load.partition('class="problem"')[2].partition("</div>\n")[0]
    assert "permission" not in load
    assert "the worker may have died" in text_of("killed")
    forgiven = text_of("forgiven")
    assert "tables" not in forgiven
    assert "may have died" not in forgiven


def test_the_tab_of_a_rejected_task_begins_with_the_verdict(pages: Pages) -> None:
    text = pages.get("/task", dag_id=FAILED_DAG, run_id="run", task_id="crawl").text
    cells = re.findall(r"<td[^>]*>(.*?)</td>", text)
    assert cells[:4] == ["min_items", "at least 20", "3", "30"]
    assert re.search(r"<dt>Rejected</dt><dd><code>s3://bucket/_the pages.jsonl.rejected<", text)
    assert re.search(r"<dt>Last good</dt><dd><code>s3://bucket/the pages.jsonl<", text)
    assert "move the first file to the path of the second" in text
    # The job completed, and the file is of an earlier run.
    assert "task/job" not in text
    assert "<dt>File" not in text


def test_the_tab_of_another_task(pages: Pages) -> None:
    """It has one line and no menu."""
    for task_id in ("plain", "nothing"):
        text = pages.get("/task", dag_id="shop", run_id="run", task_id=task_id).text
        assert "This task does not use the web data service, or" in text
        assert "<nav" not in text


def test_static_files(pages: Pages) -> None:
    text = pages.get("/").text
    for name, kind in {"webdata.css": "text/css", "webdata.js": "text/javascript"}.items():
        path = text.partition(f"/{name}")[0].rpartition('"')[2].removeprefix(f"{PREFIX}{UI_PATH}")
        answer = pages.get(f"{path}/{name}", None)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        assert pages.get(f"{path}/../application.py").status_code == 404
