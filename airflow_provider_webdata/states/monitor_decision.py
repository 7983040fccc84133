# SPDX-License-Identifier: Apache-2.0
"""The monitor of a declaration, and whether its task may change it.

The service keeps neither owners nor unique names. A managed webhook therefore carries a mark in its metadata: the
environment, DAG, task, and name of the declaration. A monitor is found by the mark, otherwise by its name. Mapped tasks
and loops declare several monitors, so the name is part of the mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.common.url_secrets import without_secrets
from airflow_provider_webdata.inbox.wire import MONITOR_NAME, place_of, root_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.api.models import Monitor


class Mark(NamedTuple):
    """The declaration of a monitor, as the metadata of its managed webhook names it.

    :param environment: name of the Airflow that declares it.
    :param name: the declared name, even after the monitor was renamed.
    """

    environment: str
    dag_id: str
    task_id: str
    name: str

    @property
    def metadata(self) -> dict[str, str]:
        """The mark as metadata of a webhook."""
        return dict(zip(_FIELDS, self, strict=True))


_FIELDS = ("environment", "dag_id", "task_id", MONITOR_NAME)


def mark_of(metadata: Mapping[str, Any] | None) -> Mark | None:
    """Return the mark in a webhook's metadata, or None."""
    found = [(metadata or {}).get(name) for name in _FIELDS]
    return Mark(*map(str, found)) if found[0] and all(isinstance(one, str) for one in found) else None


class Listed(NamedTuple):
    """A monitor of the service.

    :param url: URL of its webhook.
    :param mark: the mark in its webhook.
    """

    id: str
    name: str
    url: str | None = None
    mark: Mark | None = None

    @classmethod
    def of(cls, monitor: Monitor) -> Listed:
        """Return the facts about a monitor that the decision needs."""
        webhook, name = monitor.webhook, (monitor.name or "").strip()
        if webhook is None or isinstance(webhook, str):
            return cls(monitor.id, name, webhook)
        return cls(monitor.id, name, webhook.url, mark_of(webhook.metadata))


class Reporter(NamedTuple):
    """An Airflow to which monitors report.

    :param environment: its name.
    :param address: the connection's webhook URL, if any.
    """

    environment: str
    address: str | None = None

    def receives(self, one: Listed) -> bool:
        """Return whether a monitor reports to this Airflow: by its mark, otherwise by its address."""
        if one.mark is not None:
            return one.mark.environment == self.environment
        place = place_of(one.url)
        return place is not None and self.address is not None and place.root == root_of(self.address)

    def is_foreign(self, one: Listed) -> bool:
        """Return whether a monitor reports to another Airflow."""
        return (one.mark is not None or place_of(one.url) is not None) and not self.receives(one)

    def described(self, one: Listed) -> str:
        """Return a sentence about a monitor that reports to another Airflow, with both addresses."""
        place, mark = place_of(one.url), one.mark
        there = without_secrets(place.root) if place else "an unknown address"
        by = (
            f", environment {mark.environment!r}, task {mark.task_id!r} of DAG {mark.dag_id!r}"
            if mark
            else ""
        )
        here = root_of(self.address) if self.address else "without a Webhook URL"
        return (
            f"Monitor {one.id} ({one.name!r}) reports to another Airflow: {there}{by}. "
            f"This one is {here}, environment {self.environment!r}"
        )


class Declared(NamedTuple):
    """A declaration, and its task's webhook.

    :param mark: the mark of the declaration.
    :param here: this Airflow.
    :param is_managed: whether the task may attach the managed webhook, and the connection has an address and a secret.
    :param is_answered: whether the inbox answers.
    :param replaces: whether the managed webhook replaces one that reports to no Airflow.
    :param url: URL of the author's own webhook.
    :param adopt: whether the task takes over a monitor of another declaration.
    :param monitor_id: id of the monitor, if the author selects one.
    :param reuse: whether the task returns an existing monitor unchanged.
    """

    mark: Mark
    here: Reporter
    is_managed: bool = False
    is_answered: bool = False
    replaces: bool = False
    url: str | None = None
    adopt: bool = False
    monitor_id: str | None = None
    reuse: bool = False

    @property
    def attaches(self) -> bool:
        """Whether the task can attach the managed webhook to a monitor."""
        return self.is_managed and self.is_answered

    def may_change(self, one: Listed) -> bool:
        """Return whether the task may change a monitor without `adopt`: it is its own, or has no mark."""
        if self.here.is_foreign(one) and (one.url is None or one.url != self.url):
            return False
        if self.monitor_id is not None and one.mark is not None:
            # The author may have renamed it in the DAG file.
            return one.mark._replace(name=self.mark.name) == self.mark
        return one.mark in {None, self.mark}


