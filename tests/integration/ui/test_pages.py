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
from urllib.parse import parse_qsl, urlsplit

import pytest
from markupsafe import escape

from airflow_provider_webdata.common.links import error_link
from airflow_provider_webdata.common.page_urls import UI_PATH
from airflow_provider_webdata.ui import lookups
from airflow_provider_webdata.ui.application import VIEWS
from tests.integration.ui.auth_manager import HIDDEN_DAG
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
    OLD_DAG,
    OTHER_DAG,
    PAGED,
    PARTLY,
    PREFIX,
    TEAM_DAG,
    TEAMWORK,
    UNREAD,
    Pages,
)
from tests.integration.ui.pages_server import SECONDS
from tests.integration.ui.test_access import ids, params_of
from tests.support.snippets import ROOT

__all__ = ["ids"]

CONN = {"conn_id": CONN_ID}


def test_overview(pages: Pages, ids: dict[str, Any]) -> None:
    text = pages.get("/").text
    assert f">{CONN_ID}</h2>" in text
    assert "crawl.completed" in text
    assert stat(text.partition(f">{CONN_ID}</h2>")[2], "Waiting tasks") == "5"
    assert re.search(r'data-src="[^"]*/spend[^"]*"', text)
    service = pages.get("/service", **CONN).text
    assert re.fullmatch(r"[\d,]+ of [\d,]+", stat(service, "Credits left"))
    assert stat(service, "Queued") == "0"


def stat(text: str, name: str) -> str:
    """Return the value below a name."""
    found = re.search(rf"<dt>{re.escape(name)}[^<]*</dt><dd>(.*?)</dd>", text)
    assert found, (name, text)
    return re.sub(r"<[^>]*>", "", found[1])


def test_spend(pages: Pages) -> None:
    """Each visitor sees the credits of the DAGs that they may read, by day and by DAG, and the forecast."""
    text = pages.get("/spend", **CONN).text
    assert {stat(text, name) for name in ("Today", "Last 7 days")} == {"114"}
    assert f">{HIDDEN_DAG}</a>" in text
    assert '<svg class="plot"' in text
    assert "forecast" in text
    assert re.fullmatch(r"\d+ \w{3} 20\d\d|more than a year", stat(text, "Enough until"))
    assert "The table shows 8 of 10 DAGs" in text
    limited = pages.get("/spend", "op", **CONN).text
    assert stat(limited, "Today") == "15"
    assert "1 DAG that you may not read" in limited
    # The credits left are spent by hidden DAGs as well.
    assert "Enough until" not in limited
    rows = pages.get("/spend/csv", "op", **CONN).text.splitlines()
    assert rows[0] == "day,dag_id,credits"
    assert sum(float(row.rpartition(",")[2]) for row in rows[1:]) == 15
    assert HIDDEN_DAG not in "".join(rows)
    one = pages.get("/spend", dag="shop", **CONN).text
    assert "shop alone" in one
    assert stat(one, "Today") == "114"


def test_spend_of_another_connection(pages: Pages) -> None:
    """Each connection has the DAGs that spent with it, and its own period; a connection that is not listed, too."""
    default = pages.get("/spend", conn_id="webdata_default").text
    assert stat(default, "Today") == "40"
    assert f">{OTHER_DAG}</a>" in default
    assert ">shop</a>" not in default
    assert f"the connection is unknown: {OLD_DAG} (40 credits)." in default
    choices = default.partition('aria-label="Connection">')[2].partition("</nav>")[0]
    assert 'aria-current="true">webdata_default</a>' in choices
    assert "conn_id=in_vault#credits" in choices
    assert stat(pages.get("/spend", conn_id="in_vault").text, "Today") == "40"
    assert "/spend?conn_id=dead" in pages.get("/", conn_id="dead").text


