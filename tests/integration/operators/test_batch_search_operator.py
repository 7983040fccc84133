# SPDX-License-Identifier: Apache-2.0
"""Batch search: in a real Airflow, and under crashes, 429s and lost answers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import textwrap
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowTaskTimeout,
)

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.results.errors import StorageError
from airflow_provider_webdata.results.tables.items import ResultsFile
from airflow_provider_webdata.runs.billed_response import ResponseFolder
from airflow_provider_webdata.runs.publishing.keep_media import KeepMedia
from tests.support import direct
from tests.support.direct import KilledError, StateStore, TaskInstance, accept, context_of
from tests.support.fault_server import FaultServer, answer, hang_up
from tests.support.service import connection_text
from tests.support.signals import timed_out
from tests.support.waiting import PATIENCE, wait_until
from tests.support.warm import airflow_environ
from webdata_sandbox.server import SandboxServer

IMPORT = "from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator"
SEARCH = "/v2/search"
FOUND = answer(body='{"success": true, "data": {"web": []}, "creditsUsed": 2, "id": "s"}')
OOPS = {"success": False, "error": "oops"}


@pytest.fixture(autouse=True)
def _pages(sandbox):
    for word in ("zeppelin", "balloon", "glider"):
        for number in range(2):
            sandbox.control.set_page(
                f"https://{word}.example/{number}", markdown=f"# {word} {number}\n\nOf {word}s.", title=word
            )


def asked(sandbox, *statuses):
    return [
        request["body"]["query"]
        for request in sandbox.control.requests(SEARCH)
        # A request that was given up on its way has arrived without its body.
        if request["body"] and (not statuses or request["status"] in statuses)
    ]


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_batches_in_a_real_airflow(run_dag, sandbox, tmp_path):
    """In the order of the queries, equal ones made once, each field of a query over that of the task.

    A file is whole, each of its results names its query, and no progress is left behind. A retry makes only the failed
    search.
    """
    output = tmp_path / "found" / "all.jsonl"
    server = FaultServer([answer(500, json.dumps(OOPS)), FOUND])
    done = run_dag(
        f"""
        WebDataBatchSearchOperator(
            task_id="many", limit=5, save_to="{tmp_path}/many.jsonl",
            queries=["zeppelin", {{"query": "balloon", "limit": "{{{{ 1 }}}}"}}, "zeppelin", "nosuchthing"],
        )
        WebDataBatchSearchOperator(
            task_id="file", queries="{{{{ ['zeppelin', 'balloon'] | tojson }}}}", sources=["web", "news"],
            save_to="{output}",
        )
        WebDataBatchSearchOperator(
            task_id="retry", queries=["a", "b", "c"], retries=1, retry_delay=datetime.timedelta(0),
            max_concurrency=1, webdata_conn_id="faulty", save_to="{tmp_path}/retry.jsonl",
        )
        """,
        before=IMPORT,
        environ={"AIRFLOW_CONN_FAULTY": connection_text(server.url)},
    )
    server.close()
    assert done.run["state"] == "success"
    value = done.xcom["many.return_value"]
    items = lines(tmp_path / "many.jsonl")
    assert [item["query"] for item in items] == ["zeppelin", "zeppelin", "balloon"]
    assert value["done"] == 3
    assert value["failed"] == value["left"] == []
    assert value["credits_used"] == 4
    assert sorted(asked(sandbox)) == ["balloon", "balloon", "nosuchthing", "zeppelin", "zeppelin"]
    assert {name: done.xcom[f"many.{name}"] for name in ("done", "failed", "left", "credits_used")} == {
        "done": 3, "failed": [], "left": [], "credits_used": 4,
    }  # fmt: skip

    value = done.xcom["file.return_value"]
    assert value["path"] == str(output)
    items = lines(output)
    assert len(items) == value["count"] == done.xcom["file.count"] >= 4
    assert {(item["query"], item["source"]) for item in items} >= {("zeppelin", "web"), ("balloon", "web")}
    assert all(item["url"].startswith(f"https://{item['query']}.example/") for item in items)
    assert os.listdir(output.parent) == ["all.jsonl"]

    assert done.ended("retry") == ("success", 2)
    assert [json.loads(request.body)["query"] for request in server.requests] == ["a", "b", "c", "a"]
    value = done.xcom["retry.return_value"]
    assert (value["done"], value["failed"]) == (3, [])
    assert done.xcom["retry.credits"]["unknown"] == 0
    assert "1 of 3 searches failed, more than max_error_ratio=0 allows" in done.log_of("retry")


def test_without_a_file_it_is_refused_while_the_dag_is_parsed():
    with pytest.raises(ArgumentError, match=r"(?s)save_to is required.* WebDataSearchOperator\.partial\("):
        WebDataBatchSearchOperator(task_id="t", queries=["a"])


# In this process


@pytest.fixture
def execute(tmp_path):
    """Execute an attempt, by default with a file."""

    def execute(ti=None, store="new", **arguments):
        context = context_of(ti or TaskInstance(), store)
        arguments = {"save_to": f"{tmp_path}/all.jsonl", **arguments}
        value = WebDataBatchSearchOperator(task_id="t", **arguments).execute(context)
        accept(context)
        return value

    return execute


def rows(value):
    return lines(value["path"])


@pytest.fixture
def faulty():
    """Start servers that answer with the steps that a test gives."""
    servers = []

    def start(*steps):
        servers.append(FaultServer(steps))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.mark.rule("retry-after")
def test_a_long_refusal_reschedules_and_continues(here, connect, tmp_path):
    """The wait is over the connection's budget: the attempt is rescheduled and repeats nothing."""
    connect(here, retry_budget=0)
    here.control.add_fault("status", path=SEARCH, status=429, headers={"Retry-After": "1"})
    task = WebDataBatchSearchOperator(
        task_id="t",
        queries=["zeppelin", "balloon", "glider"],
        max_concurrency=1,
        save_to=str(tmp_path / "all.jsonl"),
    )
    outcome = direct.run(task)
    assert (*outcome.ended, outcome.reschedules) == ("success", 1, 1)
    assert sorted(asked(here, 200)) == ["balloon", "glider", "zeppelin"]
    assert asked(here, 429) == ["zeppelin"]
    assert os.listdir(tmp_path) == ["all.jsonl"]


