# SPDX-License-Identifier: Apache-2.0
"""Rules for the paths that authors write, and the name of a task instance in place of `*`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files import paths
from airflow_provider_webdata.results.files.storage import check_file, storage_path
from airflow_provider_webdata.results.tables.items import urls_of_file
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator

if TYPE_CHECKING:
    from collections.abc import Callable

NIGHT = datetime(2026, 10, 25, 0, 30, tzinfo=timezone.utc)

INSTANCES = st.tuples(
    st.text(max_size=250),
    st.text(max_size=250),
    st.text(max_size=250),
    st.one_of(st.none(), st.integers(-1, 2**31)),
) | st.tuples(
    *(st.sampled_from(["a", "a-b", "a_b", "b"]),) * 3,
    st.integers(-1, 2),
    *(st.sampled_from(["0190d6a2-0000-7000-8000-000000000000", "0190d6a2-0000-7000-8000-000000000001"]),),
    st.integers(0, 2**31),
)


def identity(instance: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(-1 if part is None else part for part in instance)


@pytest.mark.slow
@settings(max_examples=300)
@given(
    instances=st.lists(INSTANCES, min_size=2, max_size=6, unique_by=identity),
    moment=st.one_of(
        st.none(), st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(timezone.utc))
    ),
)
def test_no_two_instances_share_a_name(instances: list[Any], moment: datetime | None) -> None:
    names = [paths.instance_name(instance, moment) for instance in instances]
    assert names == [paths.instance_name(instance, moment) for instance in instances]
    # Some storages ignore case.
    assert len({name.lower() for name in names}) == len(names)
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name)
        assert len(name) <= 120


def test_a_name_is_legible_and_sorts_by_run() -> None:
    instance = ("shop", "scheduled__2026-10-25T00:30:00+00:00", "prices.crawl", 7)
    name = paths.instance_name(instance, NIGHT)
    # The same in every version: a retry after an upgrade replaces its file.
    assert name == "20261025T003000Z-prices-crawl-7-a76100bb9d67"
    assert name < paths.instance_name(instance, NIGHT + timedelta(hours=1))
    # Two nights of a change of the clocks have one local time.
    assert paths.instance_name(("shop", "a", "t", -1), NIGHT) != paths.instance_name(
        ("shop", "b", "t", -1), NIGHT
    )
    assert paths.instance_name(("d", "manual__x", "t", -1), None).startswith("manual__x-t-")
    assert paths.instance_name(("d", "r", "t", None), None) == paths.instance_name(("d", "r", "t", -1), None)
    assert paths.instance_path("s3://b/*.csv", instance, NIGHT) == f"s3://b/{name}.csv"
    assert paths.instance_path("s3://b/x.csv", instance, NIGHT) == "s3://b/x.csv"


AMBIGUOUS = {
    "home": ("~/x.jsonl", "~ is not expanded"),
    "home of a user": ("~airflow/x.jsonl", "~ is not expanded"),
    "variable": ("$HOME/x.jsonl", "environment variables are not expanded"),
    "variable in braces": ("s3://${BUCKET}/x.jsonl", "environment variables are not expanded"),
    "host": ("file://nas/share/x.jsonl", "three slashes and no host"),
    "local host": ("file://localhost/data/x.jsonl", "three slashes and no host"),
    "four slashes": ("file:////data/x.jsonl", "three slashes and no host"),
    "no slashes": ("file:data/x.jsonl", "three slashes and no host"),
    "one slash": ("FILE:/data/x.jsonl", "three slashes and no host"),
}


@pytest.mark.parametrize(("path", "words"), AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_an_ambiguous_path_is_refused_while_the_dag_is_parsed(path: str, words: str) -> None:
    crawl: dict[str, Any] = {"task_id": "t", "url": "https://a.example"}
    for name, task in {
        "save_to": lambda: WebDataCrawlOperator(**crawl, save_to=path),
        "media_to": lambda: WebDataCrawlOperator(**crawl, media_to=path),
        "changes": lambda: WebDataCrawlOperator(**crawl, changes=Changes(path)),
        "file": lambda: WebDataParseOperator(task_id="t", file=path),
        "path": lambda: WebDataToTableOperator(task_id="t", path=path, table="t", conn_id="c"),
    }.items():
        with pytest.raises(ValueError, match=f"^{name}: .*{words}"):
            task()
    resolvers: list[Callable[[str], Any]] = [storage_path, check_file, urls_of_file]
    for resolved in resolvers:
        with pytest.raises(OutputError, match=words):
            resolved(path)


@pytest.mark.parametrize(
    "path",
    [
        "s3://c@b/x.jsonl",
        "abfs://$web@a/x.jsonl",
        "/data/~x.jsonl",
        "file:///data/x.jsonl",
        "file://c@/data/x.jsonl",
    ],
)
def test_other_paths_are_resolved_as_they_are(path: str) -> None:
    assert paths.path_problem(path) is None


@pytest.mark.parametrize("path", ["/data/*/x.jsonl", "/data/*-*.jsonl", "s3://*/x.jsonl", "/*/*.jsonl"])
def test_a_star_is_in_the_name_of_the_file_once(path: str) -> None:
    with pytest.raises(OutputError, match=r"save_to: \* may occur once, in the name of the file"):
        WebDataCrawlOperator(task_id="t", url="https://a.example", save_to=path)


def test_a_star_has_a_meaning_in_save_to_only() -> None:
    with pytest.raises(OutputError, match=r"path: \* has a meaning only in save_to: pass the output"):
        WebDataToTableOperator(task_id="t", path="/data/*.jsonl", table="t", conn_id="c")
    with pytest.raises(OutputError, match=r"media_to: \* has a meaning only in save_to"):
        WebDataCrawlOperator(task_id="t", url="https://a.example", media_to="/data/*")
