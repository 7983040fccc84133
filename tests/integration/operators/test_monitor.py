"""The monitor operators in a real Airflow, against the sandbox over HTTP."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from tests.support.service import NEVER

CREATE = """
WebDataCreateMonitorOperator(task_id="keep", name="prices", schedule={schedule!r}, targets=TARGETS, {more})
"""


def create(more: str = "", schedule: dict | None = None) -> str:
    return CREATE.format(more=more, schedule=schedule or NEVER)


def monitors(sandbox, name="prices"):
    """Return the sandbox's monitors of this name that are not deleted."""
    return [m for m in sandbox.control.state()["monitors"] if m["name"] == name and m["status"] != "deleted"]


def writes(sandbox):
    """Return method, path and status of the requests that are no reads."""
    return [(r["method"], r["path"], r["status"]) for r in sandbox.control.requests() if r["method"] != "GET"]


@pytest.mark.rule("monitor-normalised")
def test_created_then_kept(run_dag, sandbox):
    """The first run creates, the second finds nothing to do; both return the monitor."""
    first = run_dag(create("goal='cheaper'"))
    second = run_dag(create("goal='cheaper'"))
    (monitor,) = monitors(sandbox)
    assert first.xcom["keep.return_value"]["id"] == second.xcom["keep.return_value"]["id"] == monitor["id"]
    assert second.xcom["keep.return_value"]["judgeEnabled"] is True
    assert writes(sandbox) == [("POST", "/v2/monitor", 200)]
    assert "is as declared" in second.log
    (post,) = sandbox.control.requests("/v2/monitor", method="POST")
    assert post["body"] == {
        "name": "prices",
        "schedule": NEVER,
        "targets": [{"type": "scrape", "urls": ["https://example.com/"]}],
        "goal": "cheaper",
    }


@pytest.mark.rule("target-ids", "monitor-update", "webhook-headers")
def test_only_what_differs_is_patched(run_dag, sandbox):
    """Targets keep their ids; the log names fields, no values."""
    first = run_dag(
        create("goal='cheaper', webhook={'url': 'https://h.example/', 'headers': {'X-Key': 'hush-one'}}")
    )
    before = first.xcom["keep.return_value"]
    sandbox.control.clear_requests()
    done = run_dag(
        create(
            "goal='dearer', retention_days='7', webhook={'url': 'https://h.example/', 'headers': {'X-Key': 'hush-two'}}"
        ).replace("TARGETS", "[*TARGETS, {'type': 'search', 'queries': ['price']}]")
    )
    (patch,) = sandbox.control.requests("/v2/monitor", method="PATCH")
    assert patch["body"] == {
        "goal": "dearer",
        "judgeEnabled": True,
        "retentionDays": 7,
        "webhook": {"url": "https://h.example/", "headers": {"X-Key": "hush-two"}},
        "targets": [
            {"type": "scrape", "urls": ["https://example.com/"], "id": before["targets"][0]["id"]},
            {"type": "search", "queries": ["price"]},
        ],
    }
    assert "differs in targets[1] (new), goal, retentionDays, webhook.headers; updating it" in done.log
    assert done.xcom["keep.return_value"]["webhook"]["headers"] == {"X-Key": "***"}
    assert done.run["rendered"]["keep"]["webhook"]["headers"] == {"X-Key": "***"}
    assert "hush" not in done.log
    assert writes(sandbox)[0][0] == "PATCH"


@pytest.mark.rule("schedule-stored")
@pytest.mark.parametrize("quirks", [[], ["schedule-spread"]])
@pytest.mark.parametrize("text", ["every 30 minutes", "daily", "daily at 9:30 am", "hourly at :05"])
def test_schedule_in_words_settles(run_dag, sandbox, text, quirks):
    """A moved schedule is no difference; one that names its time is insisted on once, then accepted."""
    sandbox.control.set_quirks(quirks)
    dag = f"""
    WebDataCreateMonitorOperator(task_id="keep", name="prices", schedule={{"text": {text!r}}}, targets=TARGETS)
    """
    before = "logical_dates = ['2026-01-01T00:00:00+00:00', '2026-01-02T00:00:00+00:00', '2026-01-03T00:00:00+00:00']"
    done = run_dag(dag, before)
    assert [run["state"] for run in done.runs] == ["success"] * 3
    assert writes(sandbox) == [("POST", "/v2/monitor", 200)]
    (monitor,) = monitors(sandbox)
    applied = {"text": text, "cron": monitor["schedule"]["cron"]}
    assert [run["xcom"]["keep.applied_schedule"] for run in done.runs] == [applied] * 3


