# SPDX-License-Identifier: Apache-2.0
"""What the rows of `seed` tell: sixteen days of five DAGs, with changes, failures, a rejection, and waits."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.sdk import DAG

from airflow_provider_webdata.api.errors import ServerError
from airflow_provider_webdata.base.failure_report import failure_report
from airflow_provider_webdata.common.remedies import REMEDIES, advice_for
from airflow_provider_webdata.inbox_server.storage.records import NewDelivery
from airflow_provider_webdata.results.errors import StorageError
from airflow_provider_webdata.results.files.formats import rejected_url
from airflow_provider_webdata.runs.failures import (
    AgentLimitError,
    CheckFailedError,
    JobFailedError,
    RejectedResultsError,
    StepFailedError,
    TooManyFailuresError,
    too_many,
)
from tests.support.seeded_dags import seeded
from tests.support.seeded_service import CATALOG, DAYS, DOCS, JOB_ERRORS, PLAN, SEED, SHOP, Service

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.common.coded_errors import CodedError
    from tests.support.seeded_service import Job

DAGS = {dag.dag_id: dag for dag in vars(seeded).values() if isinstance(dag, DAG)}

HOURS = {
    "competitor_prices": 3.0,
    "docs_rag_refresh": 5.0,
    "news_digest": 6.0,
    "supplier_catalog_crawl": 1.0,
    "company_research": 0.5,
}
"""How long before the end of each day a DAG's run starts."""

_RECENT = timedelta(days=9)
"""Age up to which runs and checks have deliveries."""

_QUEUED, _SENT, _DEFERRED, _RETRIED, _PUBLISHED = 1.4, 0.9, 2.1, 64.0, 4.0
"""Seconds between two tasks, from a task's start to its request and its deferral, between two attempts, and from the
end of a job to the end of its task."""

_SITES = {"docs_rag_refresh": DOCS, "competitor_prices": SHOP, "supplier_catalog_crawl": CATALOG}
"""Sites of the DAGs whose jobs have pages."""


