"""Ways in which the service is known to differ from its documentation, each switched on by name.

A quirk may carry a number (``late-replica=3``): how many times it shows, or how long, as its line says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Quirk:
    """A quirk: what it does, the rule of docs/service.md that it is about, and its number if it has one."""

    name: str
    does: str
    rule: str
    number: int | None = None


QUIRKS: dict[str, Quirk] = {
    quirk.name: quirk
    for quirk in (
        Quirk(
            "late-replica",
            "the first N reads after a create, update or run are 404 or stale",
            "late-reads",
            2,
        ),
        Quirk("extract-gone", "extract answers 410, as the hosted service from its end on", "extract-end"),
        Quirk("no-success", "successful bodies lack `success`", "success-flag"),
        Quirk(
            "deprecation",
            "answers carry Deprecation, Link and Warning headers and body warnings",
            "deprecation",
        ),
        Quirk(
            "keyless-limit",
            "search works without a key N times, then 429 with retry_after_seconds",
            "keyless-calls",
            2,
        ),
        Quirk("next-wrong-host", "`next` links name a host that does not exist", "next-host"),
        Quirk("next-null", "`next` is null instead of absent at the end", "parts-next"),
        Quirk(
            "metadata-arrays",
            "title, description, language and keywords of a page are arrays",
            "metadata-texts",
        ),
        Quirk("diff-string", "the diff of a page is a string instead of an object", "check-diff"),
        Quirk("search-position", "web results carry `position`, news results `category`", "search-web-item"),
        Quirk("markdown-highlights", "highlights are markdown", "search-highlights"),
        Quirk(
            "research-moved",
            "results of the research category are in `data.research`",
            "search-research-moves",
        ),
        Quirk(
            "category-removed",
            "the category codehost is refused as github is: CATEGORY_REMOVED",
            "search-categories",
        ),
        Quirk(
            "codehost-unknown",
            "the category codehost has its former public name, github",
            "search-categories",
        ),
        Quirk("origin-refused", "`origin` in a monitor body is refused", "caller-labels"),
        Quirk("schedule-spread", "schedules given as text are moved by the monitor's id", "schedule-stored"),
        Quirk("cron-or", "of two restricted day fields of a cron, one is enough", "schedule-cron-days"),
        Quirk("patch-keeps-judge", "a patched goal does not switch judging on", "monitor-update-goal"),
        Quirk("resume-keeps-next-run", "resuming a monitor does not compute nextRunAt", "monitor-resume"),
        Quirk(
            "repeated-pages",
            "a page of a check's results repeats the last item of the one before",
            "check-pages-order",
        ),
        Quirk("skipped-event", "a skipped check sends monitor.check.completed", "event-none-for-skipped"),
        Quirk(
            "session-lifetimes", "sessions live 600 s and 300 s idle unless asked otherwise", "session-ttl"
        ),
        Quirk("code-in-bytes", "the longest code of a session is counted in UTF-8 bytes", "code-text"),
        Quirk("closed-is-gone", "closing a closed session answers 410", "session-close"),
        Quirk(
            "explicit-ignore-invalid",
            "bad URLs of a batch are let by only when asked explicitly",
            "batch-ignore-invalid-urls",
        ),
        Quirk(
            "limit-refused", "a crawl above the balance is refused instead of cut to it", "crawl-credit-check"
        ),
        Quirk(
            "completion-order", "documents of a job come in another order than they were found", "parts-order"
        ),
        Quirk("credits-unknown", "creditsUsed of a crawl or batch is -1", "job-credits"),
        Quirk("bare-job-errors", "errors of a job lack code and timestamp", "job-errors"),
        Quirk(
            "completed-after-cancel",
            "a cancelled crawl or batch sends its completed event",
            "event-job-completed",
        ),
        Quirk("silent-page-errors", "pages of a job that fail send no event", "event-job-page"),
        Quirk(
            "dns-ok",
            "a scrape whose host does not resolve answers 200, success false",
            "ok-but-failed-scrape",
        ),
        Quirk("map-strings", "links of a map are plain strings", "map-links"),
        Quirk(
            "history-credits-used",
            "periods say creditsUsed and tokensUsed instead of totals",
            "team-credits-history",
        ),
        Quirk("no-webhook-id", "deliveries lack `webhookId`", "envelope-webhook-id"),
        Quirk(
            "webhook-data-object", "`data` of a delivery is an object instead of an array", "envelope-data"
        ),
        Quirk("webhook-headers", "deliveries carry the headers of the newest servers", "delivery-headers"),
        Quirk("meaningful-on-new", "isMeaningful is set on new pages too", "event-monitor-page-data"),
        Quirk("http-webhooks", "webhook URLs need not be https", "webhook-url"),
        Quirk("error-without-success", "error bodies lack `success`", "error-body"),
        Quirk("gateway-html", "the next N calls get a proxy's 502 with an HTML body", "status-5xx", 1),
        Quirk("ok-but-failed", "the next N calls get HTTP 200 with `success: false`", "ok-but-failed", 1),
        Quirk("retry-after-absent", "a 429 names its wait only in the text", "retry-after"),
        Quirk("retry-after-date", "a 429 names its wait only in Retry-After, as an HTTP date", "retry-after"),
        Quirk("credits-lag", "team credit usage does not yet know the last hour", "credits-lag"),
        Quirk("pay-as-you-go", "the balance falls below 0 instead of 402", "credits-pay-as-you-go"),
        Quirk("enhanced-free", "the enhanced proxy costs nothing extra", "credits-enhanced-proxy"),
        Quirk("formats-as-objects", "formats given as plain strings are refused", "format-forms"),
        Quirk(
            "unknown-states", "states of monitors, checks and pages that no document lists", "open-responses"
        ),
        Quirk("unknown-fields", "fields that no document lists, everywhere", "open-responses"),
        Quirk("unknown-code", "errors carry a code that no document lists", "error-unknown"),
        Quirk(
            "upload-form",
            "files that are parsed by reference go up in a form, not as a body",
            "parse-storage",
        ),
        Quirk("large-uploads", "files that are parsed by reference may have N MiB", "parse-storage", 100),
        Quirk("chunked", "answers come in chunks, without Content-Length", "transport"),
    )
}


class Quirks:
    """The quirks that are switched on."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._on: dict[str, int] = {}
        self.set(names)

    def set(self, names: Iterable[str]) -> None:
        """Switch on exactly these; each is ``name`` or ``name=N``.

        :raises ValueError: when a name is unknown or takes no number.
        """
        chosen: dict[str, int] = {}
        for item in names:
            name, equals, number = item.partition("=")
            quirk = QUIRKS.get(name)
            if quirk is None:
                raise ValueError(f"unknown quirk {name!r}; `--quirk list` prints all")
            if equals and (quirk.number is None or not number.isdigit()):
                raise ValueError(
                    f"quirk {name} takes {'no number' if quirk.number is None else 'a whole number'}"
                )
            chosen[name] = int(number) if equals else (quirk.number or 0)
        self._on = chosen

    def names(self) -> list[str]:
        """Return the names of those that are on."""
        return sorted(self._on)

    def on(self, name: str) -> bool:
        """Return whether the quirk is on."""
        return QUIRKS[name].name in self._on

    def number(self, name: str) -> int:
        """Return the quirk's number; 0 when it is off."""
        return self._on.get(QUIRKS[name].name, 0)

    def take(self, name: str) -> bool:
        """Use up one of the quirk's number; False when none is left."""
        if self.number(name) < 1:
            return False
        self._on[name] -= 1
        return True


def listing() -> str:
    """Return all quirks as lines of text."""
    width = max(len(name) for name in QUIRKS)
    lines = []
    for quirk in QUIRKS.values():
        number = f" (N: {quirk.number})" if quirk.number is not None else ""
        lines.append(f"{quirk.name:<{width}}  {quirk.does}{number} [docs/service.md#{quirk.rule}]")
    return "\n".join(lines)
