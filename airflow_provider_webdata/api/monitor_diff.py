"""What differs between a monitor as declared and as stored, and the smallest update that removes it.

The service normalises what it stores and fills in defaults (supplement 13.2): neither counts as a difference.
Only what is declared is compared. A top-level field that is left out is not managed; inside a declared object
the service's defaults apply to what is left out, since an update replaces the object as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from airflow_provider_webdata.api.cron import Cron, CronError, read_cron

Wire = Mapping[str, Any]

_MONITOR_EVENTS = ("monitor.page", "monitor.check.completed")

_SCRAPE_DEFAULTS: dict[str, Any] = {
    "onlyMainContent": True,
    "onlyCleanContent": False,
    "includeTags": None,
    "excludeTags": None,
    "maxAge": 0,  # of a monitor's scrapes; elsewhere it is two days
    "minAge": None,
    "headers": None,
    "waitFor": 0,
    "mobile": False,
    "skipTlsVerification": True,
    "timeout": 60000,
    "actions": None,
    "location": {"country": "US"},
    "removeBase64Images": True,
    "blockAds": True,
    "proxy": "auto",
    "storeInCache": True,
    "lockdown": False,
    "redactPII": False,
    "profile": None,
    "threatProtection": None,
    "auditMetadata": None,
    "formats": [],
    "parsers": [{"type": "pdf"}],
}

_CRAWL_DEFAULTS: dict[str, Any] = {
    "limit": 10000,
    "includePaths": None,
    "excludePaths": None,
    "regexOnFullURL": False,
    "sitemap": "include",
    "ignoreQueryParameters": False,
    "deduplicateSimilarURLs": True,
    "crawlEntireDomain": False,
    "allowExternalLinks": False,
    "allowSubdomains": False,
    "ignoreRobotsTxt": False,
}

_FORMAT_DEFAULTS: dict[str, Any] = {"fullPage": False, "tag": None}


@dataclass(frozen=True)
class MonitorChanges:
    """The difference between a declared and a stored monitor; false when there is none.

    :param patch: body of the update, in wire form.
    :param fields: paths of what differs, for a log: names only, never values.
    """

    patch: dict[str, Any]
    fields: tuple[str, ...]

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(self.fields)


def monitor_changes(declared: Wire, stored: Wire, applied: Wire | None = None) -> MonitorChanges:
    """Compare a declared monitor with the stored one.

    The patch carries the ids of stored targets, without which their history is lost, and `judgeEnabled` with a
    goal (supplement 13.6).

    A schedule given as text is stored as cron, which the service may move within its period (supplement 21,
    row 8). Where `applied` says which cron the service made of this very text, the stored cron must equal it.
    Without that memory, a phrase that names no time of its own ("hourly", "daily") is met by any cron of the
    same period; one that does ("daily at 9:00") only by the cron that the phrase documents, so that it is sent
    once more, and remembered.

    :param declared: fields as in the create request, in wire form.
    :param stored: the monitor as the service returns it.
    :param applied: `text` and `cron` of the schedule as last applied, if known.
    """
    comparison = _Comparison(declared, stored)
    comparison.plain("name")
    comparison.schedule(applied)
    comparison.targets()
    comparison.goal()
    comparison.notification()
    comparison.plain("retentionDays")
    comparison.webhook()
    comparison.unknown()
    return MonitorChanges(comparison.patch, tuple(comparison.fields))


def complete_update(fields: Wire, stored: Wire) -> dict[str, Any]:
    """Return an update with all that has to go along with its fields (supplement 13.6).

    Targets get the ids of the stored ones that they continue, a goal gets `judgeEnabled`, a resume the schedule.
    The fields themselves are sent whether they differ or not: what a replica shows as stored may be outdated.

    :param fields: the fields to set, in wire form.
    :param stored: the monitor as the service returns it.
    """
    patch = dict(fields)
    if "targets" in fields:
        declared, before = _listed(fields["targets"]), _listed(stored.get("targets"))
        patch["targets"] = _with_ids(declared, before, match_targets(declared, before))
    if "goal" in fields:
        patch["goal"] = _goal(fields["goal"])
        if patch["goal"] is not None:
            patch.setdefault("judgeEnabled", True)
    if fields.get("status") == "active" and (schedule := _schedule_to_send(stored)):
        patch.setdefault("schedule", schedule)
    return patch


def previous_values(patch: Wire, stored: Wire) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the update that puts back what `patch` changed, and the fields that cannot be put back.

    :param patch: the update that was sent.
    :param stored: the monitor as it was before.
    """
    restore: dict[str, Any] = {}
    lost = []
    for name in patch:
        value = stored.get(name)
        if value is not None or name == "goal":
            restore[name] = value
        else:
            # Null is not taken: a webhook, above all, cannot be removed.
            lost.append(name)
    return restore, tuple(lost)


