# SPDX-License-Identifier: Apache-2.0
"""Credit limits of operators, and the credits that they report."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout
from airflow.sdk.observability.stats import Stats

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.hooks.ledger import Ledger
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.runs.billed_response import BilledResponse
from airflow_provider_webdata.runs.failures import CreditLimitError, UnpublishedResponseError
from airflow_provider_webdata.runs.jobs import start
from airflow_provider_webdata.runs.jobs.job import JobRun
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.states.task_record import KEY, read_stored
from tests.support import direct
from tests.support.airflow_versions import NEEDS_MEMORY
from tests.support.direct import KilledError, StateStore, TaskInstance, accept, context_of, killed_in_a_call
from tests.support.job_service import JobService
from tests.support.metrics import recording
from tests.support.pdf import pdf as pdf_of
from webdata_sandbox.server import SandboxServer

URL = "https://docs.pipeline.example/"
BASIC: dict[str, Any] = {"proxy": "basic", "parsers": [{"type": "pdf", "maxPages": 1}]}
AS_JSON: dict[str, Any] = {**BASIC, "formats": ["markdown", {"type": "json", "prompt": "the title"}]}
WAITING: dict[str, Any] = {"deferrable": False, "poll_interval": 1}
MARKDOWN = {"formats": ["markdown"]}
PDF_HINT = "each page of a PDF is billed"

Credits = dict[str, float]
# Operator, arguments, a limit that refuses it, the lowest that does not, and the account of it by operation and by
# format.
CALLS: dict[str, tuple[Any, dict[str, Any], float, float, Credits, Credits]] = {
    "search": (WebDataSearchOperator, {"query": "river"}, 1.5, 2, {"search": 2}, {}),
    "scrape": (WebDataScrapeOperator, {"url": URL, **BASIC}, 0, 1, {"scrape": 1}, {"page": 1}),
    "scrape_json": (WebDataScrapeOperator, {"url": URL, **AS_JSON}, 4, 5, {"scrape": 5}, {"page": 1, "json": 4}),
    "map": (WebDataMapOperator, {"url": URL}, 0.5, 1, {"map": 1}, {}),
    "parse": (WebDataParseOperator, {"file": "FILE"}, 0, 1, {"parse": 1}, {"page": 1}),
    "batch_scrape": (
        WebDataBatchScrapeOperator, {"urls": [URL, f"{URL}releases"], **WAITING, **AS_JSON}, 9, 10,
        {"batch_scrape": 10}, {"page": 2, "json": 8},
    ),
    "crawl": (
        WebDataCrawlOperator, {"url": URL, "limit": 1, **WAITING, "scrape_options": AS_JSON}, 4, 5,
        {"crawl": 5}, {"page": 1, "json": 4},
    ),
    "interact": (
        WebDataInteractOperator, {"steps": ["echo high"], "ttl": 90, "language": "bash"}, 2, 3, {"interact": 2}, {}
    ),
    "batch_search": (
        WebDataBatchSearchOperator, {"queries": ["river", "coffee"], "save_to": "FOLDER/found.jsonl"}, 1, 4,
        {"batch_search": 4}, {},
    ),
}  # fmt: skip
UNBOUNDED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "any page": (WebDataScrapeOperator, {"url": URL, "parsers": ["pdf"]}, PDF_HINT),
    "batch": (
        WebDataBatchSearchOperator,
        {"queries": ["q"], "scrape_options": {**MARKDOWN, "parsers": ["pdf"]}, "save_to": "FOLDER/a.jsonl"},
        "search 'q': each page of a PDF",
    ),
    "unchecked": (WebDataMapOperator, {"url": URL, "extra_body": {"limit": 5}}, "extra_body is sent unchecked"),
    "agent": (
        WebDataAgentOperator, {"prompt": "p"}, "it may cost up to 2500 credits: max_credits, which defaults to 2500"
    ),
}  # fmt: skip


@pytest.fixture
def task(tmp_path: Path) -> Callable[..., Any]:
    """Make a task of an operator; `FILE` and `FOLDER` in its arguments stand for a file and a folder."""
    (tmp_path / "a.html").write_text("<p>Wheat</p>")

    def make(operator: Any, arguments: dict[str, Any], **more: Any) -> Any:
        given = {
            name: value.replace("FILE", f"{tmp_path}/a.html").replace("FOLDER", str(tmp_path))
            if isinstance(value, str)
            else value
            for name, value in arguments.items()
        }
        return operator(task_id="t", retries=2, **given, **more)

    return make


@pytest.mark.parametrize("name", CALLS)
def test_the_limit_and_the_account_of_a_call(here: SandboxServer, task: Any, log: Any, name: str) -> None:
    """Nothing is sent that may exceed the limit, and no retry is made; then one that is just high enough."""
    operator, arguments, low, limit, by_operation, by_format = CALLS[name]
    what = "scrape" if name == "scrape_json" else name.replace("_", " ")
    # A batch reports the queries that it leaves.
    if name != "batch_search":
        refused = direct.run(task(operator, arguments, credit_limit=f"{{{{ {low} }}}}"))
        assert refused.ended == ("failed", 1)
        assert "credits" not in refused.xcom
        assert f"{what}: nothing was sent: it may exceed credit_limit={low:g}: it may cost" in str(
            refused.error
        )
        assert "(WD-034)" in str(refused.error)
        assert refused.xcom["failure"]["accepted_with"] == {"credit_limit": limit}
    assert here.control.requests() == []

    outcome = direct.run(task(operator, arguments, credit_limit=limit))
    assert outcome.state == "success", outcome.error
    used = sum(by_operation.values())
    jobs = {f"{name}/{outcome.xcom['job_id']}": used} if name in ("crawl", "batch_scrape") else {}
    assert outcome.xcom["credits"] == {
        "used": used,
        "saved": 0,
        "unknown": 0,
        "by_operation": by_operation,
        "by_format": by_format,
        "by_connection": {"webdata_default": used},
        **({"jobs": jobs} if jobs else {}),
    }
    if name == "scrape_json":
        assert "Credits of this task: 5 used (scrape 5; by format: page 1, json 4); 0 saved" in log()


def test_a_limit_refuses_no_call_of_a_server_that_does_not_bill(
    sandbox: SandboxServer, connect: Callable[..., None], task: Any
) -> None:
    connect(sandbox, server="self-hosted")
    outcome = direct.run(task(WebDataSearchOperator, {"query": "river"}, credit_limit=0))
    assert outcome.ended == ("success", 1), outcome.error
    assert outcome.xcom["credits"]["used"] == 0


@pytest.mark.parametrize("name", UNBOUNDED)
def test_nothing_is_sent_where_nothing_documented_bounds_the_price(
    here: SandboxServer, task: Any, name: str
) -> None:
    operator, arguments, words = UNBOUNDED[name]
    outcome = direct.run(task(operator, arguments, credit_limit="{{ 1000 }}"))
    assert here.control.requests() == []
    assert outcome.ended == ("failed", 1)
    assert words in str(outcome.error)


@pytest.mark.rule("credits-pdf")
def test_a_limit_bounds_the_pages_of_pdfs(here: SandboxServer, task: Any, log: Any, tmp_path: Path) -> None:
    """Where `parsers` is not given; an empty list returns PDFs as base64."""
    home, pdf = "https://papers.example/", "https://papers.example/levels.pdf"
    here.control.set_page(home, f'<a href="{pdf}">levels</a>')
    here.control.set_page(
        pdf, markdown="\f".join(f"page {n}" for n in range(9)), content_type="application/pdf"
    )
    arguments = {"url": home, "limit": 2, **WAITING, "scrape_options": {"proxy": "basic"}}
    outcome = direct.run(task(WebDataCrawlOperator, arguments, credit_limit=9))
    assert here.control.requests("/v2/crawl")[0]["body"]["scrapeOptions"]["parsers"] == [
        {"type": "pdf", "maxPages": 4}
    ]
    assert outcome.xcom["credits"]["used"] == 1 + 4
    assert "crawl: a PDF bills each of its pages. 9 credits allow 4 per PDF, so" in log()
    (tmp_path / "levels.pdf").write_bytes(pdf_of(*[b"BT /F1 12 Tf (level) Tj ET"] * 9))
    parsed = direct.run(task(WebDataParseOperator, {"file": f"{tmp_path}/levels.pdf"}, credit_limit=3))
    assert parsed.xcom["credits"]["used"] == 3
    unparsed = direct.run(
        task(WebDataScrapeOperator, {"url": pdf, "proxy": "basic", "parsers": []}, credit_limit=1)
    )
    assert base64.b64decode(unparsed.value["markdown"]).startswith(b"page 0")


# Attempts.


def attempt(operator: Any, store: StateStore | None, number: int, max_tries: int = 2) -> dict[str, Any]:
    """Return what an attempt pushed, whether it failed or not."""
    ti = TaskInstance(try_number=number, max_tries=max_tries)
    context = context_of(ti, store)
    try:
        operator.execute(context)
        accept(context)
    except (AirflowException, OSError, WebDataError):
        ti.xcom["failed"] = True
        del ti.xcom["failure"]
    return ti.xcom


def undeliverable(operator: Any) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    new_run = operator._new_run

    def failing_run(context: Any) -> Any:
        run = new_run(context)
        run.publish = fail
        return run

    operator.deliver, operator._new_run = fail, failing_run
    return operator


def test_what_an_earlier_attempt_paid_for_is_counted_once(here: SandboxServer) -> None:
    """The second delivers what the first had got; cleared, the task pays again, and all of it is reported."""
    store = StateStore()
    with recording(Stats) as metrics:
        first = attempt(undeliverable(WebDataSearchOperator(task_id="t", query="river")), store, 1)
        assert (first["credits"]["used"], first["credits"]["saved"]) == (2, 0)
        second = attempt(WebDataSearchOperator(task_id="t", query="river"), store, 2)
        assert (second["credits"]["used"], second["credits"]["saved"]) == (2, 2)
        cleared = attempt(WebDataSearchOperator(task_id="t", query="river"), store, 3, max_tries=4)
        assert (cleared["credits"]["used"], cleared["credits"]["saved"]) == (4, 2)
    counted = [number for _, name, number, _ in metrics.calls if name == "webdata.credits_used"]
    assert sum(counted) == 4


@pytest.mark.parametrize("name", ["search", "crawl", "batch_search"])
def test_a_cleared_task_says_that_it_is_billed_again(
    here: SandboxServer, task: Any, log: Any, name: str
) -> None:
    operator, arguments, _, _, by_operation, _ = CALLS[name]
    store, cost = StateStore(), sum(by_operation.values())
    words = "The task was cleared, so its calls are billed again. Before that, they cost"
    attempt(task(operator, arguments), store, 1)
    # A retry that is billed for nothing, and one that is billed as any retry.
    attempt(undeliverable(task(operator, arguments)), store, 2, max_tries=4)
    assert f"{words} {cost:g} credits" in log()
    attempt(task(operator, arguments), store, 3, max_tries=4)
    assert log().count(words) == 1


def test_a_job_that_is_found_again_is_saved(here: SandboxServer) -> None:
    """By each attempt that takes the result of an earlier one's; cleared, the task starts another."""
    store = StateStore()

    def crawl() -> WebDataCrawlOperator:
        url = "https://river.example/"
        return WebDataCrawlOperator(task_id="t", url=url, limit=3, deferrable=False, poll_interval=1)

    def told(operator: Any, number: int, **more: int) -> tuple[float, float]:
        credits = attempt(operator, store, number, **more)["credits"]
        return credits["used"], credits["saved"]

    assert told(undeliverable(crawl()), 1) == (3, 0)
    assert told(undeliverable(crawl()), 2) == (3, 3)
    assert told(crawl(), 3) == (3, 6)
    assert told(crawl(), 4, max_tries=6) == (6, 6)
    assert len(here.control.jobs("crawl")) == 2