BAD_INPUT = {
    "one bad query": ({"queries": ["ok", "x" * 501]}, ["queries, item 2", "500"]),
    "bad field of a mapping": (
        {"queries": [{"query": "q", "limit": 101}]},
        ["queries, item 1", "limit", "101"],
    ),
    "bad shared field": ({"queries": ["q"], "limit": "{{ 0 }}"}, ["limit"]),
    "no number": ({"queries": ["q"], "credit_limit": "{{ 'many' }}"}, ["credit_limit", "many"]),
    "ratio over one": ({"queries": ["q"], "max_error_ratio": "{{ 2 }}"}, ["max_error_ratio", "at most 1"]),
}


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(here, tmp_path, arguments, words):
    task = WebDataBatchSearchOperator(task_id="t", save_to=f"{tmp_path}/a.jsonl", **arguments)
    with pytest.raises(AirflowFailException) as failure:
        direct.execute(task, context_of(TaskInstance()))
    assert here.control.requests() == []
    assert all(word in str(failure.value) for word in words)


@pytest.mark.rule("credits-search")
@pytest.mark.says("XCom `left` lists the rest")
def test_the_credit_limit_ends_a_batch_cleanly(here, tmp_path, execute):
    """No more is spent than was allowed; the queries that are left are returned, for a later task."""
    ti = TaskInstance()
    queries = ["zeppelin", "balloon", {"query": "glider"}, "zeppelin 1"]
    value = execute(
        ti, queries=queries, credit_limit="5", max_concurrency=3, save_to=str(tmp_path / "a.jsonl")
    )
    assert (value["done"], value["credits_used"]) == (2, 4)
    assert value["left"] == ti.xcom["left"] == [{"query": "glider"}, "zeppelin 1"]
    assert sorted(asked(here)) == ["balloon", "zeppelin"]
    rest = execute(queries=value["left"])
    assert [*dict.fromkeys(row["query"] for row in rows(rest))] == ["glider", "zeppelin 1"]


