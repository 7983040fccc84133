# SPDX-License-Identifier: Apache-2.0
"""The result of a call is billed once, even if its destination is lost."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.results.errors import StorageError
from airflow_provider_webdata.runs.billed_response import MAX_STORED_BYTES
from airflow_provider_webdata.runs.failures import UnpublishedResponseError
from airflow_provider_webdata.runs.publishing.keep_media import KeepMedia
from airflow_provider_webdata.runs.publishing.publication import Publication
from airflow_provider_webdata.states.credits import report
from airflow_provider_webdata.states.task_record import KEY, read_stored
from tests.support.direct import StateStore, TaskInstance, accept, context_of
from tests.support.fault_server import FaultServer, answer
from tests.support.service import connection_text

URL = "https://example.com/"
OPERATORS = {
    "Search": (WebDataSearchOperator, {"query": "q", "returns": "web"}),
    "Scrape": (WebDataScrapeOperator, {"url": URL}),
    "Map": (WebDataMapOperator, {"url": URL}),
    "Parse": (WebDataParseOperator, {"file": "{folder}/report.html"}),
    "BatchSearch": (WebDataBatchSearchOperator, {"queries": ["q"], "save_to": "{folder}/y.jsonl"}),
    "Crawl": (WebDataCrawlOperator, {"url": URL, "poll_interval": 1, "deferrable": False}),
    "BatchScrape": (
        WebDataBatchScrapeOperator,
        {"urls": [URL], "poll_interval": 1, "deferrable": False},
    ),
    "Agent": (WebDataAgentOperator, {"prompt": "find", "poll_interval": 1, "deferrable": False}),
}


def task(name, folder, **more):
    operator, arguments = OPERATORS[name]
    given = {
        argument: value.replace("{folder}", str(folder)) if isinstance(value, str) else value
        for argument, value in {**arguments, **more}.items()
    }
    return operator(task_id="t", **given)


OUTPUT, MEDIA = {"save_to": "{folder}/file/x.jsonl"}, {"media_to": "{folder}/file/media"}
UNWRITABLE = [
    *((name, OUTPUT, "file/x.jsonl cannot be written on this machine") for name in OPERATORS),
    *(
        (name, MEDIA, "file/media/.webdata-check cannot be written on this machine")
        for name in OPERATORS
        if name != "Map"
    ),
    ("Scrape", {"save_to": "{folder}/folder.jsonl"}, "is a folder"),
    ("Scrape", {"save_to": "{folder}/x.jsonl", "media_to": "{folder}/file"}, "correct the path"),
    ("Scrape", {"save_to": f"{{folder}}/{'n' * 260}.jsonl"}, "name too long"),
]


IMPORTS = "".join(
    f"from {operator.__module__} import {operator.__name__}\n" for operator, _ in OPERATORS.values()
)


def source(name, task_id, folder, **more):
    """Return the code of a task."""
    operator, arguments = OPERATORS[name]
    given = {"task_id": task_id, **arguments, **more}
    code = ", ".join(f"{argument}={value!r}" for argument, value in given.items())
    return f"{operator.__name__}({code}, retry_delay=datetime.timedelta(0))".replace("{folder}", str(folder))


def test_everything_that_can_be_tried_is_tried_before_the_call(run_dag, sandbox, tmp_path):
    """In each operator that writes results: no request at all, no retry, and nothing left behind."""
    (tmp_path / "file").touch()
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "report.html").write_text("<p>Wheat</p>")
    lines = [
        source(name, f"task_{number}", tmp_path, retries=3, **where)
        for number, (name, where, _) in enumerate(UNWRITABLE)
    ]
    done = run_dag("\n".join(lines), before=IMPORTS)
    assert sandbox.control.requests() == []
    for number, (name, where, words) in enumerate(UNWRITABLE):
        assert done.ended(f"task_{number}") == ("failed", 1), (name, where)
        assert words in done.log_of(f"task_{number}"), (name, where)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.jsonl", "report.html"]


# A folder that exists before the call and not after it.

RESULTS = [{"url": URL, "title": "Wheat"}]
DOCUMENT = {"success": True, "data": {"markdown": "Wheat", "metadata": {"scrapeId": "s", "creditsUsed": 1}}}
SEARCHED = {"success": True, "id": "s", "creditsUsed": 2, "data": {"web": RESULTS}}
ANSWERS = {
    "Search": SEARCHED,
    "Scrape": DOCUMENT,
    "Map": {"success": True, "links": RESULTS},
    "Parse": DOCUMENT,
}


def lose(folder):
    folder.rename(folder.with_suffix(".away"))
    folder.touch()


class Service(FaultServer):
    """Answers every call alike, and calls a function just before."""

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


def mend(folder):
    folder.unlink()
    folder.with_suffix(".away").rename(folder)


MEND = """
import pathlib

