"""The difference between a declared and a stored monitor, and the smallest update that removes it.

The service normalises what it stores and fills in defaults (docs/service.md#monitor-normalised): neither counts as a
difference. Only what is declared is compared. A top-level field that is left out is not managed; inside a declared
object the service's defaults apply to what is left out, since an update replaces the object as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.models.webhook import MONITOR_EVENTS
from airflow_provider_webdata.api.schedule_diff import same_moments
from airflow_provider_webdata.api.target_diff import (
    Wire,
    as_values,
    folded,
    match_targets,
    target_changes,
    with_ids,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


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
    goal (docs/service.md#monitor-update-goal).

    A schedule given as text is stored as cron, which the service may move within its period
    (docs/service.md#schedule-stored). If `applied` says which cron the service made of this very text, the stored cron
    must equal it. Without that record, a phrase that names no time ("hourly", "daily") matches any cron of the same
    period. A phrase that names one ("daily at 9:00") matches only the documented cron; otherwise it is sent again and
    recorded.

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
    """Return an update with all that has to go along with its fields (docs/service.md#monitor-update).

    Targets get the ids of the stored ones that they continue, a goal gets `judgeEnabled`, a resume the schedule.
    The fields themselves are sent whether they differ or not: what a replica shows as stored may be outdated.

    :param fields: the fields to set, in wire form.
    :param stored: the monitor as the service returns it.
    """
    patch = dict(fields)
    if "targets" in fields:
        declared, before = as_values(fields["targets"]), as_values(stored.get("targets"))
        patch["targets"] = with_ids(declared, before, match_targets(declared, before))
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
        if not same_moments(declared, str(stored.get("cron") or ""), applied):
            fields.append("schedule.cron" if "cron" in declared else "schedule.text")
        if (declared.get("timezone") or "UTC") != (stored.get("timezone") or "UTC"):
            fields.append("schedule.timezone")
        if fields:
            self._change("schedule", fields)

    def targets(self) -> None:
        if not self._is_declared("targets"):
            return
        declared: list[Wire] = as_values(self.declared["targets"])
        stored: list[Wire] = as_values(self.stored.get("targets"))
        partners = match_targets(declared, stored)
        fields: list[str] = []
        for index, (target, partner) in enumerate(zip(declared, partners, strict=True)):
            if partner is None:
                fields.append(f"targets[{index}] (new)")
            else:
                fields.extend(f"targets[{index}].{name}" for name in target_changes(target, stored[partner]))
        if removed := len(stored) - sum(partner is not None for partner in partners):
            fields.append(f"targets ({removed} removed)")
        if fields:
            self._change("targets", fields, with_ids(declared, stored, partners))

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
        of_declared, of_stored = self.declared["notification"] or {}, self.stored.get("notification") or {}
        declared, stored = of_declared.get("email") or {}, of_stored.get("email") or {}
        fields = [
            f"email.{name}"
            for name in ("enabled", "includeDiffs")
            if declared.get(name, False) != stored.get(name, False)
        ]
        if "recipients" in declared and folded(declared["recipients"]) != folded(stored.get("recipients")):
            fields.append("email.recipients")
        if not declared:
            fields = []
        slack, known = of_declared.get("slack") or {}, of_stored.get("slack") or {}
        if any(known.get(name) != value for name, value in slack.items()):
            fields.append("slack")
        if fields:
            self._change("notification", [f"notification.{name}" for name in fields])

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


def _schedule_to_send(stored: Wire) -> dict[str, Any]:
    schedule = stored.get("schedule") or {}
    return {name: schedule[name] for name in ("cron", "timezone") if schedule.get(name)}


def _webhook(value: Any) -> Wire:
    return {"url": value} if isinstance(value, str) else value or {}


def _events(webhook: Wire) -> set[str]:
    return set(as_values(webhook.get("events")) or MONITOR_EVENTS)


def _goal(value: Any) -> str | None:
    return (str(value).strip() or None) if value is not None else None