@pytest.mark.rule("credits-search", "credits-pdf")
def test_pdfs_are_bounded_by_an_equal_share_of_the_credits(here, log, execute):
    """A search costs 2 credits, and each of its 3 pages 1 for each page of a PDF: 23 of 70 credits allow 7."""
    options = {"formats": ["markdown"], "proxy": "basic"}
    searches = {"limit": 3, "scrape_options": options, "exclude_domains": ["x.com", "twitter.com"]}
    value = execute(queries=["zeppelin", "balloon", "glider"], credit_limit=70, **searches)
    assert value["done"] == 3
    sent = [request["body"]["scrapeOptions"]["parsers"] for request in here.control.requests(SEARCH)]
    assert sent == [[{"type": "pdf", "maxPages": 7}]] * 3
    assert log().count("credits allow 7 per PDF") == 1
    # Too few for one page of each: still as many searches as they allow.
    few = execute(queries=["zeppelin", "balloon", "glider"], credit_limit=8, **searches)
    assert (few["done"], few["not_begun"]) == (1, 2)
    assert log().count("credits allow 1 per PDF") == 1


def test_credits_of_earlier_tries_count(here, tmp_path, log, execute):
    """The limit is the task's, not the attempt's."""
    output, store = str(tmp_path / "a.jsonl"), StateStore()
    here.control.add_fault("status", path=SEARCH, status=500, body=OOPS)
    arguments = {"queries": ["zeppelin", "balloon", "glider"], "credit_limit": 4, "max_concurrency": 1}
    with pytest.raises(AirflowException, match="1 of 3"):
        execute(TaskInstance(max_tries=1), store, save_to=output, **arguments)
    value = execute(TaskInstance(try_number=2, max_tries=1), store, save_to=output, **arguments)
    assert (value["done"], value["left"], value["credits_used"]) == (2, ["zeppelin"], 4)
    assert value["not_begun"] == 1
    assert "1 of 3 searches were not started, because the next one may exceed credit_limit=4" in log()


AMBIGUOUS = {
    "connection closed without an answer": hang_up,
    "answer cut short": answer(body='{"success": true, "data"', length=9999),
    "no JSON": answer(body="<p>hello</p>", content_type="text/html"),
    "a gateway's 502": answer(502, "<h1>Bad gateway</h1>", "text/html"),
    "a gateway's 504": answer(504, "", "text/html"),
}


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("name", AMBIGUOUS)
def test_a_lost_answer_is_not_billed_twice(faulty, monkeypatch, tmp_path, name, execute):
    """It is reported, by later attempts too, which make it again only with repeat_ambiguous."""
    server = faulty(AMBIGUOUS[name], FOUND)
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    arguments = {"queries": ["lost", "found"], "max_concurrency": 1}
    ti = TaskInstance(max_tries=1)
    with pytest.raises(AirflowFailException, match="repeat_ambiguous"):
        execute(ti, **arguments)
    assert len(server.requests) == 2
    assert ti.xcom["return_value"]["done"] == 1
    (failure,) = ti.xcom["failed"]
    assert (failure["query"], failure["ambiguous"]) == ("lost", True)
    assert [reason["query"] for reason in ti.xcom["failure"]["reasons"]] == ["lost"]
    assert ti.xcom["failure"]["accepted_with"] == {"max_error_ratio": 0.5}

    value = execute(TaskInstance(try_number=2, max_tries=1), max_error_ratio=0.5, **arguments)
    assert len(server.requests) == 2
    assert (value["done"], [item["query"] for item in value["failed"]]) == (1, ["lost"])


