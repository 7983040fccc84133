# SPDX-License-Identifier: Apache-2.0
"""Results that are checked before they are published: each check, and where rejected results go."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.observability.stats import Stats

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Changes, Quality
from airflow_provider_webdata.runs.publishing.step import Results
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from tests.support.direct import TaskInstance, context_of
from tests.support.service import connection_text
from tests.support.tables import each_row

DAY = datetime(2026, 1, 2, tzinfo=timezone.utc)


def page(
    number: int, price: Any = 2, markdown: str = "A kettle of steel, 1.7 l.", **metadata: Any
) -> dict[str, Any]:
    url = f"https://{'ab'[number % 2]}.example/{number}"
    return {
        "markdown": markdown,
        "json": {"price": price},
        "metadata": {"title": "Kettle", "sourceURL": url, "statusCode": 200, **metadata},
    }


PAGES = [page(number) for number in range(10)]
CRAWL: dict[str, Any] = {"task_id": "crawl", "url": "https://a.example/"}


def context(ti: TaskInstance, day: datetime = DAY) -> Any:
    dag_run = SimpleNamespace(
        run_after=day, data_interval_start=day, data_interval_end=day, logical_date=day, partition_key=None
    )
    return context_of(ti, dag_run=dag_run)


DATA = [{"type": "json", "prompt": "the color"}]


def delivered(
    items: list[Any], *, day: datetime = DAY, earlier: Any = None, known: int = 0, **arguments: Any
) -> tuple[Any, dict[str, Any], Any]:
    """Deliver results, and return the task's XCom or its error, what was pushed, and the run."""
    task = WebDataCrawlOperator(**CRAWL, **arguments)
    ti = TaskInstance(run_id=str(day), task=task, earlier={} if earlier is None else {"quality": earlier})
    values = context(ti, day)
    task.render_template_fields(values)
    run = task._new_run(values)
    run.prepare_publication()
    result: Any = run.publish(Results(iter(items), "document", {"creditsUsed": 5}, known=known))
    try:
        result = run.finished(result)
    except AirflowFailException as error:
        result = error
    return result, ti.xcom, run


BEFORE = {"items": 20, "until": "2026-01-01T00:00:00+00:00", "map_index": -1, "has_logical_date": True}
CHECKS: list[tuple[Quality, list[Any], str]] = [
    (Quality(), [], "min_items: expected at least 1, got 0"),
    (Quality(min_items=11), PAGES, "min_items: expected at least 11, got 10"),
    (Quality(drop_vs_last=0.45), PAGES, "drop_vs_last: expected at least 11, because the previous run had 20, got 10"),
    (
        Quality(coverage={"json.price": 0.95}),
        [*PAGES, page(11, " "), page(12, []), {"metadata": {}}],
        "coverage json.price: expected at least 0.95, got 0.7692 (10 of 13)",
    ),
    (
        Quality(coverage={"url": 1.0, "json.price": 0.95}),
        [*PAGES[1:], page(0, statusCode=404)],
        "1 of 3 conditions failed: coverage json.price: expected at least 0.95, got 0.9 (9 of 10)",
    ),
    (
        Quality(coverage={"json.colour": 0.5}, min_items=11),
        PAGES,
        "2 of 2 conditions failed: min_items: expected at least 11, got 10; "
        "coverage json.colour: expected at least 0.5, got 0 (0 of 10)",
    ),
    (
        Quality(blocked=0.05),
        [*PAGES, page(11, markdown="Verifying you are human.")],
        "blocked: expected at most 0.05, got 0.09091 (1 of 11), such as https://b.example/11",
    ),
]  # fmt: skip


def test_each_failed_check_is_an_error_before_the_command_and_the_rest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "found.jsonl"
    delivered(PAGES, quality=Quality(min_items=11, coverage={"json.colour": 0.5}), save_to=str(path))
    told = [(record.levelname, " ".join(record.getMessage().split()[:2])) for record in caplog.records]
    assert told[:2] == [("ERROR", "Condition min_items"), ("ERROR", "Condition coverage")]
    assert [level for level, _ in told].count("ERROR") == 3