class _Comparison:
    def __init__(self, declared: Wire, stored: Wire) -> None:
        self.declared = declared
        self.stored = stored
        self.patch: dict[str, Any] = {}
        self.fields: list[str] = []
        self._known: set[str] = set()

    def _change(self, name: str, fields: Iterable[str], value: Any = None) -> None:
        self.fields.extend(fields)
        self.patch[name] = self.declared[name] if value is None else value

    def _is_declared(self, name: str) -> bool:
        self._known.add(name)
        return name in self.declared

    def plain(self, name: str) -> None:
        if self._is_declared(name) and self.declared[name] != self.stored.get(name):
            self._change(name, [name])

    def schedule(self, applied: Wire | None) -> None:
        if not self._is_declared("schedule"):
            return
        declared, stored = self.declared["schedule"], self.stored.get("schedule") or {}
        fields = []
        if not _same_moments(declared, str(stored.get("cron") or ""), applied):
            fields.append("schedule.cron" if "cron" in declared else "schedule.text")
        if (declared.get("timezone") or "UTC") != (stored.get("timezone") or "UTC"):
            fields.append("schedule.timezone")
        if fields:
            self._change("schedule", fields)

    def targets(self) -> None:
        if not self._is_declared("targets"):
            return
        declared: list[Wire] = _listed(self.declared["targets"])
        stored: list[Wire] = _listed(self.stored.get("targets"))
        partners = match_targets(declared, stored)
        fields: list[str] = []
        for index, (target, partner) in enumerate(zip(declared, partners, strict=True)):
            if partner is None:
                fields.append(f"targets[{index}] (new)")
            else:
                fields.extend(f"targets[{index}].{name}" for name in _target_changes(target, stored[partner]))
        if removed := len(stored) - sum(partner is not None for partner in partners):
            fields.append(f"targets ({removed} removed)")
        if fields:
            self._change("targets", fields, _with_ids(declared, stored, partners))

    def goal(self) -> None:
        judged = self._is_declared("judgeEnabled")
        if self._is_declared("goal"):
            goal = _goal(self.declared["goal"])
            if goal != _goal(self.stored.get("goal")):
                self.fields.append("goal")
                self.patch["goal"] = goal
                if goal is not None:
                    self.patch["judgeEnabled"] = self.declared.get("judgeEnabled", True)
        if judged and self.declared["judgeEnabled"] != self.stored.get("judgeEnabled"):
            self._change("judgeEnabled", ["judgeEnabled"])

    def notification(self) -> None:
        if not self._is_declared("notification"):
            return
        declared = (self.declared["notification"] or {}).get("email") or {}
        stored = (self.stored.get("notification") or {}).get("email") or {}
        fields = [
            name
            for name in ("enabled", "includeDiffs")
            if declared.get(name, False) != stored.get(name, False)
        ]
        if "recipients" in declared and _folded(declared["recipients"]) != _folded(stored.get("recipients")):
            fields.append("recipients")
        if declared and fields:
            self._change("notification", [f"notification.email.{name}" for name in fields])

    def webhook(self) -> None:
        if not self._is_declared("webhook") or self.declared["webhook"] is None:
            return
        declared, stored = _webhook(self.declared["webhook"]), _webhook(self.stored.get("webhook"))
        fields = ["webhook.url"] if declared.get("url") != stored.get("url") else []
        if _events(declared) != _events(stored):
            fields.append("webhook.events")
        fields += [
            f"webhook.{name}"
            for name in ("headers", "metadata")
            if (declared.get(name) or {}) != (stored.get(name) or {})
        ]
        if fields:
            self._change("webhook", fields)

    def unknown(self) -> None:
        """Take along what this module does not know; it counts where the service shows another value."""
        rest = {name: value for name, value in self.declared.items() if name not in self._known}
        different = [name for name in rest if name in self.stored and self.stored[name] != rest[name]]
        self.fields.extend(different)
        if self.fields:
            self.patch.update(rest)