def test_a_lost_answer_is_requested_again_by_choice(faulty, monkeypatch, tmp_path, execute):
    server = faulty(hang_up, FOUND)
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    arguments = {
        "queries": ["lost", "found"],
        "max_concurrency": 1,
        "save_to": str(tmp_path / "a.jsonl"),
        "repeat_ambiguous": True,
    }
    with pytest.raises(AirflowException):
        execute(TaskInstance(max_tries=1), **arguments)
    value = execute(TaskInstance(try_number=2, max_tries=1), **arguments)
    assert (value["done"], value["failed"]) == (2, [])
    assert [json.loads(request.body)["query"] for request in server.requests] == ["lost", "found", "lost"]


FOR_ALL = {401: "Unauthorized", 402: "Insufficient credits", 403: "not enabled"}


@pytest.mark.rule("status-401", "status-402", "status-403")
@pytest.mark.parametrize("status", FOR_ALL)
def test_an_error_that_all_would_meet_stops_all(here, tmp_path, status, execute):
    """The rest is not sent; the results are kept, and the task continues there once the cause is removed."""
    output = str(tmp_path / "a.jsonl")
    arguments = {"queries": ["zeppelin", "balloon", "glider"], "max_concurrency": 1, "save_to": output}
    here.control.add_fault(
        "status", path=SEARCH, times=None, status=status, body={"success": False, "error": FOR_ALL[status]}
    )
    with pytest.raises((WebDataError, AirflowException), match=FOR_ALL[status]):
        execute(TaskInstance(max_tries=3), **arguments)
    assert asked(here) == ["zeppelin"]
    here.control.clear_faults()
    assert execute(TaskInstance(try_number=2, max_tries=3), **arguments)["done"] == 3


def test_results_have_the_fields_that_a_query_overrides(here, tmp_path, execute):
    """Scalars of the request, whether the task or the query sets them; a column of the results keeps its meaning."""
    queries = [
        "glider",
        {"query": "zeppelin", "country": "fr", "ignoreInvalidURLs": True, "highlights": False},
        {"query": "zeppelin", "limit": 1, "scrape_options": {"formats": ["markdown"]}},
    ]
    expected = {
        "glider": {("US", 5, None)},
        "zeppelin": {("FR", 5, True), ("US", 1, None)},
    }
    arguments = {"queries": queries, "country": "us", "limit": 5}
    for end in (".jsonl", ".parquet"):
        path = execute(save_to=f"{tmp_path}/found{end}", **arguments)["path"]
        with ResultsFile(path) as file:
            rows = [*file.rows()]
        names = ("country", "limit", "ignore_invalid_urls")
        if end == ".jsonl":
            rows = [{**row, **json.loads(row["extra"])} for row in rows]
            names = ("country", "limit", "ignoreInvalidURLs")
        for query, found in expected.items():
            assert {tuple(map(row.get, names)) for row in rows if row["query"] == query} == found


def test_failures_within_the_ratio_are_reported(here, execute):
    """Each by itself; the others are delivered."""
    here.control.add_fault("status", path=SEARCH, status=400, body={"success": False, "error": "not this"})
    value = execute(queries=["zeppelin", "balloon", "glider"], max_concurrency=1, max_error_ratio=0.4)
    assert [*dict.fromkeys(row["query"] for row in rows(value))] == ["balloon", "glider"]
    (failure,) = value["failed"]
    assert failure["query"] == "zeppelin"
    assert failure["ambiguous"] is False
    assert "not this" in failure["error"]


def test_without_a_retry_left_results_are_delivered_and_the_task_fails(here, tmp_path, log, execute):
    output = tmp_path / "a.jsonl"
    here.control.add_fault("status", path=SEARCH, status=500, body=OOPS)
    ti = TaskInstance()
    arguments = {"queries": ["zeppelin", "balloon"], "max_concurrency": 1, "save_to": str(output)}
    with pytest.raises(AirflowFailException, match="1 of 2 searches failed"):
        execute(ti, **arguments)
    assert re.search(r"(?i)\berror\b.* 1 search failed: .*WD-500\) \('zeppelin'\)", log())
    assert {item["query"] for item in lines(output)} == {"balloon"}
    assert ti.xcom["return_value"]["path"] == str(output)
    # Clearing the task makes the rest.
    assert execute(TaskInstance(), **arguments)["done"] == 2
    assert sorted(asked(here, 200)) == ["balloon", "zeppelin"]


