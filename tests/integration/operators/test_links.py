"""Links of tasks in Airflow's UI: what a real task runner writes, and what Airflow stores of them with a DAG."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_webdata import page_urls
from airflow_provider_webdata.get_provider_info import get_provider_info
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from tests.support.dag_runner import Outcome
from tests.support.service import NEVER

TARGETS = [{"type": "scrape", "urls": ["https://example.com/"]}]
DASHBOARD = "https://service.example/app"
IMPORTS = """
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor
"""
CREATE = f'WebDataCreateMonitorOperator(task_id="keep", name="prices", schedule={NEVER}, targets=TARGETS)'


def page(done: Outcome, task: str) -> tuple[str, dict[str, str]]:
    """Return path and query of a task's link."""
    link = urlsplit(done.xcom[f"{task}.webdata_page"])
    return link.path, dict(parse_qsl(link.query))


def job(job_id: str) -> tuple[str, dict[str, str]]:
    query = {"conn_id": "webdata_default", "operation": "crawl", "job_id": job_id}
    return "/webdata-ui/jobs/job", query


def check(monitor_id: str, check_id: str) -> tuple[str, dict[str, str]]:
    query = {"conn_id": "webdata_default", "monitor_id": monitor_id, "check_id": check_id}
    return "/webdata-ui/monitors/check", query


def monitor(monitor_id: str) -> tuple[str, dict[str, str]]:
    return "/webdata-ui/monitors/monitor", {"conn_id": "webdata_default", "monitor_id": monitor_id}


@pytest.mark.parametrize("mode", ["deferrable=False", "deferrable=True"])
def test_jobs(run_dag: Any, sandbox: Any, mode: str) -> None:
    """Of an operator, of each instance of a mapped one, and of a sensor; the dashboard where one is named."""
    sandbox.control.set_page("https://example.com/", "<p>one</p>")
    done = run_dag(
        f"""
        crawl = WebDataCrawlOperator(task_id="crawl", url="https://example.com/", limit=1, poll_interval=1, {mode})
        each = WebDataCrawlOperator.partial(task_id="each", limit=1, poll_interval=1, {mode}).expand(
            url=["https://example.com/", "https://example.com/"])
        sense = WebDataJobSensor(task_id="sense", kind="crawl", job_id="{{{{ ti.xcom_pull('crawl', key='job_id') }}}}",
            poll_interval=1, poke_interval=1, {mode})
        crawl >> each >> sense
        """,
        IMPORTS,
        dashboard_url=DASHBOARD,
    )
    for task in ("crawl", "each[0]", "each[1]"):
        assert done.state(task) == "success", done.log[-3000:]
        assert page(done, task) == job(done.xcom[f"{task}.job_id"])
        assert done.xcom[f"{task}.webdata_dashboard"] == DASHBOARD
    assert page(done, "sense") == page(done, "crawl") != page(done, "each[0]")


@pytest.mark.parametrize("mode", ["deferrable=False", "deferrable=True"])
def test_asset_events(run_dag: Any, sandbox: Any, mode: str) -> None:
    """Of an outlet: the event links to where the task's button leads."""
    sandbox.control.set_page("https://example.com/", "<p>one</p>")
    done = run_dag(
        f"""
        pages = Asset("pages_of_a_crawl")
        crawl = WebDataCrawlOperator(task_id="crawl", url="https://example.com/", limit=1, poll_interval=1,
            outlets=[pages], {mode})

        @task(inlets=[pages])
        def extra(inlet_events=None):
            return inlet_events[pages][-1].extra

        crawl >> extra()
        """,
        IMPORTS + "from airflow.sdk import Asset\n",
    )
    extra = done.xcom["extra.return_value"]
    assert extra["page_url"] == done.xcom["crawl.webdata_page"]
    assert extra["count"] == 1


