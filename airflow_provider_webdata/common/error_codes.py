# SPDX-License-Identifier: Apache-2.0
"""The error codes: the next step, which ends each error, and what docs/errors.md adds to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class ErrorCode(NamedTuple):
    """An error code. The docstring of the class that declares it states its meaning.

    :param remedy: the next step, as the rest of a sentence, with the field names of the connection form.
    :param cause: sentences after the meaning. This text and the next ones are Markdown, with links from docs/.
    :param details: sentences after the remedy.
    :param airflow: the reaction of Airflow, as the rest of the sentence that the error's class begins.
    :param inspect_first: whether a person must take the next step before the task is cleared, which may bill again or
        lose results.
    """

    remedy: str
    cause: str = ""
    details: str = ""
    airflow: str = ""
    inspect_first: bool = False


_WAIT_CONTINUES = "; a wait for a job or a check continues"
_WAIT_CONTINUES_A_WHILE = "; a wait for a job or a check continues for 10 minutes"
_INBOX_WAIT = "; a deferred wait continues by polling"
_DELIVERED_AGAIN = ": the service receives 503 and sends the delivery again, and tasks poll"
_BILLED_AGAIN = ": another request would be billed"
_RATE_LIMITED = ", for at most `rate_limit_timeout` (6 hours); then the attempt fails" + _WAIT_CONTINUES

CODES: Mapping[str, ErrorCode] = {
    "WD-001": ErrorCode(
        "correct the field of the connection, then click its test button",
        details="[The connection](connection.md) describes the fields.",
    ),
    "WD-002": ErrorCode(
        "change the listed values; nothing was billed",
        (
            "Often, a template rendered to an unexpected value. The message lists every invalid field with "
            "its rule and value."
        ),
        "Pass fields that this version does not know in `extra_body`.",
        ", regardless of the task's retry policy",
    ),
    "WD-003": ErrorCode(
        "correct the argument",
        (
            "The name is misspelled or missing, the value is outside its limits, arguments exclude each "
            "other, or a template rendered to nothing."
        ),
        airflow=". If the value is a literal in the DAG file, the DAG has an import error and does not run",
    ),
    "WD-004": ErrorCode(
        "correct the query or the time filter",
        details=(
            "`phrase`, `tbs`, and `recent` accept [these terms](search.md#text-from-other-sources); a "
            "query has at most 500 characters."
        ),
    ),
    "WD-005": ErrorCode(
        "correct the location, or install what it needs",
        (
            "The file extension is unsupported, the path contains `~`, `$VAR`, or a misplaced `*`, or "
            "would be replaced by other runs, or the storage's package, connection, bucket, or write "
            "permission is missing."
        ),
        "Nothing was billed: the task tests the [location](results.md#files-save_to) before the call.",
        ". Storage that is full or unavailable is [WD-065](#wd-065)",
    ),
    "WD-006": ErrorCode(
        "correct the option in airflow.cfg or its variable AIRFLOW__WEBDATA__..., and restart the server",
        airflow=": the inbox does not start, and the service sends deliveries again",
    ),
    "WD-007": ErrorCode(
        "upgrade the triggerer, then clear the task",
        "The worker that deferred the task has a newer release than the triggerer.",
        "[Upgrade](upgrade.md#the-order-of-components) has the order.",
        " in the triggerer; then the task retries",
    ),
    "WD-008": ErrorCode(
        "correct the id in the task if it is misspelled",
        "It may exist on another machine or in another secrets backend only.",
        "`airflow webdata init` creates [a connection](connection.md).",
    ),
    "WD-009": ErrorCode(
        "set the variable for this process, then restart it",
        (
            "`SSL_CERT_FILE`, `SSL_CERT_DIR`, or `SSLKEYLOGFILE` names no usable path on this machine, or "
            "a [proxy](connection.md#environment) is no URL."
        ),
        airflow="; a deferred wait ends at its first poll. The job continues, and a retry waits for it",
    ),
    "WD-010": ErrorCode(
        'check "Base URL" and "Proxy", and the network',
        (
            "`sent` is true if the service may have processed the request. DNS, a firewall, a proxy, TLS, "
            "or a slow service: calls have [deadlines](#timeouts)."
        ),
        'After "may have processed the request", check the service before you repeat a billed call by hand.',
        (
            '. After "nothing was sent", the task is first rescheduled for up to an hour, or '
            "`rate_limit_timeout` if it is set, without using a retry"
        )
        + _WAIT_CONTINUES,
    ),
    "WD-011": ErrorCode(
        'another server may have responded: check "Base URL" and "Proxy"',
        "The client follows no redirect.",
        airflow=_WAIT_CONTINUES,
    ),
    "WD-012": ErrorCode(
        'request less data, or raise "Max response size (MB)"',
        details="`rawHtml` and many results in one call are large.",
    ),
    "WD-013": ErrorCode(
        "write the file completely before the task runs; nothing was billed",
        details="Write it under a temporary name, and rename it.",
    ),
    "WD-014": ErrorCode(
        "split the file, or scrape its public URL",
        "The limit is 50 MB, or what the service reports for [large files](operators/parse.md#large-files).",
    ),
    "WD-015": ErrorCode(
        'run the task sooner after the scrape, or list the host in "Media hosts"',
        (
            "The link has expired, its host is not public, the file exceeds `max_media_mb`, or its content "
            "does not match its type."
        ),
        "See [Media](results.md#media-media_to).",
        ": the log warns, and `keptMedia` of the item has the error",
    ),
    "WD-016": ErrorCode(
        "use a connection to a server that supports the call, or change the call",
        (
            "The message names what is missing: on a self-hosted server, for example monitors, credits, a "
            "browser, or a model; behind a gateway, a route or the query for the next page. Pages without "
            "any requested format are published and billed."
        ),
        'See [Servers](servers.md). If the path is unknown, also check "Base URL".',
    ),
    "WD-017": ErrorCode(
        'check the host name in "Base URL" and "Proxy"',
        "Only another network may resolve it.",
        airflow=". If an earlier part of the attempt reached the host, it counts as [unreachable](#wd-010)"
        + _WAIT_CONTINUES,
    ),
    "WD-018": ErrorCode(
        'check "Base URL", "CA bundle" and "Verify TLS certificate"',
        (
            "The certificate has expired, is for another host, or is signed by a private certificate authority, whose "
            "file *CA bundle* names."
        ),
        airflow=_WAIT_CONTINUES,
    ),
    "WD-019": ErrorCode(
        'set "Client certificate" of the connection to one that the server trusts',
        "With TLS 1.2, the same alert can mean that both sides have no cipher in common.",
        "See [Client certificate](connection.md#client-certificate). Nothing counts against `credit_limit`.",
        _WAIT_CONTINUES,
    ),
    "WD-020": ErrorCode(
        "if it fails again, open the page, and correct the URL or the actions, or raise timeout",
        "HTTP 500, or a page with status 590 to 599; `code` names the cause.",
        (
            "Another `proxy` may help. For a private address, set [the self-hosted server's "
            "variable](servers.md#private-addresses)."
        ),
    ),
    "WD-021": ErrorCode(
        "omit the page: the service refuses it for every team",
        "`code` names the cause. The team's permissions are not it.",
    ),
    "WD-022": ErrorCode(
        "omit min_age and lockdown to fetch the page",
    ),
    "WD-023": ErrorCode(
        "wait, or lower maxPages of the PDF parser",
        details=(
            "The service bills the call once. Lower `maxPages` only "
            "if the message says that processing may exceed the time limit."
        ),
        airflow=", at most 5 times and 20 minutes",
    ),
    "WD-024": ErrorCode(
        "use another key to start another crawl",
        "`start_crawl` of the hook was called twice with one `idempotency_key`.",
        "The first crawl is among the running ones, or in the team's activity.",
    ),
    "WD-025": ErrorCode(
        "put fewer URLs into one job, or correct the schema",
        "413, or 500 for such a body: it exceeds 10 MB. 422: the schema, or the result of an extraction.",
    ),
    "WD-026": ErrorCode(
        "wait for the job, for example with WebDataJobSensor",
        "`iter_job_documents` of the hook was called too early, or a replica of the service lags behind.",
        "See the [sensor](operators/job_sensor.md).",
        "; a TaskFlow task retries",
    ),
    "WD-027": ErrorCode(
        "raise the cap, allow the host, or request less",
        (
            "`max_credits` or `max_calls` of a [guarded hook](agents.md#the-same-caps-for-a-hook) is "
            "reached, or the call's kind or host is not allowed with `allowed_domains`. The message says "
            "whether it was sent."
        ),
        "Calls of killed attempts count until the task is cleared.",
    ),
    "WD-028": ErrorCode(
        "correct the URL, the file, or the option, or omit the page: each attempt fails the same way",
        "HTTP 500, or 200 with `success: false`; `code` names the cause.",
        "A host that does not resolve costs a credit each time.",
    ),
    "WD-029": ErrorCode(
        "clear the task once the terms are accepted",
        details="The message has the address of the terms. No task accepts them for you.",
    ),
    "WD-030": ErrorCode(
        "raise the timeout, or check the state of the job, check, or delivery",
        "`wait_timeout` of the operator or `timeout` of the sensor expired. The message has the last state.",
        (
            "The message names the [`WebDataJobSensor`](operators/job_sensor.md) that reads the job's "
            "result: a job that was not canceled continues, and the pages of a canceled one are readable "
            "for 24 hours. If a delivery is missing, see "
            "[Webhooks](webhooks.md#expose-the-inbox-and-nothing-else)."
        ),
        "; a sensor with `soft_fail=True` is skipped",
    ),
    "WD-031": ErrorCode(
        "inspect the job before a retry starts another one, which is billed",
        "The message has the service's reason. An agent run at its limit is [WD-068](#wd-068).",
        (
            "Its pages are billed, and readable for 24 hours: of a canceled job with "
            "`WebDataJobSensor(accept_canceled=True)`, of a failed one with "
            "`WebDataHook().iter_job_documents(kind, job_id)`."
        ),
        ", which starts another job; `WebDataJobSensor` fails immediately",
        inspect_first=True,
    ),
    "WD-032": ErrorCode(
        "inspect the check, or accept checks in this state",
        (
            "It or some of its pages failed, or the service skipped it, and `on_failed`, `on_partial`, or "
            "`on_skipped` is `fail`."
        ),
        "See [Selecting the check](waiting.md#selecting-the-check).",
    ),
    "WD-033": ErrorCode(
        (
            "correct or omit the failed URLs or queries, or set a higher max_error_ratio (1 accepts all "
            "failures)"
        ),
        (
            "The message and XCom `failure` (`reasons`) have the first failures. A site that is down fails "
            "all pages."
        ),
        "The results are still published.",
        " the failed searches of a batch search. After a job, the task fails immediately",
    ),
    "WD-034": ErrorCode(
        "set what the message names, request less, or raise or omit credit_limit",
        "It was not sent.",
        "Calls of killed attempts count until the task is cleared: [Costs](costs.md#limits-per-task).",
    ),
    "WD-035": ErrorCode(
        "save the response from XCom 'unpublished' before you clear the task, which repeats the call",
        (
            "It was too long to be kept without [`save_to`](results.md#files-save_to), its storage failed, "
            "or what an earlier attempt stored is damaged."
        ),
        "The message says if the response is lost.",
        _BILLED_AGAIN,
        inspect_first=True,
    ),
    "WD-036": ErrorCode(
        "find out whether it exists before you clear the task, which may start another one",
        (
            "The response was lost, and neither a delivery nor an idempotency key names the job. Keys are "
            "trusted [at the service's own host only](servers.md)."
        ),
        (
            "Look among the jobs that the message lists, on the service's dashboard, or in your server's "
            "log. Read the result with [`WebDataJobSensor`](operators/job_sensor.md): [Started "
            "once](operators/jobs.md#started-once)."
        ),
        ": another job would be billed",
        inspect_first=True,
    ),
    "WD-037": ErrorCode(
        "compare with the monitors of the connection's team",
        "It was deleted, belongs to another team, or its name is spelled differently.",
        "`WebDataListMonitorsOperator` lists them.",
        "; for a `monitor_id` of `WebDataCreateMonitorOperator` it fails immediately",
    ),
    "WD-038": ErrorCode(
        "change the monitor, or the argument that does not allow its state",
        (
            "Several monitors have the name, [another task or Airflow declares "
            'it](monitors.md#an-existing-monitor), a check is running (`if_running="error"`), or it is '
            "paused."
        ),
        (
            "The message says which: use another name, `adopt=True`, or `monitor_id`, or resume it with "
            "`WebDataUpdateMonitorOperator`."
        ),
    ),
    "WD-039": ErrorCode(
        "read the step's output in XCom 'steps', and correct its code or raise its timeout",
        "Its code ended with a nonzero exit code, an exception, or its `timeout`, or the browser was closed.",
        "`check_exit_code=False` accepts exit codes.",
        ", from the first step in a new browser",
    ),
    "WD-040": ErrorCode(
        "check that the API server runs, and request <address>/webdata/inbox-health",
        "`inbox_url` may be wrong. The message has the inbox's own error, if it sent one.",
        "Send that request from the triggerer's machine.",
        _INBOX_WAIT,
    ),
    "WD-041": ErrorCode(
        "configure the same connection for the API server and the triggerer, and synchronize their clocks",
        airflow=_INBOX_WAIT,
    ),
    "WD-042": ErrorCode(
        "set [webdata] inbox = True on the API server, run `airflow db migrate`, and restart it",
        details="Or correct [`inbox_url`](webhooks.md#expose-the-inbox-and-nothing-else).",
        airflow=_INBOX_WAIT,
    ),
    "WD-043": ErrorCode(
        "install the same release on the API server and the triggerer",
        details="[Upgrade](upgrade.md#the-order-of-components) has the order.",
        airflow=_INBOX_WAIT,
    ),
    "WD-044": ErrorCode(
        "keep deliveries for longer than the longest wait: [webdata] inbox_retention_days",
    ),
    "WD-045": ErrorCode(
        "nothing is needed: polling makes up for lost deliveries",
        airflow=_INBOX_WAIT,
    ),
    "WD-050": ErrorCode(
        "run `airflow webdata doctor` on the API server, and repair its database or its Fernet key",
        (
            "Or it rejects the content, another Fernet key encrypted the connection, or more than 500 "
            "readers are connected to one API server."
        ),
        "[`doctor`](doctor.md) says which.",
        _DELIVERED_AGAIN,
    ),
    "WD-051": ErrorCode(
        "create the tables, then check them with `airflow webdata doctor`",
        (
            "`airflow db migrate` was not run after you set `[webdata] inbox = True` or upgraded, or it "
            "ran without the option or this package."
        ),
        "Run it: [The tables](webhooks.md#the-tables).",
        _DELIVERED_AGAIN,
    ),
    "WD-052": ErrorCode(
        "install the newer release again, or downgrade the tables with it first",
        details="[The tables](webhooks.md#the-tables) has the order.",
        airflow=": the inbox continues. Only `airflow db migrate` fails",
    ),
    "WD-060": ErrorCode(
        "correct the table, the file, or the argument, then clear the task, which calls no service",
        (
            "The message names all columns that do not fit, the row, or the file, and the statements to "
            "run. No row was loaded or deleted."
        ),
        "See [Into a table](operators/to_table.md).",
    ),
    "WD-061": ErrorCode(
        "inspect XCom 'validation', and change the schema or the prompt",
        details="The results are still published: [Structured results](results.md#structured-results).",
        airflow=_BILLED_AGAIN,
        inspect_first=True,
    ),
    "WD-062": ErrorCode(
        "use a different id for each request",
        "Only `hook.run_provider(..., request_id=...)` can cause it.",
    ),
    "WD-063": ErrorCode(
        "wait: the same request returns the result later",
        "The response to an earlier attempt was lost.",
        "The service bills it once.",
    ),
    "WD-064": ErrorCode(
        "inspect the rejected results before you publish them or clear the task",
        (
            "The message lists each failed condition with the expected and the actual value, and the first "
            "failed pages."
        ),
        (
            "They are in `_<name>.rejected` beside the file. If they are right, move them to the path of "
            "`save_to`, mark the task as success, and clear the tasks downstream: [Data "
            "quality](quality.md#when-a-condition-fails)."
        ),
        _BILLED_AGAIN,
        inspect_first=True,
    ),
    "WD-065": ErrorCode(
        "after that, clear the task, or let it retry",
        (
            "The message has the path and the storage's reason. For a parse or a load, the file to read "
            "may be missing."
        ),
        (
            "Repair the storage first. A billed response is kept and published by the next attempt: "
            "[Results](results.md#files-save_to)."
        ),
    ),
    "WD-066": ErrorCode(
        "buy credits, or wait for the next billing period; then clear the task",
        details='`on_low="skip"` skips the task instead: [Credit usage](operators/credit_usage.md).',
    ),
    "WD-067": ErrorCode(
        "check less often or fewer pages, or raise max_credits_per_month",
        (
            "The service estimates it from the schedule and the pages. The message says what happened to "
            "the monitor."
        ),
        "See [Costs](costs.md#limits-per-task).",
    ),
    "WD-068": ErrorCode(
        "read XCom 'partial', then raise max_credits or request less",
        "The prompt needs more searches, pages, or calls.",
        "See [Agent](operators/agent.md).",
        ", which starts another run",
        inspect_first=True,
    ),
    "WD-069": ErrorCode(
        "check that the database is available, then clear the task, which calls no service",
        "A row that it rejects is [WD-060](#wd-060).",
    ),
    "WD-070": ErrorCode(
        "ask the service what became of the request before you clear the task",
        "It gives each repetition the same answer for 7 days.",
        "The response's `chargeId` names the request.",
        _BILLED_AGAIN,
        inspect_first=True,
    ),
    "WD-071": ErrorCode(
        "let the task retry, or find out whether the job exists before you clear the task",
        "The response was lost. The service repeats a delivery for up to 21 minutes.",
        "Without retries left, proceed as for [WD-036](#wd-036).",
        inspect_first=True,
    ),
    "WD-072": ErrorCode(
        "find out what the service still runs for this task before you clear it",
        "It was changed by hand, or written by a newer version.",
        "Then delete the key that the message names from the task's state store, and clear the task.",
        inspect_first=True,
    ),
    "WD-200": ErrorCode(
        "read the service's reason, and correct the request",
    ),
    "WD-400": ErrorCode(
        "change the fields that the message names, or extra_body",
        "This version does not know the rule. `details` lists the fields.",
    ),
    "WD-401": ErrorCode(
        'check "API Key"',
        "Some servers report it with 403.",
        'Enter only the key, without "Bearer": [The connection](connection.md).',
        _WAIT_CONTINUES_A_WHILE,
    ),
    "WD-402": ErrorCode(
        "buy credits, or wait for the next billing period; then clear the task",
        "The balance is below the [minimum](costs.md#minimum-balance) for the call.",
        "[Budgets](costs.md#budgets) guard expensive tasks.",
        _WAIT_CONTINUES_A_WHILE,
    ),
    "WD-403": ErrorCode(
        "have the feature enabled for the team, or omit it",
        (
            "`features` names it, such as zero data retention or threat protection; if it is empty, the "
            "key or its address is restricted."
        ),
        airflow=_WAIT_CONTINUES_A_WHILE,
    ),
    "WD-404": ErrorCode(
        'check the id, that it belongs to the team, and "Base URL"',
        details="Read results within 24 hours.",
    ),
    "WD-408": ErrorCode(
        "raise timeout, request less, or run fewer tasks concurrently",
        "The time in the service's queue counts.",
        airflow=_WAIT_CONTINUES,
    ),
    "WD-409": ErrorCode(
        "let only one task at a time use the object, for example with a pool of one slot",
        "A check is already running, a job has ended, or another session is saving the profile.",
    ),
    "WD-410": ErrorCode(
        "open another session, or start the agent without thread_id",
        "A thread ends 24 hours after its last run.",
        airflow=". For a browser that was closed while code ran, see [WD-039](#wd-039)",
    ),
    "WD-429": ErrorCode(
        "make fewer concurrent calls, or allow a longer wait",
        (
            "The [limits](../sandbox/docs/service.md#rate-limits) apply to all keys and tasks of the team "
            "together."
        ),
        (
            "Bursts need nothing. Otherwise, put the tasks into a [pool](scaling.md#the-recipe), or lower "
            '"Max concurrency".'
        ),
        _RATE_LIMITED,
    ),
    "WD-500": ErrorCode(
        "check the service's status, and try again later",
        (
            "The call may have been processed and billed anyway. `UndeclaredServerError`: a self-hosted "
            "server may lack the operation; declare its [kind](servers.md)."
        ),
        airflow=_WAIT_CONTINUES,
    ),
    "WD-503": ErrorCode(
        "try again later, or allow a longer wait",
        airflow=_RATE_LIMITED,
    ),
}
"""Every error code. Codes from 200 are the HTTP statuses of the service."""