class Create(NamedTuple):
    """Create the monitor."""


class Use(NamedTuple):
    """Patch what differs from the declaration, or return the monitor unchanged with `reuse`.

    :param reports: whether the managed webhook belongs to the declaration.
    :param key: key of the managed webhook to keep, because tasks may be waiting for it.
    """

    id: str
    reports: bool = False
    key: str | None = None


class Refuse(NamedTuple):
    """Fail the task.

    :param seen: the reason.
    :param ways: the ways out, by their names in `WAYS`.
    :param ids: monitors that `monitor_id` can select, or of which all but one must be deleted.
    :param former: the environment that the monitor's mark names.
    """

    seen: str
    ways: tuple[str, ...]
    ids: tuple[str, ...] = ()
    former: str = ""

    @property
    def text(self) -> str:
        """The error message, with the ways out."""
        advice = [WAYS[way].format(ids=" or ".join(self.ids), former=self.former) for way in self.ways]
        return ". ".join([self.seen, *advice])


WAYS = {
    "name": "Use another name",
    "name alone": "Use another name, and no monitor_id",
    "omit": "Omit monitor_id",
    "monitor_id": "Set monitor_id to {ids}",
    "delete": "Delete all but one",
    "adopt": "To take it over, set adopt=True",
    "webhook": (
        "To take it over, set adopt=True, and let the task attach its webhook: it needs a Webhook URL and a secret in "
        "the connection, an inbox that answers, and neither webhook nor attach_webhook=False"
    ),
    "environment": "If this Airflow was moved, set [webdata] environment to its former value, {former}",
}
"""Ways out of a refusal. Each leads to a task that succeeds."""


def decide(declared: Declared, listed: Sequence[Listed]) -> Create | Use | Refuse:
    """Return what to do about a declaration.

    :param listed: all monitors of the service.
    """
    own = [one for one in listed if one.mark == declared.mark]
    if declared.monitor_id is None:
        found = own or [one for one in listed if one.name == declared.mark.name]
    elif others := [one.id for one in own if one.id != declared.monitor_id]:
        return Refuse(
            f"monitor_id selects {declared.monitor_id}, but {', '.join(others)} already belongs to this declaration of "
            f"{declared.mark.name!r}",
            ("omit",),
        )
    else:
        found = [one for one in listed if one.id == declared.monitor_id]
    if not found:
        return Create()
    if len(found) > 1:
        return _several(declared, found, are_own=bool(own))
    (one,) = found
    if declared.reuse:
        return Use(one.id)
    is_own = declared.may_change(one)
    if not is_own and not (declared.adopt and declared.attaches):
        return _refused(declared, one)
    if declared.here.receives(one):
        place = place_of(one.url)
        return Use(one.id, declared.is_managed, place.key if place else None)
    is_free = one.url is None or not is_own or declared.replaces
    return Use(one.id, declared.attaches and is_free)


def _several(declared: Declared, found: Sequence[Listed], *, are_own: bool) -> Refuse:
    name, ids = declared.mark.name, tuple(one.id for one in found)
    if are_own:
        return Refuse(
            f"{len(ids)} monitors belong to this declaration of {name!r}: {', '.join(ids)}", ("delete",), ids
        )
    seen = f"{len(ids)} monitors are named {name!r}: {', '.join(ids)}"
    free = tuple(one.id for one in found if declared.may_change(one))
    if free == ids:
        return Refuse(seen, ("monitor_id", "delete", "name"), ids)
    seen += ". Other tasks declare " + ("some of them" if free else "them")
    return Refuse(seen, ("monitor_id", "name") if free else ("name",), free)


def _refused(declared: Declared, one: Listed) -> Refuse:
    """Refuse a monitor of another declaration."""
    ways = [
        "name" if declared.monitor_id is None else "name alone",
        "adopt" if declared.attaches else "webhook",
    ]
    mark = one.mark
    if mark is not None and declared.here.receives(one):
        return Refuse(
            f"Monitor {one.id} ({one.name!r}) belongs to task {mark.task_id!r} of DAG {mark.dag_id!r}, which declares "
            f"it as {mark.name!r}",
            tuple(ways),
        )
    if mark is not None and mark[1:] == declared.mark[1:]:
        ways.append("environment")
    return Refuse(declared.here.described(one), tuple(ways), former=mark.environment if mark else "")
