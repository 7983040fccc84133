"""A job is started once: what each later attempt makes of each way in which an earlier one ended.

The attempts are those of one task instance: the same identity, with or without the task state store of Airflow 3.3.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowRescheduleException

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.states.jobs import events_to_ask_for
from airflow_provider_webdata.tasks.failures import UncertainStartError
from airflow_provider_webdata.tasks.jobs import start as job_start
from airflow_provider_webdata.tasks.jobs.start import JobStart
from airflow_provider_webdata.tasks.jobs.start_table import TaskJob
from airflow_provider_webdata.tasks.managed_webhook import ManagedWebhook
from tests.support.direct import StateStore
from tests.support.job_service import JobService
from tests.support.service import JOB_PATHS

KINDS = tuple(JOB_PATHS)
TARGET = "https://example.com/"
BODIES: dict[str, dict[str, Any]] = {
    "crawl": {"url": TARGET, "limit": 5},
    "batch_scrape": {"urls": [TARGET], "ignoreInvalidURLs": True},
    "extract": {"urls": [TARGET], "prompt": "p"},
    "agent": {"prompt": TARGET},
}


class CrashError(BaseException):
    """The worker dies."""


class Task:
    """One task instance and its attempts."""

    def __init__(self, service: JobService, store: StateStore | None, kind: str) -> None:
        self.service, self.store, self.kind = service, store, kind
        self.attempts = 0
        self.cleared = 0
        self.run_start = datetime.now(timezone.utc)

    def start(self, crash: Callable[[JobStart], None] | None = None) -> TaskJob:
        """Make one attempt."""
        self.attempts += 1
        task = SimpleNamespace(retries=5)
        ti = SimpleNamespace(
            dag_id="d",
            run_id="r",
            task_id="t",
            map_index=-1,
            try_number=self.attempts,
            max_tries=5 + self.cleared,
            task=task,
        )
        context: Any = {"ti": ti, "dag_run": SimpleNamespace(start_date=self.run_start)}
        if self.store is not None:
            context["task_state_store"] = self.store
        hook = WebDataHook()

        def send(webhook: Any, key: str) -> Any:
            body = {**BODIES[self.kind], **({"webhook": webhook} if webhook else {})}
            if self.kind == "crawl":
                return hook.start_crawl(body, idempotency_key=key)
            return getattr(hook, f"start_{self.kind}")(body)

        webhook = ManagedWebhook(hook, None, events_to_ask_for(self.kind))  # type: ignore[arg-type]
        start = JobStart(
            hook,
            self.kind,  # type: ignore[arg-type]
            context,
            webhook,
            [TARGET],
            lambda: None,
            send,
            logging.getLogger("test"),
        )
        if crash is not None:
            crash(start)
        with hook:
            return start.find_or_start()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One lookup is enough: here the service does not lag."""
    real = job_start.until_found
    monkeypatch.setattr(job_start, "until_found", lambda lookup: real(lookup, 0.0))
    monkeypatch.setattr(job_start, "LISTED_AFTER", timedelta(0))


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobService]:
    made = JobService()
    connect(monkeypatch, made)
    yield made
    made.stop()


def connect(monkeypatch: pytest.MonkeyPatch, service: JobService, **extra: Any) -> None:
    value = {
        "conn_type": "webdata",
        "host": service.url,
        "password": "k",
        "extra": {"retry_budget": 0, **extra},
    }
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", json.dumps(value))


STORES = pytest.mark.parametrize("store", [StateStore, lambda: None], ids=["3.3", "3.2"])


def crash_before_asking(start: JobStart) -> None:
    def send(*_: Any) -> Any:
        raise CrashError

    start._send = send


def crash_after_asking(start: JobStart) -> None:
    real = start._send

    def send(*given: Any) -> Any:
        real(*given)
        raise CrashError

    start._send = send


def crash_after_the_start(start: JobStart) -> None:
    real = start.find_or_start

    def find_or_start() -> Any:
        real()
        raise CrashError

    start.find_or_start = find_or_start  # type: ignore[method-assign]