def mend(context):
    if context["ti"].try_number > 1:
        found = pathlib.Path({folder!r}) / context["ti"].task_id
        found.unlink()
        found.with_suffix(".away").rename(found)
"""


def test_a_folder_that_is_lost_meanwhile(run_dag, serve, tmp_path):
    """One call over two attempts; where nothing can keep its answer, one attempt, which says how to go on."""
    (tmp_path / "report.html").write_text("<p>Wheat</p>")
    services = {name: serve(wire, before=partial(lose, tmp_path / name)) for name, wire in ANSWERS.items()}
    lines = [
        source(name, name, tmp_path, retries=2, webdata_conn_id=name, save_to=f"{tmp_path}/{name}/x.jsonl")
        for name in ANSWERS
    ]
    done = run_dag(
        "\n".join(lines).replace("retry_delay", "pre_execute=mend, retry_delay"),
        IMPORTS + MEND.format(folder=str(tmp_path)),
        environ={
            f"AIRFLOW_CONN_{name.upper()}": connection_text(service.url) for name, service in services.items()
        },
    )
    for name, service in services.items():
        assert len(service.requests) == 1, name
        if HAS_RETRY_POLICIES:
            assert done.ended(name) == ("success", 2), done.log_of(name)
            assert len((tmp_path / name / "x.jsonl").read_text().splitlines()) == 1
            assert "publishes it without being billed again" in done.log_of(name)
        else:
            # Airflow 3.2 has no task state store.
            assert done.ended(name) == ("failed", 1), done.log_of(name)
            assert done.xcom[f"{name}.unpublished"] == ANSWERS[name]
            assert "clear the task to make the call again" in done.log_of(name)


# Where an answer is kept, and when it counts.


@pytest.fixture
def attempt(monkeypatch):
    """Return a function that executes an operator as one attempt of a task, with a store or without.

    Its result is stored by Airflow, unless `stored` is false.
    """

    def execute(operator, service, try_number, store=None, key="a-key", *, stored=True):
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(service.url, key))
        context = context_of(TaskInstance(try_number=try_number), store)
        value = operator.execute(context)
        if stored:
            accept(context)
        return value

    return execute


def search(folder, query="q", **more):
    return WebDataSearchOperator(task_id="t", query=query, returns="web", save_to=f"{folder}/x.jsonl", **more)


def block(folder):
    """Make the output impossible, but not the files beside it."""
    (folder / "x.jsonl").mkdir(parents=True)


@pytest.mark.parametrize(
    ("name", "has_store"),
    [("Search", True), ("Search", False), ("Scrape", True), ("Map", False), ("Parse", True)],
)
def test_the_next_attempt_delivers_it_and_leaves_nothing(attempt, serve, tmp_path, name, has_store):
    """It is kept in the task state store, or beside the output."""
    store = StateStore() if has_store else None
    (tmp_path / "report.html").write_text("<p>Wheat</p>")
    service = serve(ANSWERS[name], before=lambda: block(tmp_path))
    with pytest.raises(StorageError):
        attempt(task(name, tmp_path, save_to="{folder}/x.jsonl"), service, 1, store)
    shutil.rmtree(tmp_path / "x.jsonl")
    value = attempt(task(name, tmp_path, save_to="{folder}/x.jsonl"), service, 2, store)
    assert value["count"] == 1
    assert len(service.requests) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"x.jsonl", "report.html"}
    assert store is None or [*store.values] == [KEY]


@pytest.mark.parametrize(
    ("changed", "store"),
    [({"query": "other"}, True), ({"extra_body": {"new": 1}}, False), ({"limit": 3}, False)],
    ids=["query", "extra body", "limit"],
)
def test_a_changed_request_is_another(attempt, serve, tmp_path, changed, store):
    """The answer that was kept for the former one goes, once the new one is delivered."""
    place = StateStore() if store else None
    blocks = iter([lambda: block(tmp_path), lambda: None])
    service = serve(ANSWERS["Search"], before=lambda: next(blocks)())
    with pytest.raises(StorageError):
        attempt(search(tmp_path), service, 1, place)
    shutil.rmtree(tmp_path / "x.jsonl")
    attempt(search(tmp_path, **changed), service, 2, place)
    assert len(service.requests) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]
    assert place is None or [*place.values] == [KEY]


@pytest.mark.parametrize("store", [True, False])
def test_a_changed_connection_is_another_account(attempt, serve, tmp_path, store):
    """What it was billed for is not the answer of another one."""
    place = StateStore() if store else None
    blocks = iter([lambda: block(tmp_path), lambda: None])
    service = serve(ANSWERS["Search"], before=lambda: next(blocks)())
    with pytest.raises(StorageError):
        attempt(search(tmp_path), service, 1, place)
    assert "a-key" not in str(place and place.values)
    shutil.rmtree(tmp_path / "x.jsonl")
    attempt(search(tmp_path), service, 2, place, key="another-key")
    assert len(service.requests) == 2


def test_a_changed_file_is_parsed_anew(attempt, serve, tmp_path):
    blocks = iter([lambda: block(tmp_path), lambda: None])
    service = serve(DOCUMENT, before=lambda: next(blocks)())
    (tmp_path / "report.html").write_text("<p>Wheat</p>")
    store = StateStore()
    with pytest.raises(StorageError):
        attempt(task("Parse", tmp_path, save_to="{folder}/x.jsonl"), service, 1, store)
    shutil.rmtree(tmp_path / "x.jsonl")
    (tmp_path / "new.html").write_text("<p>Maize</p>")
    Path(tmp_path / "new.html").rename(tmp_path / "report.html")
    attempt(task("Parse", tmp_path, save_to="{folder}/x.jsonl"), service, 2, store)
    assert len(service.requests) == 2


def test_an_answer_that_does_not_fit_the_store_goes_beside_the_output(attempt, serve, tmp_path):
    """In a folder that readers of the output's folder skip."""
    long = {**RESULTS[0], "description": "x" * MAX_STORED_BYTES}
    service = serve({**SEARCHED, "data": {"web": [long]}}, before=lambda: block(tmp_path))
    store = StateStore()
    with pytest.raises(StorageError):
        attempt(search(tmp_path), service, 1, store)
    assert {path.name for path in tmp_path.iterdir()} == {"x.jsonl", "_x.jsonl.partial"}
    assert "webdata_paid" not in store.values
    shutil.rmtree(tmp_path / "x.jsonl")
    attempt(search(tmp_path), service, 2, store)
    assert len(service.requests) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]


