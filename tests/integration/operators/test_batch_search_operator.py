"""Many searches in one task: in a real Airflow, and under crashes, 429s and lost answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import airflow.sdk.execution_time.context
import pytest
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowTaskTimeout,
)

from airflow_provider_webdata.api.errors import TransportError, WebDataError
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.sandbox.server import SandboxServer
from tests.support.direct import StateStore, TaskInstance, context_of
from tests.support.fault_server import FaultServer, answer, hang_up
from tests.support.service import connection_text
from tests.support.signals import timed_out
from tests.support.waiting import wait_until

IMPORT = "from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator"
SEARCH = "/v2/search"
NOW = "retry_delay=datetime.timedelta(0)"


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
        # One that was given up on its way has arrived without its body.
        if request["body"] and (not statuses or request["status"] in statuses)
    ]


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


# In a real Airflow


def test_results_of_all_searches(run_dag, sandbox):
    """In the order of the queries, equal ones made once, each field of a query over that of the task."""
    done = run_dag(
        """
        WebDataBatchSearchOperator(
            task_id="many", limit=5,
            queries=["zeppelin", {"query": "balloon", "limit": "{{ 1 }}"}, "zeppelin", "nosuchthing"],
        )
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    value = done.xcom["many.return_value"]
    assert [result["query"] for result in value["results"]] == ["zeppelin", "balloon", "nosuchthing"]
    assert [len(result.get("web", [])) for result in value["results"]] == [2, 1, 0]
    assert value["done"] == 3
    assert value["failed"] == value["left"] == []
    assert value["creditsUsed"] == 4 == sum(result["creditsUsed"] for result in value["results"])
    assert sorted(asked(sandbox)) == ["balloon", "nosuchthing", "zeppelin"]
    assert {name: done.xcom[f"many.{name}"] for name in ("done", "failed", "left", "creditsUsed")} == {
        "done": 3, "failed": [], "left": [], "creditsUsed": 4,
    }  # fmt: skip


def test_output_and_what_goes_with_it(run_dag, sandbox, tmp_path):
    """The file is whole, each result says whose it is, and nothing of the progress is left behind."""
    output = tmp_path / "found" / "all.jsonl"
    done = run_dag(
        f"""
        WebDataBatchSearchOperator(
            task_id="many", queries="{{{{ ['zeppelin', 'balloon'] | tojson }}}}", sources=["web", "news"],
            output="{output}",
        )
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    value = done.xcom["many.return_value"]
    assert value["path"] == str(output)
    items = lines(output)
    assert len(items) == value["count"] == done.xcom["many.count"] >= 4
    assert {(item["query"], item["source"]) for item in items} >= {("zeppelin", "web"), ("balloon", "web")}
    assert all(item["url"].startswith(f"https://{item['query']}.example/") for item in items)
    assert "results" not in value
    assert os.listdir(output.parent) == ["all.jsonl"]


RETRIED = {"with output": "output='{folder}/all.jsonl', ", "with the task state store": ""}


@pytest.mark.parametrize("argument", RETRIED.values(), ids=RETRIED.keys())
def test_a_retry_makes_only_what_failed(run_dag, sandbox, tmp_path, argument):
    """The service called one search failed; the others are not paid for again."""
    if not argument and not hasattr(airflow.sdk.execution_time.context, "TaskStateStoreAccessor"):
        pytest.skip("Airflow 3.2 has no task state store")
    sandbox.control.add_fault("status", path=SEARCH, status=500, body={"success": False, "error": "oops"})
    done = run_dag(
        f"""
        WebDataBatchSearchOperator(
            task_id="many", queries=["zeppelin", "balloon", "glider"], retries=1, {NOW}, max_concurrency=1,
            {argument.format(folder=tmp_path)}
        )
        """,
        before=IMPORT,
    )
    assert done.run["tasks"]["many"] == {"state": "success", "try_number": 2}
    assert asked(sandbox, 500) == ["zeppelin"]
    assert sorted(asked(sandbox, 200)) == ["balloon", "glider", "zeppelin"]
    value = done.xcom["many.return_value"]
    assert (value["done"], value["failed"], value["creditsUsed"]) == (3, [], 6)
    assert "1 of 3 searches failed, more than max_error_ratio=0 allows" in done.log
    assert os.listdir(tmp_path) in ([], ["all.jsonl"])


@pytest.mark.rule("retry-after")
def test_a_long_refusal_reschedules_and_goes_on(run_dag, sandbox, tmp_path):
    """The wait is over the connection's budget: the attempt is rescheduled and repeats nothing."""
    sandbox.control.add_fault("status", path=SEARCH, status=429, headers={"Retry-After": "1"})
    done = run_dag(
        f"""
        WebDataBatchSearchOperator(
            task_id="many", queries=["zeppelin", "balloon", "glider"], max_concurrency=1,
            output="{tmp_path}/all.jsonl",
        )
        """,
        before=IMPORT,
        retry_budget=0,
    )
    assert done.run["tasks"]["many"] == {"state": "success", "try_number": 1}
    assert len(done.run["reschedules"]) == 1
    assert sorted(asked(sandbox, 200)) == ["balloon", "glider", "zeppelin"]
    assert asked(sandbox, 429) == ["zeppelin"]


BAD_INPUT = {
    "one bad query": ("queries=['ok', 'x' * 501]", ["queries, item 2", "500"]),
    "bad field of a mapping": ("queries=[{'query': 'q', 'limit': 101}]", ["queries, item 1", "limit", "101"]),
    "bad shared field": ("queries=['q'], limit='{{ 0 }}'", ["limit"]),
    "no queries": ("queries=[]", ["queries: at least one is needed"]),
    "no number": ("queries=['q'], credit_limit='many'", ["credit_limit", "many"]),
    "ratio over one": ("queries=['q'], max_error_ratio='2'", ["max_error_ratio", "at most 1"]),
}


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(run_dag, sandbox, arguments, words):
    done = run_dag(f"WebDataBatchSearchOperator(task_id='many', retries=3, {arguments})", before=IMPORT)
    assert done.run["tasks"]["many"] == {"state": "failed", "try_number": 1}
    assert sandbox.control.requests() == []
    for word in words:
        assert word in done.log


# Right here


@pytest.fixture
def connect(monkeypatch):
    def set_connection(url, **extra):
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(url, **extra))

    return set_connection