@pytest.mark.parametrize(
    ("fault", "attempts"),
    [("drop_after_work", [(0, 0, 1)]), ("drop", [(0, 0, 1), (3, 0, 0)])],
    ids=["the answer was lost", "the request never came, and the next attempt sent it again"],
)
def test_a_job_that_the_attempt_itself_started_is_not_saved(
    here: SandboxServer,
    connect: Any,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    attempts: list[tuple[float, float, int]],
) -> None:
    connect(here, is_service=True)
    # The service does not lag here.
    for name in ("until_found", "until_visible"):
        monkeypatch.setattr(start, name, partial(getattr(start, name), replica_wait=0.0))
    here.control.add_fault(fault, path="/v2/crawl$", method="POST", times=None)
    store = StateStore()
    for number, expected in enumerate(attempts, 1):
        task = WebDataCrawlOperator(
            task_id="t", url="https://river.example/", limit=3, deferrable=False, poll_interval=1
        )
        credits = attempt(task, store, number)["credits"]
        assert (credits["used"], credits["saved"], credits["unknown"]) == expected
        here.control.clear_faults()


def test_an_attempt_that_fails_before_its_call_tells_of_the_earlier_ones(here: SandboxServer) -> None:
    store = StateStore()
    broken = "https://never-there.example/"
    attempt(undeliverable(WebDataSearchOperator(task_id="t", query="river")), store, 1)
    assert attempt(WebDataScrapeOperator(task_id="t", url=broken, credit_limit="0"), store, 2) == {
        "failed": True,
        "credits": {
            "used": 2,
            "saved": 0,
            "unknown": 0,
            "by_operation": {"search": 2},
            "by_format": {},
            "by_connection": {"webdata_default": 2},
        },
    }


