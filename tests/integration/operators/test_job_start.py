"""A job is started once: what each later attempt does after each way in which an earlier one ended.

The attempts are those of one task instance: the same identity, with or without the task state store of Airflow 3.3.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowRescheduleException

from airflow_provider_webdata.api.errors import UnsupportedError, WebDataError
from airflow_provider_webdata.hooks import optional
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.runs import replica
from airflow_provider_webdata.runs.failures import UncertainStartError
from airflow_provider_webdata.runs.jobs import start as job_start
from airflow_provider_webdata.runs.jobs.start import JobStart
from airflow_provider_webdata.runs.jobs.state import TaskJob
from airflow_provider_webdata.runs.managed_webhook import ManagedWebhook
from airflow_provider_webdata.states.jobs import events_to_ask_for
from tests.support.direct import StateStore
from tests.support.job_service import JobService

TARGET = "https://example.com/"
BODIES: dict[str, dict[str, Any]] = {
    "crawl": {"url": TARGET, "limit": 5},
    "batch_scrape": {"urls": [TARGET], "ignoreInvalidURLs": True},
    "agent": {"prompt": TARGET},
}


class CrashError(BaseException):
    """The worker dies."""


class Task:
    """One task instance and its attempts.

    :ivar store: the task state store of Airflow 3.3; None on Airflow 3.2.
    """

    def __init__(self, service: JobService, kind: str, version: str = "3.3") -> None:
        self.service, self.kind = service, kind
        self.store = StateStore() if version == "3.3" else None
        self.attempts = 0
        self.discarded: list[tuple[str, str]] = []
        self.unknown: list[None] = []
        self.body = BODIES[kind]
        self.targets = [TARGET]
        self.cleared = 0
        self.run_start = datetime.now(timezone.utc)

    def start(self, crash: str = "") -> TaskJob:
        """Make one attempt, whose worker dies `before asking` or `after asking` the service, or `later`."""
        self.attempts += 1
        ti = SimpleNamespace(
            dag_id="d",
            run_id="r",
            task_id="t",
            map_index=-1,
            try_number=self.attempts,
            max_tries=5 + self.cleared,
            task=SimpleNamespace(retries=5),
        )
        context: Any = {"ti": ti, "dag_run": SimpleNamespace(start_date=self.run_start)}
        if self.store is not None:
            context["task_state_store"] = self.store
        hook = WebDataHook()

        def send(webhook: Any, idempotency_key: str | None) -> Any:
            if crash == "before asking":
                raise CrashError
            body = {**self.body, **({"webhook": webhook} if webhook else {})}
            if self.kind == "crawl":
                answer = hook.start_crawl(body, idempotency_key=idempotency_key)
            else:
                answer = getattr(hook, f"start_{self.kind}")(body)
            if crash == "after asking":
                raise CrashError
            return answer

        call: Any = SimpleNamespace(
            hook=hook,
            kind=self.kind,
            targets=self.targets,
            webhook=ManagedWebhook(hook.get_settings(), None, events_to_ask_for(self.kind)),  # type: ignore[arg-type]
            request=self.body,
            check=lambda: None,
            send=send,
            discard=lambda kind, job_id: self.discarded.append((kind, job_id)),
            settle=lambda job_id: None,
            settle_unknown=lambda: self.unknown.append(None),
        )
        start = JobStart(call, context, logging.getLogger("test"))
        with hook:
            job = start.find() or start.start()
        if crash == "later":
            raise CrashError
        return job

    def crash(self, when: str = "after asking") -> None:
        with pytest.raises(CrashError):
            self.start(when)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look up once: here the service does not lag."""
    for name in ("until_found", "until_visible"):
        monkeypatch.setattr(job_start, name, partial(getattr(job_start, name), replica_wait=0.0))
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
        "extra": {"retry_budget": 0, "server": "hosted", **extra},
    }
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", json.dumps(value))


