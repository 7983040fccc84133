# SPDX-License-Identifier: Apache-2.0
"""Refusals of a proxy are found in its log, and are known or not."""

from __future__ import annotations

from collections import Counter

LOG = """
\u203a [HTTP SERVER] \x1b[90mget\x1b[39m /v2/extract/01234567-89ab-cdef-0123-456789abcdef info Request received
\u203a     [VALIDATOR] error     Violation: response.body.data Response body property data must be object
\u203a [HTTP SERVER] post /v2/search info Request received
\u203a     [VALIDATOR] error     Violation: request.body.sources.0 Request body property sources.0 must be object
\u203a     [VALIDATOR] error     Violation: request.body.sources.0 Request body property sources.0 must be object
\u203a     [VALIDATOR] error     Violation: request.body.limit Request body property limit must be integer
"""


def test_refusals() -> None:
    from tools.conformance.__main__ import refusals, unexplained

    found = refusals(LOG)
    assert found == Counter(
        {
            "get /v2/extract/ID: response.body.data Response body property data must be object": 1,
            "post /v2/search: request.body.sources.0 Request body property sources.0 must be object": 2,
            "post /v2/search: request.body.limit Request body property limit must be integer": 1,
        }
    )
    (unknown,) = unexplained(found)
    assert "limit must be integer" in unknown
    # The same refusal elsewhere has no reason.
    assert unexplained(
        Counter({"get /v2/map: response.body.data Response body property data must be object": 1})
    )
