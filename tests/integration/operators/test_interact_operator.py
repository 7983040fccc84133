# SPDX-License-Identifier: Apache-2.0
"""Code in a browser, and the one promise: the browser is always closed."""

from __future__ import annotations

import contextlib
import json
import threading

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowTaskTimeout

from airflow_provider_webdata.api.errors import NotFoundError, WebDataError
from airflow_provider_webdata.api.models import InteractRequest
from airflow_provider_webdata.hooks.task_memory import TaskMemory
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.monitor.run import WebDataRunMonitorOperator
from airflow_provider_webdata.runs.pages.browser import SessionBrowser
from airflow_provider_webdata.states.task_record import KEY, Started, new_key
from tests.support import direct
from tests.support.direct import StateStore, TaskInstance, context_of
from tests.support.fault_server import FaultServer, answer, hang_up
from tests.support.service import connection_text
from tests.support.signals import killed_like_by_airflow, timed_out

IMPORT = "from airflow_provider_webdata.operators.interact import WebDataInteractOperator"
OPEN = "/v2/interact$"
PAGE = "https://airship.example/"
GO = f'await page.goto("{PAGE}")'
TITLE = "console.log(await page.title())"
WAIT = "await page.waitForTimeout(60000)"


@pytest.fixture(autouse=True)
def _page(sandbox):
    sandbox.control.set_page(PAGE, markdown="# Airship\n\nIt floats.", title="Airship")


def states(sandbox):
    return [session["status"] for session in sandbox.control.sessions()]


def made(**arguments):
    return WebDataInteractOperator(task_id="t", **{"steps": [GO, TITLE], **arguments})


def execute(ti=None, store=None, **arguments):
    return made(**arguments).execute(context_of(ti or TaskInstance(), store))


@pytest.mark.rule(
    "session-ttl", "session-answer", "session-secrets", "scrape-interact", "scrape-interact-stop"
)
@pytest.mark.rule("ok-but-failed-code", "code-result")
def test_steps_in_a_real_airflow(run_dag, sandbox):
    """In a session, which always has a ttl, and on the page of a scrape; a failed step fails the task."""
    done = run_dag(
        f"""
        browse = WebDataInteractOperator(
            task_id="browse",
            steps=[
                "await page.goto('{{{{ params.page }}}}')",
                {{"code": "print(await page.title())", "language": "python", "name": "the title"}},
            ],
            params={{"page": "{PAGE}"}},
            profile={{"name": "p"}}, activity_ttl="120",
        )
        scrape = WebDataScrapeOperator(task_id="scrape", url="{PAGE}")
        on_page = WebDataInteractOperator(
            task_id="on_page", scrape_id="{{{{ ti.xcom_pull('scrape', key='scrape_id') }}}}",
            steps=["console.log(page.url())", {{"prompt": "Say what floats"}}],
        )
        fails = WebDataInteractOperator(task_id="fails", steps=[{GO!r}, "process.exit(3)", {TITLE!r}])
        browse >> scrape >> on_page >> fails
        """,
        before=IMPORT + "\nfrom airflow_provider_webdata.operators.scrape import WebDataScrapeOperator",
    )
    session, page, failed = sandbox.control.sessions()
    assert states(sandbox) == ["destroyed"] * 3

    assert done.state("browse") == "success"
    value = done.xcom["browse.return_value"]
    assert [step["exitCode"] for step in value["steps"]] == [0, 0]
    assert value["steps"][1]["stdout"].strip() == "Airship"
    assert "result" not in value["steps"][1]
    assert value["sessionId"] == session["id"]
    assert value["creditsBilled"] == session["creditsBilled"] == 2
    assert value["sessionDurationMs"] == session["sessionDurationMs"]
    opened = sandbox.control.requests(OPEN, "POST")[0]
    assert opened["body"] == {"ttl": 600, "activityTtl": 120, "profile": {"name": "p"}}
    assert "step 2 of 2 (the title) is done" in done.log_of("browse")

    assert done.state("on_page") == "success"
    value = done.xcom["on_page.return_value"]
    assert value["scrapeId"] == done.xcom["scrape.scrape_id"]
    assert value["steps"][0]["stdout"].strip() == PAGE
    assert "It floats" in value["steps"][1]["output"]
    assert value["creditsBilled"] == 7

    assert done.state("fails") == "failed"
    assert "step 2 of 3 failed: it exited with code 3" in done.log_of("fails")
    assert [step["exitCode"] for step in done.xcom["fails.steps"]] == [0, 3]
    assert done.xcom["fails.credits_billed"] == 2
    assert len(sandbox.control.requests(f"/v2/interact/{failed['id']}/execute")) == 2

    for url in (session["cdpUrl"], session["interactiveLiveViewUrl"], page["cdpUrl"]):
        assert url not in done.log
        assert url not in json.dumps(done.xcom)