# A crawl has an idempotency key and its own list; the activity names jobs of all kinds alike. Each of both is tried
# with the task state store or without.
WAYS = [("crawl", "3.3"), ("batch_scrape", "3.2")]
OTHER_WAYS = [("crawl", "3.2"), ("agent", "3.3")]
NO_KEY = [("agent", "3.3"), ("batch_scrape", "3.2")]


@pytest.mark.parametrize(
    ("kind", "version", "crash", "state"),
    [
        ("crawl", "3.3", "after asking", "running"),
        ("crawl", "3.2", "after asking", "completed"),
        ("batch_scrape", "3.3", "after asking", "completed"),
        ("batch_scrape", "3.2", "later", "running"),
        ("agent", "3.3", "later", "running"),
        ("agent", "3.2", "after asking", "completed"),
    ],
)
def test_the_job_of_an_attempt_that_crashed_is_found(
    service: JobService, kind: str, version: str, crash: str, state: str
) -> None:
    task = Task(service, kind, version)
    task.crash(crash)
    if state == "completed":
        service.set_all("completed")
    job = task.start()
    assert [job.job_id] == service.started()
    assert job.view is not None
    assert job.view.is_over is (state == "completed")
    assert task.start().job_id == job.job_id, "and by every later attempt"
    assert len(service.started()) == 1


@pytest.mark.parametrize(("kind", "version"), OTHER_WAYS)
def test_a_crash_before_the_request_starts_one(service: JobService, kind: str, version: str) -> None:
    task = Task(service, kind, version)
    task.crash("before asking")
    assert [task.start().job_id] == service.started()


@pytest.mark.rule("idempotency-key")
@pytest.mark.parametrize(
    ("kind", "version", "state"),
    [
        ("crawl", "3.3", "failed"),
        ("crawl", "3.2", "cancelled"),
        ("agent", "3.3", "cancelled"),
        ("batch_scrape", "3.2", "failed"),
    ],
)
def test_a_failed_job_is_replaced(service: JobService, kind: str, version: str, state: str) -> None:
    task = Task(service, kind, version)
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
        assert len(set(service.keys)) == 4, "each job has its own idempotency key"


@pytest.mark.parametrize(("kind", "version"), WAYS)
def test_each_failed_job_without_a_known_id_is_replaced(service: JobService, kind: str, version: str) -> None:
    """The activity does not say which of the task's jobs one is."""
    task = Task(service, kind, version)
    for number in range(3):
        task.crash()
        assert len(service.started()) == number + 1
        service.set(kind, service.started()[-1], "failed")
    assert task.start().job_id == service.started()[3]


@pytest.mark.parametrize("kind", BODIES)
def test_a_job_of_another_request_is_given_up(
    service: JobService, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """An author corrected the arguments between two attempts: the former job is not what the task wants."""
    task = Task(service, kind)
    task.crash("later")
    task.body = {
        **task.body,
        "timeout" if kind == "batch_scrape" else "integration": 2000 if kind == "batch_scrape" else "_x",
    }
    job = task.start()
    former, new = service.started()
    assert job.job_id == new
    assert task.discarded == [(kind, former)]
    assert f"The arguments changed since an earlier attempt. The task abandons job {former}" in caplog.text
    assert task.start().job_id == new, "which later attempts find"


def test_an_unknown_job_of_another_request_is_not_waited_for(service: JobService) -> None:
    task = Task(service, "crawl")
    task.crash()
    task.body = {**task.body, "limit": 6}
    assert task.start().job_id == service.started()[1]
    assert len(set(service.keys)) == 2
    assert task.discarded == []


def other_key(monkeypatch: pytest.MonkeyPatch, service: JobService) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_WEBDATA_DEFAULT",
        json.dumps(
            {
                "conn_type": "webdata",
                "host": service.url,
                "password": "another-key",
                "extra": {"retry_budget": 0},
            }
        ),
    )