def test_the_limit_is_that_of_all_attempts_until_the_task_is_cleared(here: SandboxServer) -> None:
    store = StateStore()

    def search(query: str) -> WebDataSearchOperator:
        return WebDataSearchOperator(task_id="t", query=query, credit_limit=3)

    attempt(undeliverable(search("river")), store, 1)
    context = context_of(TaskInstance(try_number=2, max_tries=2), store)
    with pytest.raises(CreditLimitError, match="credit_limit=3, after 2 credits that were or may") as refused:
        search("coffee").execute(context)
    assert refused.value.accepted_with == {"credit_limit": 4}
    assert attempt(search("coffee"), store, 3, max_tries=4)["credits"]["used"] == 4


def killed(operator: Any, store: StateStore, number: int) -> None:
    with killed_in_a_call(store):
        operator.execute(context_of(TaskInstance(try_number=number, max_tries=5), store))


@pytest.mark.parametrize(
    ("name", "limit", "attempts"), [("search", 5, 2), ("scrape", 3, 3), ("scrape_json", 9, 1), ("map", 1, 1)]
)
def test_a_call_of_a_killed_attempt_counts(
    here: SandboxServer, task: Any, name: str, limit: float, attempts: int
) -> None:
    operator, arguments, *_ = CALLS[name]
    store = StateStore()
    for number in range(1, attempts + 1):
        killed(task(operator, arguments, credit_limit=limit), store, number)
    sent = len(here.control.requests())
    context = context_of(TaskInstance(try_number=attempts + 1, max_tries=5), store)
    with pytest.raises(CreditLimitError, match=r"after \d credits that were or may have been spent"):
        task(operator, arguments, credit_limit=limit).execute(context)
    assert len(here.control.requests()) == sent
    # Clearing the task begins a new budget.
    assert "failed" not in attempt(task(operator, arguments, credit_limit=limit), store, 7, max_tries=8)