def test_an_answer_that_cannot_be_kept_fails_for_good(serve, tmp_path, monkeypatch):
    service = serve(ANSWERS["Search"], before=lambda: lose(tmp_path / "found"))
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(service.url))
    ti = TaskInstance()
    with pytest.raises(AirflowFailException, match=r"(?s)File exists.* XCom 'unpublished'"):
        search(tmp_path / "found").execute(context_of(ti, None))
    assert ti.xcom["unpublished"] == ANSWERS["Search"]


@pytest.mark.says(
    "the message names the next step, also if the response is lost",
    "The message says if the response is lost",
)
def test_an_answer_that_is_lost_says_so(serve, tmp_path, monkeypatch):
    """No storage holds it: it is too long for the store, and the task has no file and no XCom."""
    long = {**RESULTS[0], "description": "x" * MAX_STORED_BYTES}
    service = serve({**SEARCHED, "data": {"web": [long]}})
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(service.url))

    def fail(*_):
        raise OSError("the database is down")

    monkeypatch.setattr(Publication, "publish", fail)
    monkeypatch.setattr(TaskInstance, "xcom_push", fail)
    operator = WebDataSearchOperator(task_id="t", query="q")
    with pytest.raises(AirflowFailException, match=r"(?s)billed, but could not be .* It is lost: clear the"):
        operator.execute(context_of(TaskInstance(), StateStore()))


def test_an_attempt_whose_time_is_over_keeps_its_answer(attempt, serve, tmp_path, monkeypatch):
    """Keeping media may take long; Airflow ends a task by an exception that no `except Exception` sees."""
    store = StateStore()
    service = serve(ANSWERS["Search"])

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(KeepMedia, "transform", interrupt)
    with pytest.raises(KeyboardInterrupt):
        attempt(search(tmp_path, media_to=f"{tmp_path}/media"), service, 1, store)
    attempt(search(tmp_path), service, 2, store)
    assert len(service.requests) == 1