@pytest.fixture
def connect_to(monkeypatch):
    def set_connection(server):
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))

    return set_connection


# In this process


BAD_INPUT = {
    "no steps": ({"steps": []}, ["steps: at least one is required"]),
    "empty code": ({"steps": ["ok", ""]}, ["step 2 of 2", "code"]),
    "unknown field of a step": ({"steps": [{"cod": "x"}]}, ["step 1 of 1", "cod"]),
    "a prompt without a scrape": ({"steps": [{"prompt": "x"}]}, ["step 1 of 1", "prompt"]),
    "time of a step": ({"step_timeout": "301"}, ["timeout", "300"]),
}


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_opens_nothing(here, arguments, words):
    with pytest.raises(AirflowFailException) as failure:
        direct.execute(made(**arguments), context_of(TaskInstance()))
    assert here.control.requests() == []
    assert all(word in str(failure.value) for word in words)


def test_a_failed_step_may_be_fine(here):
    value = execute(steps=["process.exit(3)", "throw new Error('no')", TITLE], check_exit_code=False)
    assert [step["exitCode"] for step in value["steps"]] == [3, 1, 0]
    assert states(here) == ["destroyed"]


@pytest.mark.rule("code-timeout")
def test_a_step_over_its_time_is_a_failure(here):
    """The sandbox stops it at its timeout; the clock is sped up from here."""
    with advancing(here), pytest.raises(AirflowException, match="it was stopped at its timeout"):
        execute(steps=[{"code": WAIT, "timeout": 1}], ttl=3600)
    assert states(here) == ["destroyed"]


@contextlib.contextmanager
def advancing(here):
    over = threading.Event()

    def advance():
        while not over.wait(0.05):
            here.control.advance(1)

    thread = threading.Thread(target=advance)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.rule("session-ttl")
def test_ttl_covers_the_steps(here):
    """As long as the steps may take, within what the service allows."""
    execute(steps=[TITLE] * 4, step_timeout=300)
    execute(steps=[TITLE] * 20, step_timeout=300)
    execute(steps=[TITLE], ttl=45)
    bodies = [request["body"] for request in here.control.requests(OPEN, "POST")]
    assert [body["ttl"] for body in bodies] == [1260, 3600, 45]


@pytest.mark.parametrize("name", ["activity_ttl", "activityTtl"])
def test_a_step_overrides_the_task_in_either_spelling(here, name):
    """It is refused for the page that the sandbox does not have, not for the two values."""
    page = "47ecad2d-110e-410e-a3a6-74aa760b1cdf"
    with pytest.raises(NotFoundError):
        execute(scrape_id=page, activity_ttl=60, steps=[{"prompt": "x", name: 120}])
    (sent,) = here.control.requests(f"/v2/scrape/{page}/interact", "POST")
    assert sent["body"]["activityTtl"] == 120


