"""A remedy for each error, in the words of the connection form; docs/errors.md has more under the error's code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

REMEDIES: Mapping[str, str] = {
    "WD-010": 'check "Base URL" and "Proxy", and the network',
    "WD-011": 'another server may answer in the service\'s place: check "Base URL" and "Proxy"',
    "WD-012": 'ask for less, or raise "Max response size (MB)"',
    "WD-030": "give it more time, or look at what it waits for",
    "WD-031": "look at the job before a retry pays for another",
    "WD-032": "look at the check, or let such checks pass",
    "WD-036": "look at the service's dashboard",
    "WD-037": "compare with the monitors that its team has",
    "WD-062": "give each request a different id",
    "WD-063": "wait: the same request returns the answer later",
    "WD-061": "look at XCom 'validation', and change the schema or the prompt",
    "WD-401": 'check "API Key"',
    "WD-402": "buy credits, or wait for the next billing period; then clear the task",
    "WD-403": "have it enabled for the team, or leave it out",
    "WD-404": "check the id, and that the team has it",
    "WD-429": "make fewer concurrent calls, or allow a longer wait",
    "WD-500": "try again later",
    "WD-503": "try again later, or allow a longer wait",
}

UNTRUSTED = 'check "Base URL", "CA bundle" and "Verify TLS certificate"'
"""Where the certificate is the reason."""

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
        "WD-027",
        "WD-028",
        "WD-029",
        "WD-064",
    }
)
"""Codes of errors that have nothing to do with what the connection leads to, or say themselves what to change."""

_CODED = re.compile(r"(.*) \((WD-\d{3})\)", re.DOTALL)


def advice_for(code: str, text: str, conn_id: str) -> str:
    """Return which connection an error was met with, and what to do; empty where its message says enough."""
    if code in _OWN_WORDS:
        return ""
    remedy = UNTRUSTED if code == "WD-010" and "certificate" in text.lower() else REMEDIES.get(code, "")
    return f"Connection {conn_id!r}" + (f": {remedy}" if remedy else "")


def advised(text: str, conn_id: str) -> str:
    """Return the message of an error, as a trigger reported it, with the remedy in front of its code.

    :param text: a message that ends with a code; any other is returned unchanged.
    """
    coded = _CODED.fullmatch(text)
    if coded is None:
        return text
    message, code = coded.groups()
    advice = advice_for(code, message, conn_id)
    return f"{message}. {advice} ({code})" if advice else text