def match_targets(declared: Sequence[Wire], stored: Sequence[Wire]) -> list[int | None]:
    """Return for each declared target the index of the stored one whose history it continues, or None.

    An id that is declared decides; then what is watched (URLs, URL or queries), wholly or in part; then the
    place in the list, within the same type.

    :param declared: targets in wire form.
    :param stored: targets as the service returns them.
    """
    partners: list[int | None] = [None] * len(declared)
    free = set(range(len(stored)))

    def pair(index: int, partner: int | None) -> None:
        if partner is not None:
            partners[index] = partner
            free.discard(partner)

    def open_targets() -> Iterator[tuple[int, Wire]]:
        return ((index, target) for index, target in enumerate(declared) if partners[index] is None)

    def same_type(target: Wire) -> list[int]:
        return [number for number in sorted(free) if stored[number].get("type") == target.get("type")]

    for index, target in open_targets():
        own = target.get("id")
        pair(
            index, next((number for number in sorted(free) if own and stored[number].get("id") == own), None)
        )
    for index, target in open_targets():
        watched = _watched(target)
        pair(index, next((n for n in same_type(target) if _watched(stored[n]) == watched), None))
    for index, target in open_targets():
        watched = _watched(target)
        shares = {number: len(watched & _watched(stored[number])) for number in same_type(target)}
        best = max(shares, key=lambda number: shares[number], default=None)
        pair(index, best if best is not None and shares[best] else None)
    for index, target in open_targets():
        candidates = same_type(target)
        pair(index, index if index in candidates else next(iter(candidates), None))
    return partners


def _with_ids(
    declared: Sequence[Wire], stored: Sequence[Wire], partners: Sequence[int | None]
) -> list[dict[str, Any]]:
    ids = [None if partner is None else stored[partner].get("id") for partner in partners]
    return [
        {**target, "id": own} if own is not None else dict(target)
        for target, own in zip(declared, ids, strict=True)
    ]


def _schedule_to_send(stored: Wire) -> dict[str, Any]:
    schedule = stored.get("schedule") or {}
    return {name: schedule[name] for name in ("cron", "timezone") if schedule.get(name)}


def _watched(target: Wire) -> frozenset[str]:
    if target.get("type") == "search":
        return frozenset(_queries(target))
    return frozenset(rest for _, rest in map(_url_key, _urls(target)))


def _urls(target: Wire) -> list[str]:
    urls = _listed(target.get("urls"))
    return urls if urls or not target.get("url") else [str(target["url"])]


def _queries(target: Wire) -> set[str]:
    return {str(query).strip() for query in _listed(target.get("queries"))}


def _url_key(url: str) -> tuple[str, str]:
    """Return scheme (empty if none is written) and the rest of a URL, apart from spelling that means nothing."""
    text = str(url).strip()
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
    except ValueError:
        return "", text
    rest = parts._replace(scheme="", netloc=parts.netloc.lower(), path=parts.path or "/")
    return parts.scheme.lower(), rest.geturl()


