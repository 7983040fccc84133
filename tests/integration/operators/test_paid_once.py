"""What a call brought is paid for once, whatever becomes of the place where it is to go."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import airflow.sdk.execution_time.context
import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.tasks import kept_records
from tests.support.dag_runner import dag_runner
from tests.support.direct import StateStore, TaskInstance, context_of
from tests.support.fault_server import FaultServer, answer
from tests.support.job_service import JobService
from tests.support.service import connection_text

HAS_STORE = hasattr(airflow.sdk.execution_time.context, "TaskStateStoreAccessor")
IMPORTS = """
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.extract import WebDataExtractOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
"""
URL = "https://example.com/"
PAID = {
    "Search": "query='q'",
    "BatchSearch": "queries=['q']",
    "Scrape": f"url='{URL}'",
    "Map": f"url='{URL}'",
    "Parse": "file='{folder}/report.html'",
    "Crawl": f"url='{URL}', deferrable=False",
    "BatchScrape": f"urls=['{URL}'], deferrable=False",
    "Extract": f"urls=['{URL}'], deferrable=False",
    "Agent": "prompt='find', deferrable=False",
}
OUTPUT, MEDIA = "output='{folder}/file/x.jsonl'", "save_media='{folder}/file/media'"
UNWRITABLE = {
    OUTPUT: "file/x.jsonl cannot be written on this machine",
    MEDIA: "file/media/any cannot be written on this machine",
    "output='{folder}/folder.jsonl'": "it is a folder",
    "output='{folder}/x.jsonl', save_media='{folder}/file'": "correct the path",
    f"output='{{folder}}/{'n' * 260}.jsonl'": "name too long",
}


def test_what_can_be_tried_is_tried_before_the_call(run_dag, sandbox, tmp_path):
    """In each operator that writes results: no request at all, no retry, and nothing left behind."""
    (tmp_path / "file").touch()
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "report.html").write_text("<p>Wheat</p>")
    outputs = [(name, where) for name in PAID for where in UNWRITABLE if where in (OUTPUT, MEDIA)]
    tried = [*outputs, *(("Scrape", where) for where in UNWRITABLE if where not in (OUTPUT, MEDIA))]
    body = "\n".join(
        f"WebData{name}Operator(task_id='task_{number}', retries=3, {PAID[name]}, {where})"
        for number, (name, where) in enumerate(tried)
    )
    done = run_dag(body.replace("{folder}", str(tmp_path)), before=IMPORTS)
    assert sandbox.control.requests() == []
    states = [(task["state"], task["try_number"]) for task in done.run["tasks"].values()]
    assert states == [("failed", 1)] * len(tried)
    for words in UNWRITABLE.values():
        assert words in done.log
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.jsonl", "report.html"]


# The folder that is there before the call and not after it.

RESULTS = [{"url": URL, "title": "Wheat"}]
DOCUMENT = {"success": True, "data": {"markdown": "Wheat", "metadata": {"scrapeId": "s", "creditsUsed": 1}}}
ANSWERS = {
    "Search": {"success": True, "id": "s", "creditsUsed": 2, "data": {"web": RESULTS}},
    "Scrape": DOCUMENT,
    "Map": {"success": True, "links": RESULTS},
    "Parse": DOCUMENT,
}
MEND = """
import pathlib

def mend(context):
    if context["ti"].try_number > 1:
        found = pathlib.Path("{folder}/found")
        found.unlink()
        found.with_suffix(".away").rename(found)