@pytest.mark.parametrize("kind", BODIES)
def test_a_job_is_found_with_another_key_of_its_team(
    service: JobService, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Another team cannot read it."""
    task = Task(service, kind)
    task.crash("later")
    other_key(monkeypatch, service)
    service.faults.append((500, {"success": False, "error": "no"}, {}))
    with pytest.raises(WebDataError):
        task.start()
    assert [task.start().job_id, task.start().job_id] == service.started() * 2


def test_a_job_of_another_account_is_given_up_and_left_alone(
    service: JobService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task = Task(service, "batch_scrape")
    task.crash("later")
    service.jobs.clear()
    other_key(monkeypatch, service)
    assert task.start().job_id == service.started()[1]
    assert task.discarded == []
    assert "The account of the connection changed" in caplog.text
    assert f"Cancel job {service.started()[0]} manually" in caplog.text
    assert task.store is not None
    assert "another-key" not in str(task.store.values)


def test_changed_arguments_after_a_job_that_was_not_requested(
    service: JobService, caplog: pytest.LogCaptureFixture
) -> None:
    """The attempt died after the former job had failed, before it recorded a request for the next one."""
    task = Task(service, "batch_scrape")
    task.crash("later")
    assert task.store is not None
    task.store.set("webdata_job", {**task.store.get("webdata_job"), "job_id": None, "requested_at": None})
    task.body = {**task.body, "maxConcurrency": 3}
    assert task.start().job_id == service.started()[1]
    assert (task.discarded, task.unknown) == ([], [])
    assert "may have started" not in caplog.text


def test_a_record_without_a_request_is_damaged(service: JobService) -> None:
    task = Task(service, "crawl")
    task.crash("later")
    assert task.store is not None
    record = task.store.get("webdata_job")
    task.store.set(
        "webdata_job", {k: v for k, v in record.items() if k not in ("kind", "request", "account")}
    )
    with pytest.raises(UncertainStartError, match="required field `kind`"):
        task.start()
    assert len(service.started()) == 1


@pytest.mark.rule("job-expiry")
def test_an_expired_job_is_replaced(service: JobService) -> None:
    task = Task(service, "batch_scrape")
    task.start()
    service.jobs.clear()
    service.faults = [(404, {"success": False, "error": "Job expired"}, {})]
    task.start()
    assert len(service.started()) == 2


def test_a_job_that_vanished_is_no_reason_to_pay_again(service: JobService) -> None:
    task = Task(service, "crawl")
    task.start()
    service.jobs.clear()
    with pytest.raises(UncertainStartError, match="the service does not find job"):
        task.start()
    assert len(service.started()) == 1


@pytest.mark.rule("repeat-unsafe", "crawl-active", "team-activity")
@pytest.mark.parametrize(
    ("kind", "version", "fault"),
    [
        ("crawl", "3.3", "lose answer"),
        ("crawl", "3.2", 502),
        ("batch_scrape", "3.3", 500),
        ("batch_scrape", "3.2", "lose answer"),
        ("agent", "3.3", 408),
        ("agent", "3.2", "lose answer"),
        ("agent", "3.3", "empty id"),
    ],
)
def test_a_lost_answer_is_found_in_the_same_attempt(
    service: JobService, kind: str, version: str, fault: Any
) -> None:
    service.start_faults = [fault]
    assert [Task(service, kind, version).start().job_id] == service.started()


@pytest.mark.rule("team-activity")
@pytest.mark.parametrize(("kind", "fault"), [("batch_scrape", 500), ("agent", "lose answer")])
def test_a_lost_answer_that_the_service_lists_later(service: JobService, kind: str, fault: Any) -> None:
    service.start_faults, service.lists = [fault], False
    task = Task(service, kind)
    with pytest.raises(WebDataError):
        task.start()
    service.lists = True
    assert [task.start().job_id] == service.started()
    assert len(service.started()) == 1


@pytest.mark.parametrize(
    ("kind", "version", "status", "error"),
    [
        ("crawl", "3.3", 400, {"success": False, "code": "BAD_REQUEST", "error": "no"}),
        ("crawl", "3.2", 402, {"error": "Insufficient credits"}),
        ("agent", "3.3", 429, {"error": "Rate limit exceeded"}),
        ("batch_scrape", "3.2", 400, {"success": False, "error": "no"}),
    ],
)
def test_a_refusal_started_nothing(
    service: JobService, kind: str, version: str, status: int, error: dict[str, Any]
) -> None:
    service.start_faults = [(status, error, {})]
    task = Task(service, kind, version)
    with pytest.raises(WebDataError):
        task.start()
    before = len(service.requests)
    assert [task.start().job_id] == service.started()
    if task.store is not None:
        assert len(service.requests) - before == 2, "no search was necessary"


def test_a_lost_answer_without_a_trace_on_3_2(service: JobService) -> None:
    """No inbox, no record: the attempt that lost the answer is the last one that can tell."""
    service.start_faults, service.lists = ["lose answer"], False
    with pytest.raises(UncertainStartError, match="cannot be determined") as raised:
        Task(service, "agent", "3.2").start()
    assert "WebDataJobSensor" in str(raised.value)
    assert "clear this task" in str(raised.value)


@pytest.mark.parametrize(("kind", "version"), NO_KEY)
def test_unreadable_activity_is_no_evidence(service: JobService, kind: str, version: str) -> None:
    task = Task(service, kind, version)
    task.crash()
    service.faults = [(403, {"success": False, "error": "no"}, {})]
    with pytest.raises(UncertainStartError, match="activity could not be read"):
        task.start()
    assert len(service.started()) == 1


@pytest.fixture
def self_hosted(service: JobService, monkeypatch: pytest.MonkeyPatch) -> JobService:
    """A server without billing and a database, which no connection declares yet."""
    monkeypatch.setattr(optional, "_failed", {})
    service.bills = False
    connect(monkeypatch, service, server=None)
    return service


@pytest.mark.rule("idempotency-key-servers")
@pytest.mark.parametrize("declared", ["self-hosted", None])
def test_a_self_hosted_crawl_is_found_among_the_running_ones(
    self_hosted: JobService, declared: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets no key, and its missing list of calls discards nothing."""
    connect(monkeypatch, self_hosted, server=declared)
    task = Task(self_hosted, "crawl")
    task.crash()
    assert [task.start().job_id] == self_hosted.started()
    assert self_hosted.keys == []
    asked = [line for line in self_hosted.requests if "activity" in line]
    assert len(asked) == (0 if declared else 2)


def test_a_self_hosted_crawl_with_other_options_is_another_tasks(
    self_hosted: JobService, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, self_hosted, server="self-hosted")
    task = Task(self_hosted, "crawl")
    task.crash("before asking")
    for options in ({"limit": 1}, {"excludePaths": ["/old/.*"]}, {"includePaths": ["/new/.*"]}):
        other = Task(self_hosted, "crawl")
        other.body = {**other.body, **options}
        other.start()
    job = task.start()
    assert job.job_id == self_hosted.started()[3]


def test_an_uncertain_start_is_repeated_only_where_nothing_is_billed(
    self_hosted: JobService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task = Task(self_hosted, "batch_scrape")
    task.crash()
    with pytest.raises(UncertainStartError, match="set server of the connection to 'self-hosted'"):
        task.start()
    assert len(self_hosted.started()) == 1
    connect(monkeypatch, self_hosted, server="self-hosted")
    assert task.start().job_id == self_hosted.started()[1]
    assert "The server may run both jobs, but bills neither" in caplog.text


@pytest.mark.parametrize(("kind", "starts"), [("crawl", 1), ("batch_scrape", 2)])
def test_a_lost_answer_is_repeated_in_the_same_attempt_where_nothing_is_billed(
    self_hosted: JobService,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    starts: int,
) -> None:
    """Only crawls are listed, and no replica delays the list."""
    monkeypatch.setattr(replica.time, "sleep", pytest.fail)
    connect(monkeypatch, self_hosted, server="self-hosted")
    self_hosted.start_faults = ["lose answer"]
    assert Task(self_hosted, kind).start().job_id == self_hosted.started()[-1]
    assert len(self_hosted.started()) == starts
    assert ("Searching" in caplog.text) is (kind == "crawl")
    self_hosted.start_faults = ["lose answer", "lose answer"]
    self_hosted.lists = False
    lost = Task(self_hosted, kind)
    with pytest.raises(WebDataError):
        lost.start()
    assert len(self_hosted.started()) == starts + 2
    assert lost.start().job_id == self_hosted.started()[-1]


def test_the_log_counts_urls_not_the_prompt(service: JobService, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    task = Task(service, "agent")
    task.body = {"prompt": "p", "urls": [TARGET]}
    task.targets = [TARGET, "p"]
    task.start()
    assert f"Started agent run of {TARGET} (connection" in caplog.text


@pytest.mark.rule("self-hosted-lost-jobs")
@pytest.mark.parametrize("kind", ["crawl", "batch_scrape"])
def test_a_job_that_a_self_hosted_server_lost_is_replaced(
    self_hosted: JobService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    connect(monkeypatch, self_hosted, server="self-hosted")
    task = Task(self_hosted, kind)
    first = task.start()
    self_hosted.jobs.clear()
    assert task.start().job_id == self_hosted.started()[1] != first.job_id
    assert f"Job {first.job_id} of an earlier attempt is unknown: the server lost it" in caplog.text


def test_no_message_names_bills_and_dashboards_that_a_server_lacks(
    self_hosted: JobService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connect(monkeypatch, self_hosted, server="self-hosted")
    task = Task(self_hosted, "crawl")
    task.crash("later")
    task.body = {**task.body, "limit": 6}
    task.start()
    assert "and sends a new request" in caplog.text
    uncertain = Task(self_hosted, "crawl")
    uncertain.crash()
    Task(self_hosted, "crawl").start()
    with pytest.raises(UncertainStartError, match="If the server's log shows the job") as raised:
        uncertain.start()
    assert not re.search("bill|dashboard", caplog.text + str(raised.value))


def test_a_list_that_hangs_delays_a_start_once(
    self_hosted: JobService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optional, "TIMEOUT_SECONDS", 0.1)
    connect(monkeypatch, self_hosted, server=None, timeout=600)
    self_hosted.faults = [None]
    assert [Task(self_hosted, "crawl").start().job_id for _ in range(2)] == self_hosted.started()
    assert len([line for line in self_hosted.requests if "activity" in line]) == 1


def test_a_server_that_answers_html_starts_nothing(self_hosted: JobService) -> None:
    """An unknown path started nothing; a later attempt asks again, and does not search."""
    page = "<!DOCTYPE html><pre>Cannot POST /v2/crawl</pre>"
    self_hosted.start_faults = [(404, page, {"Content-Type": "text/html"})]
    task = Task(self_hosted, "crawl")
    with pytest.raises(UnsupportedError, match=r'it has no such operation\.\sCheck "Base URL"'):
        task.start()
    assert [task.start().job_id] == self_hosted.started()


def test_a_list_that_cannot_be_read_is_asked_for_once(
    self_hosted: JobService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start does not wait for it: one attempt, however large the retry budget, and none for five minutes."""
    connect(monkeypatch, self_hosted, server=None, retry_budget=30)
    for _ in range(3):
        Task(self_hosted, "crawl").start()
    assert len([line for line in self_hosted.requests if "activity" in line]) == 1
    assert len(self_hosted.started()) == 3


@pytest.mark.parametrize(("kind", "version"), NO_KEY)
def test_a_job_without_a_name_may_be_anybodys(service: JobService, kind: str, version: str) -> None:
    task = Task(service, kind, version)
    task.crash()
    service.names = False
    with pytest.raises(UncertainStartError, match="it may be one of these jobs"):
        task.start()


@pytest.mark.rule("metadata-urls")
@pytest.mark.parametrize(("page", "found"), [(TARGET, True), ("https://other.example/", False)])
def test_a_batch_without_a_name_is_known_by_its_pages(service: JobService, page: str, found: bool) -> None:
    task = Task(service, "batch_scrape")
    task.crash()
    service.names = False
    service.set_all("completed", data=[{"metadata": {"sourceURL": page}}])
    if found:
        assert task.start().job_id == service.started()[0]
    else:
        with pytest.raises(UncertainStartError, match="it may be one of these jobs"):
            task.start()
    assert len(service.started()) == 1


@pytest.mark.parametrize("kind", ["crawl", "batch_scrape"])
def test_similar_jobs_from_before(service: JobService, kind: str) -> None:
    other = Task(service, kind).start().job_id
    task = Task(service, kind)
    task.run_start += timedelta(seconds=1)
    task.crash()
    job = task.start()
    assert job.job_id != other
    assert len(service.started()) == 2


def test_a_crawl_whose_request_was_lost_is_requested_again(service: JobService) -> None:
    service.start_faults = ["lose request"]
    assert [Task(service, "crawl").start().job_id] == service.started()


@pytest.mark.parametrize("version", ["3.3", "3.2"])
def test_a_crawl_of_the_same_page_may_be_another_tasks(service: JobService, version: str) -> None:
    task, other = Task(service, "crawl", version), Task(service, "crawl", version)
    task.crash("before asking")
    other.run_start += timedelta(seconds=1)
    others = other.start().job_id
    assert [others, task.start().job_id] == service.started()


@pytest.mark.parametrize(("kind", "version"), [("agent", "3.3"), ("crawl", "3.2")])
def test_one_of_two_jobs_is_not_ours_because_the_other_one_failed(
    service: JobService, kind: str, version: str
) -> None:
    task, other = Task(service, kind, version), Task(service, kind, version)
    other.run_start += timedelta(seconds=1)
    attempts = [task.crash, other.start]
    for attempt in attempts if version == "3.3" else reversed(attempts):
        attempt()
    ours = service.started()[0 if version == "3.3" else 1]
    service.set(kind, ours, "failed")
    with pytest.raises(UncertainStartError, match="several jobs match"):
        task.start()


def test_two_similar_jobs_are_uncertain(service: JobService) -> None:
    task = Task(service, "agent")
    task.crash()
    other = Task(service, "agent")
    other.run_start += timedelta(seconds=1)
    other.start()
    with pytest.raises(UncertainStartError, match="several jobs match"):
        task.start()


@pytest.mark.rule("idempotency-key", "idempotency-key-used")
@pytest.mark.parametrize("version", ["3.3", "3.2"])
def test_an_unlisted_crawl_is_not_started_again(service: JobService, version: str) -> None:
    """The idempotency key is the same for every attempt."""
    task = Task(service, "crawl", version)
    task.crash()
    service.lists = False
    with pytest.raises(UncertainStartError, match="the idempotency key was used"):
        task.start()
    assert len(service.started()) == 1
    service.lists = True
    assert [task.start().job_id] == service.started()


@pytest.mark.parametrize(("kind", "when"), [("crawl", "after asking"), ("batch_scrape", "before asking")])
def test_it_is_too_early_to_tell(
    service: JobService, kind: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_start, "LISTED_AFTER", timedelta(minutes=2))
    task = Task(service, kind)
    task.crash(when)
    started, service.lists = service.started(), False
    with pytest.raises(AirflowRescheduleException):
        task.start()
    assert service.started() == started


@pytest.mark.parametrize(("kind", "version"), WAYS)
def test_trouble_while_searching_starts_nothing(service: JobService, kind: str, version: str) -> None:
    task = Task(service, kind, version)
    task.crash()
    # A crawl is looked up in two lists, and either suffices.
    service.faults = [(503, {"error": "down"}, {})] * (2 if kind == "crawl" else 1)
    with pytest.raises(WebDataError):
        task.start()
    assert [task.start().job_id] == service.started()


@pytest.mark.parametrize(("kind", "version"), OTHER_WAYS)
def test_a_cleared_task_starts_anew(service: JobService, kind: str, version: str) -> None:
    task = Task(service, kind, version)
    first = task.start().job_id
    task.cleared = task.attempts
    task.run_start += timedelta(seconds=30)
    assert task.start().job_id != first
    assert len(service.started()) == 2


def test_two_tasks_have_nothing_in_common(service: JobService) -> None:
    one, other = Task(service, "crawl"), Task(service, "crawl")
    other.run_start += timedelta(microseconds=1)
    assert one.start().job_id != other.start().job_id
    assert len(set(service.keys)) == 2


@pytest.fixture
def receiving(monkeypatch: pytest.MonkeyPatch, service: JobService, inbox: Any) -> Any:
    """The connection can receive deliveries; the service lists nothing."""
    connect(monkeypatch, service, **inbox.extra)
    service.lists = False
    return inbox


@pytest.mark.parametrize(("kind", "version"), [("crawl", "3.3"), ("batch_scrape", "3.2"), ("agent", "3.3")])
def test_the_inbox_knows_the_job_by_its_key(
    service: JobService, receiving: Any, kind: str, version: str
) -> None:
    task = Task(service, kind, version)
    task.crash()
    webhook = service.bodies[0]["webhook"]
    assert webhook["events"] == events_to_ask_for(kind)  # type: ignore[arg-type]
    job = task.start()
    assert [job.job_id] == service.started()
    assert job.reports


@pytest.mark.parametrize(("kind", "version"), NO_KEY)
def test_a_lost_answer_is_found_in_the_inbox(
    service: JobService, receiving: Any, kind: str, version: str
) -> None:
    service.start_faults = ["lose answer"]
    assert [Task(service, kind, version).start().job_id] == service.started()


@pytest.mark.parametrize(("kind", "version"), WAYS)
def test_the_replacement_of_a_failed_job_is_found_in_the_inbox(
    service: JobService, receiving: Any, kind: str, version: str
) -> None:
    task = Task(service, kind, version)
    first = task.start()
    service.set(kind, first.job_id, "failed")
    task.crash()
    assert len(service.started()) == 2
    assert task.start().job_id == service.started()[1]
    urls = {body["webhook"]["url"] for body in service.bodies}
    assert len(urls) == 2, "each job has its own key"


def test_a_changed_secret(service: JobService, receiving: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a webhook from before the change was made with the former secret."""
    task = Task(service, "crawl")
    task.crash()
    receiving.stop()
    former, receiving.secret = receiving.secret, "another-webhook-secret"
    receiving.start()
    connect(monkeypatch, service, **receiving.extra, previous_webhook_secret=former)
    assert [task.start().job_id] == service.started()


@pytest.mark.parametrize("kind", ["crawl", "agent"])
def test_an_inbox_that_refuses_to_be_read(
    service: JobService, receiving: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    task = Task(service, kind)
    task.crash()
    connect(monkeypatch, service, **{**receiving.extra, "webhook_secret": "one-that-it-does-not-know"})
    with pytest.raises(UncertainStartError, match="the inbox could not be read"):
        task.start()
    assert len(service.started()) == 1


@pytest.mark.parametrize(("kind", "version"), OTHER_WAYS)
def test_a_silent_inbox_gets_no_webhook(
    service: JobService, receiving: Any, caplog: pytest.LogCaptureFixture, kind: str, version: str
) -> None:
    """It is asked once, and nothing is searched there after a crash."""
    receiving.stop()
    service.lists = True
    task = Task(service, kind, version)
    assert not task.start().reports or version == "3.2"
    assert [body.get("webhook") for body in service.bodies] == [None]
    reasons = [line for line in caplog.messages if line.startswith("No webhook is attached")]
    assert len(reasons) == 1
    assert f"waits poll: the inbox at {receiving.url} does not respond" in reasons[0]
    if version == "3.3":
        other = Task(service, kind)
        other.run_start += timedelta(seconds=1)
        other.crash()
        assert other.start().job_id == service.started()[-1]
    receiving.start()


def test_a_repeated_request_with_a_webhook_is_searched_in_the_inbox(
    service: JobService, receiving: Any
) -> None:
    """The first request, which had none, started nothing."""
    task = Task(service, "crawl")
    receiving.stop()
    task.crash("before asking")
    receiving.start()
    task.crash()
    assert [task.start().job_id] == service.started()