@dataclass
class Seeded:
    """What was written.

    :param credits: by DAG and UTC day, each job counted once.
    :param runs: the newest scheduled run of each DAG.
    :param tasks: number of task instances.
    :param elsewhere: credits of calls that the sandbox did not receive.
    :param deliveries: number of deliveries.
    """

    credits: dict[str, dict[date, float]] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    tasks: int = 0
    elsewhere: float = 0
    deliveries: int = 0

    @property
    def used(self) -> float:
        """All credits."""
        return sum(sum(by_day.values()) for by_day in self.credits.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON, with the sum of each DAG's credits."""
        credits = {dag_id: sum(by_day.values()) for dag_id, by_day in self.credits.items()}
        return {**asdict(self), "credits": credits}


@dataclass
class Task:
    """A task instance, and what is stored about it."""

    run: Run
    task_id: str
    map_index: int
    label: str | None
    state: str
    start: datetime | None
    end: datetime | None
    attempts: int
    pushed: list[tuple[str, Any, datetime]]
    logged: list[tuple[str, datetime, int]]
    rendered: dict[str, Any]
    trigger: tuple[str, dict[str, Any], datetime] | None = None


class Span(NamedTuple):
    """The time of a job."""

    start: datetime
    end: datetime

    @property
    def task_seconds(self) -> float:
        """Duration of the attempt that started it."""
        return _SENT + (self.end - self.start).total_seconds() + _PUBLISHED


class Run:
    """A DAG run whose tasks run one after the other.

    :ivar at: end of the last task.
    """

    def __init__(self, story: Story, dag_id: str, start: datetime, *, is_manual: bool = False) -> None:
        self.story, self.dag_id, self.start, self.at = story, dag_id, start, start
        self.is_manual = is_manual
        kind = "manual" if is_manual else "scheduled"
        self.run_id = f"{kind}__{start.isoformat()}"
        self.state = "success"
        self.tasks: list[Task] = []
        self._ends: list[datetime] = []
        story.runs.append(self)

    def span(self, seconds: float, job: Job | None = None, *, attempts: int = 1) -> Span:
        """Return the time of the next task's job.

        :param job: the service's job, at whose start the task starts, in place of one that lasts `seconds`.
        """
        if job is not None:
            start = datetime.fromtimestamp(job.started, timezone.utc)
            self.at = start - timedelta(seconds=_QUEUED + _SENT)
            seconds = (self.story.now.timestamp() if job.ended is None else job.ended) - job.started
        else:
            start = self.at + timedelta(seconds=_QUEUED + _SENT + _RETRIED * (attempts - 1))
        return Span(start, start + timedelta(seconds=seconds))

    def add(
        self,
        task_id: str,
        seconds: float = 0,
        xcoms: dict[str, Any] | None = None,
        *,
        state: str = "success",
        index: int = -1,
        attempts: int = 1,
        deferred: bool = False,
        trigger: tuple[str, dict[str, Any]] | None = None,
        parallel: bool = False,
        rendered: dict[str, Any] | None = None,
        started: dict[str, Any] | None = None,
    ) -> None:
        """Add a task.

        :param started: XComs that it pushed when it had started its job.
        :param parallel: the next task starts at the same time.
        """
        is_over = state in ("success", "failed", "skipped", "upstream_failed", "up_for_retry")
        began = state != "upstream_failed"
        start = self.at + timedelta(seconds=_QUEUED) if began else None
        end = (start or self.at) + timedelta(seconds=seconds) if is_over else None
        pushed: list[tuple[str, Any, datetime]] = []
        logged: list[tuple[str, datetime, int]] = []
        if start is not None:
            first = start
            for attempt in range(1, attempts):
                logged += [
                    ("running", first, attempt),
                    ("up_for_retry", first + timedelta(seconds=4), attempt),
                ]
                first += timedelta(seconds=_RETRIED)
            start = first
            end = None if end is None else start + timedelta(seconds=seconds)
            logged.append(("running", start, attempts))
            sent = start + timedelta(seconds=_SENT)
            pushed += [(key, value, sent) for key, value in (started or {}).items()]
            if deferred or trigger:
                logged.append(("deferred", start + timedelta(seconds=_DEFERRED), attempts))
            if deferred and end is not None:
                logged.append(("running", max(end - timedelta(seconds=3), start), attempts))
            if end is not None:
                logged.append((state, end, attempts))
                at = end - timedelta(seconds=0.5)
                pushed += [
                    (key, value, at) for key, value in (xcoms or {}).items() if key not in (started or {})
                ]
        found, label = _rendered(DAGS[self.dag_id].get_task(task_id), max(index, 0))
        waits = None if trigger is None or start is None else (*trigger, start + timedelta(seconds=_DEFERRED))
        self.tasks.append(
            Task(
                self,
                task_id,
                index,
                label if index >= 0 else None,
                state,
                start,
                end,
                attempts,
                pushed,
                logged,
                {**found, **(rendered or {})},
                waits,
            )
        )
        if end is not None:
            self._ends.append(end)
            if not parallel:
                self.at = max(self._ends)

    def stop(self, *task_ids: str) -> None:
        """Add tasks that did not run because of a failure upstream."""
        for task_id in task_ids:
            self.add(task_id, state="upstream_failed")
        self.state = "failed"

    @property
    def is_old(self) -> bool:
        """Whether its deliveries are pruned."""
        return self.story.now - self.start > _RECENT


class Story:
    """All runs, their tasks, and the deliveries."""

    def __init__(self, conn_id: str, now: datetime, service: Service) -> None:
        self.conn_id, self.now, self.service = conn_id, now, service
        self.random = random.Random(SEED)
        self.runs: list[Run] = []
        self.deliveries: list[NewDelivery] = []
        self.seeded = Seeded()
        self._elsewhere: list[tuple[datetime, float]] = []
        self._items = 36
        self._pages = 28

    @property
    def tasks(self) -> list[Task]:
        return [task for run in self.runs for task in run.tasks]

    def tell(self, many: int) -> None:
        for age in reversed(range(DAYS)):
            for dag_id, hours in HOURS.items():
                start = self.now - timedelta(days=age, hours=hours)
                run = Run(self, dag_id, start.replace(microsecond=0))
                getattr(self, f"_{dag_id}")(run, age)
                self.seeded.runs[dag_id] = run.run_id
        self._manual()
        self._monitors()
        for number in range(many):
            at = self.now - timedelta(days=1, seconds=30 * number)
            page = f"https://{CATALOG}/p/{number}"
            self._event(at, "crawl.page", "00000000-0000-4000-8000-000000000038", {}, page=page)
        self._sum()
        self._count_down()

    # The DAGs.

    def _competitor_prices(self, run: Run, age: int) -> None:
        draw = self.random
        if age == 9:
            error: CodedError = ServerError("credit usage", 500, "The service has an internal error")
            run.add("enough_credits", 41, {"failure": self._failure(error)}, state="failed", attempts=3)
            run.stop("find_offers", "scrape_prices", "load_prices", "refresh_dashboard")
            return
        # `_count_down` corrects it.
        usage = {"remainingCredits": PLAN, "planCredits": PLAN}
        run.add("enough_credits", 1.1, {"return_value": usage, **usage})
        for index, query in enumerate(seeded.SHOPS):
            count = draw.randint(6, 10)
            results = {
                "id": self._id(),
                "creditsUsed": 2,
                "warning": None,
                "web": [
                    {
                        "url": f"https://shop{position}.example/{query.replace(' ', '-')}",
                        "title": f"{query.capitalize()} - shop {position}",
                        "description": f"Order {query} today, delivered within two days.",
                        "position": position,
                    }
                    for position in range(1, count + 1)
                ],
            }
            pushed = {"return_value": results, "credits": self._credits("search", 2)}
            run.add("find_offers", 2 + draw.random(), pushed, index=index, parallel=index < 3)
        job = self.service.jobs["prices"] if age == 0 else None
        job_id = job.id if job else self._id()
        span = run.span(150 + 20 * draw.random(), job)
        blocked = 12 if age == 0 else draw.choice((0, 0, 0, 1))
        self._items += draw.choice((-1, 0, 0, 1))
        items = 36 if age == 0 else self._items
        cost = items
        changed = draw.randint(2, 11) if age < DAYS - 1 else 0
        new = items if age == DAYS - 1 else draw.choice((0, 0, 1))
        changes = {
            "emit": "all",
            "new": new,
            "changed": changed,
            "same": items - new - changed,
            "removed": 0,
            "failed": 0,
            "emitted_again": 0,
        }
        coverage = 0.6667 if age == 0 else round(1 - draw.randint(0, 2) / items, 4)
        conditions = [
            _condition("coverage", "json.price", "at least 0.9", "0.6667 (24 of 36)"),
            _condition(
                "blocked", None, "at most 0.1", "0.3333 (12 of 36), such as https://kettleworld.example/p/7"
            ),
        ]
        quality = {
            "items": items,
            "pages": items,
            "blocked": {"challenge": blocked} if blocked else {},
            "coverage": {"json.price": coverage, "url": 1.0, "markdown": 1.0},
            "credits_per_item": round(cost / items, 4),
            "min_items": 30,
            "failed": conditions if age == 0 else [],
            **_place(run),
        }
        path = f"{seeded.LAKE}/competitor_prices/latest.jsonl"
        published = {
            **self._job(span, job_id, items, cost),
            "path": path,
            "count": items,
            "bytes": items * 412,
            "changes": changes,
            ("quality_rejected" if age == 0 else "quality"): quality,
        }
        preview = [
            {
                "url": f"https://kettleworld.example/p/{number}",
                "title": f"Page {number} of kettleworld.example",
                "statusCode": 200,
                "markdown": f"# Page {number} 250 g: {9 + number * 0.35:.2f} EUR",
            }
            for number in range(1, 6)
        ]
        xcoms = {
            "job_id": job_id,
            "credits": self._credits("batch_scrape", cost, job_id),
            **published,
            "return_value": published,
            "preview": preview,
        }
        origin = self._origin(run, "scrape_prices")
        self._job_events(run, "batch_scrape", job_id, origin, span, pages=4, cost=cost)
        if age == 0:
            text = "; ".join(
                f"{' of '.join(filter(None, (one['condition'], one['field'])))}: expected {one['expected']}, "
                f"got {one['actual']}"
                for one in conditions
            )
            error = RejectedResultsError(
                f"2 of 5 conditions failed: {text}. {path} is unchanged, and the results are in {rejected_url(path)}. "
                f"To accept them anyway, move that file to {path}, mark the task as success, and clear the tasks "
                "downstream. To request them again, clear the task, which is billed"
            )
            xcoms["failure"] = self._failure(error)
            run.add(
                "scrape_prices",
                span.task_seconds,
                xcoms,
                state="failed",
                deferred=True,
                started={"job_id": job_id},
            )
            run.stop("load_prices", "refresh_dashboard")
            return
        run.add("scrape_prices", span.task_seconds, xcoms, deferred=True, started={"job_id": job_id})
        loaded = {
            "table": "shop.competitor_prices",
            "inserted": new,
            "updated": changed,
            "unchanged": 0,
            "deleted": 0,
        }
        run.add("load_prices", 3, {"return_value": loaded, **loaded})
        run.add("refresh_dashboard", 0.4)

    def _docs_rag_refresh(self, run: Run, age: int) -> None:
        draw = self.random
        monitor_id = self.service.monitors["Lakehouse docs"]
        monitor = {"id": monitor_id, "name": "Lakehouse docs", "status": "active", "created": age == DAYS - 1}
        run.add("declare_monitor", 1.2, {"return_value": monitor, "monitor_id": monitor_id})
        checks = [
            check for check in self.service.checks["Lakehouse docs"] if check.at < run.start.timestamp()
        ]
        if not checks:
            run.add("wait_for_check", 30, state="skipped")
            for task_id in ("crawl_docs", "embed_chunks"):
                run.add(task_id, state="skipped")
            return
        check = checks[-1]
        found = {"id": check.id, "monitorId": monitor_id, "status": check.status, "summary": check.summary}
        pushed: dict[str, Any] = {"credits": self._credits("monitor", check.credits, check.id)}
        shown = {"monitor_id": monitor_id}
        if check.status == "failed":
            error: CodedError = CheckFailedError(
                f"Check {check.id} of monitor {monitor_id} ended with status failed: The check failed because of the "
                "fault fail_check."
            )
            pushed["failure"] = self._failure(error)
            run.add("wait_for_check", 3, pushed, state="failed", rendered=shown)
            run.stop("crawl_docs", "embed_chunks")
            return
        # The check of the last day is there already.
        run.add("wait_for_check", 3, {"return_value": found, **pushed}, rendered=shown)
        if age == 8:
            job_id, span, origin = self._id(), run.span(90), self._origin(run, "crawl_docs")
            self._job_events(run, "crawl", job_id, origin, span, pages=5, cost=30)
            error = StorageError(
                f"{seeded.LAKE}/docs_rag/pages.parquet cannot be written: No space left on device"
            )
            pushed = {"failure": self._failure(error), "credits": self._credits("crawl", 30, job_id)}
            run.add(
                "crawl_docs",
                span.task_seconds,
                pushed,
                state="failed",
                deferred=True,
                started={"job_id": job_id},
            )
            run.stop("embed_chunks")
            return
        job = self.service.jobs["docs"] if age == 0 else None
        job_id = job.id if job else self._id()
        span = run.span(120 + 30 * draw.random(), job)
        self._pages += draw.choice((0, 0, 1, 1))
        pages, failed = (36, 5) if age == 0 else (self._pages, draw.choice((0, 0, 0, 2)))
        new, changed, removed = (
            (pages, 0, 0) if age == DAYS - 2 else (draw.randint(0, 3), draw.randint(0, 6), age == 2)
        )
        changes = {
            "emit": "changed",
            "new": new,
            "changed": changed,
            "same": pages - new - changed,
            "removed": int(removed),
            "failed": failed,
            "emitted_again": 0,
        }
        errors = [
            {
                "url": f"https://docs.lakehouse.example/p/{number * 8}",
                "error": "The page could not be scraped (SCRAPE_SITE_ERROR).",
                "code": "SCRAPE_SITE_ERROR",
            }
            for number in range(1, failed + 1)
        ]
        published = {
            **self._job(span, job_id, pages, pages, failed=errors),
            "path": f"{seeded.LAKE}/docs_rag/pages-{run.start:%Y%m%dT%H%M%S}.parquet",
            "count": new + changed + int(removed),
            "bytes": 1 + (new + changed) * 2204,
            "changes": changes,
        }
        preview = [
            {
                "url": f"https://docs.lakehouse.example/p/{number}",
                "title": f"Page {number} of docs.lakehouse.example",
                "statusCode": 200,
                "change": "changed",
            }
            for number in range(1, 6)
        ]
        xcoms = {
            "job_id": job_id,
            "credits": self._credits("crawl", pages, job_id),
            **published,
            "return_value": published,
            "preview": preview[: published["count"]],
            **_incomplete(("pages_failed", failed, pages + failed)),
        }
        origin = self._origin(run, "crawl_docs")
        self._job_events(run, "crawl", job_id, origin, span, pages=5, cost=pages, failed=min(failed, 2))
        run.add("crawl_docs", span.task_seconds, xcoms, deferred=True, started={"job_id": job_id})
        run.add("embed_chunks", 44)

    def _news_digest(self, run: Run, age: int) -> None:
        draw = self.random
        if age == 5:
            error: CodedError = TooManyFailuresError(
                "5 of 12 searches failed, more than max_error_ratio=0 allows. The first: 'rail construction news': "
                "search: the service responded with 503; the next attempt repeats only these"
            )
            failure = {"failure": self._failure(error), "credits": self._credits("batch_search", 14)}
            run.add("search_news", 66, failure, state="failed", attempts=2)
            run.stop("scrape_articles", "find_papers", "await_editor", "send_digest")
            return
        left = seeded.search_news.queries[8:] if age in (0, 3) else []
        done = 12 - len(left)
        searched = {
            "done": done,
            "failed": [],
            "left": list(left),
            "not_begun": len(left),
            "creditsUsed": done * 2,
            "path": f"{seeded.LAKE}/news_digest/results.jsonl.gz",
            "count": done * 9,
            "bytes": done * 9 * 190,
        }
        preview = [
            {
                "url": f"https://{feed}-daily.example/2026/story",
                "title": f"New {feed} works begin",
                "position": number,
                "source": "news",
            }
            for number, feed in enumerate(seeded.FEEDS[:5], 1)
        ]
        xcoms = {"credits": self._credits("batch_search", done * 2), **searched, "return_value": searched}
        lacks = _incomplete(("searches_not_started", len(left), 12))
        run.add("search_news", 9 + draw.random(), {**xcoms, "preview": preview, **lacks})
        for index, feed in enumerate(seeded.FEEDS):
            url = f"https://{feed}-daily.example/latest"
            scraped = {"scrapeId": self._id(), "creditsUsed": 1, "statusCode": 200, "warning": None}
            document = {
                "markdown": f"# {feed.capitalize()} today\n\nWorks on the {feed} programme continue.",
                "metadata": {
                    "title": f"{feed.capitalize()} today",
                    "sourceURL": url,
                    "url": url,
                    "statusCode": 200,
                },
            }
            pushed: dict[str, Any] = {**scraped, **document, "credits": self._credits("scrape", 1)}
            outcome = {"state": "success", "attempts": 1}
            if age == 0 and index == 2:
                error = ServerError("scrape", 500, "The upstream site did not respond")
                pushed, outcome = {"failure": self._failure(error)}, {"state": "failed", "attempts": 2}
            elif age == 0 and index == 4:
                # The worker was killed.
                pushed, outcome = {}, {"state": "failed", "attempts": 2}
            else:
                pushed["return_value"] = document
            run.add("scrape_articles", 2, pushed, index=index, parallel=index < 5, **outcome)  # type: ignore[arg-type]
        if age == 0:
            run.stop("find_papers", "await_editor", "send_digest")
            return
        papers = [
            {"url": f"https://papers.example/{number}", "title": f"Fatigue of welded joints, part {number}"}
            for number in range(1, 9)
        ]
        run.add("find_papers", 2, {"return_value": papers, "credits": self._credits("search", 2)})
        if age == 1:
            sensor: Any = DAGS[run.dag_id].get_task("await_editor")
            waits = timedelta(seconds=sensor.timeout)
            deadline = (run.at + timedelta(seconds=_QUEUED) + waits).timestamp()
            arguments = {"webdata_conn_id": self.conn_id, "key": "editor-approval", "deadline": deadline}
            run.add(
                "await_editor",
                state="deferred",
                trigger=("webhook.WebDataWebhookTrigger", {**arguments, "after": run.start.isoformat()}),
            )
            run.state = "running"
            return
        run.add(
            "await_editor", 1500 + 600 * draw.random(), {"return_value": {"event": "approved"}}, deferred=True
        )
        run.add("send_digest", 3)

    def _supplier_catalog_crawl(self, run: Run, age: int) -> None:
        draw = self.random
        self._map(run)
        if age == 0:
            self._await_job(run, "crawl_catalog", self.service.jobs["catalog"])
            return
        job_id = self._id()
        if age == 6:
            error: CodedError = JobFailedError(
                f"Crawl {job_id} failed: The site refuses the crawler (403 on every page)"
            )
            failure = {"failure": self._failure(error), "credits": self._credits("crawl", 3, job_id)}
            span = run.span(90, attempts=2)
            origin = self._origin(run, "crawl_catalog")
            self._job_events(run, "crawl", job_id, origin, span, pages=1, cost=3, outcome="failed")
            run.add(
                "crawl_catalog",
                span.task_seconds,
                failure,
                state="failed",
                deferred=True,
                attempts=2,
                started={"job_id": job_id},
            )
            run.stop("parse_price_list", "wait_for_export", "publish_catalog")
            return
        pages = 240 + draw.randint(-4, 12)
        self._crawl_catalog(run, job_id, pages, run.span(600))
        self._rest_of_catalog(run, self._id(), 40)

    def _crawl_catalog(
        self, run: Run, job_id: str, pages: int, span: Span, status: str = "completed"
    ) -> None:
        quality = {
            "items": pages,
            "pages": pages,
            "blocked": {},
            "coverage": {"markdown": 1.0, "url": 1.0},
            "credits_per_item": 1.0,
            "min_items": 200,
            "failed": [_condition("min_items", None, "at least 200", str(pages))] if pages < 200 else [],
            **_place(run),
        }
        published = {
            **self._job(span, job_id, pages, pages, status=status),
            "path": f"{seeded.LAKE}/supplier_catalog/pages.jsonl.gz",
            "count": pages,
            "bytes": pages * 733,
            "quality": quality,
        }
        xcoms = {
            "job_id": job_id,
            "credits": self._credits("crawl", pages, job_id),
            **published,
            "return_value": published,
            "preview": [
                {
                    "url": f"https://parts-supply.example/p/{number}",
                    "title": f"Page {number} of parts-supply.example",
                    "statusCode": 200,
                }
                for number in range(1, 6)
            ],
            **({"over_credit_limit": True} if status == "cancelled" else {}),
            **_incomplete(("over_credit_limit", int(status == "cancelled"), 1)),
        }
        origin = self._origin(run, "crawl_catalog")
        # No event reports a canceled crawl.
        outcome = status if status == "completed" else ""
        self._job_events(run, "crawl", job_id, origin, span, pages=6, cost=pages, outcome=outcome)
        run.add("crawl_catalog", span.task_seconds, xcoms, deferred=True, started={"job_id": job_id})

    def _rest_of_catalog(self, run: Run, export: str, pages: int) -> None:
        parsed = {"scrapeId": self._id(), "creditsUsed": 6, "statusCode": 200, "warning": None}
        document = {
            "markdown": "# Price list\n\n| Part | EUR |\n| --- | --- |\n| M8 bolt | 0.12 |",
            "metadata": {},
        }
        credits = self._credits("parse", 6)
        run.add("parse_price_list", 5, {"return_value": document, **document, **parsed, "credits": credits})
        span = run.span(280)
        result = {**self._job(span, export, pages, pages), "count": pages, "data": []}
        credits = self._credits("crawl", pages, export)
        run.add(
            "wait_for_export",
            300,
            {"return_value": result, **result, "credits": credits},
            rendered={"job_id": export},
        )
        run.add("publish_catalog", 2)

    def _map(self, run: Run) -> None:
        links = [
            {"url": f"https://parts-supply.example/p/{number}", "title": f"Part {number}"}
            for number in range(1, 26)
        ]
        mapped = {"id": self._id(), "warning": None, "links": links}
        run.add("map_catalog", 4, {"return_value": mapped, **mapped, "credits": self._credits("map", 1)})

    def _await_job(self, run: Run, task_id: str, job: Job) -> None:
        span = run.span(0, job)
        operator: Any = DAGS[run.dag_id].get_task(task_id)
        arguments = {
            "webdata_conn_id": self.conn_id,
            "kind": job.kind,
            "job_id": job.id,
            "poll_interval": 30.0,
            "reports": True,
            "cancel_on_kill": True,
            "deadline": (span.start + operator.wait_timeout).timestamp(),
        }
        self._event(span.start, f"{job.kind}.started", job.id, self._origin(run, task_id))
        run.add(
            task_id,
            state="deferred",
            started={"job_id": job.id},
            trigger=("job.WebDataJobTrigger", arguments),
        )
        run.state = "running"

    def _company_research(self, run: Run, age: int) -> None:
        draw = self.random
        job = self.service.jobs["profile"] if age == 0 else None
        job_id = job.id if job else self._id()
        span = run.span(40 + draw.random(), job)
        invalid = int(age in (0, 4))
        cost = job.credits if job else 9
        problem = {
            "index": 0,
            "url": None,
            "errors": ["founded: expected integer, got null"],
        }
        published = {
            "id": job_id,
            "status": "completed",
            "creditsUsed": cost,
            "path": f"{seeded.LAKE}/company_research/profiles.csv",
            "count": 1,
            "bytes": 61,
            "validation": {"checked": 1, "invalid": invalid, "items": [problem] * invalid},
        }
        xcoms = {
            "job_id": job_id,
            "credits": self._credits("agent", cost, job_id),
            **published,
            "return_value": published,
            "preview": [{"name": "Kettle World", "founded": None if invalid else 1987}],
        }
        origin = self._origin(run, "extract_profile")
        self._job_events(run, "agent", job_id, origin, span, pages=0, cost=cost)
        run.add("extract_profile", span.task_seconds, xcoms, deferred=True, started={"job_id": job_id})
        self._research_agent(run, age)
        steps = [{"stdout": "", "exitCode": 0}, {"stdout": "", "stderr": "", "exitCode": 0}]
        session = {"sessionId": self._id(), "steps": steps, "creditsBilled": 4, "sessionDurationMs": 41_233}
        credits = self._credits("interact", 4)
        if age == 0:
            steps[1] |= {"stderr": "Error: page.fill: Timeout 30000ms exceeded.", "exitCode": 1}
            error: CodedError = StepFailedError("step 2 of 2 (search) failed: the code exited with status 1")
            pushed = {**session, "credits": credits, "failure": self._failure(error)}
            run.add("read_register", 42, pushed, state="failed", parallel=True)
            error = ServerError("scrape", 500, "The service has an internal error")
            run.add("scrape_press", 12, {"failure": self._failure(error)}, state="up_for_retry")
            run.state = "running"
            return
        run.add("read_register", 41, {"return_value": session, **session, "credits": credits}, parallel=True)
        document = {"markdown": "# Press\n\nNo news.", "metadata": {"title": "Press", "statusCode": 200}}
        credits = self._credits("scrape", 1)
        run.add(
            "scrape_press", 3, {"return_value": document, **document, "creditsUsed": 1, "credits": credits}
        )
        if age == 2:
            run.stop("update_crm")
        else:
            run.add("update_crm", 2)

    def _research_agent(self, run: Run, age: int) -> None:
        draw = self.random
        job = self.service.jobs["agent"] if age == 0 else None
        job_id = job.id if job else self._id()
        span = run.span(60 if age == 2 else 80 + 40 * draw.random(), job)
        origin = self._origin(run, "research_agent")
        more: dict[str, Any] = {"deferred": True, "started": {"job_id": job_id}, "parallel": True}
        if age in (0, 2):
            error: CodedError = JobFailedError(f"Agent run {job_id} failed: {JOB_ERRORS['fail_agent']}")
            pushed: dict[str, Any] = {"credits": self._credits("agent", 0, job_id)}
            if age == 2:
                error = AgentLimitError(f"Agent run {job_id} failed: It stopped at its limit of 200 credits")
                pushed = {
                    "credits": self._credits("agent", 200, job_id),
                    "partial": {"leader": "Ada Kettle", "since": None},
                }
            pushed["failure"] = self._failure(error)
            used = pushed["credits"]["used"]
            self._job_events(run, "agent", job_id, origin, span, pages=0, cost=used, outcome="failed")
            run.add("research_agent", span.task_seconds, pushed, state="failed", **more)
            return
        cost = draw.randint(60, 160)
        answer = {
            "id": job_id,
            "status": "completed",
            "creditsUsed": cost,
            "model": "spark-1-pro",
            "data": {"leader": "Ada Kettle", "since": "2019"},
            "count": 1,
        }
        xcoms = {
            "job_id": job_id,
            "credits": self._credits("agent", cost, job_id),
            **answer,
            "return_value": answer,
        }
        self._job_events(run, "agent", job_id, origin, span, pages=0, cost=cost)
        run.add("research_agent", span.task_seconds, xcoms, **more)

    def _manual(self) -> None:
        """Add the runs that someone started by hand in the last day."""
        jobs = self.service.jobs
        run = Run(self, "supplier_catalog_crawl", self._ago(hours=22, seconds=6), is_manual=True)
        self._map(run)
        cancelled = jobs["cancelled"]
        span = run.span(0, cancelled)
        self._crawl_catalog(run, cancelled.id, cancelled.pages, span, status="cancelled")
        self._rest_of_catalog(run, self._id(), 12)
        run = Run(self, "docs_rag_refresh", self._ago(hours=2, minutes=1), is_manual=True)
        monitor_id = self.service.monitors["Lakehouse docs"]
        run.add("declare_monitor", 1, {"return_value": {"id": monitor_id}, "monitor_id": monitor_id})
        # A check may have ended since then.
        check = [one for one in self.service.checks["Lakehouse docs"] if one.at < run.start.timestamp()][-1]
        found = {"id": check.id, "monitorId": monitor_id, "status": check.status, "summary": check.summary}
        run.add("wait_for_check", 3, {"return_value": found}, rendered={"monitor_id": monitor_id})
        job_id = jobs["lost"].id
        span = run.span(0, jobs["lost"])
        failure = self._failure(JobFailedError(f"Crawl {job_id} failed: {JOB_ERRORS['fail_crawl']}"))
        origin = self._origin(run, "crawl_docs")
        self._job_events(run, "crawl", job_id, origin, span, pages=0, cost=0, outcome="failed")
        pushed = {"failure": failure, "credits": self._credits("crawl", 0, job_id)}
        run.add(
            "crawl_docs", span.task_seconds, pushed, state="failed", deferred=True, started={"job_id": job_id}
        )
        run.stop("embed_chunks")
        for minutes in (95, 70):
            self._limited_crawl(Run(self, "docs_rag_refresh", self._ago(minutes=minutes), is_manual=True))
        run = Run(self, "supplier_catalog_crawl", self._ago(minutes=26), is_manual=True)
        self._map(run)
        self._crawl_catalog(run, self._id(), 214, run.span(600))
        run.add("parse_price_list", 4, {"credits": self._credits("parse", 6)}, parallel=True)
        run.at = self._ago(minutes=14)
        run.add("wait_for_export", state="running", rendered={"job_id": jobs["export"].id})
        run.state = "running"

    def _limited_crawl(self, run: Run) -> None:
        """Add the tasks of a run whose site limits the rate of requests."""
        monitor_id = self.service.monitors["Lakehouse docs"]
        run.add("declare_monitor", 1, {"return_value": {"id": monitor_id}, "monitor_id": monitor_id})
        run.add("wait_for_check", state="skipped")
        job_id, span, pages, failed = self._id(), run.span(120), 36, 5
        excess = too_many(failed, pages, 0, 0.1)
        assert excess is not None
        reasons = [
            {"url": f"https://{DOCS}/p/{number}", "error": "Too many requests", "code": None, "status": 429}
            for number in range(1, failed + 1)
        ]
        first = f"{reasons[0]['url']}: HTTP 429: Too many requests"
        text = f"{excess.text}: {first}. The result is published anyway, and is in XCom"
        error = TooManyFailuresError(text, reasons, ratio=excess.ratio)
        origin = self._origin(run, "crawl_docs")
        self._job_events(run, "crawl", job_id, origin, span, pages=5, cost=pages, failed=2)
        published = self._job(span, job_id, pages, pages)
        pushed = {
            **published,
            "return_value": published,
            "failure": self._failure(error),
            "credits": self._credits("crawl", pages, job_id),
        }
        run.add(
            "crawl_docs", span.task_seconds, pushed, state="failed", deferred=True, started={"job_id": job_id}
        )
        run.stop("embed_chunks")

    def _monitors(self) -> None:
        """Add the deliveries of the monitors' checks."""
        for name, checks in self.service.checks.items():
            monitor_id = self.service.monitors[name]
            for check in checks:
                at = datetime.fromtimestamp(check.at, timezone.utc)
                if self.now - at > _RECENT:
                    continue
                names = {"monitorId": monitor_id, "checkId": check.id}
                for number, (url, status) in enumerate(check.pages):
                    data: dict[str, Any] = {**names, "status": status, "url": url}
                    if status == "error":
                        data["error"] = "SCRAPE_DNS_RESOLUTION_ERROR"
                    elif status == "changed":
                        data["isMeaningful"] = number == 0
                    is_read = status != "error"
                    self._event(at, "monitor.page", check.id, {"monitor": name}, data=data, success=is_read)
                data = {**names, "status": check.status, "summary": check.summary}
                done = check.status == "completed"
                self._event(
                    at, "monitor.check.completed", check.id, {"monitor": name}, data=data, success=done
                )

    # Parts.

    def _ago(self, **span: float) -> datetime:
        return (self.now - timedelta(**span)).replace(microsecond=0)

    def _id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def _credits(self, operation: str, used: float, job_id: str | None = None) -> dict[str, Any]:
        kinds = {"crawl": "page", "batch_scrape": "page", "scrape": "page", "parse": "page"}
        by_format = {kinds[operation]: used} if operation in kinds else {}
        found = {
            "used": used,
            "saved": 0,
            "unknown": 0,
            "by_operation": {operation: used} if used else {},
            "by_format": by_format if used else {},
            "by_connection": {self.conn_id: used},
        }
        return {**found, "jobs": {f"{operation}/{job_id}": used}} if used and job_id else found

    def _failure(self, error: CodedError) -> dict[str, Any]:
        error.advice = advice_for(error.help_code, REMEDIES.get(error.help_code, ""), self.conn_id)
        return failure_report(error, None)

    def _job(
        self,
        span: Span,
        job_id: str,
        pages: int,
        cost: float,
        status: str = "completed",
        failed: Sequence[dict[str, Any]] = (),
    ) -> dict[str, Any]:
        return {
            "id": job_id,
            "status": status,
            "total": pages,
            "completed": pages,
            "creditsUsed": cost,
            "createdAt": _iso(span.start),
            "completedAt": _iso(span.end),
            "expiresAt": _iso(span.end + timedelta(days=1)),
            "errors": {"count": len(failed), "robotsBlocked": 0, "pages": list(failed)},
        }

    def _origin(self, run: Run, task_id: str) -> dict[str, str]:
        return {"dag_id": run.dag_id, "run_id": run.run_id, "task_id": task_id, "map_index": "-1"}

    def _job_events(
        self,
        run: Run,
        kind: str,
        job_id: str,
        origin: dict[str, str],
        span: Span,
        *,
        pages: int,
        cost: float,
        failed: int = 0,
        outcome: str = "completed",
    ) -> None:
        if run.is_old:
            return
        self._event(span.start, f"{kind}.started", job_id, origin)
        for number in range(1, pages + 1):
            at = span.start + (span.end - span.start) * number / (pages + 1)
            url = f"https://{_SITES[run.dag_id]}/p/{number}"
            self._event(at, f"{kind}.page", job_id, origin, page=url, success=number > failed)
        if outcome:
            data, is_done = {"creditsUsed": cost}, outcome == "completed"
            self._event(span.end, f"{kind}.{outcome}", job_id, origin, data=data, success=is_done)

    def _event(
        self,
        at: datetime,
        event: str,
        job_id: str,
        metadata: dict[str, str],
        *,
        page: str | None = None,
        data: dict[str, Any] | None = None,
        success: bool = True,
    ) -> None:
        if page is not None:
            title = f"Part {page.rpartition('/')[2]}"
            found = {
                "title": title,
                "sourceURL": page,
                "url": page,
                "statusCode": 200 if success else 500,
            }
            data = {"markdown": f"# {title}", "metadata": found}
        body = {
            "success": success,
            "type": event,
            "id": job_id,
            "webhookId": self._id(),
            "data": [] if data is None else [data],
            "metadata": metadata,
            **({} if success else {"error": "The page could not be scraped (SCRAPE_SITE_ERROR)."}),
        }
        key = uuid.uuid5(uuid.NAMESPACE_URL, metadata.get("monitor", job_id)).hex
        self.deliveries.append(NewDelivery.from_body(self.conn_id, key, json.dumps(body).encode(), at))

    def _sum(self) -> None:
        """Sum the credits by DAG and day, each job once."""
        jobs: set[str] = set()
        known = {job.id for job in self.service.jobs.values()}
        known |= {check.id for checks in self.service.checks.values() for check in checks}
        pushed = [
            (at, task, value) for task in self.tasks for key, value, at in task.pushed if key == "credits"
        ]
        for at, task, value in sorted(pushed, key=lambda one: one[0]):
            if jobs.issuperset(value.get("jobs", {"": 0})):
                continue
            jobs |= value.get("jobs", {}).keys()
            by_day = self.seeded.credits.setdefault(task.run.dag_id, {})
            by_day[at.date()] = by_day.get(at.date(), 0) + value["used"]
            if not known & {job.partition("/")[2] for job in value.get("jobs", {})}:
                self._elsewhere.append((at, value["used"]))
        self.seeded.elsewhere = sum(used for _, used in self._elsewhere)

    def _count_down(self) -> None:
        """Let the tasks that read the balance see what the team had left."""
        spent = [
            *self._elsewhere,
            *((_utc(job.started), job.credits) for job in self.service.jobs.values()),
            *((_utc(check.at), check.credits) for checks in self.service.checks.values() for check in checks),
        ]
        for task in self.tasks:
            for key, value, at in task.pushed:
                if key == "return_value" and "remainingCredits" in value:
                    value["remainingCredits"] = PLAN - sum(used for when, used in spent if when < at)
        for task in self.tasks:
            found = {key: value for key, value, _ in task.pushed}
            if "remainingCredits" in found:
                left = found["return_value"]["remainingCredits"]
                task.pushed[:] = [
                    (key, left if key == "remainingCredits" else value, at) for key, value, at in task.pushed
                ]


def _rendered(task: Any, index: int) -> tuple[dict[str, Any], str | None]:
    """Return the rendered fields of a task, and the label of a mapped one."""
    if task.is_mapped:
        mapped = {name: values[index] for name, values in task.expand_input.value.items()}
        given = {**task.partial_kwargs, **mapped}
        names, label = task.template_fields, str(next(iter(mapped.values())))
        conn_id = given.get("webdata_conn_id", "webdata_default")
        given = {"webdata_conn_id": conn_id, **{name: given.get(name) for name in names if name in given}}
        return {name: _plain(value) for name, value in given.items()}, label
    return {name: _plain(getattr(task, name, None)) for name in task.template_fields}, None


def _plain(value: Any) -> Any:
    is_plain = value is None or isinstance(value, (str, int, float, list, dict))
    return value if is_plain else str(value)


def _incomplete(*lacking: tuple[str, int, int]) -> dict[str, Any]:
    """Return the XCom of what the results lack; empty if they lack nothing."""
    lacks = [{"kind": kind, "number": number, "of": of} for kind, number, of in lacking if number]
    return {"incomplete": lacks} if lacks else {}


def _condition(condition: str, of: str | None, expected: str, actual: str) -> dict[str, Any]:
    return {"condition": condition, "field": of, "expected": expected, "actual": actual, "passed": False}


def _place(run: Run) -> dict[str, Any]:
    return {"until": _iso(run.start), "map_index": -1, "has_logical_date": True}


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _utc(timestamp: float) -> datetime:
    return datetime.fromtimestamp(timestamp, timezone.utc)