def test_reuse_changes_nothing(run_dag, sandbox):
    run_dag(create())
    sandbox.control.clear_requests()
    done = run_dag(create("retention_days=7, if_exists='reuse'"))
    assert done.xcom["keep.return_value"]["retentionDays"] == 30
    assert writes(sandbox) == []


def test_error_if_it_exists(run_dag, sandbox):
    run_dag(create())
    (monitor,) = monitors(sandbox)
    done = run_dag(create("if_exists='error', retries=2"))
    assert done.run["tasks"]["keep"] == {"state": "failed", "try_number": 1}
    assert f"exists already: {monitor['id']}" in done.log


def test_create_makes_one_per_run(run_dag, sandbox):
    first = run_dag(create("if_exists='create'")).xcom["keep.return_value"]["id"]
    second = run_dag(create("if_exists='create'")).xcom["keep.return_value"]["id"]
    assert {monitor["id"] for monitor in monitors(sandbox)} == {first, second}
    assert first != second


@pytest.mark.rule("monitor-name-not-unique")
def test_two_of_a_name(run_dag, sandbox):
    """An error that names both ids; monitor_id says which one is meant."""
    ids = {run_dag(create("if_exists='create'")).xcom["keep.return_value"]["id"] for _ in range(2)}
    done = run_dag(create("retries=2"))
    assert done.run["tasks"]["keep"] == {"state": "failed", "try_number": 1}
    assert "2 monitors are named 'prices'" in done.log
    assert all(monitor_id in done.log for monitor_id in ids)
    chosen = min(ids)
    done = run_dag(create(f'monitor_id="{{{{ {chosen!r} }}}}", retention_days=7'))
    assert done.xcom["keep.return_value"]["id"] == chosen
    kept = {monitor["id"]: monitor["retentionDays"] for monitor in monitors(sandbox)}
    assert kept == {monitor_id: 7 if monitor_id == chosen else 30 for monitor_id in ids}


# What interrupts the first try just after the service acted, in words of a DAG file.
CRASH = """
from airflow_provider_webdata.hooks.webdata import WebDataHook

def crash_after(method, times=1):
    left = [times]
    real = getattr(WebDataHook, method)

    def act(self, *args, **kwargs):
        answer = real(self, *args, **kwargs)
        if left[0]:
            left[0] -= 1
            raise RuntimeError("the worker dies here")
        return answer

    class Hook(WebDataHook):
        pass

    setattr(Hook, method, act)
    return Hook

class Crashing:
    @property
    def hook(self):
        return self.__dict__.setdefault("_hook", HOOK(self.webdata_conn_id))

    hook = hook.setter(lambda self, value: None)
"""
CRASHING_CREATE = (
    CRASH
    + """
HOOK = crash_after("create_monitor")

class Create(Crashing, WebDataCreateMonitorOperator):
    pass
"""
)
RETRY = "retries=1, retry_delay=datetime.timedelta(0), replica_wait=5"


