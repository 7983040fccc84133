"""Waiting for a check of a monitor: what the sensor and the operators that wait share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.tasks.arguments import as_list, seconds
from airflow_provider_webdata.tasks.replica import REPLICA_WAIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Literal, TypeAlias

    from airflow_provider_webdata.api.models import MonitorCheck
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.states.checks import Choice, Otherwise, Wanted

    PagesWanted: TypeAlias = bool | Literal["changed"] | tuple[str, ...]
    WaitFor: TypeAlias = Literal["auto", "webhook", "polling"]

CHECK_TRIGGER = "airflow_provider_webdata.triggers.monitor.WebDataMonitorCheckTrigger"
PAGE_STATUSES = ("same", "new", "changed", "removed", "error")
CHANGED_STATUSES = ("changed", "new", "removed")

_WAIT_FOR = ("auto", "webhook", "polling")
_CHOICES = ("fail", "accept", "wait")
_OTHERWISE = ("wait", "skip")


@dataclass(frozen=True)
class CheckWait:
    """How to wait for a check, and which one will do.

    :param wait_for: `webhook`: a delivery tells, and a slow look at the service now and then. `polling`: look at the
        service. `auto`: by webhook where the connection can receive deliveries, else by polling.
    :param poll_interval: seconds between two looks when polling, at least 1.
    :param safety_poll: seconds between two looks at the service while waiting for a delivery, which may be lost; at
        least 1.
    :param on_failed: what a failed check means: `fail`, `accept`, or `wait` for the next one.
    :param on_partial: the same for a check with some page errors.
    :param on_skipped: the same for a check that was skipped.
    :param only_if_changed: only a check with changed, new or removed pages will do.
    :param only_if_meaningful: only a check with a page whose change was judged meaningful will do.
    :param otherwise: what a check means that these two do not let pass: `wait` for the next one, or `skip`.
    :raises ValueError: a choice or a time span that there is not.
    """

    wait_for: WaitFor = "auto"
    poll_interval: float = 60.0
    safety_poll: float = 1500.0
    on_failed: Choice = "fail"
    on_partial: Choice = "accept"
    on_skipped: Choice = "wait"
    only_if_changed: bool = False
    only_if_meaningful: bool = False
    otherwise: Otherwise = "wait"

    def __post_init__(self) -> None:
        choices = {"wait_for": _WAIT_FOR, "otherwise": _OTHERWISE}
        for name in ("wait_for", "on_failed", "on_partial", "on_skipped", "otherwise"):
            given, known = getattr(self, name), choices.get(name, _CHOICES)
            if given not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)} (given: {given!r})")
        for name in ("poll_interval", "safety_poll"):
            object.__setattr__(self, name, seconds(name, getattr(self, name)))
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1 second (given: {getattr(self, name):g})")

    def trigger_kwargs(self) -> dict[str, Any]:
        """Return what the trigger is told of it."""
        return asdict(self)

    def wanted(self, check_id: str | None, after: datetime | None) -> Wanted:
        """Return the decision that this makes of checks.

        :param check_id: the check to wait for; None: the next one.
        :param after: only checks that finished later.
        """
        from airflow_provider_webdata.states.checks import Wanted

        how_to_look = {"wait_for", "poll_interval", "safety_poll"}
        choices = {name: value for name, value in asdict(self).items() if name not in how_to_look}
        return Wanted(check_id=check_id, after=after, **choices)


def checked_pages(given: bool | str | Sequence[str]) -> PagesWanted:
    """Return which pages of a check are to be returned with it.

    :param given: False, True, `changed` (changed, new and removed ones), or a list of statuses.
    :raises ValueError: it is none of these.
    """
    if isinstance(given, bool) or given == "changed":
        return given  # type: ignore[return-value]
    statuses = tuple(as_list(given))
    if not statuses or any(status not in PAGE_STATUSES for status in statuses):
        raise ValueError(
            "include_pages must be False, True, 'changed', or a list of some of "
            f"{', '.join(PAGE_STATUSES)} (given: {given!r})"
        )
    return statuses


def check_with_pages(
    hook: WebDataHook,
    monitor_id: str,
    check_id: str,
    pages: PagesWanted,
    replica_wait: float = REPLICA_WAIT_SECONDS,
) -> dict[str, Any]:
    """Return a check that is over, with wire names, and on request its pages with diffs and judgments.

    All result pages are followed. Header values are replaced by `***`.

    :param hook: of the monitor's connection.
    :param monitor_id: the monitor's UUID.
    :param check_id: the check's UUID.
    :param pages: which pages to put under `pages`; False: leave the key out.
    :param replica_wait: most seconds to wait until the service shows the check as over.
    """
    from airflow_provider_webdata.api.errors import NotFoundError
    from airflow_provider_webdata.states.checks import is_over
    from airflow_provider_webdata.tasks.replica import until_found

    seen: list[Mapping[str, Any]] = []
    missing: list[NotFoundError] = []

    def look() -> bool:
        try:
            check = hook.get_monitor_check(monitor_id, check_id, limit=1)
        except NotFoundError as error:
            missing.append(error)
            return False
        seen.append(check.to_wire(mask_headers=True))
        return is_over(check)

    # What told us may be ahead of the replica that answers us.
    until_found(look, replica_wait)
    if not seen:
        raise missing[-1]
    found = {name: value for name, value in seen[-1].items() if name not in {"pages", "next"}}
    if pages is not False:
        found["pages"] = _pages(hook, monitor_id, check_id, pages)
    return found


def _pages(
    hook: WebDataHook, monitor_id: str, check_id: str, pages: bool | str | tuple[str, ...]
) -> list[dict[str, Any]]:
    statuses: Sequence[str | None] = CHANGED_STATUSES if pages == "changed" else (None,)
    if isinstance(pages, tuple):
        statuses = pages
    return [
        page.to_wire(mask_headers=True)
        for status in statuses
        for part in hook.iter_monitor_check_pages(monitor_id, check_id, status=status)
        for page in part.pages or ()
    ]


def look_for_check(hook: WebDataHook, monitor_id: str, wanted: Wanted, *, via: str) -> dict[str, Any] | None:
    """Look once whether the check that is waited for is over; return what a trigger would tell, or None.

    :param hook: of the monitor's connection.
    :param monitor_id: the monitor's UUID.
    :param wanted: which check.
    :param via: what made us look: `webhook` or `polling`.
    """
    from airflow_provider_webdata.states.checks import MEANINGFUL_STATUSES, event_of, has_meaningful

    for checks in _batches(hook, monitor_id, wanted):
        for check in wanted.candidates(checks):
            meaningful = None
            if wanted.needs_pages(check):
                meaningful = any(
                    has_meaningful(part)
                    for status in MEANINGFUL_STATUSES
                    for part in hook.iter_monitor_check_pages(monitor_id, check.id, status=status)
                )
            decision = wanted.decide(check, meaningful=meaningful)
            if decision.outcome != "wait":
                return event_of(check, decision, monitor_id=monitor_id, via=via)
    return None


def _batches(hook: WebDataHook, monitor_id: str, wanted: Wanted) -> Iterator[list[MonitorCheck]]:
    """Yield checks to decide on: the named one alone, and only where it is passed over those after it."""
    from airflow_provider_webdata.api.errors import NotFoundError
    from airflow_provider_webdata.states.checks import finished, is_over

    if wanted.check_id is None:
        yield _finished_after(hook, monitor_id, wanted.after)
        return
    try:
        named = hook.get_monitor_check(monitor_id, wanted.check_id, limit=1)
    except NotFoundError:
        return  # perhaps too new for the replica
    if is_over(named):
        yield [named]
        yield [named, *_finished_after(hook, monitor_id, finished(named))]


def _finished_after(hook: WebDataHook, monitor_id: str, after: datetime | None) -> list[MonitorCheck]:
    """Return the checks of a monitor back to those that finished before a moment, newest first."""
    from airflow_provider_webdata.hooks.calls import PAGE_SIZE
    from airflow_provider_webdata.states.checks import finished, is_over

    found: list[MonitorCheck] = []
    while True:
        page = hook.list_monitor_checks(monitor_id, limit=PAGE_SIZE, offset=len(found))
        found.extend(page)
        oldest = finished(page[-1]) if page and is_over(page[-1]) else None
        if len(page) < PAGE_SIZE or after is None or (oldest is not None and oldest <= after):
            return found
