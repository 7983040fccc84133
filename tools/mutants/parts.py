# SPDX-License-Identifier: Apache-2.0
"""The mutated parts of the package, their tests, and samples of mutants."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """Files of the package, and test files or folders; both as glob patterns.

    :param sources: patterns relative to the package.
    :param tests: patterns relative to `tests/`. A pattern without matches is ignored if another one has matches.
    """

    sources: tuple[str, ...]
    tests: tuple[str, ...]


PARTS: dict[str, Part] = {
    "api/exchange": Part(("api/exchange.py",), ("unit/api/test_*.py", "integration/api")),
    "api/prices": Part(
        ("api/prices.py",),
        ("unit/api/test_prices.py", "unit/runs/searches"),
    ),
    "api/retry": Part(("api/retry.py",), ("unit/api/test_*.py", "integration/api")),
    "hooks/call_guard": Part(
        ("hooks/call_guard.py",),
        ("unit/hooks", "integration/hooks", "integration/toolsets/test_web_tools.py"),
    ),
    "inbox/auth": Part(
        ("inbox_server/http/auth.py",),
        ("unit/inbox", "integration/inbox/http/test_receive.py", "integration/inbox/http/test_reading.py"),
    ),
    "inbox/envelope": Part(
        ("inbox/envelope.py",),
        ("unit/inbox", "integration/inbox/http/test_receive.py", "integration/inbox/http/test_reading.py"),
    ),
    "inbox/storage": Part(
        tuple(
            f"inbox_server/storage/{name}.py" for name in ("feed", "searches", "sequencer", "store", "writer")
        ),
        (
            "integration/inbox/storage/test_store.py",
            "integration/inbox/storage/test_order.py",
            "integration/inbox/storage/test_feed.py",
            "integration/inbox/storage/test_writer.py",
        ),
    ),
    "inbox/tokens": Part(
        ("inbox/tokens.py",),
        ("unit/inbox", "integration/inbox/http/test_receive.py", "integration/inbox/http/test_reading.py"),
    ),
    "results/changes": Part(
        ("results/changes/*.py", "runs/publishing/consumers.py", "runs/publishing/detect_changes.py"),
        (
            "unit/results/changes",
            "unit/runs/publishing",
            "integration/operators/test_changed_results.py",
        ),
    ),
    "states": Part(("states/*.py",), ("unit/states", "integration/triggers")),
    "runs/jobs/start": Part(
        ("runs/jobs/start.py", "states/job_decision.py", "states/task_record.py", "hooks/task_memory.py"),
        (
            "unit/runs/jobs",
            "unit/states",
            "integration/operators/test_job_start.py",
            "integration/operators/test_credits.py",
        ),
    ),
    "runs/money": Part(
        ("runs/money/*.py", "runs/billed_response.py", "runs/searches/answer_files.py"),
        (
            "unit/hooks/test_ledger.py",
            "unit/runs/test_billed_response.py",
            "unit/runs/test_call.py",
            "integration/operators/test_batch_search_kills.py",
            "integration/operators/test_credits.py",
            "integration/operators/test_paid_once.py",
            "integration/operators/test_provider_operator.py",
        ),
    ),
    "results/tables/load": Part(("results/tables/load.py",), ("unit/results/tables", "integration/tables")),
    "toolsets": Part(("toolsets/*.py",), ("unit/toolsets", "integration/toolsets")),
    "waiting": Part(
        ("waiting/*.py", "waiting/*/*.py", "triggers/base/*.py"),
        (
            "unit/waiting",
            "unit/triggers",
            "unit/sensors",
            "integration/triggers",
            "integration/sensors",
        ),
    ),
}


def sample(names: list[str], size: int, seed: int) -> list[str]:
    """Return `size` of the names, all for 0. The choice depends only on the names and the seed."""
    chosen = sorted(names, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
    return sorted(chosen[: size or None])