"""


def lose(folder):
    folder.rename(folder.with_suffix(".away"))
    folder.touch()


class Service(FaultServer):
    """Answers every call with the same, and has something happen just before."""

    api_key = "any"

    def __init__(self, wire, before=lambda: None):
        def step(connection):
            before()
            answer(body=json.dumps(wire))(connection)

        super().__init__([step])


@pytest.fixture
def serve():
    servers = []

    def start(*given, **named):
        servers.append(Service(*given, **named))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize("name", ANSWERS)
def test_a_folder_that_is_lost_meanwhile(airflow, serve, tmp_path, name):
    """One call over two attempts; where nothing can keep its answer, one attempt, which says how to go on."""
    folder = tmp_path / "found"
    (tmp_path / "report.html").write_text("<p>Wheat</p>")
    service = serve(ANSWERS[name], before=lambda: lose(folder))
    arguments = PAID[name].replace("{folder}", str(tmp_path))
    done = dag_runner(airflow, service)(
        f"WebData{name}Operator(task_id='t', retries=2, retry_delay=datetime.timedelta(0), pre_execute=mend, "
        f"{arguments}, output='{folder}/x.jsonl')",
        IMPORTS + MEND.replace("{folder}", str(tmp_path)),
    )
    assert len(service.requests) == 1
    if HAS_STORE:
        assert done.run["tasks"]["t"] == {"state": "success", "try_number": 2}, done.log[-3000:]
        assert done.xcom["t.return_value"]["count"] == 1
        assert len((folder / "x.jsonl").read_text().splitlines()) == 1
        assert "does not pay for it again" in done.log
    else:
        assert done.run["tasks"]["t"] == {"state": "failed", "try_number": 1}
        assert done.xcom["t.undelivered"] == ANSWERS[name]
        assert "clear the task to make the call again" in done.log


class LosingJobs(JobService):
    """Has something happen before the next job is started."""

    def __init__(self, before):
        super().__init__()
        self.before = before
        self.ends_after = 1
        self.ends_as = {"status": "completed", "data": [{"markdown": "one"}], "total": 1, "completed": 1}

    def answer(self, method, *given):
        if method == "POST":
            self.before()
        return super().answer(method, *given)


@pytest.mark.parametrize("name", ["Crawl", "BatchScrape", "Extract", "Agent"])
def test_a_job_whose_folder_is_lost_is_read_again(airflow, tmp_path, name):
    """It is started once, and its result is read by the second attempt."""
    folder = tmp_path / "found"
    service = LosingJobs(lambda: lose(folder))
    try:
        done = dag_runner(airflow, service)(
            f"WebData{name}Operator(task_id='t', retries=1, retry_delay=datetime.timedelta(0), pre_execute=mend, "
            f"{PAID[name]}, poll_interval=1, output='{folder}/x.jsonl')",
            IMPORTS + MEND.replace("{folder}", str(tmp_path)),
        )
    finally:
        service.stop()
    assert len(service.started()) == 1
    assert done.run["tasks"]["t"] == {"state": "success", "try_number": 2}, done.log[-3000:]
    assert [json.loads(line) for line in (folder / "x.jsonl").read_text().splitlines()] == [
        {"markdown": "one"}
    ]


# Where an answer is kept, and when it counts: operators executed right here.


@pytest.fixture
def attempt(monkeypatch):
    """Return what executes an operator as one attempt of a task, with a store or without."""

    def execute(operator, service, try_number, store=None):
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(service.url))
        return operator.execute(context_of(TaskInstance(try_number=try_number), store))

    return execute


def search(folder, query="q", **more):
    return WebDataSearchOperator(task_id="t", query=query, returns="web", output=f"{folder}/x.jsonl", **more)


def block(folder):
    """Make the output impossible, though not what is beside it."""
    (folder / "x.jsonl").mkdir(parents=True)


OPERATORS = {
    "Search": lambda folder: search(folder),
    "Scrape": lambda folder: WebDataScrapeOperator(task_id="t", url=URL, output=f"{folder}/x.jsonl"),
    "Map": lambda folder: WebDataMapOperator(task_id="t", url=URL, output=f"{folder}/x.jsonl"),
    "Parse": lambda folder: WebDataParseOperator(
        task_id="t", file=f"{folder}/report.html", output=f"{folder}/x.jsonl"
    ),
}


@pytest.mark.parametrize("store", [StateStore(), None], ids=["store", "beside the output"])
@pytest.mark.parametrize("name", OPERATORS)
def test_the_next_attempt_delivers_it_and_leaves_nothing(attempt, serve, tmp_path, name, store):
    (tmp_path / "report.html").write_text("<p>Wheat</p>")
    service = serve(ANSWERS[name], before=lambda: block(tmp_path))
    with pytest.raises(IsADirectoryError):
        attempt(OPERATORS[name](tmp_path), service, 1, store)
    shutil.rmtree(tmp_path / "x.jsonl")
    value = attempt(OPERATORS[name](tmp_path), service, 2, store)
    assert value["count"] == 1
    assert len(service.requests) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"x.jsonl", "report.html"}
    assert store is None or [*store.values] == ["webdata_credits"]


@pytest.mark.parametrize("changed", [{"query": "other"}, {"extra_body": {"new": 1}}, {"limit": 3}], ids=str)
@pytest.mark.parametrize("store", [True, False], ids=["store", "beside the output"])
def test_a_changed_request_is_another(attempt, serve, tmp_path, changed, store):
    """What was kept for the former one goes, once the new one is delivered."""
    place = StateStore() if store else None
    blocks = iter([lambda: block(tmp_path), lambda: None])
    service = serve(ANSWERS["Search"], before=lambda: next(blocks)())
    with pytest.raises(IsADirectoryError):
        attempt(search(tmp_path), service, 1, place)
    shutil.rmtree(tmp_path / "x.jsonl")
    attempt(search(tmp_path, **changed), service, 2, place)
    assert len(service.requests) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]
    assert place is None or [*place.values] == ["webdata_credits"]


def test_a_changed_file_is_parsed_anew(attempt, serve, tmp_path):
    blocks = iter([lambda: block(tmp_path), lambda: None])
    service = serve(DOCUMENT, before=lambda: next(blocks)())
    (tmp_path / "report.html").write_text("<p>Wheat</p>")
    store = StateStore()
    with pytest.raises(IsADirectoryError):
        attempt(OPERATORS["Parse"](tmp_path), service, 1, store)
    shutil.rmtree(tmp_path / "x.jsonl")
    (tmp_path / "new.html").write_text("<p>Maize</p>")
    Path(tmp_path / "new.html").rename(tmp_path / "report.html")
    attempt(OPERATORS["Parse"](tmp_path), service, 2, store)
    assert len(service.requests) == 2


def test_what_does_not_fit_the_store_goes_beside_the_output(attempt, serve, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_records, "MOST_STORED_BYTES", 10)
    service = serve(ANSWERS["Search"], before=lambda: block(tmp_path))
    store = StateStore()
    with pytest.raises(IsADirectoryError):
        attempt(search(tmp_path), service, 1, store)
    assert (tmp_path / "x.jsonl.partial").exists()
    shutil.rmtree(tmp_path / "x.jsonl")
    attempt(search(tmp_path), service, 2, store)
    assert len(service.requests) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]


def test_what_cannot_be_kept_fails_for_good(serve, tmp_path, monkeypatch):
    service = serve(ANSWERS["Search"], before=lambda: lose(tmp_path / "found"))
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(service.url))
    ti = TaskInstance()
    with pytest.raises(AirflowFailException, match=r"File exists.* XCom 'undelivered'"):
        search(tmp_path / "found").execute(context_of(ti))
    assert ti.xcom["undelivered"] == ANSWERS["Search"]


def test_an_attempt_whose_time_is_over_keeps_its_answer(attempt, serve, tmp_path):
    """Keeping media may take long; Airflow ends a task by an exception that no `except Exception` sees."""
    store = StateStore()
    service = serve(ANSWERS["Search"])

    class Interrupted(WebDataSearchOperator):
        def with_media(self, items, report):
            if self.params["over"]:
                raise KeyboardInterrupt
            return super().with_media(items, report)

    def task(over):
        return Interrupted(task_id="t", query="q", output=f"{tmp_path}/x.jsonl", params={"over": over})

    with pytest.raises(KeyboardInterrupt):
        attempt(task(True), service, 1, store)
    attempt(task(False), service, 2, store)
    assert len(service.requests) == 1


def test_many_searches_that_nothing_keeps_are_not_made_again(monkeypatch):
    """On Airflow 3.2 without output: what was answered is delivered, and the task fails though it has retries."""
    server = FaultServer([answer(500, '{"success": false}'), answer(body=json.dumps(ANSWERS["Search"]))])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    ti = TaskInstance(max_tries=2)
    operator = WebDataBatchSearchOperator(task_id="t", queries=["a", "b", "c"], max_concurrency=1)
    with pytest.raises(AirflowFailException, match="which would pay for all again: set output="):
        operator.execute(context_of(ti))
    server.close()
    assert ti.xcom["return_value"]["done"] == 2
    assert len(server.requests) == 3
