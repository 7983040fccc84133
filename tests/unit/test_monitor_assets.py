# SPDX-License-Identifier: Apache-2.0
"""A monitor is one asset, whatever the spelling of its URI, in DAGs, in Airflow's UI, and in lineage."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from airflow.sdk import DAG, Asset, AssetWatcher
from airflow.serialization.serialized_objects import DagSerialization
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.assets.job import job_asset
from airflow_provider_webdata.assets.monitor import monitor_asset
from airflow_provider_webdata.assets.uri import dataset, is_meaningful_uri, monitor_uri, normalized
from airflow_provider_webdata.common.page_urls import monitor_page, task_page
from airflow_provider_webdata.results.lineage import operator_lineage
from airflow_provider_webdata.triggers.events import WebDataMonitorCheckEventTrigger

ID = "0190c0de-0000-7000-8000-00000000abcd"
ONE = f"webdata://webdata_default/monitors/{ID}"
SPELLINGS = {
    "as it is": (ONE, ONE),
    "capitals": (f"WEBDATA://webdata_default/monitors/{ID.upper()}", ONE),
    "slash": (f"{ONE}/", ONE),
    "fragment": (f"{ONE}#x", ONE),
    "the default connection": (f"webdata:///monitors/{ID}", ONE),
    "a name": ("webdata://eu/monitors/River levels", "webdata://eu/monitors/River%20levels"),
    "an encoded name": ("webdata://eu/monitors/River%20levels", "webdata://eu/monitors/River%20levels"),
    "a name with a slash": ("webdata://eu/monitors/a%2fb", "webdata://eu/monitors/a%2Fb"),
    "a connection with a colon": ("webdata://team%3Aeu/monitors/a", "webdata://team%3Aeu/monitors/a"),
    "letters of a name": ("webdata://eu/monitors/Größe", "webdata://eu/monitors/Gr%C3%B6%C3%9Fe"),
    "meaningful checks": (
        "webdata://eu/monitors/River levels/meaningful/",
        "webdata://eu/monitors/River%20levels/meaningful",
    ),
    "a name like the suffix": ("webdata://eu/monitors/meaningful",) * 2,
    "jobs": ("webdata:///jobs/batch_scrape/", "webdata://webdata_default/jobs/batch_scrape"),
    "a name like digits": ("webdata://eu/monitors/00000000000000000000000000000007",) * 2,
}


@pytest.mark.parametrize(("given_uri", "expected"), SPELLINGS.values(), ids=SPELLINGS.keys())
def test_airflow_takes_all_spellings_for_one(given_uri: str, expected: str) -> None:
    """Through Airflow, which finds the function by the provider's metadata."""
    assert Asset(name="a", uri=given_uri).uri == expected
    assert Asset(name="a", uri=expected).uri == expected


@pytest.mark.parametrize(
    "uri",
    [
        "webdata://eu",
        "webdata://eu/monitors",
        "webdata://eu/monitor/a",
        "webdata://eu/monitors/a/b",
        "webdata://eu/monitors/a/meaningful/meaningful",
        "webdata://eu/jobs/crawl/meaningful",
        "webdata://eu/jobs/scrape",
        "webdata://eu/jobs",
        "webdata://eu/monitors/a?x=1",
        "webdata://eu/monitors/%20",
        "webdata://%20/monitors/a",
    ],
)
def test_what_names_no_monitor_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r"monitor|kind must|webdata_conn_id"):
        Asset(name="a", uri=uri)


@given(
    monitor=st.text(min_size=1).filter(str.strip),
    conn_id=st.text(st.characters(codec="ascii"), min_size=1).filter(str.strip),
)
def test_any_name_has_one_uri(monitor: str, conn_id: str) -> None:
    try:
        uri = monitor_uri(monitor, conn_id)
    except UnicodeEncodeError:
        return
    assert normalized(urlsplit(uri)).geturl() == uri
    assert monitor_uri(f" {monitor} ", conn_id) == uri
    assert not is_meaningful_uri(uri)
    meaningful = monitor_uri(monitor, conn_id, only_if_meaningful=True)
    assert normalized(urlsplit(meaningful)).geturl() == meaningful
    assert is_meaningful_uri(meaningful)


def test_one_asset_in_every_dag() -> None:
    """Name and URI together tell assets apart."""
    trigger = WebDataMonitorCheckEventTrigger("webdata_default", ID)
    watched = monitor_asset(ID.upper(), group="monitors", watchers=[AssetWatcher(name="w", trigger=trigger)])
    with DAG("d", schedule=[watched]) as dag:
        pass
    assert (watched.name, watched.uri) == (ONE, ONE) == (monitor_asset(ID).name, Asset(ONE).uri)
    assert ONE in str(DagSerialization.serialize_dag(dag))
    assert job_asset("crawl", "eu", group="jobs") == Asset("webdata://eu/jobs/crawl", group="jobs")


def test_lineage_names_the_same_dataset() -> None:
    """Of an asset, and of a task that used the monitor or one of its checks."""
    from airflow.providers.openlineage.utils.utils import translate_airflow_asset

    translated = translate_airflow_asset(monitor_asset(ID, "web/eu"), None)
    named = ("webdata://web%2Feu", f"monitors/{ID}")
    assert (translated.namespace, translated.name) == named == dataset(monitor_uri(ID, "web/eu"))
    for page in (monitor_page("web/eu", ID), monitor_page("web/eu", ID, "c-1")):
        lineage = operator_lineage([], None, "web/eu", page)
        assert [(found.namespace, found.name) for found in lineage.inputs] == [named]
    assert operator_lineage([], None, "web/eu", task_page("shop", "run", "crawl", -1), "j-1").inputs == []


@pytest.mark.parametrize(("monitor", "conn_id"), [("", "c"), ("  ", "c"), ("m", "")])
def test_nothing_is_no_monitor(monitor: str, conn_id: str) -> None:
    with pytest.raises(ValueError, match="given: an empty string"):
        monitor_asset(monitor, conn_id)
