# SPDX-License-Identifier: Apache-2.0
"""Links of tasks in Airflow's UI: the ones that a real task runner writes, and those that Airflow stores with a DAG."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_webdata.common import page_urls
from airflow_provider_webdata.get_provider_info import get_provider_info
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from tests.support.airflow_features import FRAME
from tests.support.dag_runner import Airflow, Outcome, connection, dag_runner
from tests.support.service import NEVER
from webdata_sandbox.server import SandboxServer

TARGETS = [{"type": "scrape", "urls": ["https://example.com/"]}]
DASHBOARD = "https://service.example/app"
IMPORTS = """
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow.sdk import Asset
"""
CREATE = f'WebDataCreateMonitorOperator(task_id="keep", name="prices", schedule={NEVER}, targets=TARGETS)'


def page(done: Outcome, task: str) -> tuple[str, dict[str, str]]:
    """Return path and query of a task's link."""
    link = urlsplit(done.xcom[f"{task}.webdata_page"])
    return link.path, dict(parse_qsl(link.query))


def check(monitor_id: str, check_id: str, conn_id: str = "webdata_default") -> tuple[str, dict[str, str]]:
    query = {"conn_id": conn_id, "monitor_id": monitor_id, "check_id": check_id}
    return f"{FRAME}/webdata-ui/monitors/monitor", query


def monitor(monitor_id: str) -> tuple[str, dict[str, str]]:
    return f"{FRAME}/webdata-ui/monitors/monitor", {"conn_id": "webdata_default", "monitor_id": monitor_id}


TASKS = f"""
pages, polled_pages = Asset("pages_of_a_crawl"), Asset("pages_of_a_polled_crawl")
few = dict(url="https://example.com/", limit=1, poll_interval=1)
crawl = WebDataCrawlOperator(task_id="crawl", outlets=[pages], deferrable=True, **few)
polled = WebDataCrawlOperator(task_id="polled", outlets=[polled_pages], deferrable=False, **few)
each = WebDataCrawlOperator.partial(task_id="each", limit=1, poll_interval=1, deferrable=False).expand(
    url=["https://example.com/", "https://example.com/"])
sense = WebDataJobSensor(task_id="sense", kind="crawl", job_id="{{{{ ti.xcom_pull('crawl', key='job_id') }}}}",
    poke_interval=1, deferrable=True)

@task(inlets=[pages, polled_pages])
def extras(inlet_events=None):
    return [inlet_events[asset][-1].extra for asset in (pages, polled_pages)]

[crawl, polled] >> extras()
crawl >> [each, sense]

failed = WebDataCrawlOperator(task_id="failed", url="https://nowhere.example/", limit=1,
    poll_interval=1, wait_timeout=0.5, deferrable=True, webdata_conn_id="slow")
missing = WebDataRunMonitorOperator(task_id="missing", monitor_name="none", replica_wait=0)
find = WebDataSearchOperator(task_id="find", query="x", webdata_conn_id="broken")

keep = {CREATE}
checks = dict(monitor_name="prices", wait_for_completion=True)
run = WebDataRunMonitorOperator(task_id="run", poll_interval=1, deferrable=True, **checks)
check = WebDataMonitorCheckSensor(task_id="check", monitor_id="{{{{ ti.xcom_pull('keep')['id'] }}}}", poke_interval=1,
    deferrable=False)
change = WebDataUpdateMonitorOperator(task_id="change", monitor_name="prices", retention_days=5)
keep >> run >> check >> change

keep_slow = {CREATE.replace('"keep"', '"keep_slow", webdata_conn_id="slow"')}
for mode in (True, False):
    keep_slow >> WebDataRunMonitorOperator(
        task_id=f"timeout_{{mode}}", webdata_conn_id="slow", deferrable=mode,
        poll_interval=1, wait_timeout=0.5, **checks)
"""


@pytest.fixture(scope="module")
def done(airflow: Airflow) -> Outcome:
    """Run tasks with links; the connection `slow` leads to a service that is never done."""
    with SandboxServer() as sandbox, SandboxServer(check_seconds=600, page_seconds=600) as slow:
        for server in (sandbox, slow):
            server.control.set_page("https://example.com/", "<p>one euro</p>")
        environ = {
            "AIRFLOW_CONN_SLOW": connection(slow),
            "AIRFLOW_CONN_BROKEN": connection(sandbox, timeout="soon"),
        }
        return dag_runner(airflow, sandbox)(TASKS, IMPORTS, environ=environ, dashboard_url=DASHBOARD)