@STORES
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["running", "completed"])
@pytest.mark.parametrize("crash", [crash_after_asking, crash_after_the_start])
def test_a_job_of_an_attempt_that_crashed_is_found(
    service: JobService, store: Any, kind: str, state: str, crash: Any
) -> None:
    task = Task(service, store(), kind)
    with pytest.raises(CrashError):
        task.start(crash)
    if state == "completed":
        service.set_all("completed")
    job = task.start()
    assert [job.job_id] == service.started()
    assert job.view is not None
    assert job.view.is_over is (state == "completed")
    assert task.start().job_id == job.job_id, "and by every later attempt"
    assert len(service.started()) == 1


@STORES
@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_before_the_request_starts_one(service: JobService, store: Any, kind: str) -> None:
    task = Task(service, store(), kind)
    with pytest.raises(CrashError):
        task.start(crash_before_asking)
    assert [task.start().job_id] == service.started()


@pytest.mark.rule("idempotency-key")
@STORES
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_after_one_that_failed_another_is_started(
    service: JobService, store: Any, kind: str, state: str
) -> None:
    task = Task(service, store(), kind)
    ids = []
    for number in range(3):
        job = task.start()
        ids.append(job.job_id)
        assert len(service.started()) == number + 1
        service.set(kind, job.job_id, state, error="no luck")
    assert ids == service.started()
    last = task.start()
    assert task.start().job_id == last.job_id, "the newest is found, not one that is over"
    if kind == "crawl":
        assert len(set(service.keys)) == 4, "each job has an idempotency key of its own"


@STORES
@pytest.mark.parametrize("kind", KINDS)
def test_each_that_failed_without_a_known_id_is_replaced(service: JobService, store: Any, kind: str) -> None:
    """The activity does not say which of the task's jobs one is."""
    task = Task(service, store(), kind)
    for number in range(3):
        with pytest.raises(CrashError):
            task.start(crash_after_asking)
        assert len(service.started()) == number + 1
        service.set(kind, service.started()[-1], "failed")
    assert task.start().job_id == service.started()[3]


@pytest.mark.rule("job-expiry")
@pytest.mark.parametrize("kind", KINDS)
def test_one_that_expired_is_started_anew(service: JobService, kind: str) -> None:
    store = StateStore()
    task = Task(service, store, kind)
    task.start()
    service.jobs.clear()
    service.faults = [(404, {"success": False, "error": "Job expired"}, {})]
    task.start()
    assert len(service.started()) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_vanished_is_no_reason_to_pay_again(service: JobService, kind: str) -> None:
    task = Task(service, StateStore(), kind)
    task.start()
    service.jobs.clear()
    with pytest.raises(UncertainStartError, match="is not known to the service"):
        task.start()
    assert len(service.started()) == 1


@pytest.mark.rule("repeat-unsafe", "crawl-active", "team-activity")
@STORES
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["lose answer", 500, 502, 408])
def test_an_answer_that_got_lost_is_found_out_in_the_same_attempt(
    service: JobService, store: Any, kind: str, fault: Any
) -> None:
    service.start_faults = [fault]
    assert [Task(service, store(), kind).start().job_id] == service.started()


@pytest.mark.rule("team-activity")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["lose answer", 500, "lose request"])
def test_a_lost_answer_that_the_service_lists_later(service: JobService, kind: str, fault: Any) -> None:
    service.start_faults, service.lists = [fault], False
    task = Task(service, StateStore(), kind)
    with pytest.raises(WebDataError):
        task.start()
    service.lists = True
    assert [task.start().job_id] == service.started()
    assert len(service.started()) == 1


REFUSALS = [
    (400, {"success": False, "code": "BAD_REQUEST", "error": "no"}, {}),
    (402, {"error": "Insufficient credits"}, {}),
    (429, {"error": "Rate limit exceeded"}, {}),
]


