"""The inbox's own description, and whether it keeps to it: schemathesis makes up requests that fit it or do not."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection

from airflow_provider_webdata.inbox.server.http.openapi import document
from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from tests.integration.inbox.http.served_inbox import SECRET, ServedInbox, bearer
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
some = settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def try_out(
    served: ServedInbox, operation: Any, mode: GenerationMode, headers: dict[str, str], *, aimed: bool
) -> None:
    @some
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Any) -> None:
        if aimed:
            _aim(case)
        # What no HTTP server takes never gets as far as the inbox.
        assume(len(urlencode(case.query or {}, doseq=True, errors="replace")) < 60_000)
        # A query has no types: as a text, an integer is as good as any.
        left_out = [negative_data_rejection] if operation is DESCRIBED["readDeliveries"] else []
        answer = case.call_and_validate(
            base_url=served.url, headers=headers, excluded_checks=left_out, timeout=PATIENCE
        )
        if headers is WRONG and operation.definition.raw.get("security"):
            assert answer.status_code in {401, 404, 405}

    one()


# Nothing that is asked of these two could be wrong.
CASES = [(name, GenerationMode.POSITIVE) for name in sorted(OPERATIONS)]
CASES += [(name, GenerationMode.NEGATIVE) for name in sorted(OPERATIONS - {"health", "describe"})]


@pytest.mark.parametrize(("name", "mode"), CASES, ids=[f"{name}-{mode.value}" for name, mode in CASES])
class TestOperations:
    """All of schemathesis' checks: documented statuses, bodies and types; valid data taken, invalid refused; and that
    the same request without its credentials is refused.
    """

    def test_with_the_right_credentials(
        self, on_sqlite: ServedInbox, name: str, mode: GenerationMode
    ) -> None:
        on_sqlite.deliver(CONN_ID, b'{"type": "monitor.page", "id": "c"}', key="k")
        try_out(on_sqlite, DESCRIBED[name], mode, RIGHT, aimed=True)

    def test_with_wrong_credentials(self, on_sqlite: ServedInbox, name: str, mode: GenerationMode) -> None:
        try_out(on_sqlite, DESCRIBED[name], mode, WRONG, aimed=True)

    def test_of_any_connection(self, on_sqlite: ServedInbox, name: str, mode: GenerationMode) -> None:
        try_out(on_sqlite, DESCRIBED[name], mode, RIGHT, aimed=False)


def _aim(case: Any) -> None:
    """At a connection that there is, and where it is a cursor at all, at one that was given out."""
    if "conn_id" in (case.path_parameters or {}):
        case.path_parameters["conn_id"] = CONN_ID
    for part in (case.query, case.body):
        if isinstance(part, dict) and isinstance(part.get("after"), str) and part["after"].isdecimal():
            part["after"] = part["after"] if len(part["after"]) > 18 else part["after"][:3]
    if case.query and re.fullmatch(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", str(case.query.get("wait"))):
        # Long polls would take the whole of the test's time.
        case.query["wait"] = 0 if float(case.query["wait"]) <= 30 else case.query["wait"]


def test_the_description(on_sqlite: ServedInbox) -> None:
    assert on_sqlite.http.get("/webdata/inbox-openapi.json").json() == DOCUMENT
    assert DESCRIBED.keys() == OPERATIONS