def test_jobs(done: Outcome) -> None:
    """Their tab shows them: operators, mapped ones, and sensors have no link but the dashboard."""
    for name in ("crawl", "polled", "each[0]", "each[1]", "sense"):
        assert done.state(name) == "success", done.log_of(name)
        assert f"{name}.webdata_page" not in done.xcom
        assert done.xcom[f"{name}.webdata_dashboard"] == DASHBOARD


def test_asset_events(done: Outcome) -> None:
    """The event of an outlet links to the page of the task, which shows its job."""
    for name, extra in zip(("crawl", "polled"), done.xcom["extras.return_value"], strict=True):
        link = urlsplit(extra["page_url"])
        assert link.path == "/webdata-ui/task"
        assert dict(parse_qsl(link.query)).items() >= {"task_id": name, "map_index": "-1"}.items()
        assert extra["count"] == 1


def test_a_failed_job(done: Outcome) -> None:
    """Without a dashboard, there is no link."""
    assert done.state("failed") == "failed"
    assert done.xcom["failed.webdata_dashboard"] == ""


def test_monitors(done: Outcome) -> None:
    monitor_id = done.xcom["keep.return_value"]["id"]
    checked = check(monitor_id, done.xcom["run.check_id"])
    assert {name: page(done, name) for name in ("keep", "run", "check", "change")} == {
        "keep": monitor(monitor_id),
        "run": checked,
        "check": checked,
        "change": monitor(monitor_id),
    }


@pytest.mark.parametrize("name", ["timeout_True", "timeout_False"])
def test_a_wait_that_times_out(done: Outcome, name: str) -> None:
    """The page that the worker wrote before it deferred the task stays, though the trigger names none."""
    assert done.state(name) == "failed"
    assert page(done, name) == check(done.xcom[f"{name}.monitor_id"], done.xcom[f"{name}.check_id"], "slow")


def test_nothing_to_link_to(done: Outcome) -> None:
    """A task that fails before it has anything; a connection that cannot work does not hide its own error."""
    assert (done.state("missing"), done.xcom["missing.webdata_page"]) == ("failed", "")
    assert (done.state("find"), done.xcom["find.webdata_dashboard"]) == ("failed", "")
    assert "timeout must be a number" in done.log_of("find")
    assert "Failed to push an xcom" not in done.log


def test_stored_with_the_dag() -> None:
    """Airflow keeps the button's name and the XCom's key, of a mapped task too, and loads no class for them."""
    with DAG("links", schedule=None) as dag:
        WebDataSearchOperator(task_id="search", query="x")
        WebDataCrawlOperator(task_id="crawl", url="https://example.com/")
        WebDataCrawlOperator.partial(task_id="each").expand(url=["https://example.com/"])
        WebDataCreateMonitorOperator(
            task_id="keep", name="m", schedule={"cron": "0 0 * * *"}, targets=TARGETS
        )
        WebDataJobSensor(task_id="sense", kind="crawl", job_id="j")
    loaded = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    found = {
        name: {link.name: link.xcom_key for link in task.operator_extra_links}
        for name, task in loaded.task_dict.items()
    }
    dashboard = {"Dashboard": "webdata_dashboard"}
    both = {"Web Data": "webdata_page", **dashboard}
    assert found == {"keep": both, **dict.fromkeys(("search", "crawl", "each", "sense"), dashboard)}
    assert [path.rpartition(".")[0] for path in get_provider_info()["extra-links"]] == [
        "airflow_provider_webdata.base.links"
    ] * 2


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("", f"{FRAME}/webdata-ui/inbox?id=7"),
        ("https://airflow.example", f"https://airflow.example{FRAME}/webdata-ui/inbox?id=7"),
        (
            "https://airflow.example/a/b/",
            f"https://airflow.example/a/b{FRAME and FRAME + '/a/b'}/webdata-ui/inbox?id=7",
        ),
    ],
)
def test_address(monkeypatch: pytest.MonkeyPatch, base_url: str, expected: str) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    assert page_urls.frame_url(page_urls.delivery_page(7)) == expected


@pytest.mark.parametrize("version", ["3.2.1", "3.3.0", "3.3.1"])
def test_a_frame_that_opens_only_its_first_page(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """A link into it would open the overview."""
    monkeypatch.setattr("airflow.__version__", version)
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example")
    alone = "https://airflow.example/webdata-ui/inbox?id=7"
    assert page_urls.frame_url(page_urls.delivery_page(7)) == alone
