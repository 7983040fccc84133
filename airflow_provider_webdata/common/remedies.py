"""Remedies by error code, with the field names of the connection form; docs/errors.md explains each code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_provider_webdata.common.clean_text import cleaned
from airflow_provider_webdata.common.links import error_link

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BILLED = ", which is billed"
"""Part of remedies that a server without billing makes wrong."""

LOST = "check the service before you repeat the call"
"""The remedy for a lost response."""

REMEDIES: Mapping[str, str] = {
    "WD-001": "correct the field of the connection, then click its test button",
    "WD-002": "change the listed values; nothing was billed",
    "WD-003": "correct the argument",
    "WD-004": "correct the query or the time filter",
    "WD-005": "correct the location, or install what it needs",
    "WD-006": "correct the option in airflow.cfg or its variable AIRFLOW__WEBDATA__..., and restart the server",
    "WD-007": "upgrade the triggerer, then clear the task",
    "WD-008": "correct the id in the task if it is misspelled",
    "WD-009": "set the variable for this process, then restart it",
    "WD-010": 'check "Base URL" and "Proxy", and the network',
    "WD-011": 'another server may have responded: check "Base URL" and "Proxy"',
    "WD-012": 'request less data, or raise "Max response size (MB)"',
    "WD-013": "write the file completely before the task runs; nothing was billed",
    "WD-014": "split the file, or scrape its public URL",
    "WD-015": 'run the task sooner after the scrape, or list the host in "Media hosts"',
    "WD-016": "use a connection to a server that supports the call, or change the call",
    "WD-017": 'check the host name in "Base URL" and "Proxy"',
    "WD-018": 'check "Base URL", "CA bundle" and "Verify TLS certificate"',
    "WD-019": 'set "Client certificate" of the connection to one that the server trusts',
    "WD-020": "if it fails again, open the page, and correct the URL or the actions, or raise timeout",
    "WD-021": "omit the page: the service refuses it for every team",
    "WD-022": "omit min_age and lockdown to fetch the page",
    "WD-023": "wait, or lower maxPages of the PDF parser",
    "WD-024": "use another key to start another crawl",
    "WD-025": "put fewer URLs into one job, or correct the schema",
    "WD-026": "wait for the job, for example with WebDataJobSensor",
    "WD-027": "raise the cap, allow the host, or request less",
    "WD-028": "correct the URL, the file, or the option, or omit the page: each attempt fails the same way",
    "WD-029": "clear the task once the terms are accepted",
    "WD-030": "raise the timeout, or check the state of the job, check, or delivery",
    "WD-031": f"inspect the job before a retry starts another one{_BILLED}",
    "WD-032": "inspect the check, or accept checks in this state",
    "WD-033": "correct or omit the failed URLs or queries, or set a higher max_error_ratio (1 accepts all failures)",
    "WD-034": "set what the message names, request less, or raise or omit credit_limit",
    "WD-035": "save the response from XCom 'unpublished' before you clear the task, which repeats the call",
    "WD-036": "find out whether it exists before you clear the task, which may start another one",
    "WD-037": "compare with the monitors of the connection's team",
    "WD-038": "change the monitor, or the argument that does not allow its state",
    "WD-039": "read the step's output in XCom 'steps', and correct its code or raise its timeout",
    "WD-040": "check that the API server runs, and request <address>/webdata/inbox-health",
    "WD-041": "configure the same connection for the API server and the triggerer, and synchronize their clocks",
    "WD-042": "set [webdata] inbox = True on the API server, run `airflow db migrate`, and restart it",
    "WD-043": "install the same release on the API server and the triggerer",
    "WD-044": "keep deliveries for longer than the longest wait: [webdata] inbox_retention_days",
    "WD-045": "nothing is needed: polling makes up for lost deliveries",
    "WD-050": "run `airflow webdata doctor` on the API server, and repair its database or its Fernet key",
    "WD-051": "create the tables, then check them with `airflow webdata doctor`",
    "WD-052": "install the newer release again, or downgrade the tables with it first",
    "WD-060": "correct the table, the file, or the argument, then clear the task, which calls no service",
    "WD-061": "inspect XCom 'validation', and change the schema or the prompt",
    "WD-062": "use a different id for each request",
    "WD-063": "wait: the same request returns the result later",
    "WD-064": "inspect the rejected results before you publish them or clear the task",
    "WD-065": "after that, clear the task, or let it retry",
    "WD-066": "buy credits, or wait for the next billing period; then clear the task",
    "WD-067": "check less often or fewer pages, or raise max_credits_per_month",
    "WD-068": "read XCom 'partial', then raise max_credits or request less",
    "WD-069": "check that the database is available, then clear the task, which calls no service",
    "WD-070": "ask the service what became of the request before you clear the task",
    "WD-071": "let the task retry, or find out whether the job exists before you clear the task",
    "WD-072": "find out what the service still runs for this task before you clear it",
    "WD-200": "read the service's reason, and correct the request",
    "WD-400": "change the fields that the message names, or extra_body",
    "WD-401": 'check "API Key"',
    "WD-402": "buy credits, or wait for the next billing period; then clear the task",
    "WD-403": "have the feature enabled for the team, or omit it",
    "WD-404": 'check the id, that it belongs to the team, and "Base URL"',
    "WD-408": "raise timeout, request less, or run fewer tasks concurrently",
    "WD-409": "let only one task at a time use the object, for example with a pool of one slot",
    "WD-410": "open another session, or start the agent without thread_id",
    "WD-429": "make fewer concurrent calls, or allow a longer wait",
    "WD-500": "check the service's status, and try again later",
    "WD-503": "try again later, or allow a longer wait",
}
"""The next step for each code, as the rest of a sentence."""

_OF_NO_CONNECTION = frozenset(
    {
        *("WD-001", "WD-002", "WD-003", "WD-004", "WD-005", "WD-006", "WD-007", "WD-008", "WD-009", "WD-013"),
        *("WD-014", "WD-027", "WD-060", "WD-064", "WD-065", "WD-069"),
    }
)
"""Codes of errors that do not depend on the connection, or whose message names it."""

MAX_LINE = 170
"""Maximum length of a line of an error. A log view shows about 160 characters, without the error's class."""