def attention(pages: Pages, role: str = "admin", **params: Any) -> dict[str, str]:
    """Return the rows of what needs attention, without markup, by the thing's name."""
    text = pages.get("/attention", role, **params).text
    rows = re.findall(
        r"<tr>\s*(<td>.*?</td>\s*<td>.*?)</td>\s*<td>(.*?)</td>\s*<td>.*?</td>\s*</tr>", text, re.DOTALL
    )
    return {
        re.sub(r"<[^>]*>", "", what).split()[-1]: " ".join(re.sub(r"<[^>]*>", " ", what + why).split())
        for what, why in rows
    }


def test_what_needs_attention(pages: Pages, ids: dict[str, Any]) -> None:
    """Failed, rejected, and incomplete tasks, and failed events of the service, of what the visitor may read."""
    check = {"type": "monitor.check.completed", "success": False, "data": {"monitorId": ids["monitor"]}}
    pages.deliver({**check, "id": "a failed check"})
    pages.deliver({"type": "extract.failed", "success": False, "id": "a failed extraction"})
    # Its task is listed.
    pages.deliver({"type": "crawl.failed", "success": False, "id": "a rejected job"})
    rows = attention(pages)
    assert rows[f"{FAILED_DAG}.crawl"].startswith("Rejected")
    assert "1 condition of data quality failed" in rows[f"{FAILED_DAG}.crawl"]
    assert "inbox&#39;s tables are missing Create the tables" in rows[f"{FAILED_DAG}.reported"]
    assert "1,234 of 1,300 searches were not started" in rows["shop.crawl"]
    assert f"{FAILED_DAG}.forgiven" not in rows
    assert f"{FAILED_DAG}.killed" not in rows, "it will be retried"
    assert "or a page of it, failed" in rows["check"]
    assert "extract failed" in rows["extraction"]
    assert "job" not in rows
    assert "secret_crawl" not in "".join(attention(pages, "viewer"))
    assert "check" not in attention(pages, "viewer")
    assert rows.keys() >= attention(pages, "viewer").keys() >= {f"{FAILED_DAG}.crawl"}


def test_jobs_are_filtered_by_state_dag_and_task(pages: Pages) -> None:
    """A list without matches says among how many jobs it searched."""
    activity = [
        {"id": f"job-{number}", "endpoint": "crawl", "target": "https://a.example/"} for number in range(30)
    ]

    def answer(path: str) -> tuple[int, bytes]:
        if "activity" in path:
            found = activity if "endpoint=crawl" in path else []
            return 200, json.dumps({"success": True, "data": found, "has_more": False}).encode()
        state = "completed" if "job-29" in path else "scraping"
        return 200, json.dumps(
            {"success": True, "status": state, "total": 1, "completed": 0, "data": []}
        ).encode()

    pages.odd.answer = answer
    listed = {"conn_id": FILTERED, "operation": "crawl"}
    assert "The newest 25 jobs" in pages.get("/jobs/list", **listed).text
    running = pages.get("/jobs/list", state="scraping", **listed).text
    assert running.count("<tr>\n") == 25
    none = "of the last 24 hours matches the filters"
    assert f"None of the newest 25 jobs {none}" in pages.get("/jobs/list", state="failed", **listed).text
    assert f"None of 30 jobs {none}" in pages.get("/jobs/list", dag="elsewhere", **listed).text


def test_older_jobs_follow_the_last_that_was_shown(pages: Pages) -> None:
    """Also if others have started since."""
    listed = [
        {"id": f"moved-{number}", "endpoint": "batch_scrape", "created_at": "2026"} for number in range(6)
    ]
    pages.odd.answer = lambda path: (
        200,
        json.dumps(
            {"success": True, "data": listed, "has_more": False}
            if "activity" in path
            else {"success": True, "status": "completed", "data": []}
        ).encode(),
    )
    place = {"conn_id": EMPTY, "operation": "batch_scrape", "batch_scrape_skip": 2}
    for last, first in {"moved-3": 4, "": 2, "expired": 2}.items():
        text = pages.get("/jobs/list", **place, batch_scrape_last=last).text
        assert re.findall(r">(moved-\d)<", text) == [f"moved-{number}" for number in range(first, 6)], last