def _same_urls(declared: Iterable[str], stored: Iterable[str]) -> bool:
    kept = {_url_key(url) for url in stored}
    wanted = set()
    for scheme, rest in map(_url_key, declared):
        # The service puts a scheme in front of a URL that has none; which one is its own affair.
        added = next((other for other, same in sorted(kept) if same == rest), "http")
        wanted.add((scheme or added, rest))
    return wanted == kept


def _target_changes(declared: Wire, stored: Wire) -> list[str]:
    kind = declared.get("type")
    if kind == "search":
        return _search_changes(declared, stored)
    name = "url" if kind == "crawl" else "urls"
    fields = [] if _same_urls(_urls(declared), _urls(stored)) else [name]
    if kind == "crawl":
        fields += _option_changes("crawlOptions", declared, stored, _CRAWL_DEFAULTS)
    return fields + _option_changes("scrapeOptions", declared, stored, _SCRAPE_DEFAULTS)


def _search_changes(declared: Wire, stored: Wire) -> list[str]:
    fields = [] if _queries(declared) == _queries(stored) else ["queries"]
    fields += [
        name
        for name, default in (("searchWindow", "24h"), ("maxResults", 10))
        if (declared.get(name) or default) != (stored.get(name) or default)
    ]
    fields += [
        name
        for name in ("includeDomains", "excludeDomains")
        if _folded(declared.get(name)) != _folded(stored.get(name))
    ]
    return fields


def _option_changes(group: str, declared: Wire, stored: Wire, defaults: Wire) -> list[str]:
    """Compare two groups of options: one left out means its default, and is free where that is not known."""
    ours, theirs = declared.get(group) or {}, stored.get(group) or {}
    fields = []
    for name in sorted({*ours, *theirs}):
        if name not in ours and name not in defaults:
            continue
        ours_here = _plain_option(name, ours.get(name, defaults.get(name)))
        theirs_here = _plain_option(name, theirs.get(name, defaults.get(name)))
        exact = name == "headers" or name not in ours
        if not (ours_here == theirs_here if exact else _covers(ours_here, theirs_here)):
            fields.append(f"{group}.{name}")
    return fields


def _plain_option(name: str, value: Any) -> Any:
    if name == "formats":
        return _formats(value)
    if name == "parsers" and isinstance(value, list):
        return [_typed(item, {"mode": "auto"}) for item in value]
    return None if value in ({}, []) else value


def _formats(value: Any) -> list[str]:
    """Return formats in one spelling and order; markdown, which a monitor always adds, is left out."""
    if not isinstance(value, list):
        return []
    plain = (_typed(item, _FORMAT_DEFAULTS) for item in value)
    return sorted(json.dumps(item, sort_keys=True) for item in plain if item != {"type": "markdown"})


def _typed(item: Any, defaults: Wire) -> Any:
    if isinstance(item, str):
        return {"type": item}
    if not isinstance(item, Mapping):
        return item
    return {
        name: value
        for name, value in item.items()
        if value is not None and not (name in defaults and value == defaults[name])
    }


def _covers(declared: Any, stored: Any) -> bool:
    """Return whether the stored value holds all that is declared; what the service adds to it is free."""
    if isinstance(declared, Mapping):
        return isinstance(stored, Mapping) and all(
            name in stored and _covers(value, stored[name]) for name, value in declared.items()
        )
    if isinstance(declared, (list, tuple)):
        return (
            isinstance(stored, (list, tuple))
            and len(declared) == len(stored)
            and all(map(_covers, declared, stored))
        )
    return bool(declared == stored)


def _listed(value: Any) -> list[Any]:
    """Return a list; the service may show one text where several would be a list."""
    return [value] if isinstance(value, str) else list(value or ())


