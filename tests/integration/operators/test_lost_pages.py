# SPDX-License-Identifier: Apache-2.0
"""Pages of a job that the server lost: what `incomplete` reports, what fails, and what is no loss."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support import direct
from tests.support.job_service import JobService

URL = "https://example.com/"
A, B, C, D = (f"{URL}{name}" for name in "abcd")
UNKNOWN = (404, {"success": False, "error": "Job not found."})


def page(url: str) -> dict[str, Any]:
    return {"markdown": url, "metadata": {"sourceURL": url, "statusCode": 200}}


def failed(*urls: str) -> tuple[int, Any]:
    errors = [{"id": "1", "url": url, "error": "timed out", "code": "SCRAPE_TIMEOUT"} for url in urls]
    return 200, {"errors": errors, "robotsBlocked": []}


class Loss(NamedTuple):
    """The counts of a job while it runs and at its end, when it returns page A, and what its result lacks.

    :param errors: status and body of the list of failed pages.
    """

    runs: tuple[int, int]
    ends: tuple[int, int]
    errors: tuple[int, Any]
    lacks: list[tuple[str, int, int]]
    limit: int = 100


LOSSES = {
    "the total shrinks, and the list is unknown": Loss((1, 4), (1, 1), UNKNOWN, [("pages_lost", 3, 4)]),
    "completed pages vanish": Loss((3, 4), (1, 1), failed(), [("pages_lost", 2, 3)]),
    "completed pages vanish, another failed": Loss(
        (4, 4), (1, 1), failed(B), [("pages_lost", 2, 3), ("pages_failed", 1, 2)]
    ),
    "no poll saw more, and the list is unknown": Loss((0, 0), (1, 1), UNKNOWN, [("failures_unknown", 1, 1)]),
    "counted at the end": Loss((0, 0), (4, 4), failed(), [("pages_missing", 3, 4)]),
    "the total shrinks by failures": Loss((1, 3), (1, 1), failed(B, C), [("pages_failed", 2, 3)]),
    "the total shrinks by duplicates": Loss((1, 3), (1, 1), failed(), []),
    "failures are completed until the end": Loss((3, 3), (1, 1), failed(B, C), [("pages_failed", 2, 3)]),
    "more pages are found than the limit": Loss((0, 500), (1, 1), UNKNOWN, [("failures_unknown", 1, 1)], 1),
    "failures are completed until the end, and no list": Loss(
        (3, 3), (1, 1), (501, {"error": "not implemented"}), []
    ),
    "the server has no list": Loss((1, 3), (1, 1), (501, {"error": "not implemented"}), []),
    "another server without it": Loss((1, 3), (1, 1), (404, {"detail": "Not Found"}), []),
    "the total grows": Loss((0, 1), (1, 1), failed(), []),
}


@pytest.fixture
def service(connect: Callable[..., None]) -> Iterator[JobService]:
    made = JobService()
    made.ends_after = 1
    connect(made, retry_budget=0)
    yield made
    made.stop()


def plays(service: JobService, loss: Loss, pages: tuple[str, ...] = (A,)) -> None:
    counts = [dict(zip(("completed", "total"), one, strict=True)) for one in (loss.runs, loss.ends)]
    service.runs_as = counts[0]
    service.ends_as = {"status": "completed", "creditsUsed": 1, **counts[1], "data": [*map(page, pages)]}
    service.errors_status, service.errors = loss.errors
    service.set("crawl", "j", "scraping", **service.runs_as)


def waits(way: str, loss: Loss, **more: Any) -> Any:
    """Return a task that waits for the job in a worker, in the triggerer, or as a sensor in either."""
    if way.startswith("sensor"):
        is_deferred = way == "sensor, deferred"
        return WebDataJobSensor(
            task_id="t", kind="crawl", job_id="j", poke_interval=1, deferrable=is_deferred, retries=2, **more
        )
    return WebDataCrawlOperator(
        task_id="t",
        url=URL,
        limit=loss.limit,
        poll_interval=1,
        deferrable=way == "deferred",
        retries=2,
        **more,
    )


def lacks(done: direct.Outcome) -> list[tuple[str, int, int]]:
    return [(one["kind"], one["number"], one["of"]) for one in done.xcom.get("incomplete", [])]


WAYS = [
    *(("worker", name) for name in LOSSES),
    *((way, "completed pages vanish") for way in ("deferred", "sensor", "sensor, deferred")),
    # A sensor does not know the limit.
    ("sensor", "more pages are found than the limit"),
]


@pytest.mark.rule("job-lost-pages", "job-counts")
@pytest.mark.parametrize(("way", "name"), WAYS)
@pytest.mark.says("XCom `missing_pages` is the number")
def test_lost_pages_of_a_crawl_are_reported(service: JobService, log: Any, name: str, way: str) -> None:
    loss = LOSSES[name]
    plays(service, loss)
    done = direct.run(waits(way, loss))
    assert done.state == "success", done.error
    assert sorted(lacks(done)) == sorted(loss.lacks)
    lost = [number for kind, number, _ in loss.lacks if kind in ("pages_lost", "pages_missing")]
    assert done.xcom.get("missing_pages") == done.value.get("missing_pages") == (lost[0] if lost else None)
    assert ("The server lost" in log()) is any(kind == "pages_lost" for kind, *_ in loss.lacks)


@pytest.mark.parametrize("way", ["worker", "deferred"])
@pytest.mark.parametrize(("ratio", "state"), [(0.7, "failed"), (0.8, "success"), (None, "success")])
def test_lost_pages_count_as_failed(service: JobService, way: str, ratio: Any, state: str) -> None:
    plays(service, LOSSES["the total shrinks, and the list is unknown"])
    more = {} if ratio is None else {"max_error_ratio": ratio}
    done = direct.run(waits(way, LOSSES["the total grows"], **more))
    assert done.ended == (state, 1), done.error
    if state == "failed":
        said = " ".join(str(done.error).split())
        assert "3 of 4 pages failed, more than max_error_ratio=0.7 allows: 3 pages lost by the server" in said
        assert "(WD-033)" in said
        assert done.xcom["return_value"]["missing_pages"] == 3


def test_a_crawl_of_which_each_page_was_lost_fails(service: JobService) -> None:
    loss = Loss((3, 3), (0, 0), UNKNOWN, [])
    plays(service, loss, ())
    done = direct.run(waits("worker", loss))
    assert done.ended == ("failed", 1)
    assert "3 pages lost by the server" in str(done.error)


def test_a_job_that_ends_at_the_last_moment_has_the_counts_of_the_wait(service: JobService) -> None:
    loss = LOSSES["completed pages vanish"]
    plays(service, loss)
    service.ends_after, service.ends_at_cancel = None, True
    done = direct.run(waits("worker", loss, wait_timeout=2))
    assert (done.state, lacks(done)) == ("success", loss.lacks), done.error


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_batch_names_the_pages_that_the_server_lost(
    service: JobService, log: Any, deferrable: bool
) -> None:
    """Its request is known, so that no poll has to show them."""
    plays(service, Loss((0, 0), (1, 1), UNKNOWN, []))
    task = WebDataBatchScrapeOperator(
        task_id="t", urls=[A, B, C], poll_interval=1, deferrable=deferrable, max_error_ratio=0.5, retries=2
    )
    done = direct.run(task)
    assert done.ended == ("failed", 1)
    assert lacks(done) == [("pages_lost", 2, 3)]
    assert f"{B} (lost by the server); {C} (lost by the server)" in " ".join(str(done.error).split())
    assert [one["url"] for one in done.xcom["failure"]["reasons"]] == [B, C]
    assert f"They are these: {B}; {C}" in log()


@pytest.mark.parametrize("pages", [(A, B, C), (A,)], ids=["whole", "lost"])
def test_a_batch_that_is_whole_lacks_nothing(service: JobService, pages: tuple[str, ...]) -> None:
    plays(service, Loss((0, 3), (len(pages), len(pages)), UNKNOWN, []), pages)
    task = WebDataBatchScrapeOperator(task_id="t", urls=[A, B, C], poll_interval=1, deferrable=False)
    assert lacks(direct.run(task)) == ([] if len(pages) == 3 else [("pages_lost", 2, 3)])


@pytest.mark.parametrize(
    "name", ["the total shrinks, and the list is unknown", "no poll saw more, and the list is unknown"]
)
def test_a_table_is_not_replaced_with_what_a_server_has_left(
    service: JobService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DB", json.dumps({"conn_type": "sqlite", "host": f"{tmp_path}/t.db"}))

    def night(loss: Loss, *pages: str) -> direct.Outcome:
        plays(service, loss, pages)
        task = waits("deferred", loss, save_to=f"{tmp_path}/pages.jsonl")
        done = direct.run(task)
        assert done.state == "success", done.error
        given = {**done.value, "incomplete": done.xcom.get("incomplete")}
        load = WebDataToTableOperator(
            task_id="load",
            path=given,
            conn_id="db",
            table="pages",
            mode="replace",
            create_table=True,
            retries=2,
        )
        return direct.run(load)

    whole = Loss((4, 4), (4, 4), failed(), [])
    assert night(whole, A, B, C, D).value["loaded"] == 4
    refused = night(LOSSES[name], A)
    assert refused.ended == ("failed", 1)
    assert "mode='replace' would delete rows" in str(refused.error)
    assert "he server " in str(refused.error)


def test_lost_pages_are_not_removed(service: JobService, tmp_path: Path) -> None:
    changes = Changes(f"{tmp_path}/seen", removed_after=timedelta(0))
    days = (datetime(2026, 1, number, tzinfo=timezone.utc) for number in range(1, 9))

    def night(loss: Loss, *pages: str) -> Any:
        plays(service, loss, pages)
        return direct.run(waits("worker", loss, changes=changes), day=next(days)).xcom["changes"]["removed"]

    night(Loss((2, 2), (2, 2), failed(), []), A, B)
    lost = LOSSES["completed pages vanish"]
    assert [night(lost, A) for _ in range(3)] == [0, 0, 0]
    whole = Loss((1, 1), (1, 1), failed(), [])
    assert [night(whole, A) for _ in range(2)] == [0, 1]