@STORES
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("refusal", REFUSALS, ids=["400", "402", "429"])
def test_a_refusal_started_nothing(service: JobService, store: Any, kind: str, refusal: Any) -> None:
    service.start_faults = [refusal]
    task = Task(service, store(), kind)
    with pytest.raises(WebDataError):
        task.start()
    before = len(service.requests)
    assert [task.start().job_id] == service.started()
    if task.store is not None:
        assert len(service.requests) - before == 2, "nothing had to be searched"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "crawl"])
def test_what_cannot_be_found_out_on_3_2_fails_clearly(service: JobService, kind: str) -> None:
    """No inbox, no record: the attempt that lost the answer is the last one that can tell."""
    service.start_faults, service.lists = ["lose answer"], False
    with pytest.raises(UncertainStartError, match="cannot be found out") as raised:
        Task(service, None, kind).start()
    assert "WebDataJobSensor" in str(raised.value)
    assert "clear this task" in str(raised.value)


@STORES
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "crawl"])
def test_activity_that_nobody_may_read_is_no_evidence(service: JobService, store: Any, kind: str) -> None:
    task = Task(service, store(), kind)
    with pytest.raises(CrashError):
        task.start(crash_after_asking)
    service.faults = [(403, {"success": False, "error": "no"}, {})]
    with pytest.raises(UncertainStartError, match="activity could not be read"):
        task.start()
    assert len(service.started()) == 1


@STORES
@pytest.mark.parametrize("kind", ["extract", "agent"])
def test_a_job_without_a_name_may_be_anybodys(service: JobService, store: Any, kind: str) -> None:
    task = Task(service, store(), kind)
    with pytest.raises(CrashError):
        task.start(crash_after_asking)
    service.names = False
    with pytest.raises(UncertainStartError, match="one of these jobs may be it"):
        task.start()


@pytest.mark.rule("metadata-urls")
@pytest.mark.parametrize(("page", "found"), [(TARGET, True), ("https://other.example/", False)])
def test_a_batch_without_a_name_is_known_by_its_pages(service: JobService, page: str, found: bool) -> None:
    task = Task(service, StateStore(), "batch_scrape")
    with pytest.raises(CrashError):
        task.start(crash_after_asking)
    service.names = False
    service.set_all("completed", data=[{"metadata": {"sourceURL": page}}])
    if found:
        assert task.start().job_id == service.started()[0]
    else:
        with pytest.raises(UncertainStartError, match="one of these jobs may be it"):
            task.start()
    assert len(service.started()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_others_that_look_alike_were_there_before(service: JobService, kind: str) -> None:
    other = Task(service, StateStore(), kind).start().job_id
    task = Task(service, StateStore(), kind)
    task.run_start += timedelta(seconds=1)
    with pytest.raises(CrashError):
        task.start(crash_after_asking)
    job = task.start()
    assert job.job_id != other
    assert len(service.started()) == 2


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "crawl"])
def test_two_that_look_alike_are_uncertain(service: JobService, kind: str) -> None:
    task = Task(service, StateStore(), kind)
    with pytest.raises(CrashError):
        task.start(crash_after_asking)
    other = Task(service, StateStore(), kind)
    other.run_start += timedelta(seconds=1)
    other.start()
    with pytest.raises(UncertainStartError, match="several jobs look like it"):
        task.start()


@pytest.mark.rule("idempotency-key", "idempotency-key-used")
@STORES
def test_a_crawl_that_is_not_listed_is_not_started_twice(service: JobService, store: Any) -> None:
    """The idempotency key is the same for every attempt."""
    task = Task(service, store(), "crawl")
    with pytest.raises(CrashError):
        task.start(crash_after_asking)
    service.lists = False
    with pytest.raises(UncertainStartError, match="the idempotency key was used"):
        task.start()
    assert len(service.started()) == 1
    service.lists = True
    assert [task.start().job_id] == service.started()


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_too_early_to_tell(service: JobService, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_start, "LISTED_AFTER", timedelta(minutes=2))
    task = Task(service, StateStore(), kind)
    with pytest.raises(CrashError):
        task.start(crash_before_asking)
    with pytest.raises(AirflowRescheduleException):
        task.start()
    assert service.started() == []


