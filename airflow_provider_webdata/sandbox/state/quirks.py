"""Ways in which the service is known to differ from its reference, each switched on by name.

A quirk may carry a number (``late-replica=3``): how many times it shows, or how long, as its line says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Quirk:
    """A quirk: its name, what it does, the section of the supplement, and its number where it takes one."""

    name: str
    does: str
    section: str
    number: int | None = None


QUIRKS: dict[str, Quirk] = {
    quirk.name: quirk
    for quirk in (
        Quirk("late-replica", "the first N reads after a create, update or run are 404 or stale", "1", 2),
        Quirk("no-success", "successful bodies lack `success`", "1, 21.16"),
        Quirk("deprecation", "answers carry Deprecation, Link and Warning headers and body warnings", "1"),
        Quirk(
            "keyless-limit", "search works without a key N times, then 429 with retry_after_seconds", "1", 2
        ),
        Quirk("next-wrong-host", "`next` links name a host that does not exist", "6.4, 13.10"),
        Quirk("next-null", "`next` is null instead of absent at the end", "6.4, 13.10"),
        Quirk("metadata-arrays", "title, description, language and keywords of a page are arrays", "3.1"),
        Quirk("diff-string", "the diff of a page is a string instead of an object", "3.2, 21.7"),
        Quirk("search-position", "web results carry `position`, news results `category`", "12"),
        Quirk("markdown-highlights", "highlights are markdown", "12"),
        Quirk("research-moved", "results of the research category are in `data.research`", "12, 21.23"),
        Quirk(
            "category-removed", "the category codehost or github is refused: CATEGORY_REMOVED", "12, 21.23"
        ),
        Quirk("codehost-unknown", "only the public name of the category codehost is known", "18"),
        Quirk("origin-refused", "`origin` in a monitor body is refused", "13.1"),
        Quirk("schedule-spread", "schedules given as text are moved by the monitor's id", "13.4, 21.8"),
        Quirk("cron-or", "of two restricted day fields of a cron, one is enough", "13.4, 21.9"),
        Quirk("patch-keeps-judge", "a patched goal does not switch judging on", "13.6, 21.10"),
        Quirk("resume-keeps-next-run", "resuming a monitor does not compute nextRunAt", "13.6, 21.11"),
        Quirk(
            "repeated-pages", "a page of a check's results repeats the last item of the one before", "13.10"
        ),
        Quirk("skipped-event", "a skipped check sends monitor.check.completed", "16.6, 21.3"),
        Quirk(
            "session-lifetimes", "sessions live 600 s and 300 s idle unless asked otherwise", "11.1, 21.12"
        ),
        Quirk("code-in-bytes", "the longest code of a session is counted in UTF-8 bytes", "11.1"),
        Quirk("closed-is-gone", "closing a closed session answers 410", "11.1"),
        Quirk("explicit-ignore-invalid", "bad URLs of a batch are let by only when asked explicitly", "5.1"),
        Quirk("limit-lowered", "a crawl above the balance is cut to it instead of refused", "6.1, 21.13"),
        Quirk("completion-order", "documents of a job come in another order than they were found", "6.4"),
        Quirk("credits-unknown", "creditsUsed of a crawl or batch is -1", "6.3"),
        Quirk("bare-job-errors", "errors of a job lack code and timestamp", "6.6"),
        Quirk("completed-after-cancel", "a cancelled crawl or batch sends its completed event", "16.4"),
        Quirk("silent-page-errors", "pages of a job that fail send no event", "16.4"),
        Quirk("dns-ok", "a scrape whose host does not resolve answers 200, success false", "17.4, 21.18"),
        Quirk("map-strings", "links of a map are plain strings", "7"),
        Quirk(
            "history-credits-used", "periods say creditsUsed and tokensUsed instead of totals", "14, 21.25"
        ),
        Quirk("no-webhook-id", "deliveries lack `webhookId`", "16.2, 21.5"),
        Quirk("webhook-data-object", "`data` of a delivery is an object instead of an array", "16.2, 21.7"),
        Quirk("webhook-headers", "deliveries carry the headers of the newest servers", "16.1"),
        Quirk("meaningful-on-new", "isMeaningful is set on new pages too", "16.5, 21.28"),
        Quirk("http-webhooks", "webhook URLs need not be https", "16.3, 21.29"),
        Quirk("error-without-success", "error bodies lack `success`", "17.1"),
        Quirk("gateway-html", "the next N calls get a proxy's 502 with an HTML body", "17.1", 1),
        Quirk("ok-but-failed", "the next N calls get HTTP 200 with `success: false`", "17.4", 1),
        Quirk("retry-after-absent", "a 429 names its wait only in the text", "17.5, 21.19"),
        Quirk("retry-after-date", "a 429 names its wait only in Retry-After, as an HTTP date", "17.5, 21.19"),
        Quirk("credits-lag", "team credit usage does not yet know the last hour", "17.6"),
        Quirk("enhanced-free", "the enhanced proxy costs nothing extra", "17.6, 21.1"),
        Quirk("formats-as-objects", "formats given as plain strings are refused", "21.22"),
        Quirk("unknown-states", "states of monitors, checks and pages that no document lists", "13.9, 21.4"),
        Quirk("unknown-fields", "fields that no document lists, everywhere", "12, 3.1"),
        Quirk("unknown-code", "errors carry a code that no document lists", "17.3"),
        Quirk("chunked", "answers come in chunks, without Content-Length", "21.30"),
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
        """Whether the quirk is on."""
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
        lines.append(f"{quirk.name:<{width}}  {quirk.does}{number} [supplement {quirk.section}]")
    return "\n".join(lines)