def execute(ti=None, store=None, **arguments):
    operator = WebDataBatchSearchOperator(task_id="t", **arguments)
    return operator.execute(context_of(ti or TaskInstance(), store))


@pytest.mark.rule("credits-search")
def test_credits_end_it_cleanly(sandbox, connect, tmp_path):
    """No more is spent than was allowed, what is left is said, and a later task can take it up."""
    connect(sandbox.url)
    ti = TaskInstance()
    queries = ["zeppelin", "balloon", {"query": "glider"}, "zeppelin 1"]
    value = execute(
        ti, queries=queries, credit_limit="5", max_concurrency=3, output=str(tmp_path / "a.jsonl")
    )
    assert (value["done"], value["creditsUsed"]) == (2, 4)
    assert value["left"] == ti.xcom["left"] == [{"query": "glider"}, "zeppelin 1"]
    assert sorted(asked(sandbox)) == ["balloon", "zeppelin"]
    rest = execute(queries=value["left"])
    assert [result["query"] for result in rest["results"]] == ["glider", "zeppelin 1"]


def test_credits_of_earlier_tries_count(sandbox, connect, tmp_path):
    """The limit is the task's, not the attempt's."""
    connect(sandbox.url)
    output = str(tmp_path / "a.jsonl")
    sandbox.control.add_fault("status", path=SEARCH, status=500, body={"success": False, "error": "oops"})
    arguments = {"queries": ["zeppelin", "balloon", "glider"], "credit_limit": 4, "max_concurrency": 1}
    with pytest.raises(AirflowException, match="1 of 3"):
        execute(TaskInstance(max_tries=1), output=output, **arguments)
    value = execute(TaskInstance(try_number=2, max_tries=1), output=output, **arguments)
    assert (value["done"], value["left"], value["creditsUsed"]) == (2, ["zeppelin"], 4)


