# SPDX-License-Identifier: Apache-2.0
"""A job is started once: what each later attempt does after each way in which an earlier one ended.

The attempts are those of one task instance. `tests/unit/states/test_job_decision.py` walks all short histories of the
decision; here, its steps meet a service.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_webdata.api.errors import UnsupportedError, WebDataError
from airflow_provider_webdata.hooks import optional
from airflow_provider_webdata.hooks.task_memory import DamagedRecordError, memory_of
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.inbox.reader import InboxUnreachableError
from airflow_provider_webdata.runs import replica
from airflow_provider_webdata.runs.failures import UncertainStartError, UnnamedJobError
from airflow_provider_webdata.runs.jobs import start as job_start
from airflow_provider_webdata.runs.jobs.start import JobStart, TaskJob
from airflow_provider_webdata.runs.managed_webhook import ManagedWebhook
from airflow_provider_webdata.states.jobs import events_to_ask_for
from airflow_provider_webdata.states.task_record import KEY
from tests.support.direct import StateStore
from tests.support.job_service import JobService
from tests.support.service import SERVICE

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
        self.cleared, self.retries = 0, 5
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
            max_tries=self.retries + self.cleared,
            task=SimpleNamespace(retries=self.retries),
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
        self.context = context
        start = JobStart(call, context, logging.getLogger("test"))
        with hook:
            job = start.find() or start.start()
        if crash == "later":
            raise CrashError
        return job

    def crash(self, when: str = "after asking") -> None:
        with pytest.raises(CrashError):
            self.start(when)

    def end(self) -> None:
        """Let the last attempt succeed."""
        memory_of(self.context).end(published=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look up once: here the service does not lag."""
    for name in ("until_found", "until_visible"):
        monkeypatch.setattr(job_start, name, partial(getattr(job_start, name), replica_wait=0.0))


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobService]:
    made = JobService()
    connect(monkeypatch, made)
    yield made
    made.stop()


def connect(monkeypatch: pytest.MonkeyPatch, service: JobService, key: str = "k", **extra: Any) -> None:
    """Point the connection to a server: without a kind, at the service's own host."""
    place = {"host": service.url, "extra": {"retry_budget": 0, **extra}}
    if "server" not in extra:
        place = {"host": SERVICE, "extra": {"retry_budget": 0, "proxy": service.url, **extra}}
    value = {"conn_type": "webdata", "password": key, **place}
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", json.dumps(value))


@pytest.mark.parametrize("kind", BODIES)
def test_a_known_job_is_found_by_every_later_attempt(service: JobService, kind: str) -> None:
    task = Task(service, kind)
    task.crash("later")
    if kind == "batch_scrape":
        service.set_all("completed")
    job = task.start()
    assert [job.job_id] == service.started()
    assert job.view is not None
    assert job.view.is_over is (kind == "batch_scrape")
    assert [task.start().job_id] == service.started()


@pytest.mark.rule("repeat-unsafe", "team-activity")
@pytest.mark.parametrize("when", ["before asking", "after asking"])
@pytest.mark.parametrize("kind", ["batch_scrape", "agent"])
def test_a_billed_request_of_unknown_outcome_is_not_repeated(
    service: JobService, kind: str, when: str
) -> None:
    """The task names what the service lists, and how to go on."""
    other = Task(service, kind).start().job_id
    task = Task(service, kind)
    task.crash(when)
    started = service.started()
    for _ in range(2):
        with pytest.raises(UncertainStartError, match="neither a key nor a delivery names its job") as raised:
            task.start()
    assert f"The service lists {started[-1]} ({TARGET})" in str(raised.value)
    assert other in str(raised.value)
    assert f"WebDataJobSensor(kind='{kind}', job_id=...); otherwise, clear this task" in str(raised.value)
    assert service.started() == started
    task.cleared = task.attempts
    assert task.start().job_id == service.started()[-1]
    assert len(service.started()) == len(started) + 1, "as the message says"


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize(("kind", "fault"), [("batch_scrape", 500), ("agent", 408), ("agent", "lose answer")])
def test_a_lost_answer_to_a_billed_request_ends_the_task(service: JobService, kind: str, fault: Any) -> None:
    service.start_faults = [fault]
    with pytest.raises(UncertainStartError, match="its outcome cannot be determined"):
        Task(service, kind).start()
    assert len(service.started()) == 1


def test_a_list_that_cannot_be_read_hides_no_way_out(service: JobService) -> None:
    task = Task(service, "agent")
    task.crash()
    service.faults = [(403, {"success": False, "error": "no"}, {})]
    with pytest.raises(UncertainStartError, match="If the service's dashboard shows the job"):
        task.start()


@pytest.mark.rule("idempotency-key")
@pytest.mark.parametrize("fault", ["lose request", 502])
def test_a_crawl_of_unknown_outcome_is_sent_again_with_its_key(service: JobService, fault: Any) -> None:
    service.honours_keys = fault == "lose request"
    service.start_faults = [fault]
    job = Task(service, "crawl").start()
    assert job.job_id == service.started()[-1]
    crashed = Task(service, "crawl")
    crashed.crash("before asking")
    assert crashed.start().job_id == service.started()[-1]
    assert len({*service.keys}) == (2 if service.honours_keys else 0), "one key for each task"