@each_row("quality, items, message", CHECKS)
def test_a_check_that_fails(tmp_path: Path, quality: Quality, items: list[Any], message: str) -> None:
    path = tmp_path / "with space" / "found.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("old")
    error, xcom, run = delivered(items, quality=quality, save_to=str(path), earlier=BEFORE)
    assert message in str(error)
    rejected = path.with_name("_found.jsonl.rejected")
    text = " ".join(str(error).split())
    assert f"{path} is unchanged, and the results are in {rejected}" in text
    assert f"move that file to {path}, mark the task as success, and clear the tasks downstream" in text
    assert "To request them again, clear the task, which is billed" in text
    assert path.read_text() == "old"
    assert run.publication.path == str(path)
    assert [json.loads(line) for line in rejected.read_text().splitlines()] == items
    assert xcom["return_value"]["count"] == xcom["quality_rejected"]["items"] == len(items)
    assert len(xcom["quality_rejected"]["failed"]) == str(error).count(": expected")
    assert "quality" not in xcom
    # A task downstream reads `output["path"]`.
    assert xcom["path"] == str(path)

    result, xcom, _ = delivered(
        items, quality=Quality(**{**as_dict(quality), "on_fail": "warn"}), earlier=BEFORE
    )
    assert result["data"] == items
    assert message.endswith(f"got {xcom['quality']['failed'][-1]['actual']}")


def test_a_share_is_met_exactly() -> None:
    """0.1 * 30 is more than 3 in binary."""
    items = [page(number, 1 if number < 3 else None) for number in range(30)]
    blocked = [{**item, "markdown": "Loading..."} for item in items[:3]]
    quality = Quality(coverage={"json.price": 0.1}, blocked=0.1)
    assert delivered([*blocked, *items[3:]], quality=quality)[1]["quality"]["failed"] == []


def as_dict(quality: Quality) -> dict[str, Any]:
    return {name: getattr(quality, name) for name in quality.__struct_fields__}


PASS = Quality(
    min_items=3,
    drop_vs_last=0.5,
    coverage={"json.price": 1.0, "url": 1},
    blocked=0,
)


def test_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gauges: dict[str, Any] = {}
    monkeypatch.setattr(
        Stats, "gauge", lambda name, number, tags: gauges.update({name: (number, tags.get("field"))})
    )
    path = tmp_path / "found.jsonl"
    result, xcom, run = delivered(PAGES, quality=PASS, save_to=str(path), earlier=BEFORE)
    assert xcom["quality"] == result["quality"] == {
        "items": 10,
        "pages": 10,
        "blocked": {},
        "coverage": {"json.price": 1.0, "url": 1.0, "markdown": 1.0, "json": 1.0, "metadata": 1.0},
        "credits_per_item": 0.5,
        "min_items": 10,
        "failed": [],
        "until": "2026-01-02T00:00:00+00:00",
        "map_index": -1,
        "has_logical_date": True,
    }  # fmt: skip
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["found.jsonl"]
    assert len(path.read_text().splitlines()) == 10
    assert gauges == {
        "webdata.quality.items": (10, None),
        "webdata.quality.blocked": (0, None),
        "webdata.quality.coverage": (1.0, "url"),
        "webdata.quality.credits_per_item": (0.5, None),
    }
    lineage = run.task.get_openlineage_facets_on_complete(None)
    (checked,) = lineage.inputs
    metrics, assertions = (checked.inputFacets[f"dataQuality{name}"] for name in ("Metrics", "Assertions"))
    assert (checked.name, metrics.rowCount) == (str(path), 10)
    assert metrics.columnMetrics["json.price"].nullCount == 0
    assert {
        (assertion.assertion, assertion.column, assertion.success) for assertion in assertions.assertions
    } >= {
        ("min_items", None, True),
        ("coverage", "json.price", True),
        ("blocked", None, True),
    }


def test_without_checks_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_webdata.runs.publishing.quality.substitute_kind", None)
    assert delivered(PAGES)[0]["data"] == PAGES
    assert not {"quality", "quality_rejected"} & delivered(PAGES)[1].keys()


def test_rejected_results_without_an_output_are_in_the_xcom_of_the_failed_task() -> None:
    error, xcom, _ = delivered(PAGES, quality=11)
    assert "The results are in XCom; to accept them anyway, mark the task as success" in str(error)
    assert xcom["return_value"]["data"] == PAGES