AMBIGUOUS = {
    "connection closed without an answer": hang_up,
    "answer cut short": answer(body='{"success": true, "data"', length=9999),
    "no JSON": answer(body="<p>hello</p>", content_type="text/html"),
    "a gateway's 502": answer(502, "<h1>Bad gateway</h1>", "text/html"),
    "a gateway's 504": answer(504, "", "text/html"),
}
FOUND = answer(body='{"success": true, "data": {"web": []}, "creditsUsed": 2, "id": "s"}')


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("step", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
@pytest.mark.parametrize("kept", ["output", "store"])
def test_a_lost_answer_is_not_paid_for_twice(connect, tmp_path, step, kept):
    """It is reported, by later attempts too, which make it again only with repeat_ambiguous."""
    server = FaultServer([step, FOUND])
    connect(server.url)
    place = {"output": str(tmp_path / "a.jsonl")} if kept == "output" else {"store": StateStore()}
    arguments = {"queries": ["lost", "found"], "max_concurrency": 1, **place}
    ti = TaskInstance(max_tries=1)
    try:
        with pytest.raises(AirflowFailException, match="repeat_ambiguous"):
            execute(ti, **arguments)
        assert len(server.requests) == 2
        assert ti.xcom["return_value"]["done"] == 1
        (failure,) = ti.xcom["failed"]
        assert (failure["query"], failure["ambiguous"]) == ("lost", True)

        value = execute(TaskInstance(try_number=2, max_tries=1), max_error_ratio=0.5, **arguments)
        assert len(server.requests) == 2
        assert (value["done"], [item["query"] for item in value["failed"]]) == (1, ["lost"])
    finally:
        server.close()


def test_a_lost_answer_is_asked_for_again_on_request(connect, tmp_path):
    server = FaultServer([hang_up, FOUND])
    connect(server.url)
    arguments = {
        "queries": ["lost", "found"],
        "max_concurrency": 1,
        "output": str(tmp_path / "a.jsonl"),
        "repeat_ambiguous": True,
    }
    try:
        with pytest.raises(AirflowException):
            execute(TaskInstance(max_tries=1), **arguments)
        value = execute(TaskInstance(try_number=2, max_tries=1), **arguments)
        assert (value["done"], value["failed"]) == (2, [])
        assert [json.loads(request.body)["query"] for request in server.requests] == ["lost", "found", "lost"]
    finally:
        server.close()


FOR_ALL = {401: "Unauthorized", 402: "Insufficient credits", 403: "not enabled"}


@pytest.mark.rule("status-401", "status-402", "status-403")
@pytest.mark.parametrize("status", FOR_ALL)
def test_what_would_meet_all_stops_all(sandbox, connect, tmp_path, status):
    """The rest is not sent; what was found is kept, and the task goes on there once it is mended."""
    connect(sandbox.url)
    output = str(tmp_path / "a.jsonl")
    arguments = {"queries": ["zeppelin", "balloon", "glider"], "max_concurrency": 1, "output": output}
    sandbox.control.add_fault("delay", path=SEARCH, seconds=0)
    sandbox.control.add_fault(
        "status", path=SEARCH, times=None, status=status, body={"success": False, "error": FOR_ALL[status]}
    )
    with pytest.raises((WebDataError, AirflowException), match=FOR_ALL[status]):
        execute(TaskInstance(max_tries=3), **arguments)
    assert asked(sandbox) == ["zeppelin"]
    sandbox.control.clear_faults()
    assert execute(TaskInstance(try_number=2, max_tries=3), **arguments)["done"] == 3


def test_failures_within_the_ratio_are_reported(sandbox, connect):
    """Each by itself; the others are delivered."""
    connect(sandbox.url)
    sandbox.control.add_fault("status", path=SEARCH, status=400, body={"success": False, "error": "not this"})
    value = execute(queries=["zeppelin", "balloon", "glider"], max_concurrency=1, max_error_ratio=0.4)
    assert [result["query"] for result in value["results"]] == ["balloon", "glider"]
    (failure,) = value["failed"]
    assert failure["query"] == "zeppelin"
    assert failure["ambiguous"] is False
    assert "not this" in failure["error"]


def test_without_a_retry_left_results_are_delivered_and_the_task_fails(sandbox, connect, tmp_path):
    connect(sandbox.url)
    output = tmp_path / "a.jsonl"
    sandbox.control.add_fault("status", path=SEARCH, status=500, body={"success": False, "error": "oops"})
    ti = TaskInstance()
    arguments = {"queries": ["zeppelin", "balloon"], "max_concurrency": 1, "output": str(output)}
    with pytest.raises(AirflowFailException, match="1 of 2 searches failed"):
        execute(ti, **arguments)
    assert {item["query"] for item in lines(output)} == {"balloon"}
    assert ti.xcom["return_value"]["path"] == str(output)
    # Clearing the task makes the rest.
    assert execute(TaskInstance(), **arguments)["done"] == 2
    assert sorted(asked(sandbox, 200)) == ["balloon", "zeppelin"]


class Crowded(ThreadingHTTPServer):
    """A service that takes so many searches at once and refuses the rest."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, room, seconds):
        super().__init__(("127.0.0.1", 0), CrowdedHandler)
        self.room, self.seconds = room, seconds
        self.lock = threading.Lock()
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
            time.sleep(server.seconds)
            with server.lock:
                server.inside -= 1
                server.answered.append(body["query"])
            self.answer_with(
                200, {"success": True, "data": {"web": []}, "creditsUsed": 2, "id": body["query"]}
            )
        else:
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


def test_concurrency_falls_to_what_the_service_takes(connect):
    """The service takes 4 at once; 40 are begun; every search is answered once, and refusals stay the exception."""
    server = Crowded(room=4, seconds=0.01)
    connect(f"http://127.0.0.1:{server.server_port}")
    queries = [f"q{number}" for number in range(400)]
    try:
        value = execute(queries=queries, max_concurrency=40)
    finally:
        server.shutdown()
    assert value["done"] == 400
    assert value["failed"] == []
    assert sorted(server.answered) == sorted(queries)
    assert 0 < server.refused < 300


def test_a_connection_limit_holds_within_the_task(connect):
    """max_concurrency of the connection is over that of the task."""
    server = Crowded(room=3, seconds=0.005)
    connect(f"http://127.0.0.1:{server.server_port}", max_concurrency=3)
    try:
        value = execute(queries=[f"q{number}" for number in range(60)], max_concurrency=50)
    finally:
        server.shutdown()
    assert value["done"] == 60
    assert server.refused == 0


def test_refusals_without_end_bring_the_task_back_later(connect, tmp_path):
    """What was found is kept; the time that the service named is over the connection's budget."""
    limited = answer(429, '{"success": false, "error": "Rate limit exceeded"}', headers={"Retry-After": "40"})
    server = FaultServer([FOUND, limited])
    connect(server.url)
    try:
        with pytest.raises(AirflowRescheduleException):
            execute(queries=["a", "b"], max_concurrency=1, output=str(tmp_path / "a.jsonl"))
    finally:
        server.close()
    assert len(server.requests) == 2


def test_a_service_out_of_reach_fails_the_try(connect):
    """Not every query is tried to its end: after the connection's budget the task's own retry decides."""
    server = FaultServer([FOUND])
    server.close()
    connect(server.url, retry_budget=1)
    with pytest.raises(TransportError, match="nothing was sent"):
        execute(queries=[f"q{number}" for number in range(500)], store=StateStore())


CHILD = """
    import json, resource, signal, sys
    from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
    from tests.support.direct import TaskInstance, context_of

    operator = WebDataBatchSearchOperator(task_id="t", **json.loads(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
    value = operator.execute(context_of(TaskInstance(max_tries=3)))
    print(json.dumps({**value, "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""


def child(sandbox, arguments):
    environ = {**os.environ, "AIRFLOW_CONN_WEBDATA_DEFAULT": connection_text(sandbox.url)}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), json.dumps(arguments)],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3],
    )  # fmt: skip


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_crash_in_the_middle_costs_nothing_twice(sandbox, tmp_path, signal_number):
    """What was kept before the process died is not asked for again; at a kill by a user, nothing at all is."""
    queries = [f"zeppelin {number}" for number in range(120)]
    output = tmp_path / "all.jsonl"
    arguments = {"queries": queries, "max_concurrency": 4, "output": str(output)}
    sandbox.control.configure(latency_ms=400)

    crashing = child(sandbox, arguments)
    assert wait_until(lambda: len(asked(sandbox)) >= 30)
    crashing.send_signal(signal_number)
    _, log = crashing.communicate()
    sandbox.control.configure(latency_ms=0)
    assert crashing.returncode == (-signal.SIGKILL if signal_number == signal.SIGKILL else 1), log
    assert not output.exists()
    kept = {
        json.loads(line)["query"]
        for part in tmp_path.glob("all.jsonl.partial/*/[0-9]*.part")
        for line in part.read_text().splitlines()
    }
    first = asked(sandbox)
    assert 20 <= len(kept) < 120
    assert len(set(first) - kept) <= (8 if signal_number == signal.SIGKILL else 0)

    finishing = child(sandbox, arguments)
    printed, log = finishing.communicate()
    assert finishing.returncode == 0, log
    value = json.loads(printed.splitlines()[-1])
    second = asked(sandbox)[len(first) :]
    assert sorted(second) == sorted(set(queries) - kept)
    assert value["done"] == 120
    assert value["failed"] == value["left"] == []
    assert {item["query"] for item in lines(output)} == set(queries)
    assert os.listdir(tmp_path) == ["all.jsonl"]
    spent = 100_000 - sandbox.control.state()["credits"]
    assert spent == 2 * len(asked(sandbox, 200))
    assert value["creditsUsed"] == 2 * 120


def test_storage_that_refuses_ends_the_paying(sandbox, connect, tmp_path):
    """Results that cannot be kept would be paid for again: nothing more is begun."""
    connect(sandbox.url)
    (tmp_path / "all.jsonl.partial").write_text("a file where the folder is to be")
    with pytest.raises(OSError, match=r"all\.jsonl\.partial"):
        execute(
            queries=[f"zeppelin {number}" for number in range(200)],
            max_concurrency=4,
            output=str(tmp_path / "all.jsonl"),
        )
    assert len(asked(sandbox)) <= 20


def test_airflows_timeout_keeps_what_was_answered(sandbox, connect, tmp_path):
    """`execution_timeout` raises in the middle of the event loop; what had been answered is kept."""
    connect(sandbox.url)
    sandbox.control.configure(latency_ms=200)
    queries = [f"zeppelin {number}" for number in range(300)]
    arguments = {"queries": queries, "max_concurrency": 4, "output": str(tmp_path / "all.jsonl")}

    with timed_out(lambda: len(asked(sandbox, 200)) >= 10), pytest.raises(AirflowTaskTimeout):
        execute(TaskInstance(max_tries=1), **arguments)
    sandbox.control.configure(latency_ms=0)
    first = len(asked(sandbox))
    assert 10 <= first < 300
    value = execute(TaskInstance(try_number=2, max_tries=1), **arguments)
    assert value["done"] == 300
    again = [query for query in set(queries) if asked(sandbox).count(query) > 1]
    assert len(again) <= 4


@pytest.mark.rule("document-media-expires")
def test_media_are_kept_as_the_answers_come(sandbox, connect, tmp_path):
    """Before their links expire, also where the batch takes longer than they live; once, however many attempts."""
    connect(sandbox.url)
    for number in range(2):
        sandbox.control.set_media(f"https://zeppelin.example/{number}", "screenshot", size=1000)
    ti = TaskInstance(max_tries=1)
    arguments = {
        "queries": ["zeppelin", "balloon"],
        "max_concurrency": 1,
        "scrape_options": {"formats": ["screenshot"]},
        "include_domains": ["zeppelin.example"],
        "save_media": str(tmp_path / "media"),
    }
    store = StateStore()
    sandbox.control.add_fault("status", path=SEARCH, status=500, body={"success": False, "error": "oops"})
    with pytest.raises(AirflowException):
        execute(ti, store, **{**arguments, "queries": ["balloon", "zeppelin"]})
    # The links are dead by now.
    sandbox.control.advance(2 * 86_400)
    value = execute(TaskInstance(try_number=2, max_tries=1), store, **arguments)
    (zeppelins,) = [result for result in value["results"] if result["query"] == "zeppelin"]
    kept = [Path(item["screenshot"].removeprefix("file://")) for item in zeppelins["web"]]
    assert len(kept) == 2
    assert all(path.stat().st_size == 1000 and path.is_relative_to(tmp_path / "media") for path in kept)
    assert value["media"]["kept"] == 2
    assert value["media"]["failed"] == 0


def test_memory_does_not_grow_with_the_results(tmp_path):
    """100 MB of results go through; what is in memory at a time is a few of them."""
    peaks = []
    with SandboxServer(bulk=(10, 20_000)) as server:
        for number in (50, 500):
            output = tmp_path / f"{number}.jsonl"
            arguments = {
                "queries": [f"q{n}" for n in range(number)],
                "max_concurrency": 4,
                "scrape_options": {"formats": ["markdown"]},
                "output": str(output),
            }
            process = child(server, arguments)
            printed, log = process.communicate()
            assert process.returncode == 0, log
            value = json.loads(printed.splitlines()[-1])
            assert value["count"] == 10 * number
            assert output.stat().st_size > number * 200_000
            peaks.append(value["peak_kb"])
    assert peaks[1] - peaks[0] < 40_000, peaks