def test_older_jobs(pages: Pages) -> None:
    """Each is on one page, the newest first, by the cursors of the service's lists of each operation."""
    listed: dict[str, list[dict[str, Any]]] = {"crawl": [], "agent": []}
    for number in range(150):
        # Minutes, from the newest; at first most are crawls.
        kind = "crawl" if number % 9 and number < 120 else "agent"
        created = datetime(2026, 1, 2, tzinfo=timezone.utc) - timedelta(minutes=number)
        listed[kind].append({"id": f"paged-{number:03}", "endpoint": kind, "created_at": created.isoformat()})

    def answer(path: str) -> tuple[int, bytes]:
        query = dict(parse_qsl(urlsplit(path).query))
        if "activity" not in path:
            return 200, json.dumps({"success": True, "status": "completed", "data": []}).encode()
        first, most = int(query.get("cursor", "0")), int(query["limit"])
        found = listed.get(query["endpoint"], [])
        has_more = len(found) > first + most
        page = {"data": found[first : first + most], "has_more": has_more}
        return 200, json.dumps(
            {"success": True, **page, "cursor": str(first + most) if has_more else None}
        ).encode()

    pages.odd.answer = answer
    seen: list[str] = []
    params: dict[str, str] = {"conn_id": PAGED}
    for number in range(10):
        text = pages.get("/jobs/list", **params).text
        seen += re.findall(r">(paged-\d+)<", text)
        assert ("The newest 25 jobs of the last" in text) is (number == 0)
        assert ("older jobs of the last" in text) is (number > 0)
        older = re.search(r'href="[^"]*/jobs\?([^"]*)" rel="next"', text)
        if older is None:
            break
        frame = pages.get("/jobs", **dict(parse_qsl(unescape(older[1])))).text
        part = re.search(r'data-src="[^"]*/jobs/list\?([^"]*)"', frame)
        assert part is not None, frame
        params = dict(parse_qsl(unescape(part[1])))
    assert seen == [f"paged-{number:03}" for number in range(150)]
    text = pages.get("/jobs/list", conn_id=PAGED, dag="elsewhere").text
    assert "None of the newest 113 jobs of the last 24 hours matches" in text
    first = [*csv.DictReader(pages.get("/jobs/csv", conn_id=PAGED).text.splitlines())]
    assert [one["job_id"] for one in first] == seen[:25]
    assert {(one["state"], one["dag_id"]) for one in first} == {("completed", "")}
    assert "dag=elsewhere" in text.partition('rel="next"')[0].rpartition("href=")[2]


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
    row = pages.get("/monitors/list", conn_id=FILTERED).text.partition(">Plans</a>")[2]
    assert ">unknown</span>" in row.partition('class="number"')[0]
    assert (
        "Numbers of some checks are missing"
        in pages.get("/monitors/values", conn_id=FILTERED, monitor_id="m-1").text
    )


def test_a_later_success_ends_a_concern(pages: Pages) -> None:
    text = pages.get("/attention").text
    shown, _, recovered = text.partition("succeeded in a later run</summary>")
    assert f">{FAILED_DAG}.mended</a>" in recovered
    assert ".mended<" not in shown
    assert "the log" in recovered, "no reason was recorded"
    week = attention(pages, days=7)
    assert "2 times" in pages.get("/attention", days=7).text
    assert f"{FAILED_DAG}.reported" in week


def test_an_empty_page_says_why(pages: Pages) -> None:
    """Without a right, or without data."""
    # The credits of their own DAGs, with any connection.
    credits = pages.get("/spend", "viewer").text
    assert ">shop</a>" in credits
    assert HIDDEN_DAG not in credits
    pages.odd.answer = lambda path: (200, json.dumps({"success": True, "data": []}).encode())
    assert "lists no such job" in pages.get("/jobs/list", conn_id=EMPTY, operation="agent").text