@pytest.mark.parametrize("options", [{"media_to": "{folder}/media"}, {"save_to": "{folder}/x.jsonl"}])
def test_a_killed_attempt_has_kept_its_answer(attempt, serve, tmp_path, monkeypatch, options):
    """It is stored on receipt: a kill runs no code. With a limit, the call counts once, with its cost."""
    store = StateStore()
    service = serve(ANSWERS["Search"])
    operator = partial(task, "Search", tmp_path, credit_limit=50, **options)
    left = {}

    def kill(*_):
        left.update(store.values)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Publication, "publish", kill)
        with pytest.raises(KeyboardInterrupt):
            attempt(operator(), service, 1, store)
    store.values = left
    attempt(operator(), service, 2, store)
    assert len(service.requests) == 1
    assert store.values.keys() == {KEY}
    (entry,) = store.get(KEY)["credits"]["settled"].values()
    assert entry["by_operation"] == {"search": 2}


def test_a_response_that_a_killed_attempt_could_not_keep_is_billed_and_counted_again(
    attempt, serve, tmp_path, monkeypatch
):
    """A map has no id that tells two of them apart."""
    store = StateStore()
    service = serve({"success": True, "links": [{"url": URL, "title": "t" * 300_000}]})
    left = {}

    def kill(*_):
        left.update(store.values)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Publication, "publish", kill)
        with pytest.raises(UnpublishedResponseError):
            attempt(task("Map", tmp_path), service, 1, store)
    store.values = left
    attempt(task("Map", tmp_path), service, 2, store)
    assert len(service.requests) == 2
    assert report(read_stored(store.get(KEY)).credits)["by_operation"] == {"map": 2}


@pytest.mark.parametrize(
    ("name", "options"),
    [("Search", {}), ("Search", OUTPUT), ("Parse", {}), ("BatchSearch", OUTPUT)],
)
def test_a_result_that_airflow_did_not_store_is_published_again(attempt, serve, tmp_path, name, options):
    """Its XCom backend may be down, or a hook of the task fails. Once stored, a cleared task is billed again."""
    (tmp_path / "file").mkdir()
    (tmp_path / "report.html").write_text("<p>Wheat</p>")
    store = StateStore()
    service = serve(ANSWERS.get(name, SEARCHED))
    operator = partial(task, name, tmp_path, **options)
    value = attempt(operator(), service, 1, store, stored=False)
    assert attempt(operator(), service, 2, store, stored=False) == value
    assert attempt(operator(), service, 3, store) == value
    assert len(service.requests) == 1
    assert [*store.values] == [KEY]
    assert [path.name for path in (tmp_path / "file").iterdir()] == (["x.jsonl"] if options else [])
    attempt(operator(), service, 4, store)
    assert len(service.requests) == 2


AFTERWARDS = """
def fail_once(context, result):
    if context["ti"].try_number == 1:
        raise OSError("the hook fails")
"""


def test_what_fails_after_a_call_does_not_repeat_it(run_dag, serve, tmp_path):
    """In a real Airflow: a hook of the task, and its label. Without a store, files beside the output remain."""
    (tmp_path / "file").mkdir()
    tasks = {
        "hook": ("Search", {}, "post_execute=fail_once"),
        "label": ("Scrape", {}, "map_index_template='{{ 1 // (ti.try_number - 1) }}'"),
        "batch": ("BatchSearch", OUTPUT, "post_execute=fail_once"),
    }
    services = {task_id: serve(ANSWERS.get(name, SEARCHED)) for task_id, (name, *_) in tasks.items()}
    done = run_dag(
        "\n".join(
            source(name, task_id, tmp_path, retries=1, webdata_conn_id=task_id, **options).replace(
                "retry_delay", f"{fails}, retry_delay"
            )
            for task_id, (name, options, fails) in tasks.items()
        ),
        IMPORTS + AFTERWARDS,
        environ={
            f"AIRFLOW_CONN_{name.upper()}": connection_text(service.url) for name, service in services.items()
        },
    )
    for task_id, service in services.items():
        assert done.ended(task_id) == ("success", 2), done.log_of(task_id)
        is_kept = HAS_RETRY_POLICIES or task_id == "batch"
        assert len(service.requests) == (1 if is_kept else 2), done.log_of(task_id)
    assert [path.name for path in (tmp_path / "file").iterdir()] == ["x.jsonl"]
