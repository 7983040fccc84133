# SPDX-License-Identifier: Apache-2.0
"""Results of operators go to XCom, a file, media, and the events of outlets."""

from __future__ import annotations

import json
from importlib import import_module
from pkgutil import walk_packages
from types import SimpleNamespace

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_webdata import runs
from airflow_provider_webdata.base.operator import WebDataOperator
from airflow_provider_webdata.runs.call import CallRun
from airflow_provider_webdata.runs.publishing.step import Results
from airflow_provider_webdata.runs.run import Run

ITEMS = [{"url": f"https://x.example/{n}", "title": "X"} for n in range(3)]
SUMMARY = {"id": "s-1", "creditsUsed": 2}


class Call(Run):
    """Returns what it is given."""

    def call(self):
        return self.publish(Results(iter(ITEMS), "link", SUMMARY, ["words"]))


class Operator(WebDataOperator):
    """An operator of that call."""

    _run_path = f"{__name__}:Call"
    credit_limit = None

    def __init__(self, *, save_to=None, media_to=None, **kwargs):
        super().__init__(**kwargs)
        self.save_to = save_to
        self.media_to = media_to
        self.max_media_mb = 500
        self._check_arguments()


class Context(dict):
    """A task's context, with what was pushed."""

    def __init__(self, task):
        self.pushed = {}
        ti = SimpleNamespace(xcom_push=self.pushed.__setitem__, dag_id="d", task_id="t")
        super().__init__(ti=ti, task=task, outlet_events=OutletEventAccessors())


def operator(**arguments):
    task = Operator(task_id="t", **arguments)
    return task, Context(task)


REFUSED = {
    "suffix": ({"save_to": "s3://bucket/x.xlsx"}, "ends in one of .jsonl, .jsonl.gz, .parquet"),
    "folder": ({"save_to": "/tmp/results/"}, "ends in one of"),
}


@pytest.mark.parametrize(("arguments", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_can_be_seen_is_refused_while_the_dag_is_read(arguments, words):
    with pytest.raises(ValueError, match=words):
        operator(**arguments)


def test_a_template_waits_for_its_value():
    task, context = operator(save_to="/tmp/{{ ds }}.{{ params.format }}")
    task.save_to = "/tmp/2026-01-01.xlsx"
    with pytest.raises(AirflowFailException, match=r"2026-01-01\.xlsx"):
        task.execute(context)


UNREACHABLE = {
    "save_to": {"save_to": "martian://b/x.jsonl"},
    "media": {"media_to": "martian://b/media"},
    "connection": {"media_to": "file://nobody_defined_this@/tmp/media"},
}


@pytest.mark.parametrize("arguments", UNREACHABLE.values(), ids=UNREACHABLE.keys())
def test_storage_is_checked_before_the_call(arguments, monkeypatch):
    """No retry helps, and nothing was billed."""
    task, context = operator(**arguments)
    monkeypatch.setattr(Call, "call", lambda _: pytest.fail("the service was called"))
    with pytest.raises(AirflowFailException):
        task.execute(context)


def test_to_xcom():
    task, context = operator()
    assert task.execute(context) == {**SUMMARY, "count": 3, "data": ITEMS}


def test_to_a_file(tmp_path):
    """XCom has the path and the counts; so has the event of each outlet."""
    pages = Asset("pages")
    path = tmp_path / "x.jsonl"
    task, context = operator(save_to=str(path), outlets=[pages])
    value = task.execute(context)
    assert [json.loads(line) for line in path.read_text().splitlines()] == ITEMS
    assert value == {
        "id": "s-1",
        "credits_used": 2,
        "path": str(path),
        "count": 3,
        "bytes": path.stat().st_size,
    }
    assert context["outlet_events"][pages].extra == value


def test_summary_may_be_filled_on_the_way(tmp_path):
    """Counts of pages are known when the last page was read."""
    task, context = operator(save_to=str(tmp_path / "x.jsonl"))
    summary = {}

    def pages():
        yield from ITEMS
        summary["creditsUsed"] = 7

    assert Call(task, context).publish(Results(pages(), "link", summary))["credits_used"] == 7


def test_lineage(tmp_path):
    task, context = operator(save_to=str(tmp_path / "x.jsonl"))
    task.execute(context)
    lineage = task.get_openlineage_facets_on_complete(context["ti"])
    assert [(found.namespace, found.name) for found in lineage.inputs] == [
        ("webdata://webdata_default", "words")
    ]
    assert [(found.namespace, found.name) for found in lineage.outputs] == [
        ("file", str(tmp_path / "x.jsonl"))
    ]


def test_no_call_that_bills_replaces_the_sequence():
    """A subclass states the call. The budget, the kept response, and the delivery are those of `CallRun`."""
    for module in walk_packages(runs.__path__, f"{runs.__name__}."):
        import_module(module.name)
    found = [CallRun]
    # The loop appends the subclasses to the list it iterates over.
    for cls in found:
        found += cls.__subclasses__()
    assert len(found) > 6
    assert not [cls for cls in found[1:] if {"call", "execute"} & vars(cls).keys()]