@pytest.mark.rule("session-secrets")
def test_urls_that_control_the_browser_are_masked_in_outputs(connect_to):
    """Code may print what it likes; XCom is read by many."""
    secret = "wss://browser.example/abc?token=hush"
    session = {
        "success": True,
        "id": "s-1",
        "cdpUrl": secret,
        "interactiveLiveViewUrl": "https://x.example/t=hush",
    }
    printed = {
        "success": True,
        "stdout": f"at {secret}",
        "result": f"at {secret}",
        "exitCode": 0,
        "newUrl": secret,
    }
    server = FaultServer(
        [
            answer(body='{"success": true, "sessions": []}'),
            answer(body=json.dumps(session)),
            answer(body=json.dumps(printed)),
            answer(body='{"success": true, "creditsBilled": 2, "sessionDurationMs": 10}'),
        ]
    )
    connect_to(server)
    ti = TaskInstance()
    try:
        value = execute(ti, steps=["x"])
    finally:
        server.close()
    assert value["steps"] == [{"stdout": "at ***", "exitCode": 0}]
    assert "hush" not in json.dumps([value, ti.xcom])


FAULTS = {
    "500": {"kind": "status", "status": 500, "body": {"success": False, "error": "oops"}},
    "connection closed": {"kind": "drop"},
    "answer lost": {"kind": "drop_after_work"},
    "answer cut short": {"kind": "truncate"},
    "no JSON": {"kind": "garbage"},
    "410": {"kind": "status", "status": 410, "body": {"success": False, "error": "gone"}},
    "429": {
        "kind": "status",
        "status": 429,
        "body": {"success": False, "error": "Concurrency limit reached"},
    },
}


@pytest.mark.rule("repeat-unsafe", "session-close")
@pytest.mark.parametrize(
    ("fault", "step"),
    [
        ("500", "execute"),
        ("answer lost", "execute"),
        ("answer lost", "interact"),
        ("answer cut short", "execute"),
        ("410", "execute"),
        ("429", "interact"),
    ],
)
def test_closed_when_a_step_is_not_answered(here, connect, fault, step):
    """Nothing is run twice, and the browser is closed, in both forms."""
    connect(here, retry_budget=0)
    arguments = {"steps": [GO, TITLE]}
    if step == "interact":
        with WebDataHook() as hook:
            arguments["scrape_id"] = hook.scrape(url=PAGE).data.metadata.scrape_id
    here.control.add_fault(path=f"/v2/.*/{step}$", method="POST", **FAULTS[fault])
    with pytest.raises((WebDataError, AirflowException)) as failed:
        execute(**arguments, rate_limit_timeout=0)
    # A browser that is gone is no reason to give up: the next attempt opens another one.
    assert not isinstance(failed.value, AirflowFailException)
    assert len(here.control.requests(f"/v2/.*/{step}$", "POST")) == 1
    assert set(states(here)) <= {"destroyed"}


@pytest.mark.rule("session-list")
@pytest.mark.parametrize("fault", ["connection closed", "answer lost", "no JSON"])
def test_a_session_whose_opening_was_not_answered_is_found_and_closed(here, fault, monkeypatch):
    """The one that was opened since; others belong to others. It is opened once."""
    monkeypatch.setattr("airflow_provider_webdata.runs.pages.browser._LOST_SECONDS", 0.5)
    with WebDataHook() as hook:
        other = hook.open_session(ttl=600).id
    here.control.clear_requests()
    here.control.add_fault(path=OPEN, method="POST", **FAULTS[fault])
    with pytest.raises(WebDataError):
        execute()
    assert len(here.control.requests(OPEN, "POST")) == 1
    active = [session["id"] for session in here.control.sessions() if session["status"] == "active"]
    assert active == [other]


@pytest.mark.says("the log names them")
def test_of_several_new_sessions_none_is_closed(connect_to, caplog, monkeypatch):
    """One of them may be ours, the others are not; the log names them."""
    monkeypatch.setattr("airflow_provider_webdata.runs.pages.browser._LOST_SECONDS", 0.5)
    listed = json.dumps({"success": True, "sessions": [{"id": "s-1"}, {"id": "s-2"}]})
    server = FaultServer([answer(body='{"success": true, "sessions": []}'), hang_up, answer(body=listed)])
    connect_to(server)
    try:
        with pytest.raises(WebDataError):
            execute()
    finally:
        server.close()
    assert "One of 2 sessions opened in the meantime may be this task's" in caplog.text
    assert "The sessions: s-1, s-2" in caplog.text
    assert [request.method for request in server.requests] == ["GET", "POST", "GET"]


