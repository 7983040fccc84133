"""Remedies by error code, with the field names of the connection form; docs/errors.md explains each code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

UNTRUSTED = 'check "Base URL", "CA bundle" and "Verify TLS certificate"'
"""The remedy for certificate errors."""

REMEDIES: Mapping[str, str] = {
    "WD-010": 'check "Base URL" and "Proxy", and the network',
    "WD-011": 'another server may have responded: check "Base URL" and "Proxy"',
    "WD-012": 'request less data, or raise "Max response size (MB)"',
    "WD-017": 'check the host name in "Base URL" and "Proxy"',
    "WD-018": UNTRUSTED,
    "WD-030": "raise the timeout, or check the state of the job, check, or delivery",
    "WD-031": "inspect the job before a retry starts another one, which is billed",
    "WD-032": "inspect the check, or accept checks in this state",
    "WD-036": "check the service's dashboard",
    "WD-037": "compare with the monitors of the connection's team",
    "WD-062": "use a different id for each request",
    "WD-063": "wait: the same request returns the result later",
    "WD-061": "inspect XCom 'validation', and change the schema or the prompt",
    "WD-401": 'check "API Key"',
    "WD-402": "buy credits, or wait for the next billing period; then clear the task",
    "WD-403": "have the feature enabled for the team, or omit it",
    "WD-404": "check the id, and that it belongs to the team",
    "WD-429": "make fewer concurrent calls, or allow a longer wait",
    "WD-500": "try again later",
    "WD-503": "try again later, or allow a longer wait",
}

_OWN_WORDS = frozenset(
    {
        "",
        "WD-001",
        "WD-002",
        "WD-003",
        "WD-004",
        "WD-005",
        "WD-006",
        "WD-007",
        "WD-014",
        "WD-016",
        "WD-027",
        "WD-028",
        "WD-029",
        "WD-064",
        "WD-065",
    }
)
"""Codes of errors that do not concern the service, or whose message contains the remedy."""

_CODED = re.compile(r"(.*) \((WD-\d{3})\)", re.DOTALL)


def advice_for(code: str, text: str, conn_id: str) -> str:
    """Return the connection's name and the remedy for an error; empty if the message is sufficient."""
    if code in _OWN_WORDS:
        return ""
    remedy = UNTRUSTED if code == "WD-010" and "certificate" in text.lower() else REMEDIES.get(code, "")
    return f"Connection {conn_id!r}" + (f": {remedy}" if remedy else "")


def advised(text: str, conn_id: str) -> str:
    """Return an error message reported by a trigger, with the remedy inserted before its code.

    :param text: a message that ends with a code; any other text is returned unchanged.
    """
    coded = _CODED.fullmatch(text)
    if coded is None:
        return text
    message, code = coded.groups()
    advice = advice_for(code, message, conn_id)
    return f"{message.removesuffix('.')}. {advice} ({code})" if advice else text