@pytest.mark.rule("late-reads", "repeat-unsafe")
@pytest.mark.parametrize("if_exists", ["update", "reuse", "error", "create"])
@pytest.mark.parametrize("quirks", [[], ["late-replica=2"]])
def test_crash_after_the_request(run_dag, sandbox, if_exists, quirks):
    """Between the service's answer and the stored id: the retry finds the monitor, late replica or not."""
    if if_exists == "create":
        # Another of the same name that was there before; where Airflow keeps no state, its content tells.
        run_dag(create().replace("TARGETS", "[{'type': 'scrape', 'urls': ['https://other.example']}]"))
    sandbox.control.set_quirks(quirks)
    sandbox.control.clear_requests()
    done = run_dag(
        create(f"if_exists='{if_exists}', {RETRY}").replace("WebDataCreateMonitorOperator", "Create"),
        CRASHING_CREATE,
    )
    assert done.run["tasks"]["keep"] == {"state": "success", "try_number": 2}
    assert "the worker dies here" in done.log
    assert [method for method, _, _ in writes(sandbox)] == ["POST"]
    assert len(monitors(sandbox)) == (2 if if_exists == "create" else 1)
    newest = max(monitors(sandbox), key=lambda monitor: monitor["createdAt"])
    assert done.xcom["keep.return_value"]["id"] == newest["id"]


def test_crash_before_the_request(run_dag, sandbox):
    """Nothing was made: the retry looks for a while, then makes it."""
    before = CRASHING_CREATE.replace(
        "        answer = real(self, *args, **kwargs)\n        if left[0]:",
        "        answer = None if left[0] else real(self, *args, **kwargs)\n        if left[0]:",
    )
    done = run_dag(
        create("retries=1, retry_delay=datetime.timedelta(0), replica_wait=1").replace(
            "WebDataCreateMonitorOperator", "Create"
        ),
        before,
    )
    assert done.run["tasks"]["keep"] == {"state": "success", "try_number": 2}
    assert len(monitors(sandbox)) == 1


LOST_ANSWERS = ["drop_after_work", "truncate", "garbage"]


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("kind", LOST_ANSWERS)
def test_lost_answer(run_dag, sandbox, kind):
    """The monitor was created and the answer got lost: it is found in the same try, and nothing is repeated."""
    sandbox.control.set_quirks(["late-replica=1"])
    sandbox.control.add_fault(kind, method="POST", path="/v2/monitor")
    done = run_dag(create())
    (monitor,) = monitors(sandbox)
    assert done.run["tasks"]["keep"] == {"state": "success", "try_number": 1}
    assert done.xcom["keep.return_value"]["id"] == monitor["id"]
    assert len(sandbox.control.requests("/v2/monitor", method="POST")) == 1


def test_fault_before_work(run_dag, sandbox):
    """Nothing was created: nothing is found, the try fails, the retry creates."""
    sandbox.control.add_fault("html", method="POST", path="/v2/monitor")
    done = run_dag(create("retries=1, retry_delay=datetime.timedelta(0), replica_wait=1"))
    assert done.run["tasks"]["keep"] == {"state": "success", "try_number": 2}
    assert len(monitors(sandbox)) == 1


@pytest.mark.rule("retry-after")
def test_rate_limited_write(run_dag, sandbox):
    """Writes share two a minute on the smallest plan: the task comes back, with one monitor in the end."""
    sandbox.control.add_fault(
        "status", method="POST", path="/v2/monitor", status=429, headers={"Retry-After": "1"}
    )
    done = run_dag(create(), retry_budget=0)
    assert done.run["tasks"]["keep"] == {"state": "success", "try_number": 1}
    assert len(done.run["reschedules"]) == 1
    assert len(monitors(sandbox)) == 1


@pytest.mark.rule("monitor-estimate")
def test_too_expensive_to_create(run_dag, sandbox):
    """Over the limit, nothing new stays behind."""
    done = run_dag(create("max_credits_per_month='{{ 10 }}', retries=2", {"cron": "*/5 * * * *"}))
    assert done.run["tasks"]["keep"] == {"state": "failed", "try_number": 1}
    assert "over max_credits_per_month=10; it was deleted again" in done.log
    assert monitors(sandbox) == []
    (deleted,) = [m for m in sandbox.control.state()["monitors"] if m["name"] == "prices"]
    assert deleted["status"] == "deleted"