def test_the_service_forges_no_line_of_the_log(connect_to, caplog):
    """Neither by the expiry, nor by what the code prints of a page."""
    forged = "x\n2026-01-01 ERROR forged\x1b[31m"
    session = {"success": True, "id": "s-1", "cdpUrl": "wss://c.example/", "expiresAt": forged}
    failed = {"success": True, "exitCode": 1, "error": forged, "stderr": f"{forged}\n  of a page"}
    server = FaultServer(
        [
            answer(body='{"success": true, "sessions": []}'),
            answer(body=json.dumps(session)),
            answer(body=json.dumps(failed)),
            answer(body='{"success": true, "creditsBilled": 2, "sessionDurationMs": 10}'),
        ]
    )
    connect_to(server)
    try:
        with pytest.raises(AirflowException) as caught:
            execute(steps=["x"])
    finally:
        server.close()
    assert "it expires at x 2026-01-01 ERROR forged" in caplog.text
    assert "\n    of a page" in caplog.text
    for text in (*caplog.messages, str(caught.value)):
        assert "\x1b" not in text
        assert "\n2026" not in text


@pytest.mark.parametrize("is_cleared", [False, True])
def test_a_retry_closes_what_a_crashed_try_left(here, is_cleared):
    """The worker died with the session open: nothing ran after that, not even `finally`."""
    store = StateStore()
    with WebDataHook() as hook:
        crashed = TaskMemory(context_of(TaskInstance(max_tries=1), store))
        session = SessionBrowser(hook, InteractRequest(ttl=600), None, crashed)
        session.open()
    assert states(here) == ["active"]
    again = TaskInstance(try_number=2, max_tries=3 if is_cleared else 1)
    value = execute(again, store, steps=[TITLE])
    assert value["sessionId"] != session.ids["sessionId"]
    assert states(here) == ["destroyed", "destroyed"]
    # Nothing of the sessions is left but what they cost, that of the crashed try included.
    assert "started" not in store.get(KEY)
    assert len(store.get(KEY)["credits"]["settled"]) == 2


def runs_code(here):
    bodies = [
        request["body"] or {} for request in here.control.requests("/v2/.*/(execute|interact)$", "POST")
    ]
    return any(WAIT in body.get("code", "") for body in bodies)


@pytest.mark.parametrize("form", ["session", "scrape"])
def test_a_kill_closes_the_browser_while_code_runs(here, form):
    """At once, and not when the code ends, which would take a minute; no further step is begun."""
    arguments = {"steps": [GO, {"code": WAIT, "timeout": 120}, TITLE]}
    if form == "scrape":
        with WebDataHook() as hook:
            arguments["scrape_id"] = hook.scrape(url=PAGE).data.metadata.scrape_id
    operator = made(**arguments)

    with (
        killed_like_by_airflow(operator, lambda: runs_code(here)),
        pytest.raises(AirflowException, match="closed during the step"),
    ):
        operator.execute(context_of(TaskInstance()))
    assert states(here) == ["destroyed"]
    assert len(here.control.requests("/v2/.*/(execute|interact)$", "POST")) == 2


@pytest.mark.parametrize("fault", ["delay", "lost"])
def test_a_kill_while_the_session_is_being_opened(here, fault, monkeypatch):
    """Its id is not known yet: it is closed as soon as it is, or found where no answer comes."""
    monkeypatch.setattr("airflow_provider_webdata.runs.pages.browser._LOST_SECONDS", 0.5)
    here.control.add_fault("delay", path=OPEN, method="POST", seconds=4)
    if fault == "lost":
        here.control.add_fault("drop_after_work", path=OPEN, method="POST")
    operator = made()

    def opening():
        return bool(here.control.requests(OPEN, "POST"))

    with killed_like_by_airflow(operator, opening), pytest.raises((WebDataError, AirflowException)):
        operator.execute(context_of(TaskInstance()))
    assert states(here) == ["destroyed"]
    assert here.control.requests("/v2/interact/.*/execute") == []