class Crowded(ThreadingHTTPServer):
    """A service that serves a limited number of searches concurrently and refuses the rest."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, room, seconds, *, waits_for_refusal=False):
        super().__init__(("127.0.0.1", 0), CrowdedHandler)
        self.room, self.seconds = room, seconds
        self.lock = threading.Lock()
        # Set once nothing waits for a first refusal.
        self.may_answer = threading.Event()
        if not waits_for_refusal:
            self.may_answer.set()
        self.inside = 0
        self.answered = []
        self.refused = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()


class CrowdedHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            taken = server.inside < server.room
            server.inside += taken
            server.refused += not taken
        if taken:
            server.may_answer.wait(60)
            time.sleep(server.seconds)
            with server.lock:
                server.inside -= 1
                server.answered.append(body["query"])
            self.answer_with(
                200, {"success": True, "data": {"web": []}, "creditsUsed": 2, "id": body["query"]}
            )
        else:
            server.may_answer.set()
            self.answer_with(
                429, {"success": False, "error": "Concurrency limit reached"}, {"Retry-After": "0"}
            )

    def answer_with(self, status, body, headers=None):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def crowded(monkeypatch):
    """Start a crowded service and connect to it."""
    servers = []

    def start(room, *, waits_for_refusal=False, **extra):
        servers.append(Crowded(room, seconds=0.01, waits_for_refusal=waits_for_refusal))
        url = f"http://127.0.0.1:{servers[-1].server_port}"
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(url, **extra))
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_searches_over_the_room_of_the_service_are_repeated(crowded, execute):
    """It has room for 4; 40 are begun; every search is answered, and none is billed twice."""
    server = crowded(4, waits_for_refusal=True)
    queries = [f"q{number}" for number in range(200)]
    value = execute(queries=queries, max_concurrency=40)
    assert value["done"] == 200
    assert value["failed"] == []
    assert sorted(server.answered) == sorted(queries)
    assert value["credits_used"] == 400
    assert server.refused > 0


def test_a_connection_limit_holds_within_the_task(crowded, execute):
    """`max_concurrency` of the connection is over that of the task."""
    server = crowded(3, max_concurrency=3)
    value = execute(queries=[f"q{number}" for number in range(60)], max_concurrency=50)
    assert value["done"] == 60
    assert server.refused == 0


def test_endless_refusals_bring_the_task_back_later(faulty, monkeypatch, tmp_path, execute):
    """The results are kept; the time that the service named is over the connection's budget."""
    limited = answer(429, '{"success": false, "error": "Rate limit exceeded"}', headers={"Retry-After": "40"})
    server = faulty(FOUND, limited)
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    with pytest.raises(AirflowRescheduleException):
        execute(queries=["a", "b"], max_concurrency=1, save_to=str(tmp_path / "a.jsonl"))
    assert len(server.requests) == 2


def test_an_unreachable_service_brings_the_task_back_later(faulty, monkeypatch, execute):
    """Not every query is tried to its end: after the connection's budget the task is rescheduled."""
    server = faulty(FOUND)
    server.close()
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url, retry_budget=1))
    with pytest.raises(AirflowRescheduleException):
        execute(queries=[f"q{number}" for number in range(500)])