@pytest.mark.rule("monitor-estimate")
def test_too_expensive_to_change(run_dag, sandbox):
    """Over the limit, the former values are put back."""
    more = "goal='cheaper', max_credits_per_month=2000"
    run_dag(create(more))
    (before,) = monitors(sandbox)
    # None of its checks falls due before the former schedule is back.
    often = {"cron": f"{(datetime.now(timezone.utc).minute + 3) % 5}-59/5 * * * *"}
    done = run_dag(create(more.replace("cheaper", "dearer"), often))
    assert done.state("keep") == "failed"
    assert "its former values were put back" in done.log
    (after,) = monitors(sandbox)
    changing = {"updatedAt", "nextRunAt"}
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }


def test_cheap_enough(run_dag, sandbox):
    done = run_dag(create("max_credits_per_month=100000"))
    assert done.run["state"] == "success"
    assert len(monitors(sandbox)) == 1


BAD_INPUT = {
    "endless crawl": (
        "targets=[{'type': 'crawl', 'url': 'https://example.com'}]",
        ["targets[0].crawlOptions.limit", "10,000 credits", "allow_unlimited_crawl=True"],
    ),
    "search target without goal": ("targets=[{'type': 'search', 'queries': ['q']}]", ["goal"]),
    "cron and text": ("targets=TARGETS, schedule={'cron': '0 * * * *', 'text': 'hourly'}", ["cron", "text"]),
    "limit of credits": ("targets=TARGETS, max_credits_per_month='few'", ["max_credits_per_month", "'few'"]),
    "plain http webhook": ("targets=TARGETS, webhook='http://h.example'", ["webhook", "https"]),
    "wrong scrape option": (
        "targets=[{'type': 'scrape', 'urls': ['https://a.example'], 'scrapeOptions': {'waitFor': '{{ \"x\" }}'}}]",
        ["targets[0].scrapeOptions.waitFor", "a whole number is expected"],
    ),
}  # fmt: skip


@pytest.mark.rule("target-crawl-limit")
@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(run_dag, sandbox, arguments, words):
    if "schedule=" not in arguments:
        arguments += ", schedule={'cron': '0 * * * *'}"
    done = run_dag(f"WebDataCreateMonitorOperator(task_id='keep', name='n', retries=3, {arguments})")
    assert done.run["tasks"]["keep"] == {"state": "failed", "try_number": 1}
    assert sandbox.control.requests() == []
    for word in words:
        assert word in done.log


@pytest.mark.rule("target-crawl-limit")
def test_unlimited_crawl_on_request(run_dag, sandbox):
    """Allowed where it is asked for, with the cost said in the log."""
    dag = create("allow_unlimited_crawl=True").replace(
        "TARGETS", "[{'type': 'crawl', 'url': 'https://example.com'}]"
    )
    done = run_dag(dag)
    assert done.run["state"] == "success"
    assert "10,000 credits" in done.log