@pytest.mark.rule("idempotency-key-servers")
@pytest.mark.parametrize("kind", ["hosted", "gateway", None])
@pytest.mark.parametrize("fault", ["lose request", "lose answer", 502])
def test_a_crawl_of_another_host_is_not_sent_again(
    service: JobService,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: Any,
    fault: Any,
) -> None:
    """What lies between may have dropped its key, and the first request may have been billed."""
    connect(monkeypatch, service, server=kind)
    service.honours_keys = False
    service.start_faults = [fault]
    lost = Task(service, "crawl")
    with pytest.raises(UncertainStartError, match="its outcome cannot be determined"):
        lost.start()
    crashed = Task(service, "crawl")
    crashed.crash("after asking")
    with pytest.raises(UncertainStartError, match="neither a key nor a delivery names its job"):
        crashed.start()
    assert len(service.started()) == (1 if fault == "lose request" else 2)
    assert "same idempotency key" not in caplog.text


@pytest.mark.rule("idempotency-key", "idempotency-key-used")
def test_a_used_key_starts_nothing(service: JobService) -> None:
    task = Task(service, "crawl")
    task.crash()
    with pytest.raises(UncertainStartError, match="same idempotency key started one"):
        task.start()
    assert len(service.started()) == 1


@pytest.mark.rule("idempotency-key")
@pytest.mark.parametrize(("kind", "state"), [("crawl", "failed"), ("agent", "cancelled")])
def test_a_failed_job_is_replaced(service: JobService, kind: str, state: str) -> None:
    task = Task(service, kind)
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


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [
        ("crawl", 402, {"error": "Insufficient credits"}),
        ("agent", 429, {"error": "Rate limit exceeded"}),
        ("batch_scrape", 400, {"success": False, "error": "no"}),
    ],
)
def test_a_refusal_started_nothing(
    service: JobService, kind: str, status: int, error: dict[str, Any]
) -> None:
    service.start_faults = [(status, error, {})]
    task = Task(service, kind)
    with pytest.raises(WebDataError):
        task.start()
    before = len(service.requests)
    assert [task.start().job_id] == service.started()
    assert len(service.requests) - before == 1, "no search was necessary"


def test_a_damaged_record_is_refused(service: JobService) -> None:
    task = Task(service, "crawl")
    task.crash("later")
    assert task.store is not None
    task.store.set(KEY, {**task.store.get(KEY), "phase": 1})
    with pytest.raises(DamagedRecordError, match=f"then delete the key {KEY} from the task's state store"):
        task.start()
    task.store.delete(KEY)
    task.cleared = task.attempts
    assert task.start().job_id == service.started()[1]


@pytest.mark.parametrize("lowers_retries", [False, True])
def test_a_cleared_task_starts_anew(service: JobService, lowers_retries: bool) -> None:
    """A clear sets `max_tries` to the number of attempts plus `retries`, which may be the former value."""
    task = Task(service, "crawl")
    first = task.start().job_id
    task.end()
    task.cleared, task.retries = task.attempts, 4 if lowers_retries else 5
    assert task.start().job_id != first
    assert len(service.started()) == 2


def test_airflow_3_2_has_no_memory(service: JobService) -> None:
    task = Task(service, "agent", "3.2")
    task.crash("later")
    assert task.start().job_id == service.started()[1]


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
    connect(monkeypatch, service, "another-key")


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


@pytest.fixture
def self_hosted(service: JobService, monkeypatch: pytest.MonkeyPatch) -> JobService:
    """A server without billing and a database, which no connection declares yet."""
    monkeypatch.setattr(optional, "_failed", {})
    service.bills = False
    connect(monkeypatch, service, server=None)
    return service


