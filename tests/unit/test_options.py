"""The options of operators and sensors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.serialization.helpers import serialize_template_field
from pydantic import BaseModel

from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.monitor import WebDataRunMonitorOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.options import Changes, Media, Option, Output, Quality, Schema, Wait
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor

CRAWL = {
    "task_id": "t",
    "url": "https://a.example/",
    "scrape_options": {"formats": [{"type": "json", "prompt": "the price"}]},
}


class Price(BaseModel):
    price: float


REFUSED: dict[str, tuple[type[Option], dict[str, Any], str]] = {
    "no size": (Media, {"folder": "/x", "max_mb": 0}, r"Media\(max_mb=\) must be a number above 0"),
    "size as text": (Media, {"folder": "/x", "max_mb": "5"}, r"Media\(max_mb=\) must be a number above 0"),
    "emit": (Changes, {"manifest": "/x", "emit": "new"}, r"Changes\(emit=\) must be one of all, changed"),
    "on_unchanged": (Changes, {"manifest": "/x", "on_unchanged": "fail"}, r"Changes\(on_unchanged=\) must be one of"),
    "removed after no run": (Changes, {"manifest": "/x", "removed_after": 0}, r"Changes\(removed_after=\) must be"),
    "keep nothing": (Changes, {"manifest": "/x", "keep": 0}, r"Changes\(keep=\) must be a whole number of at least 1"),
    "share above 1": (Changes, {"manifest": "/x", "max_removed": 1.5}, r"Changes\(max_removed=\) must be a count"),
    "compare": (Changes, {"manifest": "/x", "compare": "title"}, "compare"),
    "removal that never happens": (
        Changes, {"manifest": "/x", "shared": True, "removed_after": 3, "max_removed": 5},
        r"Changes\(max_removed=\) has no effect with shared=True.*omit it",
    ),
    "on_invalid": (Schema, {"on_invalid": "drop"}, r"Schema\(on_invalid=\) must be one of keep, fail"),
    "number for a schema": (Schema, {"schema": 7}, "result_schema must be"),
    "class for a schema": (Schema, {"schema": dict}, "result_schema must be"),
    **{
        f"rows {rows!r}": (Schema, {"rows": rows}, r"Schema\(rows=\) must name a list")
        for rows in ("", ".", "a..b", 7, ["a"])
    },
    "fewer than none": (Quality, {"min_items": -1}, r"Quality\(min_items=\) must be a whole number of at least 0"),
    "a drop of all": (Quality, {"drop_vs_last": 30}, r"Quality\(drop_vs_last=\) must be a number from 0 to 1"),
    "share as text": (Quality, {"blocked": "5%"}, r"Quality\(blocked=\) must be a number from 0 to 1"),
    "a share of a field": (Quality, {"coverage": {"a": 95}}, r"Quality\(coverage={'a': \.\.\.}\) must be a number"),
    "no share of a field": (Quality, {"coverage": {"a": None}}, r"Quality\(coverage={'a': \.\.\.}\) must be a number"),
    "coverage of no field": (Quality, {"coverage": 0.9}, r"Quality\(coverage=\) must be a mapping"),
    "no field": (Quality, {"coverage": {"json..a": 1}}, r"must be the path of a value .*given: 'json..a'"),
    "on_fail": (Quality, {"on_fail": "skip"}, r"Quality\(on_fail=\) must be one of fail, warn"),
    "by": (Wait, {"by": "mail"}, r"Wait\(by=\) must be one of auto, webhook, polling"),
    "poll too often": (Wait, {"poll_interval": 0.5}, r"Wait\(poll_interval=\) must be .*, at least 1"),
    "poll by a switch": (Wait, {"poll_interval": True}, r"Wait\(poll_interval=\) must be seconds"),
    "interval as text": (Wait, {"safety_poll": "1 h"}, r"Wait\(safety_poll=\) must be seconds"),
    "interval that is no number": (Wait, {"safety_poll": float("nan")}, r"Wait\(safety_poll=\) must be seconds"),
    "no time": (Wait, {"timeout": 0}, r"Wait\(timeout=\) must be seconds or a timedelta, more than 0"),
    "past": (Wait, {"timeout": timedelta(days=-1)}, r"Wait\(timeout=\) must be"),
    "endless": (Wait, {"timeout": float("inf")}, r"Wait\(timeout=\) must be"),
}  # fmt: skip


@pytest.mark.parametrize(("option", "fields", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_an_option_that_cannot_work_is_refused(
    option: type[Option], fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        option(**fields)


SHORT: dict[str, tuple[str, Any, Option]] = {
    "output": ("output_to", "/x.jsonl", Output("/x.jsonl")),
    "media": ("media", "/x", Media("/x")),
    "changes": ("changes", "/x", Changes("/x")),
    "result_schema": ("result_schema", {"type": "object"}, Schema({"type": "object"})),
    "quality": ("quality", 5, Quality(min_items=5)),
}


def test_short_forms() -> None:
    for argument, (attribute, short, option) in SHORT.items():
        assert getattr(WebDataCrawlOperator(**CRAWL, **{argument: short}), attribute) == option
        assert getattr(WebDataCrawlOperator(**CRAWL), attribute) is None


def test_tasks_do_not_share_an_option() -> None:
    """Airflow renders an option in place."""
    output = Output("/tmp/{{ ti.task_id }}.jsonl")
    tasks = [
        WebDataScrapeOperator(task_id=name, url="https://a.example/", output=output) for name in ("a", "b")
    ]
    for task in tasks:
        task.render_template_fields({"ti": {"task_id": task.task_id}})  # type: ignore[typeddict-item]
    assert [task.output_to for task in tasks] == [Output("/tmp/a.jsonl"), Output("/tmp/b.jsonl")]
    assert output.path == "/tmp/{{ ti.task_id }}.jsonl"


def test_runs_in_one_process_do_not_share_an_option() -> None:
    """Each run renders a shallow copy of the task."""
    task = WebDataCrawlOperator(
        **CRAWL, output="/tmp/{{ ds }}.jsonl", changes="/tmp/{{ ds }}", media="/tmp/{{ ds }}"
    )
    for ds in ("2026-01-01", "2026-01-02"):
        run = task.prepare_for_execution()
        run.render_template_fields({"ds": ds})  # type: ignore[typeddict-item]
        assert run.output_to == Output(f"/tmp/{ds}.jsonl")
        assert run.changes == Changes(f"/tmp/{ds}")
        assert run.media == Media(f"/tmp/{ds}")


def test_rendered_fields_are_legible() -> None:
    task = WebDataCrawlOperator(
        **CRAWL,
        output=Output("/x.jsonl", documents=True),
        media="/m",
        changes=Changes("/c", emit="changed"),
    )
    shown = {
        name: serialize_template_field(getattr(task, name), name)
        for name in ("output_to", "media", "changes")
    }
    assert shown == {
        "output_to": {"path": "/x.jsonl", "documents": True},
        "media": {"folder": "/m"},
        "changes": {"manifest": "/c", "emit": "changed"},
    }
    assert Schema(Price, rows="a").serialize() == {"schema": f"{__name__}.Price", "rows": "a"}
    assert Wait(timeout=timedelta(hours=1)).serialize() == {"timeout": 3600.0}


def test_an_xcom_in_an_option_makes_a_dependency() -> None:
    with DAG("d", schedule=None):
        path = WebDataRunMonitorOperator(task_id="first", monitor_id="m").output
        task = WebDataCrawlOperator(**CRAWL, output=Output(path, documents=True))  # type: ignore[arg-type]
        short = WebDataCrawlOperator(**{**CRAWL, "task_id": "s"}, output=path)
    assert task.upstream_task_ids == short.upstream_task_ids == {"first"}


NO_EFFECT = {
    "check": (WebDataRunMonitorOperator, {"monitor_id": "m"}, ("cancel_on_timeout", "cancel_on_kill")),
    "job sensor": (
        WebDataJobSensor, {"kind": "crawl", "job_id": "j"}, ("timeout", "cancel_on_timeout", "cancel_on_kill"),
    ),
    "check sensor": (
        WebDataMonitorCheckSensor, {"monitor_id": "m"}, ("timeout", "cancel_on_timeout", "cancel_on_kill"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("task", "arguments", "names"), NO_EFFECT.values(), ids=NO_EFFECT.keys())
def test_fields_of_wait_without_effect_are_refused(
    task: Any, arguments: dict[str, Any], names: tuple[str, ...]
) -> None:
    for name in names:
        wait = Wait(**{name: 5 if name == "timeout" else False})
        with pytest.raises(ValueError, match=rf"Wait\({name}=\) has no effect here"):
            task(task_id="t", wait=wait, **arguments)
    assert (
        task(task_id="t", wait=Wait(by="webhook", poll_interval=5), **arguments).polling_policy.poll_interval
        == 5
    )


def test_a_switch_stands_for_no_option() -> None:
    """Only the fields' own forms are short forms."""
    with pytest.raises(ValueError, match=r"Wait\(by=\) must be one of"):
        WebDataCrawlOperator(**CRAWL, wait=60)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="result_schema must be"):
        WebDataBatchSearchOperator(task_id="t", queries=["q"], result_schema=7)  # type: ignore[arg-type]