def test_a_failed_job(run_dag: Any, sandbox: Any) -> None:
    """The link matters most where something went wrong; without a dashboard there is none."""
    done = run_dag(
        'WebDataCrawlOperator(task_id="crawl", url="https://nowhere.example/", limit=1, poll_interval=1,'
        " wait_timeout=1, deferrable=True)",
        IMPORTS,
    )
    assert page(done, "crawl") == job(done.xcom["crawl.job_id"])
    assert done.xcom["crawl.webdata_dashboard"] == ""


@pytest.mark.parametrize("mode", ["deferrable=False", "deferrable=True"])
def test_monitors(run_dag: Any, sandbox: Any, mode: str) -> None:
    sandbox.control.set_page("https://example.com/", "<p>one euro</p>")
    done = run_dag(
        f"""
        keep = {CREATE}
        run = WebDataRunMonitorOperator(task_id="run", monitor_name="prices", wait_for_completion=True,
            poll_interval=1, {mode})
        sense = WebDataMonitorCheckSensor(task_id="sense", monitor_id="{{{{ ti.xcom_pull('keep')['id'] }}}}",
            poke_interval=1, poll_interval=1, {mode})
        change = WebDataUpdateMonitorOperator(task_id="change", monitor_name="prices", retention_days=5)
        keep >> run >> sense >> change
        """
    )
    monitor_id = done.xcom["keep.return_value"]["id"]
    checked = check(monitor_id, done.xcom["run.check_id"])
    assert {name: page(done, name) for name in ("keep", "run", "sense", "change")} == {
        "keep": monitor(monitor_id),
        "run": checked,
        "sense": checked,
        "change": monitor(monitor_id),
    }


@pytest.mark.parametrize("mode", ["deferrable=False", "deferrable=True"])
def test_a_wait_that_times_out(run_dag: Any, sandbox: Any, mode: str) -> None:
    """What the worker wrote that deferred the task stays, though the trigger names nothing."""
    run_dag(CREATE)
    sandbox.control.configure(check_seconds=600)
    done = run_dag(
        f"""
        WebDataRunMonitorOperator(task_id="run", monitor_name="prices", wait_for_completion=True, wait_timeout=1,
            poll_interval=1, {mode})
        """
    )
    assert done.state("run") == "failed"
    assert page(done, "run") == check(done.xcom["run.monitor_id"], done.xcom["run.check_id"])


def test_nothing_to_link_to(run_dag: Any, sandbox: Any) -> None:
    """A task that fails before it has anything; a connection that cannot work does not hide its own error."""
    done = run_dag('WebDataRunMonitorOperator(task_id="run", monitor_name="none", replica_wait=0)')
    assert (done.state("run"), done.xcom["run.webdata_page"]) == ("failed", "")
    done = run_dag('WebDataSearchOperator(task_id="find", query="x")', timeout="soon")
    assert (done.state("find"), done.xcom["find.webdata_dashboard"]) == ("failed", "")
    assert "timeout must be a number" in done.log
    assert "Failed to push an xcom" not in done.log


def test_stored_with_the_dag() -> None:
    """Airflow keeps the button's name and the XCom's key, of a mapped task too; no class of ours is loaded for it."""
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
    assert found == {"search": dashboard, "crawl": both, "each": both, "keep": both, "sense": both}
    assert [path.rpartition(".")[0] for path in get_provider_info()["extra-links"]] == [
        "airflow_provider_webdata.tasks.links"
    ] * 2


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("", "/webdata-ui/deliveries/delivery?id=7"),
        ("https://airflow.example", "https://airflow.example/webdata-ui/deliveries/delivery?id=7"),
        ("https://airflow.example/a/b/", "https://airflow.example/a/b/webdata-ui/deliveries/delivery?id=7"),
    ],
)
def test_address(monkeypatch: pytest.MonkeyPatch, base_url: str, expected: str) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    assert page_urls.page_url(page_urls.delivery_page(7)) == expected