def _folded(values: Any) -> set[str]:
    return {str(value).strip().casefold() for value in _listed(values)}


def _webhook(value: Any) -> Wire:
    return {"url": value} if isinstance(value, str) else value or {}


def _events(webhook: Wire) -> set[str]:
    return set(_listed(webhook.get("events")) or _MONITOR_EVENTS)


def _goal(value: Any) -> str | None:
    return (str(value).strip() or None) if value is not None else None


_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))? ?(?P<half>am|pm)?"
_OFFSET = r"(?:(?:at|on|start|starting)(?: (?:at|on))? :?(?P<offset>\d{1,2}))?"
_PHRASES = {
    "minutes": re.compile(rf"every (?P<every>\d+) (?:minutes?|mins?) ?{_OFFSET}"),
    "hour": re.compile(rf"(?:hourly|every hour) ?{_OFFSET}"),
    "hours": re.compile(r"every (?P<every>\d+) (?:hours?|hrs?)"),
    "day": re.compile(rf"(?:daily|every day)(?: at {_CLOCK})?"),
    "week": re.compile(r"weekly|every week"),
}


def cron_of_phrase(text: str) -> tuple[str, bool] | None:
    """Return the cron that a schedule phrase documents, and whether the phrase names a time of its own.

    :param text: the phrase, such as `every 30 minutes` or `daily at 9:30 am`. Supplement 13.4.
    :return: None for a phrase that the supplement does not have.
    """
    phrase = _phrase(text)
    for kind, pattern in _PHRASES.items():
        if found := pattern.fullmatch(phrase):
            return _cron_of(kind, found.groupdict())
    return None


def _cron_of(kind: str, parts: Mapping[str, str | None]) -> tuple[str, bool]:
    offset = int(parts.get("offset") or 0)
    if kind == "minutes":
        start = f"{offset}-59" if offset else "*"
        return f"{start}/{parts['every']} * * * *", parts.get("offset") is not None
    if kind == "hour":
        return f"{offset} * * * *", parts.get("offset") is not None
    if kind == "hours":
        return f"0 */{parts['every']} * * *", False
    if kind == "week":
        return "0 0 * * 0", False
    hour = int(parts.get("hour") or 0)
    if parts.get("half"):
        hour = hour % 12 + (12 if parts["half"] == "pm" else 0)
    return f"{int(parts.get('minute') or 0)} {hour} * * *", parts.get("hour") is not None


def _phrase(text: str) -> str:
    return " ".join(text.lower().replace(".", "").replace(",", "").split())


def _same_moments(declared: Wire, stored: str, applied: Wire | None) -> bool:
    if (text := declared.get("text")) is None:
        return _same_cron(str(declared.get("cron") or ""), stored)
    if applied and _phrase(str(applied.get("text") or "")) == _phrase(str(text)):
        return _same_cron(str(applied.get("cron") or ""), stored)
    documented = cron_of_phrase(str(text))
    if documented is None:
        return False
    cron, names_a_time = documented
    return _same_cron(cron, stored) or (not names_a_time and _same_period(cron, stored))


def _same_cron(one: str, other: str) -> bool:
    first, second = _read(one), _read(other)
    if first is None or second is None:
        return one.split() == other.split()
    return first == second


def _same_period(one: str, other: str) -> bool:
    first, second = _read(one), _read(other)
    return (
        first is not None
        and second is not None
        and first.days == second.days
        and first.months == second.months
        and _is_shifted(first.minutes, second.minutes, 60)
        and _is_shifted(first.hours, second.hours, 24)
        and _is_shifted(first.weekdays, second.weekdays, 7)
    )


def _is_shifted(values: frozenset[int], others: frozenset[int], period: int) -> bool:
    return any(frozenset((value + step) % period for value in values) == others for step in range(period))


def _read(cron: str) -> Cron | None:
    try:
        return read_cron(cron)
    except CronError:
        return None
