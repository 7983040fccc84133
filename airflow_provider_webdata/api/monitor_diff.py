# SPDX-License-Identifier: Apache-2.0
"""The difference between a declared and a stored monitor, and the minimal update that resolves it.

Only declared fields are compared, at every depth, after the service's normalizations
(sandbox/docs/service.md#monitor-normalised). A field that the service does not return counts as its default.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any
from urllib.parse import urlsplit

from airflow_provider_webdata.api.cron import Cron, CronError, read_cron
from airflow_provider_webdata.api.phrases import PhraseError, plain, read_phrase

Wire = Mapping[str, Any]

_NAMES = (
    "name", "schedule", "targets", "goal", "judgeEnabled", "notification", "retentionDays", "webhook"
)  # fmt: skip

_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("onlyMainContent", "skipTlsVerification", "removeBase64Images", "blockAds"), True),
    **dict.fromkeys(("storeInCache", "deduplicateSimilarURLs"), True),
    **dict.fromkeys(("onlyCleanContent", "mobile", "lockdown", "redactPII", "fullPage", "enabled"), False),
    **dict.fromkeys(("regexOnFullURL", "ignoreQueryParameters", "crawlEntireDomain", "includeDiffs"), False),
    **dict.fromkeys(("allowExternalLinks", "allowSubdomains", "ignoreRobotsTxt"), False),
    "maxAge": 0,  # of a monitor's scrapes; elsewhere it is two days
    "waitFor": 0,
    "timeout": 60000,
    "location": {"country": "US"},
    "proxy": "auto",
    "parsers": ["pdf"],
    "mode": "auto",
    "limit": 10000,
    "sitemap": "include",
    "searchWindow": "24h",
    "maxResults": 10,
    "timezone": "UTC",
}


@dataclass(frozen=True)
class MonitorChanges:
    """The difference between a declared and a stored monitor; false if they are equal.

    :param patch: body of the update, in wire form.
    :param fields: paths of the differing fields, for logs; without values.
    """

    patch: dict[str, Any]
    fields: tuple[str, ...]

    def __bool__(self) -> bool:
        """Return whether any field differs."""
        return bool(self.fields)


def monitor_changes(declared: Wire, stored: Wire, applied: Wire | None = None) -> MonitorChanges:
    """Compare a declared monitor with the stored one.

    The patch replaces each top-level field that differs. It includes the ids of stored targets, without which their
    history is lost, and `judgeEnabled` with a goal (sandbox/docs/service.md#monitor-update-goal).

    The service stores a text schedule as cron, which it may shift within its period
    (sandbox/docs/service.md#schedule-stored). If `applied` has the same text, the stored cron must equal its
    cron. Without that record, a phrase without a time ("hourly", "daily") matches any cron with the same period. A
    phrase with a time ("daily at 9:00") matches only the documented cron; otherwise it is sent again and recorded.

    :param declared: fields as in the create request, in wire form.
    :param stored: the monitor as the service returns it.
    :param applied: `text` and `cron` of the last applied schedule, if known.
    """
    differences: dict[str, list[str]] = {}
    for name, value in declared.items():
        if name == "schedule":
            differences[name] = _schedule_differences(value, stored.get(name) or {}, applied)
        elif name == "targets":
            differences[name] = _target_differences(value, stored.get(name) or ())
        elif name in _NAMES or name in stored:
            differences[name] = list(_differences("", {name: value}, stored))
    changed = {name: declared[name] for name, paths in differences.items() if paths}
    if changed:
        # The service may accept fields that it does not return.
        changed.update({name: value for name, value in declared.items() if name not in _NAMES})
        if "goal" in changed and "judgeEnabled" in declared:
            changed["judgeEnabled"] = declared["judgeEnabled"]
    return MonitorChanges(complete_update(changed, stored), tuple(chain(*differences.values())))


def complete_update(fields: Wire, stored: Wire) -> dict[str, Any]:
    """Add the fields that an update requires (sandbox/docs/service.md#monitor-update).

    Targets get the ids of the matching stored targets, a goal gets `judgeEnabled`, and a resume gets the schedule.
    The given fields are sent even if they equal the stored ones, which may come from an outdated replica.

    :param fields: the fields to set, in wire form.
    :param stored: the monitor as the service returns it.
    """
    patch = dict(fields)
    if "targets" in fields:
        matches = match_targets(fields["targets"], stored.get("targets") or ())
        patch["targets"] = [
            {**target, "id": before["id"]} if before and before.get("id") else dict(target)
            for target, before in matches
        ]
    if "goal" in fields:
        patch["goal"] = _normalized("goal", fields["goal"])
        if patch["goal"] is not None:
            patch.setdefault("judgeEnabled", True)
    if fields.get("status") == "active" and (schedule := stored.get("schedule")):
        patch.setdefault(
            "schedule", {key: schedule[key] for key in ("cron", "timezone") if schedule.get(key)}
        )
    return patch


def previous_values(patch: Wire, stored: Wire) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the update that reverts `patch`, and the fields that cannot be reverted.

    :param stored: the monitor before the patch.
    """
    # The service rejects null for all fields except `goal`. A webhook, for example, cannot be removed.
    lost = tuple(name for name in patch if name != "goal" and stored.get(name) is None)
    return {name: stored.get(name) for name in patch if name not in lost}, lost


def match_targets(declared: Sequence[Wire], stored: Sequence[Wire]) -> list[tuple[Wire, Wire | None]]:
    """Pair each declared target with the stored target whose history it continues, or None.

    Targets match by declared id, then by watched URLs or queries (all, then the most in common), then by position in
    the list. Without an id, only targets of the same type match.

    :param declared: targets in wire form.
    :param stored: targets as the service returns them.
    """

    def closeness(pair: tuple[int, int]) -> tuple[bool, bool, int, bool]:
        target, before = declared[pair[0]], stored[pair[1]]
        watched, known = _watched(target), _watched(before)
        return _same_id(target, before), watched == known, len(watched & known), pair[0] == pair[1]

    partners: dict[int, int] = {}
    for index, partner in sorted(
        product(range(len(declared)), range(len(stored))), key=closeness, reverse=True
    ):
        target, before = declared[index], stored[partner]
        fits = _same_id(target, before) or target.get("type") == before.get("type")
        if fits and index not in partners and partner not in partners.values():
            partners[index] = partner
    return [
        (target, stored[partners[index]] if index in partners else None)
        for index, target in enumerate(declared)
    ]


def _same_id(target: Wire, before: Wire) -> bool:
    return bool(target.get("id")) and target.get("id") == before.get("id")


def _watched(target: Wire) -> set[str]:
    urls = _listed(target.get("urls")) or _listed(target.get("url"))
    return {_split_url(url)[1] for url in urls} | {
        str(query).strip() for query in _listed(target.get("queries"))
    }


def _target_differences(declared: Sequence[Wire], stored: Sequence[Wire]) -> list[str]:
    fields: list[str] = []
    matches = match_targets(declared, stored)
    for index, (target, before) in enumerate(matches):
        if before is None:
            fields.append(f"targets[{index}] (new)")
        else:
            # A single URL equals a list of one URL.
            shown = {"url": before.get("urls"), "urls": before.get("url"), **before}
            fields.extend(_differences(f"targets[{index}].", {**target, "id": None}, shown))
    if removed := len(stored) - sum(before is not None for _, before in matches):
        fields.append(f"targets ({removed} removed)")
    return fields


def _schedule_differences(declared: Wire, stored: Wire, applied: Wire | None) -> list[str]:
    fields = list(_differences("schedule.", {"timezone": declared.get("timezone")}, stored))
    text, cron = declared.get("text"), str(stored.get("cron") or "")
    if text is None:
        return fields if _cron(str(declared.get("cron"))) == _cron(cron) else ["schedule.cron", *fields]
    if applied and plain(str(applied.get("text") or "")) == plain(str(text)):
        same = _cron(str(applied.get("cron") or "")) == _cron(cron)
    else:
        same = _means(str(text), cron)
    return fields if same else ["schedule.text", *fields]


def _means(text: str, stored: str) -> bool:
    try:
        phrase = read_phrase(text)
        first, second = read_cron(phrase.cron), read_cron(stored)
    except (PhraseError, CronError):
        return False
    if phrase.names_a_time or (first.days, first.months) != (second.days, second.months):
        return first == second
    return (
        _is_shifted(first.minutes, second.minutes, 60)
        and _is_shifted(first.hours, second.hours, 24)
        and _is_shifted(first.weekdays, second.weekdays, 7)
    )


def _is_shifted(values: frozenset[int], others: frozenset[int], period: int) -> bool:
    return any({(value + step) % period for value in values} == others for step in range(period))


def _cron(text: str) -> Cron | list[str]:
    try:
        return read_cron(text)
    except CronError:
        return text.split()


def _differences(path: str, declared: Wire, stored: Wire) -> Iterator[str]:
    """Yield the paths of declared values that differ from the stored mapping."""
    for name, wanted in declared.items():
        if wanted is None and name != "goal":
            continue
        shown = stored.get(name)
        shown = _normalized(name, _DEFAULTS.get(name) if shown is None else shown)
        value = _normalized(name, wanted)
        if isinstance(value, Mapping):
            yield from _differences(f"{path}{name}.", value, shown if isinstance(shown, Mapping) else {})
        elif not (_same_urls(value, shown) if name in {"url", "urls"} else _covers(value, shown)):
            yield f"{path}{name}"


def _covers(declared: Any, stored: Any) -> bool:
    """Return whether the stored value contains the declared value."""
    if isinstance(declared, Mapping):
        return isinstance(stored, Mapping) and not any(_differences("", declared, stored))
    if isinstance(declared, list) and isinstance(stored, list):
        return len(declared) == len(stored) and all(map(_covers, declared, stored))
    return bool(declared == stored)


def _normalized(name: str, value: Any) -> Any:
    """Apply the service's normalizations to a value, and remove insignificant differences in spelling."""
    match name:
        case "goal":
            return str(value or "").strip() or None
        case "queries" | "events":
            return {str(item).strip() for item in _listed(value)}
        case "includeDomains" | "excludeDomains" | "recipients":
            return {str(item).strip().casefold() for item in _listed(value)}
        case "headers" | "metadata" | "schema":  # compared as a whole
            return json.dumps(value or {}, sort_keys=True)
        case "webhook":
            return {"url": value} if isinstance(value, str) else value
        case "formats":  # the service adds markdown
            typed = sorted(map(_typed, _listed(value)), key=lambda item: str(item.get("type")))
            return [item for item in typed if item.get("type") != "markdown"]
        case "parsers":
            return [_typed(item) for item in _listed(value)]
        case "url" | "urls":
            return _listed(value)
    return None if value == [] else value


def _typed(item: Any) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        return {"type": item}
    return {name: value for name, value in item.items() if value is not None}


def _listed(value: Any) -> list[Any]:
    """Return a list; the service may return a single text instead of a list."""
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]


def _same_urls(declared: Sequence[Any], stored: Sequence[Any]) -> bool:
    wanted, shown = set(map(_split_url, declared)), set(map(_split_url, stored))
    # The service chooses the scheme of a URL without one.
    free = {rest for scheme, rest in wanted if not scheme}

    def comparable(urls: set[tuple[str, str]]) -> set[tuple[str, str]]:
        return {("" if rest in free else scheme, rest) for scheme, rest in urls}

    return comparable(wanted) == comparable(shown)


def _split_url(url: Any) -> tuple[str, str]:
    """Return the scheme of a URL (empty if absent), and the normalized rest."""
    text = str(url).strip()
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
    except ValueError:
        return "", text
    rest = parts._replace(scheme="", netloc=parts.netloc.lower(), path=parts.path or "/")
    return parts.scheme.lower(), rest.geturl()