def test_searches_of_a_killed_batch_count(here: SandboxServer, tmp_path: Path) -> None:
    store = StateStore()

    def batch() -> WebDataBatchSearchOperator:
        return WebDataBatchSearchOperator(
            task_id="t",
            queries=["river", "coffee", "stone"],
            save_to=f"{tmp_path}/a.jsonl",
            credit_limit=5,
            max_concurrency=1,
        )

    killed(batch(), store, 1)
    assert len(here.control.requests()) == 1
    left = attempt(batch(), store, 2, max_tries=5)["left"]
    assert (len(here.control.requests()), left) == (2, ["coffee", "stone"])


def test_a_search_of_a_killed_batch_counts_while_no_other_is_affordable(
    here: SandboxServer, tmp_path: Path
) -> None:
    store = StateStore()

    def batch() -> WebDataBatchSearchOperator:
        return WebDataBatchSearchOperator(
            task_id="t", queries=["river", "coffee"], save_to=f"{tmp_path}/a.jsonl", credit_limit=3
        )

    killed(batch(), store, 1)
    for number in (2, 3):
        told = attempt(batch(), store, number, max_tries=5)
        assert (told["left"], told["credits"]["unknown"]) == (["river", "coffee"], 1)
    assert len(here.control.requests()) == 1


