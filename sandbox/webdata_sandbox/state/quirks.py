# SPDX-License-Identifier: Apache-2.0
"""Known deviations of the service from its documentation, enabled by name.

A quirk may have a number N (``late-replica=3``), such as a count or a size, as its description states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_DOCUMENTATION = "https://airflow-provider-webdata.github.io/airflow-provider-webdata/service.html"


@dataclass(frozen=True)
class Quirk:
    """A quirk: its effect, its rule in sandbox/docs/service.md, and the default of its number, if any."""

    name: str
    effect: str
    rule: str
    number: int | None = None


QUIRKS: dict[str, Quirk] = {
    quirk.name: quirk
    for quirk in (
        Quirk(
            "late-replica",
            "the first N reads after a create, update, or run are 404 or stale",
            "late-reads",
            2,
        ),
        Quirk("no-success", "successful bodies lack `success`", "success-flag"),
        Quirk(
            "deprecation",
            "responses have Deprecation, Link, and Warning headers, and warnings in the body",
            "deprecation",
        ),
        Quirk(
            "keyless-limit",
            "search works without a key N times, then 429 with retry_after_seconds",
            "keyless-calls",
            2,
        ),
        Quirk("next-wrong-host", "`next` links have a host that does not exist", "next-host"),
        Quirk("next-null", "`next` is null instead of absent at the end", "parts-next"),
        Quirk(
            "metadata-arrays",
            "title, description, language, and keywords of a page are arrays",
            "metadata-texts",
        ),
        Quirk("diff-string", "the diff of a page is a string instead of an object", "check-diff"),
        Quirk("search-position", "web results have `position`, news results `category`", "search-web-item"),
        Quirk("markdown-highlights", "highlights are markdown", "search-highlights"),
        Quirk(
            "research-moved",
            "results of the research category are in `data.research`",
            "search-research-moves",
        ),
        Quirk(
            "category-removed",
            "the category codehost is refused like github: CATEGORY_REMOVED",
            "search-categories",
        ),
        Quirk(
            "codehost-unknown",
            "the category codehost has its former public name, github",
            "search-categories",
        ),
        Quirk("origin-refused", "`origin` in a monitor body is refused", "caller-labels"),
        Quirk(
            "schedule-spread", "text schedules are shifted depending on the monitor's id", "schedule-stored"
        ),
        Quirk(
            "cron-or", "one of two restricted day fields of a cron expression suffices", "schedule-cron-days"
        ),
        Quirk("patch-keeps-judge", "a patched goal does not enable judging", "monitor-update-goal"),
        Quirk("resume-keeps-next-run", "resuming a monitor does not compute nextRunAt", "monitor-resume"),
        Quirk(
            "repeated-pages",
            "a page of a check's results repeats the last item of the previous page",
            "check-pages-order",
        ),
        Quirk("skipped-event", "a skipped check sends monitor.check.completed", "event-none-for-skipped"),
        Quirk(
            "session-lifetimes",
            "the default lifetime of sessions is 600 s, and 300 s when idle",
            "session-ttl",
        ),
        Quirk("code-in-bytes", "the length limit of session code counts UTF-8 bytes", "code-text"),
        Quirk("closed-is-gone", "closing a closed session responds 410", "session-close"),
        Quirk(
            "limit-refused", "a crawl limit above the balance is refused, not lowered", "crawl-credit-check"
        ),
        Quirk("completion-order", "documents of a job are not in the order of discovery", "parts-order"),
        Quirk("bare-job-errors", "errors of a job lack code and timestamp", "job-errors"),
        Quirk(
            "completed-after-cancel",
            "a canceled crawl or batch sends its completed event",
            "event-job-completed",
        ),
        Quirk(
            "dns-ok",
            "a scrape of an unresolvable host responds 200 with `success: false`",
            "ok-but-failed-scrape",
        ),
        Quirk("map-strings", "links of a map are plain strings", "map-links"),
        Quirk(
            "history-credits-used",
            "periods have creditsUsed and tokensUsed instead of totals",
            "team-credits-history",
        ),
        Quirk("no-webhook-id", "deliveries lack `webhookId`", "envelope-webhook-id"),
        Quirk(
            "webhook-data-object", "`data` of a delivery is an object instead of an array", "envelope-data"
        ),
        Quirk("webhook-headers", "deliveries have the headers of the newest servers", "delivery-headers"),
        Quirk("meaningful-on-new", "isMeaningful is also set on new pages", "event-monitor-page-data"),
        Quirk("error-without-success", "error bodies lack `success`", "error-body"),
        Quirk("gateway-html", "the next N calls return a proxy's 502 with an HTML body", "status-5xx", 1),
        Quirk("ok-but-failed", "the next N calls return HTTP 200 with `success: false`", "ok-but-failed", 1),
        Quirk("retry-after-absent", "a 429 states the wait only in its text", "retry-after"),
        Quirk(
            "retry-after-date", "a 429 states the wait only in Retry-After, as an HTTP date", "retry-after"
        ),
        Quirk("credits-lag", "team credit usage omits the last hour", "credits-lag"),
        Quirk("pay-as-you-go", "the balance falls below 0 instead of 402", "credits-pay-as-you-go"),
        Quirk("enhanced-free", "the enhanced proxy has no extra cost", "credits-enhanced-proxy"),
        Quirk("formats-as-objects", "formats in the form of strings are refused", "format-forms"),
        Quirk("unknown-states", "monitors, checks, and pages have undocumented states", "open-responses"),
        Quirk("unknown-fields", "all responses have undocumented fields", "open-responses"),
        Quirk("unknown-code", "errors have an undocumented code", "error-unknown"),
        Quirk(
            "upload-form",
            "uploads of files to parse by reference use a form instead of the raw body",
            "parse-storage",
        ),
        Quirk("large-uploads", "files to parse by reference may have N MiB", "parse-storage", 100),
        Quirk(
            "private-refused",
            "scrapes of private addresses fail, and webhooks to them are skipped",
            "self-hosted-private",
        ),
        Quirk("chunked", "responses are chunked, without Content-Length", "transport"),
    )
}


class Quirks:
    """The enabled quirks."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._on: dict[str, int] = {}
        self.set(names)

    def set(self, names: Iterable[str]) -> None:
        """Enable exactly these quirks, each ``name`` or ``name=N``.

        :raises ValueError: a name is unknown, or its number is invalid or unsupported.
        """
        chosen: dict[str, int] = {}
        for item in names:
            name, equals, number = item.partition("=")
            quirk = QUIRKS.get(name)
            if quirk is None:
                raise ValueError(f"unknown quirk {name!r}; `--quirk list` prints all quirks")
            if equals and (quirk.number is None or not number.isdigit()):
                raise ValueError(
                    f"quirk {name} accepts {'no number' if quirk.number is None else 'only an integer'}"
                )
            chosen[name] = int(number) if equals else (quirk.number or 0)
        self._on = chosen

    def names(self) -> list[str]:
        """Return the names of the enabled quirks."""
        return sorted(self._on)

    def on(self, name: str) -> bool:
        """Return whether the quirk is enabled."""
        return QUIRKS[name].name in self._on

    def number(self, name: str) -> int:
        """Return the quirk's number; 0 if it is disabled."""
        return self._on.get(QUIRKS[name].name, 0)

    def consume(self, name: str) -> bool:
        """Decrement the quirk's number; return False if it is 0."""
        if self.number(name) < 1:
            return False
        self._on[name] -= 1
        return True


def listing() -> str:
    """Return one line of text per quirk."""
    width = max(len(name) for name in QUIRKS)
    lines = []
    for quirk in QUIRKS.values():
        number = f" (N: {quirk.number})" if quirk.number is not None else ""
        lines.append(f"{quirk.name:<{width}}  {quirk.effect}{number} [{_DOCUMENTATION}#{quirk.rule}]")
    return "\n".join(lines)
