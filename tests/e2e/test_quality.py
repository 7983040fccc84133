"""Results that fail their checks on a real Airflow: held back, billed once, and accepted by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.e2e.run import Run
from tests.support.stack import Stack
from webdata_sandbox.control import SandboxControl

SITE = "https://checked.example/"
CHALLENGE = "<title>Just a moment...</title><p>Verifying you are human. This may take a few seconds.</p>"


def test_results_that_fail_are_held_back_until_they_are_accepted(
    stack: Stack, start: Callable[..., Run], sandbox: SandboxControl, tmp_path: Path
) -> None:
    path = tmp_path / "pages.jsonl"
    pages = [SITE, *(f"{SITE}{number}" for number in range(9))]
    sandbox.set_site("checked.example", sitemap=pages)
    for url in pages:
        sandbox.set_page(url, f"<title>{url}</title><p>A kettle of steel, found at {url}.</p>")
    run = start("e2e_quality", {"path": str(path)})
    run.succeed()
    first = path.read_bytes()
    assert run.xcom("crawl", "quality")["items"] == 10

    for url in pages[5:]:
        sandbox.delete_page(url)
    sandbox.set_page(pages[1], CHALLENGE)
    sandbox.set_site("checked.example", sitemap=pages[:5])
    sandbox.clear_requests()
    run = start("e2e_quality", {"path": str(path)})
    assert run.wait_until_ended() == "failed"
    task = run.task("crawl")
    log = run.log(task)
    assert (
        "2 of 4 conditions failed: drop_vs_last: expected at least 7, because the previous run had 10, got 5"
        in log
    )
    assert f"blocked: expected at most 0.1, got 0.2 (1 of 5), such as {pages[1]}" in log
    assert task["try_number"] == 1
    assert len(sandbox.requests("/v2/crawl$", "POST")) == 1
    assert path.read_bytes() == first
    assert run.xcom("crawl", "quality_rejected")["blocked"] == {"challenge": 1}

    rejected = path.with_name("_pages.jsonl.rejected")
    assert f"{path} is unchanged, and the results are in {rejected}" in log
    rejected.replace(path)
    assert len(path.read_text().splitlines()) == 5
    assert [entry.name for entry in tmp_path.iterdir()] == ["pages.jsonl"]
    stack.api.call(
        "PATCH", f"/dags/e2e_quality/dagRuns/{run.id}/taskInstances/crawl", json={"new_state": "success"}
    )
    run.end("read")
    assert run.xcom("read") == str(path)