def test_a_session_of_a_killed_attempt_counts_with_its_cost(here: SandboxServer, task: Any) -> None:
    """The next attempt closes it, and learns what it cost."""
    operator, arguments, *_ = CALLS["interact"]
    store = StateStore()
    killed(task(operator, arguments, credit_limit=5), store, 1)
    before = Ledger(context_of(TaskInstance(max_tries=5), store), limit=5)
    assert (before.spent, before.to_wire()["unknown"]) == (3, 1)
    xcom = attempt(task(operator, arguments, credit_limit=5), store, 2, max_tries=5)
    assert ("failed" in xcom, xcom["credits"]["used"], xcom["credits"]["unknown"]) == (False, 4, 0)
    assert Ledger(context_of(TaskInstance(max_tries=5), store), limit=5).spent == 4


FAILURES: dict[str, tuple[Any, dict[str, Any], str | None, float, int, str]] = {
    # Operator, arguments, fault; credits, calls of unknown cost, and the end of the message.
    "no such host": (
        WebDataScrapeOperator, {"url": "https://never-there.example/"}, None, 1, 0, "The call is billed 1 credit. "
    ),
    "lockdown": (
        WebDataScrapeOperator, {"url": f"{URL}not-cached", "lockdown": True}, None, 1, 0,
        "The call is billed 1 credit. ",
    ),
    "min_age": (WebDataScrapeOperator, {"url": f"{URL}not-cached", "min_age": 1}, None, 0, 0, ""),
    "lost": (WebDataSearchOperator, {"query": "river"}, "drop_after_work", 0, 1, "The call may have been billed. "),
    "refused": (WebDataMapOperator, {"url": URL}, "status", 0, 0, ""),
}  # fmt: skip


@pytest.mark.rule("credits-failed")
@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_call_that_is_billed_is_counted(here: SandboxServer, name: str) -> None:
    """In XCom, and in the error's message; a retry adds its own."""
    operator, arguments, fault, used, unknown, words = FAILURES[name]
    if fault is not None:
        more = {"status": 400} if fault == "status" else {}
        here.control.add_fault(fault, path="/v2/", method="POST", times=None, **more)
    before = here.control.state()["credits"]
    store, messages = StateStore(), []
    for number in (1, 2):
        ti = TaskInstance(try_number=number, max_tries=2)
        with pytest.raises((AirflowException, WebDataError)) as failed:
            operator(task_id="t", **arguments).execute(context_of(ti, store))
        messages.append(" ".join(str(failed.value).split()))
        credits = ti.xcom.get("credits", {"used": 0, "unknown": 0})
        assert (credits["used"], credits["unknown"]) == (number * used, number * unknown)
    billed = before - here.control.state()["credits"]
    assert billed == 2 * (used + unknown * 2)
    assert all((words or "billed") in message for message in messages) == bool(words), messages


def test_a_failure_that_bills_nothing_is_settled(here: SandboxServer) -> None:
    store = StateStore()
    here.control.add_fault("status", path="/v2/search", status=400)
    assert attempt(WebDataSearchOperator(task_id="t", query="q", credit_limit=2), store, 1)["failed"]
    assert "failed" not in attempt(WebDataSearchOperator(task_id="t", query="q", credit_limit=2), store, 2)