def test_the_credits_of_a_period_add_up(pages: Pages) -> None:
    """The team's credits that no task reported have a line."""
    today = datetime.now(timezone.utc).date().replace(day=1)
    following = (today + timedelta(days=32)).replace(day=1)
    usage = {
        "remainingCredits": 500,
        "billingPeriodStart": f"{today}T00:00:00Z",
        "billingPeriodEnd": f"{following}T00:00:00Z",
    }
    period = {"startDate": f"{today}T00:00:00Z", "endDate": None, "totalCredits": 500}
    pages.odd.answer = lambda path: (
        200,
        json.dumps(
            {"success": True, **({"periods": [period]} if "historical" in path else {"data": usage})}
        ).encode(),
    )
    text = pages.get("/spend", conn_id=TEAMWORK).text
    rows = dict(re.findall(r'<tr><td>([^<]*)</td><td class="number">([^<]*)</td></tr>', text))
    assert f">{TEAM_DAG}</a>" in text
    assert rows["Tasks with this connection"] == "40"
    assert rows["Monitors' own checks, other connections, and use outside this Airflow"] == "460"
    assert rows["Team in this period"] == "500"


def test_empty_states_have_code_that_runs(pages: Pages) -> None:
    """Each page without content says what to do next: the code can be pasted."""
    pages.odd.answer = lambda path: (200, json.dumps({"success": True, "data": []}).encode())
    for path in ("/monitors/list", "/jobs/list"):
        code = re.search(
            r'<pre class="code"[^>]*>(.*?)</pre>', pages.get(path, conn_id=EMPTY).text, re.DOTALL
        )
        assert code, path
        exec(compile(unescape(code[1]), path, "exec"), {})


NO_LINKS = {"/service", "/jobs/job/part", "/monitors/values"}


def test_every_link_begins_with_the_path_of_the_api_server(pages: Pages, ids: dict[str, Any]) -> None:
    for path in VIEWS:
        text = pages.get(path, **params_of(path, ids)).text
        links = re.findall(r'(?:href|src|action|data-src)="([^"]*)"', text)
        assert links or path.endswith("/csv") or path in NO_LINKS, path
        assert all(link.startswith((f"{PREFIX}/", "https://")) for link in links), (path, links)


def test_a_service_that_does_not_answer(pages: Pages) -> None:
    assert ">dead</h2>" in pages.get("/").text
    assert 'class="problem"' in pages.get("/service", conn_id="dead").text
    missing = pages.get("/service", conn_id="nowhere").text
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
    ({"dag": "filtered_sh"}, True),
    ({"dag": "filtered_shop", "event": "crawl.completed"}, True),
    ({"dag": "elsewhere"}, False),
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
    task = {"dag_id": "filtered_shop", "task_id": "crawl"}
    body = {"type": "crawl.completed", "id": "filtered-job", "data": [page], "metadata": task}
    delivery = str(pages.deliver(body, key="filter-key"))
    for filters, found in FILTERS:
        params = {
            name: value.replace("DELIVERY", delivery).replace("TOMORROW", tomorrow)
            for name, value in filters.items()
        }
        answer = pages.get("/deliveries", **params)
        assert answer.status_code == 200, answer.text
        assert (f'/deliveries/delivery?id={delivery}"' in answer.text) is found, filters
        rows = pages.get("/deliveries/csv", **params).text.splitlines()
        assert any(row.startswith(f"{delivery},") for row in rows) is found, filters


def test_no_cell_of_a_file_is_a_formula(pages: Pages) -> None:
    pages.deliver({"type": "crawl.completed", "id": "=HYPERLINK(A1)"})
    rows = [*csv.reader(pages.get("/deliveries/csv", find="=HYPERLINK(A1)").text.splitlines())]
    assert [dict(zip(rows[0], row, strict=True))["job_or_check_id"] for row in rows[1:]] == [
        "'=HYPERLINK(A1)"
    ]


