# SPDX-License-Identifier: Apache-2.0
"""Routes, roles, hostile parameters and hostile answers of the service, drawn at random from a seed."""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections import Counter
from typing import Any

from airflow_provider_webdata.inbox.envelope import NotJSONError
from airflow_provider_webdata.ui.application import VIEWS
from tests.integration.ui.conftest import HOSTILE, ODD, SECRET, Pages
from tests.integration.ui.test_access import ROLES, ids, params_of
from tests.integration.ui.test_hostile import PARAMETERS, TRICKS
from tests.support.fuzz import FACTOR, SEED

__all__ = ["ids"]

PARAMETER_TRICKS = (
    *TRICKS,
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-12:00",
    "10000000000000000",
    "../../variables/db_password",
    "0.0.0",
    "a" * 2001,
    "\u00e9\u0301",
    "payroll",
    "ledger",
)
ATOMS: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**400,
    -(10**400),
    1e308,
    float("nan"),
    float("inf"),
    "",
    HOSTILE,
    "javascript:alert(1)",
    "\ud800",
    "x" * 5000,
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-12:00",
    "* * * * *",
    "completed",
    [],
    {},
    [HOSTILE] * 3000,
    {HOSTILE: {"previous": 10**400, "current": "\ud800"}},
    json.loads("[" * 100 + "]" * 100),
)
CHECK = {
    "id": "check",
    "monitorId": "monitor",
    "status": "completed",
    "createdAt": "2026-01-01T00:00:00Z",
    "finishedAt": "2026-01-01T00:00:00Z",
    "actualCredits": 3,
    "summary": {"same": 1, "new": 1, "changed": 1, "removed": 1, "error": 1},
    "error": "none",
    "pages": [
        {
            "url": "https://river.example/",
            "status": "changed",
            "diff": {"text": "-a\n+b", "json": {"price": {"previous": 1, "current": 2}}},
            "judgment": {"meaningful": True, "confidence": "high", "reason": "price"},
            "snapshot": {"screenshot": "data:image/png;base64,AA=="},
        }
    ],
}
MONITOR = {
    "id": "monitor",
    "name": "river",
    "goal": "prices",
    "status": "active",
    "schedule": {"cron": "0 9 * * *", "timezone": "UTC"},
    "nextRunAt": "2026-01-01T00:00:00Z",
    "lastRunAt": "2026-01-01T00:00:00Z",
    "lastCheckSummary": {"same": 1, "changed": 1},
    "estimatedCreditsPerMonth": 30,
    "webhook": {"url": "https://elsewhere.example/", "metadata": {"dag_id": "shop", "task_id": "keep"}},
    "notification": {"email": {"enabled": True}},
    "targets": [{"type": "scrape", "urls": ["https://river.example/"]}],
}
JOB = {
    "id": "job",
    "status": "scraping",
    "completed": 1,
    "total": 3,
    "creditsUsed": 2,
    "expiresAt": "2026-01-01T00:00:00Z",
    "data": [],
}
DELIVERY = {
    "type": "crawl.page",
    "id": "job",
    "success": True,
    "data": [MONITOR, CHECK],
    "metadata": {"a": "b"},
}
ANSWERS: tuple[tuple[str, dict[str, Any]], ...] = (
    (r"/errors", {"errors": [{"url": "https://river.example/", "error": "no", "code": "X"}]}),
    (
        r"/queue-status",
        {"jobsInQueue": 1, "activeJobsInQueue": 1, "waitingJobsInQueue": 1, "maxConcurrency": 2},
    ),
    (r"/monitor/[^/?]+/checks?/", {"data": CHECK}),
    (r"/monitor/[^/?]+/checks", {"data": [CHECK]}),
    (r"/monitor/[^/?]+", {"data": MONITOR}),
    (r"/monitor", {"data": [MONITOR]}),
    (r"", JOB),
)


def hostile(draw: random.Random, value: Any) -> Any:
    """Return a value with some of its parts replaced, renamed, repeated or left out."""
    if draw.random() < 0.12:
        return draw.choice(ATOMS)
    if isinstance(value, dict):
        return {name: hostile(draw, item) for name, item in value.items() if draw.random() > 0.05}
    if isinstance(value, list):
        return [hostile(draw, item) for item in value * draw.choice((1, 1, 1, 60))]
    return value


def answer(draw: random.Random, path: str) -> tuple[int, bytes]:
    """Return a response that has about the shape that the path needs."""
    if draw.random() < 0.08:
        return draw.choice(
            [(500, b"x"), (429, b"{}"), (302, b""), (200, b"<html>"), (200, b"[" * 9999), (404, b"{")]
        )
    whole = next(whole for pattern, whole in ANSWERS if re.search(pattern, path))
    body = {name: hostile(draw, value) for name, value in whole.items()}
    return 200, json.dumps({"success": True, **body}).encode()


def test_fuzz(pages: Pages, ids: dict[str, Any]) -> None:
    """No error of the server, no markup, no secret, and for each role nothing of what it may not read."""
    draw = random.Random(SEED)
    times: Counter[str] = Counter()

    def served(path: str) -> tuple[int, bytes]:
        # The requests of one page arrive in any order.
        times[path] += 1
        return answer(random.Random(f"{SEED} {path} {times[path]}"), path)

    pages.odd.answer = served
    seen: set[int] = set()
    deliveries = []
    for _ in range(20):
        # The inbox stores nothing that is not JSON, such as NaN.
        with contextlib.suppress(NotJSONError):
            deliveries.append(pages.deliver({name: hostile(draw, value) for name, value in DELIVERY.items()}))
    for number in range(300 * FACTOR):
        path, role = draw.choice(list(VIEWS)), draw.choice(ROLES)
        params = params_of(path, ids)
        if "conn_id" in params:
            params["conn_id"] = draw.choice(ODD)
        if path.startswith("/inbox/"):
            params["id"] = draw.choice(deliveries)
        for name in ("monitor_id", "job_id", "check_id"):
            # Each is another question, whose answer no cache has.
            if name in params:
                params[name] = f"{name}-{number}"
        tampered = draw.random() < 0.5
        if tampered:
            for name in draw.sample(PARAMETERS[path], draw.randint(0, len(PARAMETERS[path]))):
                params[name] = draw.choice(PARAMETER_TRICKS)
        found = pages.get(path, role, **params)
        case = (SEED, number, path, role, params)
        seen.add(found.status_code)
        assert found.status_code in {200, 400, 403, 404}, (case, found.text[-1000:])
        if found.headers["content-type"].startswith("text/csv"):
            # A browser saves it, and runs nothing in it.
            assert found.headers["content-disposition"].startswith("attachment"), case
        else:
            assert "<script>alert" not in found.text, case
            assert 'href="javascript:' not in found.text, case
        assert pages.sandbox.api_key not in found.text, case
        assert len(found.content) < 2**22, case
        if role == "admin" and not tampered:
            # Whatever the service says, there is a page.
            # Only a hostile delivery may have no first part.
            assert found.is_success or path == "/inbox/body", (case, found.text[-1000:])
        if role != "admin":
            assert "secret_crawl" not in found.text, case
        if role in {"guest", "viewer"}:
            assert SECRET not in found.text, case
        if role in {"guest", "viewer"} and VIEWS[path].right == "connection":
            assert found.status_code in {400, 403}, case
    assert {200, 400, 403} <= seen