@pytest.mark.parametrize(("name", "used"), [("scrape", 1), ("batch_scrape", 10)])
def test_an_attempt_that_is_refused_reports_what_earlier_ones_spent(
    here: SandboxServer, tmp_path: Path, name: str, used: float
) -> None:
    """Airflow has deleted the XComs of the first attempt; the second one's folder is a file."""
    operator, arguments, *_ = CALLS[name]
    store = StateStore()
    attempt(undeliverable(operator(task_id="t", **arguments)), store, 1)
    (tmp_path / "folder").touch()
    refused = operator(task_id="t", **arguments, save_to=f"{tmp_path}/folder/x.jsonl")
    xcom = attempt(refused, store, 2)
    assert (xcom["failed"], xcom["credits"]["used"]) == (True, used)


def test_without_a_store_each_attempt_reports_its_own_credits(here: SandboxServer) -> None:
    attempt(undeliverable(WebDataSearchOperator(task_id="t", query="river")), None, 1)
    assert attempt(WebDataSearchOperator(task_id="t", query="river"), None, 2)["credits"]["used"] == 2


def test_what_was_known_already_is_saved(here: SandboxServer) -> None:
    ti = TaskInstance()
    task = WebDataCrawlOperator(task_id="t", url="https://a.example/")
    context: Any = context_of(ti, StateStore())
    task._new_run(context).ledger.settle(Cost(0, saved=374), "crawl")
    assert (ti.xcom["credits"]["used"], ti.xcom["credits"]["saved"]) == (0, 374)


@pytest.fixture
def jobs() -> Any:
    service = JobService()
    service.ends_after = 0
    yield service
    service.stop()


def test_a_job_that_failed_counts_too(jobs: JobService, connect: Any) -> None:
    """Cleared, its task starts another, whose pages are paid on top."""
    connect(jobs, retry_budget=0)
    store = StateStore()

    def crawl() -> WebDataCrawlOperator:
        return WebDataCrawlOperator(task_id="t", url="https://a.example/", deferrable=False, poll_interval=1)

    jobs.ends_as = {
        "status": "failed",
        "error": "no",
        "creditsUsed": 3,
        "total": 3,
        "completed": 3,
        "data": [],
    }
    failed = attempt(crawl(), store, 1)
    assert (failed["failed"], failed["credits"]["by_operation"]) == (True, {"crawl": 3})
    jobs.ends_as = {"status": "completed", "creditsUsed": 4, "total": 4, "completed": 4, "data": []}
    done = attempt(crawl(), store, 2, max_tries=4)
    assert done["credits"]["by_operation"] == {"crawl": 7}


