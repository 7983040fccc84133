"""The OpenAPI description of the inbox: schemathesis generates requests that match it or violate it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection

from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.inbox_server.http.openapi import document
from tests.integration.inbox.http.served_inbox import SECRET, ServedInbox, bearer
from tests.support.examples import EXAMPLES
from tests.support.waiting import PATIENCE

CONN_ID = "secret-described"
RIGHT = {SECRET_HEADER: SECRET, **bearer(CONN_ID)}
WRONG = {
    SECRET_HEADER: "not-the-secret-0123456789abcdef",
    **bearer(CONN_ID, "not-the-secret-0123456789abcdef"),
}
OPERATIONS = {
    "receive",
    "receiveByKey",
    "readDeliveries",
    "searchDeliveries",
    "readDelivery",
    "health",
    "describe",
}


DOCUMENT = document()
DESCRIBED = {
    operation.definition.raw["operationId"]: operation
    for operation in (found.ok() for found in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations())
}
some = settings(max_examples=min(EXAMPLES, 40), suppress_health_check=list(HealthCheck))
# Credentials and connection of a request; half of them can succeed.
callers = st.sampled_from(["authorized", "authorized", "another secret", "any connection"])
# Nothing in a request of these two can be invalid.
CASES = [(name, GenerationMode.POSITIVE) for name in sorted(OPERATIONS)]
CASES += [(name, GenerationMode.NEGATIVE) for name in sorted(OPERATIONS - {"health", "describe"})]


@pytest.mark.parametrize(("name", "mode"), CASES, ids=[f"{name}-{mode.value}" for name, mode in CASES])
def test_operation(on_sqlite: ServedInbox, name: str, mode: GenerationMode) -> None:
    """Schemathesis checks statuses, bodies, and types; that valid data is accepted and invalid data is rejected; and
    that the same request without its credentials is refused.
    """
    operation = DESCRIBED[name]
    on_sqlite.deliver(CONN_ID, b'{"type": "monitor.page", "id": "c"}', key="k")
    # A query has no types: as text, an integer is valid.
    excluded = [negative_data_rejection] if name == "readDeliveries" else []

    @some
    @given(case=operation.as_strategy(generation_mode=mode), caller=callers)
    def one(case: Any, caller: str) -> None:
        if caller != "any connection":
            _aim(case)
        # HTTP servers reject longer ones before the inbox sees them.
        assume(len(urlencode(case.query or {}, doseq=True, errors="replace")) < 60_000)
        headers = WRONG if caller == "another secret" else RIGHT
        answer = case.call_and_validate(
            base_url=on_sqlite.url, headers=headers, excluded_checks=excluded, timeout=PATIENCE
        )
        if headers is WRONG and operation.definition.raw.get("security"):
            assert answer.status_code in {401, 404, 405}

    one()


def _aim(case: Any) -> None:
    """Use an existing connection, and a cursor that the inbox has issued in place of another valid one."""
    if "conn_id" in (case.path_parameters or {}):
        case.path_parameters["conn_id"] = CONN_ID
    for part in (case.query, case.body):
        if isinstance(part, dict) and isinstance(part.get("after"), str) and part["after"].isdecimal():
            part["after"] = part["after"] if len(part["after"]) > 18 else part["after"][:3]
    if case.query and re.fullmatch(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", str(case.query.get("wait"))):
        # Long polls would take all of the test's time.
        case.query["wait"] = 0 if float(case.query["wait"]) <= 30 else case.query["wait"]


def test_the_description(on_sqlite: ServedInbox) -> None:
    assert on_sqlite.http.get("/webdata/inbox-openapi.json").json() == DOCUMENT
    assert DESCRIBED.keys() == OPERATIONS
