# SPDX-License-Identifier: Apache-2.0
"""A pipeline over nights while its author edits it: the table equals a full reload, and no page is billed in vain."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from airflow_provider_webdata.options import Quality
from tests.support.edited_pipeline import HOME, OTHER, THIRD, Pipeline, Run, Setup, Site, connection_of
from tests.support.fuzz import IS_FUZZ
from webdata_sandbox.server import SandboxServer

NUMBER, TEXT = {"type": "number"}, {"type": "string"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def night(number: int, hour: int = 0, minute: int = 0) -> datetime:
    # The clocks of Berlin go back in the second of these nights.
    return datetime(2026, 10, 23, hour, minute, tzinfo=timezone.utc) + timedelta(days=number)


@dataclass
class Edit:
    """An edit before a night, or another way in which that night runs.

    :param change: changes what the DAG file says, from that night on.
    :param play: runs that night.
    :param way_out: what the author changes after a message that refuses a task.
    :param says: parts of the messages that refuse a task, if it is the only edit.
    :param quiet_nights: nights until the table has all changes.
    """

    change: Callable[[Setup], object] = lambda _: None
    play: Callable[[Pipeline, Run], object] = Pipeline.night
    way_out: Callable[[Pipeline, str], object] | None = None
    says: tuple[str, ...] = ()
    quiet_nights: int = 2


def formats(*given: Any) -> Callable[[Setup], object]:
    def change(setup: Setup) -> None:
        setup.scrape["formats"] = ["markdown", *given]
        setup.load.pop("result_schema", None)
        setup.crawl.pop("result_schema", None)

    return change


def extracted(**properties: Any) -> Callable[[Setup], object]:
    def change(setup: Setup) -> None:
        formats({"type": "json", "schema": schema(**properties)})(setup)
        setup.load["result_schema"] = setup.crawl["result_schema"] = schema(**properties)

    return change


def extracted_by_load(**properties: Any) -> Callable[[Setup], object]:
    def change(setup: Setup) -> None:
        formats({"type": "json", "prompt": "Prices."})(setup)
        setup.load.update(result_schema=schema(**properties), add_columns=True)

    return change


def loading(**given: Any) -> Callable[[Setup], object]:
    return lambda setup: setup.load.update(given)


def detecting(**given: Any) -> Callable[[Setup], object]:
    return lambda setup: setup.changes.update(given)


def crawling(**given: Any) -> Callable[[Setup], object]:
    return lambda setup: setup.crawl.update(given)


def having(**given: Any) -> Callable[[Setup], object]:
    def change(setup: Setup) -> None:
        for name, value in given.items():
            setattr(setup, name, value)

    return change


def twice(pipeline: Pipeline, run: Run) -> None:
    pipeline.night(run)
    pipeline.site.change(deletes=False)
    pipeline.night(Run(run.day + timedelta(hours=1)))


def cleared_with_downstream(pipeline: Pipeline, run: Run) -> None:
    pipeline.night(run)
    pipeline.night(run)


def crawl_cleared_alone(pipeline: Pipeline, run: Run) -> None:
    pipeline.night(run)
    pipeline.crawl(run, alone=True)


def load_cleared(pipeline: Pipeline, run: Run) -> None:
    pipeline.night(run)
    pipeline.load(run)


def overlapping(pipeline: Pipeline, run: Run) -> None:
    other = Run(run.day + timedelta(hours=6))
    pipeline.crawl(run)
    pipeline.site.change(deletes=False)
    pipeline.crawl(other)
    pipeline.load(other)
    pipeline.load(run)


def load_fails(pipeline: Pipeline, run: Run) -> None:
    pipeline.crawl(run)
    pipeline.fail_load(run)


def load_heals_late(pipeline: Pipeline, run: Run) -> None:
    load_fails(pipeline, run)
    pipeline.site.change(deletes=False)
    pipeline.night(Run(run.day + timedelta(hours=6)))
    pipeline.load(run)


def run_deleted(pipeline: Pipeline, run: Run) -> None:
    pipeline.night(run)
    pipeline.delete_run(run)


def accepted_by_hand(pipeline: Pipeline, run: Run) -> None:
    pipeline.setup.crawl["quality"] = Quality(min_items=50)
    outcome = pipeline.attempt(run)
    del pipeline.setup.crawl["quality"]
    assert outcome.state == "failed"
    assert "To accept them anyway, move that file" in str(outcome.error)
    pushed = outcome.xcom["return_value"]
    path = Path(pushed["path"])
    path.with_name(f"_{path.name}.rejected").rename(path)
    run.results, run.incomplete = [pushed], [outcome.xcom.get("incomplete")]
    pipeline.load(run)


def clocks_go_back(pipeline: Pipeline, run: Run) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    for fold in (0, 1):
        pipeline.night(Run(datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=fold)))


def all_columns(pipeline: Pipeline, _: str) -> None:
    pipeline.setup.load.pop("columns")


def _without_home(setup: Setup) -> list[str]:
    return [site for site in setup.sites or () if site != HOME]


def without_home(pipeline: Pipeline, run: Run) -> None:
    pipeline.setup.sites = _without_home(pipeline.setup)
    pipeline.night(run)
    pipeline.forget(HOME)


def trigger_rule(pipeline: Pipeline, said: str) -> None:
    assert "trigger_rule='none_failed_min_one_success'" in said
    pipeline.setup.load["trigger_rule"] = "none_failed_min_one_success"


def replace_all(pipeline: Pipeline, said: str) -> None:
    if "allow_incomplete=True" in said:
        pipeline.setup.load["allow_incomplete"] = True
    else:
        assert "set Changes(emit='all')" in said
        pipeline.setup.changes["emit"] = "all"


EDITS: dict[str, Edit] = {
    "compare": Edit(detecting(compare=["markdown"])),
    "a format more": Edit(formats("html")),
    "another format more": Edit(formats("links")),
    "a format less": Edit(formats()),
    "a column of a schema": Edit(extracted(price=NUMBER), says=("has no column",)),
    "another type": Edit(extracted(price=TEXT), says=("has no column",)),
    "two columns": Edit(extracted(price=NUMBER, stock=NUMBER), says=("has no columns",)),
    "two columns added": Edit(
        lambda setup: [extracted(price=NUMBER, stock=NUMBER)(setup), loading(add_columns=True)(setup)]
    ),
    "extraction by prompt": Edit(formats({"type": "json", "prompt": "Prices."})),
    "a schema of the load": Edit(extracted_by_load(price=NUMBER)),
    "another schema of the load": Edit(extracted_by_load(stock=NUMBER)),
    "columns": Edit(loading(columns=["source_url", "title"])),
    "more columns": Edit(loading(columns=["source_url", "title", "markdown"])),
    "renamed columns": Edit(
        loading(columns={"source_url": "source_url", "markdown": "body"}), says=("has no column",)
    ),
    "all columns": Edit(loading(columns=None)),
    "another table": Edit(having(table="others")),
    "another folder of results": Edit(having(folder="elsewhere")),
    "Parquet": Edit(having(name="*.parquet")),
    "compressed CSV": Edit(having(name="*.csv.gz")),
    "mode replace": Edit(
        loading(mode="replace"),
        way_out=replace_all,
        says=("set Changes(emit='all')", "allow_incomplete=True"),
    ),
    "mode upsert": Edit(loading(mode="upsert")),
    "emit all": Edit(detecting(emit="all")),
    "emit changed": Edit(detecting(emit="changed")),
    "documents": Edit(crawling(documents=True), way_out=all_columns, says=("has no columns",)),
    "entire pages": Edit(lambda setup: setup.scrape.update(only_main_content=False)),
    "skip": Edit(detecting(on_unchanged="skip")),
    "another table, and the load fails": Edit(having(table="others"), load_fails),
    "removed soon": Edit(detecting(removed_after=timedelta())),
    # The night of a renamed task does not count: the state is copied after it.
    "removed late": Edit(detecting(removed_after=timedelta(days=2)), quiet_nights=3),
    "excluded paths": Edit(crawling(exclude_paths=["^/c"])),
    "another DAG": Edit(having(dag_id="d2"), says=("If the task was renamed, copy",)),
    "another task": Edit(having(task_id="crawl2"), says=("If the task was renamed, copy",)),
    "clocks go back": Edit(play=clocks_go_back),
    "two runs": Edit(play=twice),
    "clear with downstream": Edit(play=cleared_with_downstream),
    "clear alone": Edit(play=crawl_cleared_alone),
    "load cleared": Edit(play=load_cleared),
    "overlapping runs": Edit(play=overlapping),
    "load fails": Edit(play=load_fails),
    "load heals late": Edit(play=load_heals_late),
    "run deleted": Edit(play=run_deleted),
    "accepted by hand": Edit(play=accepted_by_hand),
}


MAPPED: dict[str, Edit] = {
    "another order": Edit(lambda setup: (setup.sites or []).reverse()),
    "a site more": Edit(lambda setup: (setup.sites or []).append(THIRD)),
    "a site less": Edit(play=without_home),
    "a site back": Edit(lambda setup: having(sites=[HOME, *_without_home(setup)])(setup)),
    "skip": Edit(detecting(on_unchanged="skip"), way_out=trigger_rule),
    "mapped load": Edit(having(is_load_mapped=True)),
    "load of all": Edit(having(is_load_mapped=False)),
    **{
        name: EDITS[name]
        for name in (
            *(
                "a format more",
                "a column of a schema",
                "columns",
                "another table",
                "another task",
                "two runs",
            ),
            *(
                "clear alone",
                "overlapping runs",
                "load fails",
                "load heals late",
                "run deleted",
                "load cleared",
            ),
        )
    },
}


def play(
    sandbox: SandboxServer,
    home: Path,
    setup: Setup,
    *names: str,
    edits: dict[str, Edit] = EDITS,
    is_quiet: bool = False,
) -> Pipeline:
    """Play a first night, a night after each edit, and quiet nights; then compare with a full reload.

    :param is_quiet: whether the site does not change between nights.
    """
    site = Site(sandbox.control, (HOME,) if setup.sites is None else (HOME, OTHER, THIRD))
    pipeline = Pipeline(sandbox.control, home, copy.deepcopy(setup), site)
    pipeline.night(Run(night(1)))
    for number, name in enumerate(names, 2):
        edit = edits[name]
        if not is_quiet:
            site.change()
        edit.change(pipeline.setup)
        pipeline.way_out = edit.way_out or pipeline.way_out
        edit.play(pipeline, Run(night(number)))
    quiet_nights = max(edits[name].quiet_nights for name in names)
    quiet = [Run(night(len(names) + 2 + number)) for number in range(quiet_nights)]
    for run in quiet:
        pipeline.night(run)
    pipeline.check(quiet[-1])
    if pipeline.setup.changes.get("emit") != "all":
        assert pipeline.emitted(quiet[-1]) == 0
    return pipeline


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", connection_of(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", EDITS)
def test_an_edit(here: SandboxServer, home: Path, name: str) -> None:
    pipeline = play(here, home, Setup(), name, is_quiet=True)
    assert len(pipeline.said) == len(EDITS[name].says), pipeline.said
    for words, said in zip(EDITS[name].says, pipeline.said, strict=True):
        assert words in said


def test_changes_are_detected_from_the_second_night_on(here: SandboxServer, home: Path) -> None:
    edits = {**EDITS, "changes": Edit(having(has_changes=True))}
    pipeline = play(here, home, Setup(has_changes=False), "changes", edits=edits)
    [said] = pipeline.said
    assert "It must be created again" in said


def test_pages_whose_load_failed_are_not_skipped(here: SandboxServer, home: Path) -> None:
    """The pages are unchanged, and the failed load is of another table."""
    names = ("skip", "another table, and the load fails")
    play(here, home, Setup(), *names, is_quiet=True)


def chains(edits: dict[str, Edit]) -> list[tuple[str, ...]]:
    """Return chains of three in which each edit is once followed by the next; in `make fuzz`, all pairs."""
    names = [*edits]
    if IS_FUZZ:
        return [*itertools.product(names, names)]
    return [tuple((names * 2)[first : first + 3]) for first in range(0, len(names), 2)]


@pytest.mark.parametrize("names", chains(EDITS), ids=" and ".join)
def test_edits_in_turn(here: SandboxServer, home: Path, names: tuple[str, ...]) -> None:
    play(here, home, Setup(), *names)


@pytest.mark.parametrize("names", chains(MAPPED), ids=" and ".join)
def test_edits_of_a_mapped_task_in_turn(here: SandboxServer, home: Path, names: tuple[str, ...]) -> None:
    play(here, home, Setup(sites=[HOME, OTHER]), *names, edits=MAPPED)