def test_a_job_that_a_killed_attempt_started_and_that_failed_counts_too(
    jobs: JobService, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(jobs, retry_budget=0)
    store = StateStore()

    def crawl() -> WebDataCrawlOperator:
        return WebDataCrawlOperator(task_id="t", url="https://a.example/", deferrable=False, poll_interval=1)

    def die(*_: Any) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(JobRun, "_wait", die)
        with pytest.raises(KilledError):
            crawl().execute(context_of(TaskInstance(1, 5), store))
    (lost,) = jobs.jobs.values()
    lost.update(status="failed", error="no", creditsUsed=3, total=3, completed=3, data=[], looks=-9)
    jobs.ends_as = {"status": "completed", "creditsUsed": 4, "total": 4, "completed": 4, "data": []}
    credits = attempt(crawl(), store, 2, max_tries=5)["credits"]
    assert (credits["by_operation"], credits["unknown"]) == ({"crawl": 7}, 0)


def agent() -> WebDataAgentOperator:
    return WebDataAgentOperator(task_id="t", prompt="p", deferrable=False, poll_interval=1)


def test_a_job_of_unknown_outcome_still_counts_after_a_clear(jobs: JobService, connect: Any) -> None:
    """The advice is to clear the task if the service shows no job of it."""
    connect(jobs, retry_budget=0)
    store = StateStore()
    jobs.start_faults = ["lose answer"]
    assert attempt(agent(), store, 1)["failed"]
    jobs.ends_as = {"status": "completed", "creditsUsed": 4, "data": {"a": 1}}
    credits = attempt(agent(), store, 2, max_tries=4)["credits"]
    assert (credits["used"], credits["unknown"], len(jobs.started())) == (4, 1, 2)


def test_a_refused_repetition_does_not_free_the_first_request(jobs: JobService, connect: Any) -> None:
    connect(jobs, retry_budget=0)
    store = StateStore()
    jobs.start_faults = ["lose answer", (402, {"error": "Insufficient credits"}, {})]
    one_page = {"proxy": "basic", "parsers": []}
    crawl = WebDataCrawlOperator(
        task_id="t", url="https://a.example/", limit=3, scrape_options=one_page, credit_limit=9
    )
    assert attempt(crawl, store, 1)["failed"]
    assert len(jobs.bodies) == 1
    (lost,) = read_stored(store.get(KEY)).credits.lost.values()
    assert (lost.reserved, lost.unknown) == (3, 1)


def test_a_call_without_a_limit_counts_after_a_kill(here: SandboxServer) -> None:
    store = StateStore()
    killed(WebDataSearchOperator(task_id="t", query="river"), store, 1)
    credits = attempt(WebDataSearchOperator(task_id="t", query="river"), store, 2, max_tries=5)["credits"]
    assert (credits["used"], credits["unknown"]) == (2, 1)


def test_a_response_is_delivered_if_a_timeout_ends_its_storing(
    here: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: Any) -> None:
        raise AirflowTaskTimeout("Timeout")

    monkeypatch.setattr(BilledResponse, "_store", late)
    ti = TaskInstance()
    with pytest.raises(UnpublishedResponseError):
        WebDataSearchOperator(task_id="t", query="river").execute(context_of(ti, StateStore()))
    assert ti.xcom["unpublished"]["data"]["web"]


def test_a_batch_whose_folder_is_gone_counts_both_times(here: SandboxServer, tmp_path: Path) -> None:
    """The next worker has another disk."""
    store = StateStore()

    def batch() -> WebDataBatchSearchOperator:
        path = f"{tmp_path}/found.jsonl"
        return WebDataBatchSearchOperator(
            task_id="t", queries=["river", "none"], save_to=path, max_concurrency=1
        )

    first = attempt(undeliverable(batch()), store, 1)
    for folder in tmp_path.glob("_*"):
        shutil.rmtree(folder)
    second = attempt(batch(), store, 2)
    assert (first["credits"]["used"], second["credits"]["used"]) == (2, 4)


def test_what_the_service_does_not_tell_is_unknown(jobs: JobService, connect: Any) -> None:
    connect(jobs, retry_budget=0)
    jobs.ends_as = {"status": "completed", "creditsUsed": -1, "total": 1, "completed": 1, "data": []}
    task = WebDataCrawlOperator(task_id="t", url="https://a.example/", deferrable=False, poll_interval=1)
    credits = attempt(task, StateStore(), 1)["credits"]
    assert (credits["used"], credits["unknown"]) == (0, 1)


@NEEDS_MEMORY
def test_attempts_of_a_real_task(run_dag: Any) -> None:
    """Airflow deletes the XComs of an attempt, and its task state store keeps the account."""
    before = """
def lose_first_answer(context):
    def fail(*_, **__):
        raise OSError("the disk is full")

    task = context["task"]
    task.__dict__.pop("_new_run", None)
    new_run = task._new_run

    def failing_run(context):
        run = new_run(context)
        run.publish = fail
        return run

    if context["ti"].try_number == 1:
        task.__dict__["_new_run"] = failing_run
"""
    more = "retries=1, retry_delay=datetime.timedelta(0), on_execute_callback=lose_first_answer"
    done = run_dag(f"WebDataSearchOperator(task_id='t', query='river', {more})", before)
    assert done.state("t") == "success", done.log[-3000:]
    assert (done.xcom["t.credits"]["used"], done.xcom["t.credits"]["saved"]) == (2, 2)