@pytest.mark.rule("monitor-status", "monitor-update-goal", "monitor-resume", "monitor-delete", "monitor-run")
def test_life_of_a_monitor(run_dag, sandbox):
    """Create, pause, resume, rename, run, list, delete: by id from XCom, and by name."""
    sandbox.control.configure(queue_seconds=3600)
    done = run_dag(
        create()
        + """
WebDataCreateMonitorOperator(task_id="other", name="other", schedule={"text": "daily"}, targets=TARGETS) >> [
    WebDataListMonitorsOperator(task_id="list_other", name_pattern="oth*"),
    WebDataListMonitorsOperator(task_id="list_paused", status="paused"),
    WebDataListMonitorsOperator(task_id="list_one", limit="{{ 1 }}"),
]
by_id = {"monitor_id": "{{ ti.xcom_pull('keep')['id'] }}"}
by_name = {"monitor_name": "prices"}
(
    dag.get_task("keep")
    >> WebDataUpdateMonitorOperator(task_id="pause", status="paused", **by_id)
    >> WebDataUpdateMonitorOperator(task_id="pause_again", status="paused", **by_name)
    >> WebDataRunMonitorOperator(task_id="run_paused", retries=2, **by_id)
    >> WebDataUpdateMonitorOperator(task_id="resume", status="active", trigger_rule="all_done", **by_id)
    >> WebDataUpdateMonitorOperator(task_id="change", name="costs", goal="cheaper", **by_name)
    >> WebDataRunMonitorOperator(task_id="run", **by_id)
    >> WebDataDeleteMonitorOperator(task_id="delete", **by_id)
    >> WebDataDeleteMonitorOperator(task_id="delete_again", **by_id)
    >> WebDataDeleteMonitorOperator(task_id="delete_strictly", ignore_missing=False, **by_id)
)
"""
    )
    names = [name for name in done.run["tasks"] if not name.startswith(("delete_strictly", "run_paused"))]
    assert {name: done.state(name) for name in names} == dict.fromkeys(names, "success")
    value = {name: done.xcom.get(f"{name}.return_value") for name in done.run["tasks"]}
    monitor_id = value["keep"]["id"]
    assert [monitor["name"] for monitor in value["list_other"]] == ["other"]
    assert len(value["list_one"]) == 1
    assert value["pause"]["status"] == value["pause_again"]["status"] == "paused"
    assert done.run["tasks"]["run_paused"] == {"state": "failed", "try_number": 1}
    assert value["resume"]["status"] == "active"
    assert (value["change"]["name"], value["change"]["judgeEnabled"]) == ("costs", True)
    assert value["run"]["monitorId"] == monitor_id
    assert value["run"]["trigger"] == "manual"
    assert value["delete"] == {"id": monitor_id, "deleted": True}
    assert value["delete_again"] == {"id": monitor_id, "deleted": False}
    assert done.state("delete_strictly") == "failed"
    patches = [request["body"] for request in sandbox.control.requests("/v2/monitor", method="PATCH")]
    assert patches == [
        {"status": "paused"},
        {"status": "paused"},
        {"status": "active", "schedule": {**NEVER, "timezone": "UTC"}},
        {"name": "costs", "goal": "cheaper", "judgeEnabled": True},
    ]


@pytest.mark.rule("late-reads")
@pytest.mark.parametrize(
    "which", ["monitor_id=\"{{ ti.xcom_pull('keep')['id'] }}\"", "monitor_name='prices'"]
)
def test_late_replica(run_dag, sandbox, which):
    """A monitor that was just created is missing at first; what a stale read shows is not taken for true."""
    sandbox.control.set_quirks(["late-replica=2"])
    done = run_dag(
        create()
        + f"""
(
    dag.get_task("keep")
    >> WebDataUpdateMonitorOperator(task_id="pause", status="paused", {which})
    >> WebDataUpdateMonitorOperator(task_id="resume", status="active", {which})
)
"""
    )
    assert done.run["state"] == "success"
    (monitor,) = monitors(sandbox)
    assert monitor["status"] == "active"
    assert [
        request["body"]["status"] for request in sandbox.control.requests("/v2/monitor", method="PATCH")
    ] == [
        "paused",
        "active",
    ]


@pytest.mark.rule("monitor-run-conflict")
def test_run_when_one_is_running(run_dag, sandbox):
    """Its id comes from the conflict; returning it or failing is a choice."""
    sandbox.control.configure(check_seconds=3600)
    done = run_dag(
        create()
        + """
(
    dag.get_task("keep")
    >> WebDataRunMonitorOperator(task_id="first", monitor_name="prices")
    >> task(task_id="settle")(lambda: settle())()
    >> WebDataRunMonitorOperator(task_id="second", monitor_name="prices")
    >> WebDataRunMonitorOperator(task_id="third", monitor_name="prices", if_running="error", retries=2)
)
""",
        f"""
        from airflow_provider_webdata.sandbox.control import SandboxControl
        settle = SandboxControl({sandbox.url!r}).settle
        """,
    )
    assert done.xcom["second.return_value"]["id"] == done.xcom["first.return_value"]["id"]
    assert "pages" not in done.xcom["second.return_value"]
    assert done.run["tasks"]["third"] == {"state": "failed", "try_number": 1}
    assert "is running already (if_running='error')" in done.log
    assert len(sandbox.control.state()["checks"]) == 1