def test_the_log_counts_urls_not_the_prompt(service: JobService, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    task = Task(service, "agent")
    task.body = {"prompt": "p", "urls": [TARGET]}
    task.targets = [TARGET, "p"]
    task.start()
    assert f"Started agent run of {TARGET} (connection" in caplog.text


@pytest.mark.rule("idempotency-key-servers")
@pytest.mark.parametrize("kind", ["crawl", "batch_scrape"])
@pytest.mark.says("the log says that both may run")
def test_a_request_of_unknown_outcome_is_repeated_once_where_nothing_is_billed(
    self_hosted: JobService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """It gets no key, and no replica delays anything."""
    monkeypatch.setattr(replica.time, "sleep", pytest.fail)
    connect(monkeypatch, self_hosted, server="self-hosted")
    self_hosted.start_faults = ["lose answer"]
    assert Task(self_hosted, kind).start().job_id == self_hosted.started()[1]
    assert "sending it again. The server may run both, but bills neither" in caplog.text
    self_hosted.start_faults = ["lose answer", "lose answer"]
    lost = Task(self_hosted, kind)
    with pytest.raises(WebDataError):
        lost.start()
    assert len(self_hosted.started()) == 4
    assert lost.start().job_id == self_hosted.started()[4]
    assert not any(self_hosted.keys)


def test_an_undeclared_server_counts_as_billed(
    self_hosted: JobService, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Task(self_hosted, "batch_scrape")
    task.crash()
    with pytest.raises(UncertainStartError):
        task.start()
    connect(monkeypatch, self_hosted, server="self-hosted")
    assert task.start().job_id == self_hosted.started()[1]


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


def test_a_server_that_answers_html_starts_nothing(self_hosted: JobService) -> None:
    """An unknown path started nothing; a later attempt asks again, and does not search."""
    page = "<!DOCTYPE html><pre>Cannot POST /v2/crawl</pre>"
    self_hosted.start_faults = [(404, page, {"Content-Type": "text/html"})]
    task = Task(self_hosted, "crawl")
    with pytest.raises(UnsupportedError, match=r'it has no such operation\.\sCheck "Base URL"'):
        task.start()
    assert [task.start().job_id] == self_hosted.started()


@pytest.fixture
def receiving(monkeypatch: pytest.MonkeyPatch, service: JobService, inbox: Any) -> Any:
    """The connection can receive deliveries; the service lists nothing, and no key of its host is trusted."""
    connect(monkeypatch, service, server="hosted", **inbox.extra)
    service.lists = False
    return inbox


@pytest.mark.parametrize("kind", BODIES)
def test_the_inbox_names_the_job_by_its_key(service: JobService, receiving: Any, kind: str) -> None:
    task = Task(service, kind)
    task.crash()
    assert service.bodies[0]["webhook"]["events"] == events_to_ask_for(kind)  # type: ignore[arg-type]
    job = task.start()
    assert [job.job_id] == service.started()
    assert job.reports
    service.set(kind, job.job_id, "failed")
    task.crash()
    assert task.start().job_id == service.started()[1], "also the one that replaces it"
    assert len({body["webhook"]["url"] for body in service.bodies}) == 2


@pytest.mark.parametrize("kind", BODIES)
def test_the_inbox_names_the_job_later(
    service: JobService, receiving: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A redeploy ends the worker and the inbox, and the service repeats the delivery after a minute."""
    task = Task(service, kind)
    with monkeypatch.context() as patched:
        patched.setattr(service, "_deliver", lambda *_: None)
        task.crash()
    with pytest.raises(UnnamedJobError, match="The next attempt asks the inbox again"):
        task.start()
    service._deliver(service.bodies[0]["webhook"], kind, service.started()[0])
    assert [task.start().job_id] == service.started()


def test_no_further_attempt_is_promised_by_the_last_one(
    service: JobService, receiving: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Task(service, "agent")
    task.retries = 1
    with monkeypatch.context() as patched:
        patched.setattr(service, "_deliver", lambda *_: None)
        task.crash()
        with pytest.raises(UncertainStartError) as raised:
            task.start()
    assert "next attempt" not in str(raised.value)


@pytest.mark.parametrize("kind", ["batch_scrape", "agent"])
def test_the_inbox_names_the_job_of_a_lost_answer(service: JobService, receiving: Any, kind: str) -> None:
    service.start_faults = ["lose answer"]
    assert [Task(service, kind).start().job_id] == service.started()


def test_a_changed_secret(service: JobService, receiving: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(service, "agent")
    task.crash()
    receiving.stop()
    former, receiving.secret = receiving.secret, "another-webhook-secret"
    receiving.start()
    connect(monkeypatch, service, server="hosted", **receiving.extra, previous_webhook_secret=former)
    assert [task.start().job_id] == service.started()


@pytest.mark.parametrize("refuses", [True, False])
def test_an_inbox_that_cannot_be_read(
    service: JobService, receiving: Any, monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    """One that does not answer may name the job later."""
    task = Task(service, "agent")
    task.crash()
    if refuses:
        extra = {**receiving.extra, "webhook_secret": "one-that-it-does-not-know"}
        connect(monkeypatch, service, server="hosted", **extra)
        with pytest.raises(UnnamedJobError):
            task.start()
        return
    receiving.stop()
    with pytest.raises(InboxUnreachableError):
        task.start()
    receiving.start()
    assert [task.start().job_id] == service.started()


def test_a_silent_inbox_gets_no_webhook(
    service: JobService, receiving: Any, caplog: pytest.LogCaptureFixture
) -> None:
    receiving.stop()
    task = Task(service, "agent")
    assert not task.start().reports
    assert [body.get("webhook") for body in service.bodies] == [None]
    reasons = [line for line in caplog.messages if line.startswith("No webhook is attached")]
    assert len(reasons) == 1
    assert f"waits poll: the inbox at {receiving.url} does not respond" in reasons[0]
    receiving.start()


def test_a_repeated_request_with_a_webhook_is_searched_in_the_inbox(
    service: JobService, receiving: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request, which had none, started nothing."""
    connect(monkeypatch, service, **receiving.extra)
    task = Task(service, "crawl")
    receiving.stop()
    task.crash("before asking")
    receiving.start()
    task.crash()
    assert [task.start().job_id] == service.started()