CHILD = """
    import json, resource, signal, sys
    from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
    from tests.support.direct import TaskInstance, accept, context_of

    operator = WebDataBatchSearchOperator(task_id="t", **json.loads(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
    context = context_of(TaskInstance(max_tries=3))
    value = operator.execute(context)
    accept(context)
    print(json.dumps({**value, "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""


@pytest.fixture
def child(warm, tmp_path_factory):
    """Start a process that executes a batch search."""
    home = tmp_path_factory.mktemp("home")

    def start(sandbox, arguments):
        return warm.start(
            ["-c", textwrap.dedent(CHILD), json.dumps(arguments)],
            env=airflow_environ(home, AIRFLOW_CONN_WEBDATA_DEFAULT=connection_text(sandbox.url)),
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[3],
        )

    return start


def ended(process):
    """Return the exit status and the output of a process."""
    with process.stdout:
        printed = process.stdout.read()
    return process.wait(PATIENCE), printed


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_crash_in_the_middle_costs_nothing_twice(sandbox, child, tmp_path, signal_number):
    """Searches that were kept before the process died are not repeated; after a kill by a user, none is."""
    queries = [f"zeppelin {number}" for number in range(60)]
    output = tmp_path / "all.jsonl"
    arguments = {"queries": queries, "max_concurrency": 4, "save_to": str(output)}
    sandbox.control.configure(latency_ms=400)

    crashing = child(sandbox, arguments)
    assert wait_until(lambda: len(asked(sandbox)) >= 15)
    crashing.send_signal(signal_number)
    status, log = ended(crashing)
    sandbox.control.configure(latency_ms=0)
    assert status == (-signal.SIGKILL if signal_number == signal.SIGKILL else 1), log
    assert not output.exists()
    kept = {
        json.loads(part.read_text())["query"] for part in tmp_path.glob("_all.jsonl.partial/*/[0-9a-f]*.json")
    }
    first = asked(sandbox)
    assert 5 <= len(kept) < 60
    assert len(set(first) - kept) <= (4 if signal_number == signal.SIGKILL else 0)

    status, printed = ended(child(sandbox, arguments))
    assert status == 0, printed
    value = json.loads(printed.splitlines()[-1])
    second = asked(sandbox)[len(first) :]
    assert sorted(second) == sorted(set(queries) - kept)
    assert value["done"] == 60
    assert value["failed"] == value["left"] == []
    assert {item["query"] for item in lines(output)} == set(queries)
    assert os.listdir(tmp_path) == ["all.jsonl"]
    spent = 100_000 - sandbox.control.state()["credits"]
    assert spent == 2 * len(asked(sandbox, 200))
    assert value["credits_used"] == 2 * 60


def test_storage_that_refuses_is_found_before_the_first_search(here, tmp_path, execute):
    (tmp_path / "_all.jsonl.partial").write_text("a file in place of the folder")
    with pytest.raises(StorageError, match=r"_all\.jsonl\.partial"):
        execute(queries=["zeppelin"])
    assert asked(here) == []


def test_storage_that_fails_ends_the_batch_and_says_what_is_lost(here, tmp_path, monkeypatch, execute):
    """No further search is sent, and those in flight are stored."""
    write, failed = ResponseFolder.write, []

    def fail_once(folder, name, value):
        if value["query"] == "zeppelin 2" and not failed:
            failed.append(name)
            raise StorageError("the disk is full")
        write(folder, name, value)

    monkeypatch.setattr(ResponseFolder, "write", fail_once)
    queries = [f"zeppelin {number}" for number in range(200)]
    ti, store = TaskInstance(max_tries=1), StateStore()
    with pytest.raises(StorageError, match=r"disk is full\. 1 billed response is lost"):
        execute(ti, store, queries=queries, max_concurrency=4)
    sent = len(asked(here))
    assert sent <= 8
    assert ti.xcom["done"] == sent - 1
    assert (ti.xcom["credits"]["used"], ti.xcom["credits"]["unknown"]) == (2 * (sent - 1), 1)
    second = TaskInstance(try_number=2, max_tries=1)
    assert execute(second, store, queries=queries, max_concurrency=4)["done"] == 200
    assert len(asked(here)) == 201
    assert (second.xcom["credits"]["used"], second.xcom["credits"]["unknown"]) == (400, 1)


def test_airflows_timeout_keeps_the_answers(here, tmp_path, execute):
    """`execution_timeout` raises in the middle of the event loop; searches that had been answered are kept."""
    here.control.configure(latency_ms=200)
    queries = [f"zeppelin {number}" for number in range(100)]
    arguments = {"queries": queries, "max_concurrency": 4, "save_to": str(tmp_path / "all.jsonl")}

    with timed_out(lambda: len(asked(here, 200)) >= 10), pytest.raises(AirflowTaskTimeout):
        execute(TaskInstance(max_tries=1), **arguments)
    here.control.configure(latency_ms=0)
    assert 10 <= len(asked(here)) < 100
    value = execute(TaskInstance(try_number=2, max_tries=1), **arguments)
    assert value["done"] == 100
    again = [query for query in set(queries) if asked(here).count(query) > 1]
    assert len(again) <= 4


@pytest.mark.rule("document-media-expires")
def test_media_are_kept_as_the_answers_arrive(here, tmp_path, execute):
    """Before their links expire, also where the batch takes longer than they live; once over all attempts."""
    for number in range(2):
        here.control.set_media(f"https://zeppelin.example/{number}", "screenshot", size=1000)
    ti = TaskInstance(max_tries=1)
    arguments = {
        "queries": ["zeppelin", "balloon"],
        "max_concurrency": 1,
        "scrape_options": {"formats": ["screenshot"]},
        "include_domains": ["zeppelin.example"],
        "media_to": str(tmp_path / "media"),
    }
    store = StateStore()
    here.control.add_fault("status", path=SEARCH, status=500, body=OOPS)
    with pytest.raises(AirflowException):
        execute(ti, store, **{**arguments, "queries": ["balloon", "zeppelin"]})
    # The links are dead by now.
    here.control.advance(2 * 86_400)
    value = execute(TaskInstance(try_number=2, max_tries=1), store, **arguments)
    zeppelins = [row for row in rows(value) if row["query"] == "zeppelin"]
    kept = [Path(item["screenshot"].removeprefix("file://")) for item in zeppelins]
    assert len(kept) == 2
    assert all(path.stat().st_size == 1000 and path.is_relative_to(tmp_path / "media") for path in kept)
    assert value["media"]["kept"] == 2
    assert value["media"]["failed"] == 0


def test_a_kill_while_media_are_kept_loses_nothing(here, tmp_path, monkeypatch, execute):
    """The answer is stored before its media, which the next attempt keeps."""
    here.control.set_media("https://zeppelin.example/0", "screenshot", size=1000)
    arguments = {
        "queries": ["zeppelin 0"],
        "scrape_options": {"formats": ["screenshot"]},
        "include_domains": ["zeppelin.example"],
        "media_to": str(tmp_path / "media"),
    }

    def kill(*_):
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(KeepMedia, "keep", kill)
        with pytest.raises(KilledError):
            execute(TaskInstance(max_tries=1), **arguments)
    value = execute(TaskInstance(try_number=2, max_tries=1), **arguments)
    assert len(asked(here)) == 1
    assert (value["media"]["kept"], value["media"]["bytes"]) == (1, 1000)
    (kept,) = [row["screenshot"].removeprefix("file://") for row in rows(value) if "screenshot" in row]
    assert Path(kept).is_relative_to(tmp_path / "media")


def test_memory_does_not_grow_with_the_results(child, tmp_path):
    """60 MB of results are written; only a few of them are in memory at a time."""
    peaks = []
    with SandboxServer(bulk=(10, 20_000)) as server:
        for number in (30, 300):
            output = tmp_path / f"{number}.jsonl"
            arguments = {
                "queries": [f"q{n}" for n in range(number)],
                "max_concurrency": 4,
                "scrape_options": {"formats": ["markdown"]},
                "save_to": str(output),
            }
            status, printed = ended(child(server, arguments))
            assert status == 0, printed
            value = json.loads(printed.splitlines()[-1])
            assert value["count"] == 10 * number
            assert output.stat().st_size > number * 200_000
            peaks.append(value["peak_kb"])
    assert peaks[1] - peaks[0] < 30_000, peaks