@pytest.mark.rule("late-reads", "monitor-run")
def test_run_of_a_monitor_just_created(run_dag, sandbox):
    """The replica does not know the monitor yet: a 404 started nothing and is waited out."""
    sandbox.control.configure(queue_seconds=3600)
    unknown = {"status": 404, "body": {"success": False, "error": "Monitor not found"}}
    sandbox.control.add_fault("status", path="/v2/monitor/.*/checks", times=2, **unknown)
    sandbox.control.add_fault("status", path="/v2/monitor/.*/run", **unknown)
    done = run_dag(
        create()
        + """
dag.get_task("keep") >> WebDataRunMonitorOperator(task_id="run", monitor_id="{{ ti.xcom_pull('keep')['id'] }}")
"""
    )
    (check,) = sandbox.control.state()["checks"]
    assert done.xcom["run.return_value"]["id"] == check["id"]
    assert [request["status"] for request in sandbox.control.requests("/v2/monitor/.*/run")] == [404, 200]


@pytest.mark.rule("repeat-unsafe", "monitor-run-twice")
def test_lost_answer_of_run(run_dag, sandbox):
    """A run is never repeated blindly: the check that was started is found."""
    sandbox.control.configure(queue_seconds=3600)
    sandbox.control.add_fault("drop_after_work", method="POST", path="/v2/monitor/.*/run")
    done = run_dag(
        create()
        + """
dag.get_task("keep") >> WebDataRunMonitorOperator(task_id="run", monitor_name="prices", replica_wait=5)
"""
    )
    (check,) = sandbox.control.state()["checks"]
    assert done.xcom["run.return_value"]["id"] == check["id"]


@pytest.mark.rule("monitor-run-twice")
def test_crash_after_run(run_dag, sandbox):
    """The retry finds the check of the first try."""
    sandbox.control.configure(queue_seconds=3600)
    before = (
        CRASH
        + """
HOOK = crash_after("run_monitor")

class Run(Crashing, WebDataRunMonitorOperator):
    pass
"""
    )
    done = run_dag(
        create() + f"dag.get_task('keep') >> Run(task_id='run', monitor_name='prices', {RETRY})", before
    )
    (check,) = sandbox.control.state()["checks"]
    assert done.run["tasks"]["run"] == {"state": "success", "try_number": 2}
    assert done.xcom["run.return_value"]["id"] == check["id"]


@pytest.mark.rule("monitor-get")
def test_missing_monitor(run_dag, sandbox):
    """Not there, by id and by name; after looking as long as replica_wait says."""
    done = run_dag(
        """
        WebDataUpdateMonitorOperator(task_id="by_name", monitor_name="nobody", status="paused", replica_wait=0)
        WebDataUpdateMonitorOperator(
            task_id="by_id", monitor_id="00000000-0000-4000-8000-000000000000", status="paused", replica_wait=0
        )
        WebDataDeleteMonitorOperator(task_id="delete", monitor_name="nobody", replica_wait=0)
        """
    )
    assert done.state("by_name") == done.state("by_id") == "failed"
    assert "There is no monitor named 'nobody'" in done.log
    assert "There is no monitor with the id '00000000" in done.log
    assert done.xcom["delete.return_value"] == {"id": None, "deleted": False}


@pytest.mark.rule("monitor-list")
def test_many_monitors(run_dag, sandbox):
    """Names are looked for on every page of the list."""
    from airflow_provider_webdata.api.client import ClientConfig, WebDataClient
    from airflow_provider_webdata.api.endpoints import CREATE_MONITOR
    from airflow_provider_webdata.api.models import MonitorCreateRequest

    with WebDataClient(ClientConfig(sandbox.url, sandbox.api_key)) as client:
        for number in range(105):
            name = "prices" if number == 0 else f"m-{number}"
            body = {
                "name": name,
                "schedule": NEVER,
                "targets": [{"type": "scrape", "urls": ["https://e.example"]}],
            }
            client.call(CREATE_MONITOR, body=MonitorCreateRequest.model_validate(body))
    done = run_dag("WebDataDeleteMonitorOperator(task_id='delete', monitor_name='prices')")
    assert done.xcom["delete.return_value"]["deleted"] is True
    assert len([m for m in sandbox.control.state()["monitors"] if m["status"] != "deleted"]) == 104