def test_the_state_knows_how_many_results_were_published_last(tmp_path: Path) -> None:
    """In the order of runs, not of their dates; rejected results do not count."""
    options: dict[str, Any] = {
        "changes": str(tmp_path / "seen"),
        "quality": Quality(drop_vs_last=0.3),
        "save_to": str(tmp_path / "*.jsonl"),
    }

    def of_day(number: int, items: list[Any], known: int = 0) -> Any:
        # The number in XCom counts only before the first state.
        earlier = {**BEFORE, "items": 5 if number == 1 else 99}
        return delivered(items, day=DAY + timedelta(number), earlier=earlier, known=known, **options)[0]

    assert "because the previous run had 5, got 3" in str(of_day(1, PAGES[:3]))
    assert of_day(1, PAGES[:4])["count"] == 4
    assert of_day(5, PAGES)["count"] == 6
    assert "because the previous run had 10, got 5" in str(of_day(3, PAGES[:5]))
    assert "because the previous run had 10, got 6" in str(of_day(6, PAGES[:6]))
    # Pages that an incremental crawl knows and did not read count too.
    fresh = [page(0, markdown="A kettle of copper, 1.7 l.")]
    assert of_day(7, fresh, known=8)["quality"]["items"] == 9


def test_runs_with_the_same_output_keep_their_own_results(tmp_path: Path) -> None:
    """One is rejected while another is judged."""
    output = str(tmp_path / "found.jsonl")
    rejected: list[Any] = []

    class Meanwhile(TaskInstance):
        def xcom_pull(self, *args: Any, **options: Any) -> Any:
            rejected.append(delivered(PAGES[:1], quality=9, save_to=output)[0])
            return super().xcom_pull(*args, **options)

    ti = Meanwhile(earlier={"quality": [BEFORE, {**BEFORE, "until": "2025-12-31T00:00:00+00:00"}]})
    run = WebDataCrawlOperator(**CRAWL, quality=Quality(drop_vs_last=0.5), save_to=output)._new_run(
        context(ti)
    )
    run.finished(run.publish(Results(iter(PAGES), "document", {})))
    # Once: the XComs of all runs are not read where the newest is enough.
    assert [type(error) for error in rejected] == [AirflowFailException]
    assert len((tmp_path / "found.jsonl").read_text().splitlines()) == 10
    assert len((tmp_path / "_found.jsonl.rejected").read_text().splitlines()) == 1


def test_a_name_that_is_too_long_for_rejected_results_is_refused_before_it_bills(tmp_path: Path) -> None:
    path = str(tmp_path / f"{'x' * 245}.jsonl")
    run = WebDataCrawlOperator(**CRAWL, quality=1, save_to=path)._new_run(context(TaskInstance()))
    with pytest.raises(AirflowFailException, match="File name too long"):
        run.prepare_publication()


def test_checks_are_the_first_reason_for_a_failure(tmp_path: Path) -> None:
    """Not the schema, nor a run without changes."""
    schema = {"type": "object", "required": ["colour"]}
    error, xcom, _ = delivered(
        PAGES,
        quality=11,
        result_schema=schema,
        on_invalid_result="fail",
        scrape_options={"formats": DATA},
    )
    assert "(WD-064)" in str(error)
    assert xcom["validation"]["invalid"] == 10
    changes = Changes(str(tmp_path), on_unchanged="skip")
    assert "(WD-064)" in str(delivered([], quality=1, changes=changes)[0])


MANUAL = {**BEFORE, "has_logical_date": False, "until": "2025-01-01T00:00:00+00:00", "items": 10}
EARLIER: list[tuple[Any, int | None]] = [
    (BEFORE, 20),
    # Not this run itself, nor a later one.
    ({**BEFORE, "until": "2026-01-02T00:00:00+00:00"}, None),
    ({**BEFORE, "map_index": 3}, None),
    ("someone else's", None),
    # Sorted first by some databases.
    ([MANUAL, {**BEFORE, "until": "2025-12-31T00:00:00+00:00", "items": 30}, BEFORE], 20),
]