def test_pages_of_deliveries(pages: Pages) -> None:
    """Each delivery is on one page, the newest first."""
    named = {"dag_id": "paged_dag", "task_id": "crawl"}
    made = [
        pages.deliver({"type": "paged", "id": f"paged-{number}", "metadata": {} if number else named})
        for number in range(120)
    ]
    seen: list[int] = []
    params: dict[str, Any] = {"event": "paged"}
    for _ in range(3):
        text = pages.get("/deliveries", **params).text
        seen += [delivery for delivery in reversed(made) if f'/deliveries/delivery?id={delivery}"' in text]
        if 'rel="next"' not in text:
            break
        before = text.partition("before=")[2].partition('"')[0]
        params["before"] = before
    assert seen == sorted(made, reverse=True)
    # Beyond the first page, and the oldest.
    assert f'/deliveries/delivery?id={made[0]}"' in pages.get("/deliveries", event="paged", dag="paged_").text
    assert len(pages.get("/deliveries/csv", event="paged").text.splitlines()) == 121


def test_a_delivery(pages: Pages, ids: dict[str, Any]) -> None:
    text = pages.get("/deliveries/delivery", id=ids["delivery"]).text
    assert "/dags/shop/runs/run/tasks/crawl" in text
    assert "<details open>" in text
    assert pages.get("/deliveries/delivery", id=10**12).status_code == 404
    held = pages.deliver({"type": "any"}, key=HOSTILE)
    assert ">shop.listen</a>" in pages.get("/deliveries/delivery", id=held).text


def test_a_wide_delivery(pages: Pages) -> None:
    """Its page is small, and links lead to the rest, as far as there is any."""
    wide = {f"item {number}": {"price": number} for number in range(30_000)}
    delivery = pages.deliver({"type": "wide", "data": [wide], "metadata": {"kind": "wide"}})
    text = pages.get("/deliveries/delivery", id=delivery).text
    assert len(text) < 100_000
    path, _, query = unescape(re.findall(r'class="more" href="([^"]*)">… and', text)[-1]).partition("?")
    assert path == f"{PREFIX}{UI_PATH}/deliveries/delivery/part"
    rest = pages.get("/deliveries/delivery/part", **dict(parse_qsl(query)))
    assert rest.text.count('class="key">item') == 200
    assert "<code>29999</code>" in pages.get("/deliveries/delivery/part", id=delivery, at="2.0.29999").text
    for at in ("2.0.30000", "2.0.0.0.0", "7", "x", "2..0", "-1"):
        assert pages.get("/deliveries/delivery/part", id=delivery, at=at).status_code == 404, at


