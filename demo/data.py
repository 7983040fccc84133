# SPDX-License-Identifier: Apache-2.0
"""Sixteen days of DAG runs, jobs, monitors, and deliveries in an Airflow that has just started."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from airflow_provider_webdata.inbox.wire import INBOX_PATH
from tests.support.service import CONNECTION_ID
from tests.support.stack import REPOSITORY

if TYPE_CHECKING:
    from tests.support.stack import Stack

SEEDED_DAGS = REPOSITORY / "tests" / "support" / "seeded_dags"
DAG_IDS = (
    "company_research",
    "competitor_prices",
    "docs_rag_refresh",
    "news_digest",
    "supplier_catalog_crawl",
)


def fill(stack: Stack, many: int = 0) -> None:
    """Write the rows, and let the sandbox continue from the state that belongs to them.

    :param many: number of additional deliveries.
    """
    stack.say("Airflow is parsing the DAGs")
    stack.wait_for_dags(DAG_IDS)
    stack.kill("sandbox")
    state = stack.home / "sandbox.db"
    for file in stack.home.glob(f"{state.name}*"):
        file.unlink()
    order = {
        "conn_id": CONNECTION_ID,
        "state": str(state),
        "webhook_url": f"{stack.airflow_url}{INBOX_PATH}/{CONNECTION_ID}",
        "webhook_secret": stack.webhook_secret,
        "many": many,
    }
    written = stack.python("-m", "tests.support.seed", given=json.dumps(order))
    stack.say(f"sixteen days: {written.splitlines()[-1]}")
    stack.restart_sandbox()