@each_row("earlier, items", EARLIER)
def test_the_run_before(earlier: Any, items: int | None) -> None:
    result, _, run = delivered(PAGES, quality=Quality(drop_vs_last=1), earlier=earlier)
    told = [
        assertion.expected
        for assertion in run.publication.measurements.assertions
        if assertion.condition == "drop_vs_last"
    ]
    assert told == ([] if items is None else [f"at least 0, because the previous run had {items}"])
    assert len(result["data"]) == 10


PAGED = Quality(blocked=0.1)
IMPOSSIBLE: list[tuple[type, dict[str, Any], str]] = [
    *(
        (WebDataCrawlOperator, {**CRAWL, **option, "wait_for_completion": False}, "give it to WebDataJobSensor")
        for option in (
            *({"quality": 5}, {"save_to": "/x.csv"}, {"media_to": "/m"}),
            {"result_schema": {}, "scrape_options": {"formats": DATA}},
        )
    ),
    (
        WebDataCrawlOperator,
        {**CRAWL, "changes": "/c", "wait_for_completion": False},
        "changes= has no effect with wait_for_completion=False, because the task publishes no results; remove "
        "wait_for_completion=False",
    ),
    (WebDataCrawlOperator, {**CRAWL, "quality": 5, "limit": 4}, "min_items=5 can never pass with limit=4; raise limit"),
    (WebDataScrapeOperator, {**CRAWL, "quality": 2}, "min_items=2 can never pass: the task has one result"),
    (WebDataMapOperator, {**CRAWL, "quality": PAGED}, "applies to pages, and the task returns none; omit it"),
    (WebDataSearchOperator, {"task_id": "t", "query": "q", "quality": PAGED}, "or request formats in scrape_options"),
    (WebDataJobSensor, {"task_id": "t", "kind": "agent", "job_id": "1", "quality": PAGED}, "applies to pages"),
    (
        WebDataCrawlOperator,
        {**CRAWL, "quality": Quality(drop_vs_last=0.1), "do_xcom_push": False},
        r"drop_vs_last needs XCom, or changes=.*omit do_xcom_push=False",
    ),
]  # fmt: skip


@each_row("operator, arguments, message", IMPOSSIBLE)
def test_what_can_never_work_is_refused(operator: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        operator(**arguments)


def test_a_mapped_task_is_refused_before_it_bills() -> None:
    """Airflow creates it when its arguments are known, which is after the DAG file was read."""
    mapped = WebDataCrawlOperator.partial(task_id="crawl", url="https://a.example/", quality=5).expand(
        limit=[4]
    )
    task = mapped.unmap({"limit": 4})
    with pytest.raises(AirflowFailException, match=r"min_items=5 can never pass with limit=4[\s\S]*\(WD-"):
        task._new_run(context(TaskInstance())).prepare_publication()


def test_what_works_is_not_refused() -> None:
    WebDataBatchScrapeOperator(task_id="t", urls=["https://a.example/"], quality=PAGED)
    WebDataSearchOperator(task_id="t", query="q", scrape_options={"formats": ["markdown"]}, quality=PAGED)
    WebDataJobSensor(task_id="t", kind="crawl", job_id="1", quality=PAGED)
    WebDataCrawlOperator(**CRAWL, limit="{{ 3 }}", quality=5)
    WebDataCrawlOperator(**CRAWL, quality=Quality(drop_vs_last=0.1), do_xcom_push=False, changes="/seen")


def test_no_message_has_a_secret_of_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text("https://host.example"))
    item = page(0, "x", sourceURL="https://me:hush@a.example/?access_token=hush", statusCode=404)
    error, xcom, run = delivered(
        [{**item, "screenshot": "lost"}],
        media_to=str(tmp_path / "media"),
        save_to=str(tmp_path / "pages.jsonl"),
        quality=Quality(blocked=0.0),
    )
    texts = [
        str(error),
        json.dumps(xcom["quality_rejected"]),
        *(record.getMessage() for record in caplog.records),
    ]
    assert "https://me:***@a.example/" in str(error)
    assert [text for text in texts if "hush" in text] == []
    [summary] = run.publication.media.summary().values()
    assert summary["errors"][0].startswith("screenshot of https://me:***@a.example/?access_token=*** ")