_CODED = re.compile(r"(.*) \((WD-\d{3})\)", re.DOTALL)


def advice_for(code: str, remedy: str, conn_id: str, bills: Callable[[], bool] = lambda: True) -> str:
    """Return the next step after an error of a connection's call; empty if there is none.

    :param remedy: the error's remedy, as the rest of a sentence.
    :param bills: returns whether the connection's server bills calls.
    """
    if _BILLED in remedy and not bills():
        remedy = remedy.replace(_BILLED, "")
    if not remedy or code in _OF_NO_CONNECTION:
        return sentence(remedy)
    return f"Connection {conn_id!r}: {remedy}"


def with_ending(text: str, code: str, advice: str) -> str:
    """Return an error's text with its next step, its code, and the address of its section, each on a new line."""
    ending = f"({code}).\nSee {error_link(code)}"
    # Airflow builds an error again from its whole text, of which the error then makes one line.
    if text.endswith(ending):
        return text
    if text.endswith(one_line := ending.replace("\n", " ")):
        text = text.removesuffix(one_line).rstrip()
        if not advice or not text.endswith(advice):
            return f"{folded(text)} {ending}"
        text = text.removesuffix(advice).rstrip()
    text = text.removesuffix(f" ({code})")
    # The dots of `limit=...` stand for a value.
    if not text.endswith("..."):
        text = text.removesuffix(".")
    if advice:
        # A list of problems ends with the last problem, and a question with its mark.
        stop = "" if "\n" in text or text.endswith(("?", "!", "…", "...")) else "."
        return f"{folded(text)}{stop}\n{folded(advice)} {ending}"
    return f"{folded(text)} {ending}"


def folded(text: str, most: int = MAX_LINE) -> str:
    """Return a text whose lines are broken between sentences where they are too long for a log.

    :param most: maximum number of characters of a line. A longer sentence is not broken.
    """
    lines = []
    for line in text.split("\n"):
        while len(line) > most:
            if (end := line.rfind(". ", 0, most)) < 0 and (end := line.find(". ", most)) < 0:
                break
            lines.append(line[: end + 1])
            line = line[end + 2 :]
        lines.append(line)
    return "\n".join(lines)


def advised(text: str, conn_id: str, remedy: str | None = None) -> str:
    """Return an error message reported by a trigger, as clean text, with the next step and the address of its section.

    :param text: a message that ends with a code; any other text gets neither.
    :param remedy: the next step. Default: that of the code.
    """
    if (coded := _CODED.fullmatch(text)) is None:
        return cleaned(text)
    code = coded[2]
    return with_ending(cleaned(coded[1]), code, advice_for(code, remedy or REMEDIES.get(code, ""), conn_id))


def sentence(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]