def test_airflows_timeout_closes_the_session(here):
    """`execution_timeout` raises within the call, whatever it is at, and then calls `on_kill`."""
    operator = made(steps=[{"code": WAIT, "timeout": 120}])

    with timed_out(lambda: runs_code(here)), pytest.raises(AirflowTaskTimeout):
        operator.execute(context_of(TaskInstance()))
    operator.on_kill()
    assert states(here) == ["destroyed"]


def test_a_close_that_fails_is_tried_again(here):
    """Closing twice does no harm, so that the client repeats it."""
    here.control.add_fault("drop_after_work", path="/v2/interact/", method="DELETE")
    value = execute()
    assert states(here) == ["destroyed"]
    assert value["creditsBilled"] == 2


def test_a_close_that_cannot_be_made_does_not_lose_the_results(here, connect, caplog):
    connect(here, retry_budget=0)
    here.control.add_fault("status", path="/v2/interact/", method="DELETE", status=500, body={"error": "no"})
    value = execute()
    assert value["steps"][1]["stdout"].strip() == "Airship"
    assert value["creditsBilled"] is None
    assert "which bills until its ttl" in caplog.text


def test_a_retry_closes_a_session_that_could_not_be_closed(here, connect):
    connect(here, retry_budget=0)
    here.control.add_fault("status", path="/v2/interact/", method="DELETE", status=500, body={"error": "no"})
    outcome = direct.run(made(steps=["not code"], retries=1), StateStore())
    assert outcome.ended == ("failed", 2)
    assert states(here) == ["destroyed", "destroyed"]


@pytest.mark.parametrize("kind", ["crawl", "batch_scrape", "check", "provider"])
def test_a_task_that_was_another_operator_before_opens_its_own_session(here, kind, caplog):
    """The author replaced the operator while the task was up for retry: its id is not that of a session."""
    store = StateStore()
    earlier = TaskMemory(context_of(TaskInstance(max_tries=1), store))
    earlier.write(started=Started(kind=kind, key=new_key(), id="job-1"), phase="known")
    execute(TaskInstance(try_number=2, max_tries=1), store)
    assert "job-1" not in caplog.text
    assert states(here) == ["destroyed"]


@pytest.mark.parametrize("kind", ["session", "check", "provider"])
def test_a_job_does_not_follow_what_another_operator_started(here, kind):
    store = StateStore()
    earlier = TaskMemory(context_of(TaskInstance(max_tries=1), store))
    earlier.write(started=Started(kind=kind, key=new_key(), id="s-1"), phase="known")
    crawl = WebDataCrawlOperator(task_id="t", url=PAGE, deferrable=False, wait_for_completion=False)
    job_id = crawl.execute(context_of(TaskInstance(try_number=2, max_tries=1), store))
    assert store.get(KEY)["started"] | {"kind": "crawl", "id": job_id} == store.get(KEY)["started"]
    assert not here.control.requests("s-1")


@pytest.mark.parametrize("kind", ["session", "crawl", "provider"])
def test_a_check_does_not_follow_what_another_operator_started(here, kind, caplog):
    with WebDataHook() as hook:
        monitor = hook.create_monitor(
            {
                "name": "airship",
                "schedule": {"text": "every 6 hours"},
                "targets": [{"type": "scrape", "urls": [PAGE]}],
            }
        )
    store = StateStore()
    earlier = TaskMemory(context_of(TaskInstance(max_tries=1), store))
    earlier.write(started=Started(kind=kind, key=new_key(), request="digest", id="s-1"), phase="known")
    check = WebDataRunMonitorOperator(task_id="t", monitor_id=monitor.id, wait_for_completion=False)
    value = check.execute(context_of(TaskInstance(try_number=2, max_tries=1), store))
    assert store.get(KEY)["started"]["id"] == value["id"]
    assert "An earlier attempt ran monitor" not in caplog.text