def test_many_viewers_of_a_slow_service_are_one_call(pages: Pages) -> None:
    """Beside them, the API server answers from threads of its own."""

    def slowly(path: str) -> tuple[int, bytes]:
        time.sleep(0.5)
        return 200, b"{}"

    pages.odd.answer = slowly
    pages.odd.asked.clear()
    began = time.monotonic()
    with ThreadPoolExecutor(50) as viewers:
        answers = list(viewers.map(lambda _: pages.get("/service", conn_id=ODD[0]).status_code, range(50)))
    rounds = 1 + int((time.monotonic() - began) // 15)
    assert set(answers) == {200}
    assert max(Counter(pages.odd.asked).values()) <= rounds


def test_monitors(pages: Pages, ids: dict[str, Any]) -> None:
    text = pages.get("/monitors/list", **CONN).text
    assert "At 09:00, Monday through Friday (UTC)" in text
    assert "another webhook" in text
    assert "shop.keep" in text
    assert "3 monitors</p>" in text
    monitor = pages.get("/monitors/monitor/part", **CONN, monitor_id=ids["monitor"]).text
    assert f"<h1>{escape(HOSTILE)} " in monitor
    # A strip of checks, and beside it what the newest that found something found.
    assert 'class="strip"' in monitor
    assert ids["check"] in monitor
    assert "monitors/check/part?" in monitor
    first = re.findall(r'check_id=([^"&]+)', monitor)[0]
    chosen = pages.get("/monitors/monitor/part", **CONN, monitor_id=ids["monitor"], check_id=first).text
    assert (
        f"monitors/check/part?conn_id={CONN_ID}&amp;monitor_id={ids['monitor']}&amp;check_id={first}"
        in chosen
    )
    missing = pages.get("/monitors/monitor/part", **CONN, monitor_id="00000000-0000-4000-8000-000000000000")
    assert 'class="problem"' in missing.text


def test_the_default_connection_is_shown_first(pages: Pages) -> None:
    """The first connection by name, `dead`, is not."""
    for path in ("/monitors", "/jobs"):
        text = pages.get(path).text
        assert "<option selected>webdata_default</option>" in text
        assert "conn_id=webdata_default" in text


def test_a_check(pages: Pages, ids: dict[str, Any]) -> None:
    params = {**CONN, "monitor_id": ids["monitor"], "check_id": ids["check"]}
    text = pages.get("/monitors/check/part", **params).text
    assert ">Changed</span>" in text
    assert "<ins><mark>" in text
    assert "<del>" in text


def test_a_check_of_many_pages_loads_the_rest(pages: Pages) -> None:
    """With and without a filter by status."""
    found = [{"url": f"https://a.example/{number}", "status": "same"} for number in range(25)]
    data = {"id": "long", "status": "completed", "pages": found, "pagination": {"total": 60}}
    pages.odd.answer = lambda path: (200, json.dumps({"success": True, "data": data}).encode())
    params = {"conn_id": EMPTY, "monitor_id": "long", "check_id": "long"}
    assert "skip=25" in pages.get("/monitors/check/part", **params).text
    filtered = pages.get("/monitors/check/part", **params, status="same").text
    assert "skip=25" in filtered
    assert "status=same" in filtered


def test_jobs(pages: Pages, ids: dict[str, Any]) -> None:
    text = pages.get("/jobs/list", **CONN).text
    assert "https://river.example/" in text
    assert "shop.crawl" in text
    assert "<progress" in text
    part = pages.get("/jobs/job/part", **CONN, operation="crawl", job_id=ids["crawl"]).text
    assert ">Completed</span>" in part


def test_a_running_job_shows_its_rate_and_the_time_left(pages: Pages) -> None:
    """Both follow from the delivery that reported its start."""
    job = {"success": True, "status": "scraping", "completed": 10, "total": 30, "creditsUsed": 10, "data": []}
    pages.odd.answer = lambda path: (200, json.dumps({"errors": []} if "errors" in path else job).encode())
    pages.deliver({"type": "crawl.started", "id": "paced"}, conn_id=EMPTY)
    text = pages.get("/jobs/job/part", conn_id=EMPTY, operation="crawl", job_id="paced").text
    assert "10 of 30 pages" in text
    assert re.search(r"[\d,.]+ pages per minute, about \d+ (second|minute|hour)s? left", text), text


def test_failed_pages_of_a_completed_job(pages: Pages) -> None:
    """The list and the job's page show them; the service's counts leave them out."""
    job = {
        "success": True,
        "status": "completed",
        "completed": 36,
        "total": 36,
        "creditsUsed": 36,
        "data": [],
    }
    errors = {"errors": [{"id": str(n), "url": "https://a.example/", "error": "gone"} for n in range(5)]}
    listed = {"success": True, "data": [{"id": "partly-job", "endpoint": "crawl"}], "has_more": False}
    pages.odd.answer = lambda path: (
        200,
        json.dumps(errors if "errors" in path else listed if "activity" in path else job).encode(),
    )
    for path, more in {"/jobs/list": {}, "/jobs/job/part": {"job_id": "partly-job"}}.items():
        text = pages.get(path, conn_id=PARTLY, operation="crawl", **more).text
        assert "5 of 41 pages failed" in text, path
        assert "36 of 41 pages" in text, path


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
    job = pages.get("/jobs/job/part", conn_id=EMPTY, operation="crawl", job_id="odd-reasons")
    assert (job.status_code, "gone" in job.text, ">1 away</span>" in job.text) == (200, True, True), job.text
    check = pages.get("/monitors/check/part", conn_id=EMPTY, monitor_id="odd-reasons", check_id="odd")
    assert (check.status_code, check.text.count("gone")) == (200, 2), check.text


def test_failed_pages_that_cannot_be_read_are_unknown(pages: Pages) -> None:
    job = {"success": True, "status": "completed", "completed": 36, "total": 36, "data": []}
    listed = {"success": True, "data": [{"id": "unread-job", "endpoint": "crawl"}], "has_more": False}
    pages.odd.answer = lambda path: (
        (400, b'{"success": false, "error": "no"}')
        if "errors" in path
        else (200, json.dumps(listed if "activity" in path else job).encode())
    )
    text = pages.get("/jobs/list", conn_id=UNREAD, operation="crawl").text
    assert "failed pages unknown" in text
    assert "pages failed" not in text


@pytest.mark.parametrize("kind", ["crawl", "agent"])
def test_a_job_whose_counts_are_text(pages: Pages, kind: str) -> None:
    """Any job's page and the list show its state, and no figures."""
    odd = {"status": "scraping", "completed": "ten", "total": ["30"], "creditsUsed": "few", "warning": 7}
    job_id = f"odd-{kind}"
    item = {"id": job_id, "endpoint": kind, "created_at": 7}
    bodies = {"errors": {"errors": "none"}, "activity": {"data": [item], "has_more": False}}
    pages.odd.answer = lambda path: (
        200,
        json.dumps(
            next((body for name, body in bodies.items() if name in path), {"success": True, **odd})
        ).encode(),
    )
    part = pages.get("/jobs/job/part", conn_id=COUNTED, operation=kind, job_id=job_id)
    assert (part.status_code, "Scraping" in part.text) == (200, True), part.text
    assert "<progress" not in part.text
    listed = pages.get("/jobs/list", conn_id=COUNTED, operation=kind)
    assert (listed.status_code, job_id in listed.text) == (200, True), listed.text


def test_waits(pages: Pages) -> None:
    text = pages.get("/waits").text
    assert "crawl hidden-job" in text
    assert "by polling every 30 s" in text
    assert "by webhook" in text
    assert "airflow triggerer" in text
    assert "in DAGs that you may not read" in pages.get("/waits", "viewer").text
    filtered = pages.get("/waits", dag="patien").text
    assert "3 tasks wait for the service now" in filtered
    assert "hidden-job" not in filtered
    assert "No waiting tasks that match" in pages.get("/waits", dag="elsewhere").text


def test_waits_in_a_worker(pages: Pages) -> None:
    """They are listed beside those in the triggerer. The default is Airflow's, which is to wait in a worker."""
    rows = dict(re.findall(r">patient\.(\w+)</a>(.*?)</tr>", pages.get("/waits").text, re.DOTALL))
    assert {name: "holds a worker slot" in row for name, row in rows.items()} == {
        "held": True,
        "started": True,
        "asleep": False,
    }
    assert "job held-job" in rows["held"]
    assert "job started-job" in rows["started"]


def test_the_tab_of_a_task(pages: Pages, ids: dict[str, Any]) -> None:
    params = {"dag_id": "shop", "run_id": "run", "task_id": "crawl", "map_index": "{MAP_INDEX}"}
    text = pages.get("/task", **params).text
    assert ids["crawl"] in text
    assert "s3://bucket/pages.jsonl" in text
    assert f'href="{DASHBOARD}"' in text
    assert HOSTILE not in text
    assert (stat(text, "Results"), stat(text, "Credits")) == ("7", "3")
    assert "3 of 7 rows" in text
    assert "1,234 of 1,300 searches were not started because of credit_limit" in text
    assert "The job exceeded credit_limit; the results contain the pages scraped until then." in text
    assert "2 pages seem to be gone" in text
    assert "earlier runs found" not in text, "no number of pages"
    assert "https://river.example/</a></td>" in text
    columns = re.findall(r"<tr><td><code>([^<]*)</code></td><td>([^<]*)</td></tr>", text)
    assert columns == [
        ("url", "text"),
        ("title", "text"),
        ("price", "number, nullable"),
        ("tags", "list"),
        (str(escape(HOSTILE)), "boolean"),
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
    assert re.search(r"<dt>Rejected</dt><dd><code>s3://bucket/the pages.jsonl.rejected<", text)
    assert re.search(r"<dt>Last good</dt><dd><code>s3://bucket/the pages.jsonl<", text)
    assert "airflow webdata publish &#39;s3://bucket/the pages.jsonl&#39;</pre>" in text
    # The job completed, and the file is of an earlier run.
    assert "jobs/job/part" not in text
    assert "<dt>File" not in text


def test_the_tab_of_a_run_shows_the_reasons(pages: Pages) -> None:
    text = pages.get("/run", dag_id=FAILED_DAG, run_id="run").text
    rows = {
        name: text.partition(f">{name}</a>")[2].partition("</tr>")[0]
        for name in ("reported", "crawl", "killed", "load")
    }
    assert escape(FAILURE["message"]) in rows["load"]
    assert escape(FAILURE["message"]) in rows["reported"]
    assert re.search(r">Rejected</span>\s+1 condition failed", rows["crawl"])
    assert "the worker may have died" in rows["killed"]


def test_the_tab_of_another_task(pages: Pages) -> None:
    """It has one line and no menu."""
    for task_id in ("plain", "nothing"):
        text = pages.get("/task", dag_id="shop", run_id="run", task_id=task_id).text
        assert "This task does not use the web data service, it failed before" in text
        assert "<nav" not in text


def test_the_tab_of_a_run(pages: Pages, ids: dict[str, Any]) -> None:
    text = pages.get("/run", dag_id="shop", run_id="run").text
    assert ">crawl</a>" in text
    assert ">listen</a>" in text
    assert "plain" not in text
    # Mapped tasks are one group, with their names, states and sums.
    group = text.partition("<summary><strong>search</strong>")[2].partition("</details>")[0]
    assert "1 success" in group
    assert "1 failed" in group
    assert "4 credits, 4 results" in group
    assert ">bridges</a>" in group
    # What a task left undone stands beside its state; a failed one has its error.
    assert "1,234 of 1,300 searches were not started" in text.partition(">crawl</a>")[2].partition("</tr>")[0]
    assert "not started" not in group
    # Two tasks report the same crawl.
    assert stat(text, "Credits") == "7"
    partial = text.partition("<summary><strong>scrape</strong>")[2].partition("</summary>")[0]
    assert "2 success" in partial
    assert "2 incomplete" in partial
    assert "results" not in partial
    assert "No task of this run" in pages.get("/run", dag_id="shop", run_id="other").text


def test_static_files(pages: Pages) -> None:
    text = pages.get("/").text
    for name, kind in {"webdata.css": "text/css", "webdata.js": "text/javascript"}.items():
        path = text.partition(f"/{name}")[0].rpartition('"')[2].removeprefix(f"{PREFIX}{UI_PATH}")
        answer = pages.get(f"{path}/{name}", None)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        assert pages.get(f"{path}/../application.py").status_code == 404