@STORES
@pytest.mark.parametrize("kind", KINDS)
def test_trouble_while_searching_starts_nothing(service: JobService, store: Any, kind: str) -> None:
    task = Task(service, store(), kind)
    with pytest.raises(CrashError):
        task.start(crash_after_asking)
    service.faults = [(503, {"error": "down"}, {})]
    with pytest.raises(WebDataError):
        task.start()
    assert [task.start().job_id] == service.started()


@STORES
@pytest.mark.parametrize("kind", KINDS)
def test_a_cleared_task_starts_anew(service: JobService, store: Any, kind: str) -> None:
    task = Task(service, store(), kind)
    first = task.start().job_id
    task.cleared = task.attempts
    task.run_start += timedelta(seconds=30)
    assert task.start().job_id != first
    assert len(service.started()) == 2


def test_two_tasks_have_nothing_in_common(service: JobService) -> None:
    one, other = Task(service, StateStore(), "crawl"), Task(service, StateStore(), "crawl")
    other.run_start += timedelta(microseconds=1)
    assert one.start().job_id != other.start().job_id
    assert len(set(service.keys)) == 2


@pytest.fixture
def receiving(monkeypatch: pytest.MonkeyPatch, service: JobService, inbox: Any) -> Any:
    """The connection can receive deliveries; the service lists nothing."""
    connect(monkeypatch, service, **inbox.extra)
    service.lists = False
    return inbox


@STORES
@pytest.mark.parametrize("kind", KINDS)
def test_the_inbox_knows_the_job_by_its_key(
    service: JobService, receiving: Any, store: Any, kind: str
) -> None:
    task = Task(service, store(), kind)
    with pytest.raises(CrashError):
        task.start(crash_after_asking)
    webhook = service.bodies[0]["webhook"]
    assert webhook["events"] == events_to_ask_for(kind)  # type: ignore[arg-type]
    job = task.start()
    assert [job.job_id] == service.started()
    assert job.reports


@STORES
@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_answer_is_found_in_the_inbox(
    service: JobService, receiving: Any, store: Any, kind: str
) -> None:
    service.start_faults = ["lose answer"]
    assert [Task(service, store(), kind).start().job_id] == service.started()


@STORES
@pytest.mark.parametrize("kind", KINDS)
def test_after_one_that_failed_another_is_found_in_the_inbox(
    service: JobService, receiving: Any, store: Any, kind: str
) -> None:
    task = Task(service, store(), kind)
    first = task.start()
    service.set(kind, first.job_id, "failed")
    with pytest.raises(CrashError):
        task.start(crash_after_asking)
    assert len(service.started()) == 2
    assert task.start().job_id == service.started()[1]
    urls = {body["webhook"]["url"] for body in service.bodies}
    assert len(urls) == 2, "each job has a key of its own"


def test_a_secret_that_was_changed_meanwhile(
    service: JobService, receiving: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of a webhook from before the change was made with the former one."""
    searched: list[Any] = []
    real = job_start.JobStart._search
    monkeypatch.setattr(job_start.JobStart, "_search", lambda self: searched.append(real(self)) or real(self))
    task = Task(service, StateStore(), "crawl")
    with pytest.raises(CrashError):
        task.start(crash_after_asking)
    new = {"webhook_secret": "another-webhook-secret", "previous_webhook_secret": receiving.secret}
    connect(monkeypatch, service, **{**receiving.extra, **new})
    # The inbox of this test knows nothing of the change, and refuses to be read.
    with pytest.raises(UncertainStartError, match="the inbox could not be read"):
        task.start()
    key = service.bodies[0]["webhook"]["url"].rpartition("/")[2]
    assert all(key in search.keys for search in searched)
