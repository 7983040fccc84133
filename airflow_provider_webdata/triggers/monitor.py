"""The trigger that waits for a check of a monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.states.check_queue import CheckQueue
from airflow_provider_webdata.states.checks import CheckCriteria, event_of
from airflow_provider_webdata.waiting.followers.check_follower import CheckFollower
from airflow_provider_webdata.waiting.mailbox import Expired, WaitFailure
from airflow_provider_webdata.waiting.policy import PollingPolicy
from airflow_provider_webdata.waiting.wait_trigger import (
    WaitTrigger,
    error_event,
    start_of_run,
    timeout_event,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.mailbox import Mailbox


class WebDataMonitorCheckTrigger(WaitTrigger):
    """Waits until a check of a monitor has ended, learned by webhook, by polling, or both.

    The one event has a `status`: `done`, `failed` (with `error`), `skip`: with `check_id`, `monitor_id`,
    `check_status` and `via` (`webhook` or `polling`); `timeout`, with a `message` that says what was and was not
    seen; `error`, with `error` and its `verdict`. What the service refuses for good is an error, anything else is
    retried until the deadline and shows in the task's log.

    The service has no endpoint that ends a check, so that killing the task leaves the check running.

    :param webdata_conn_id: id of a connection of type `webdata`.
    :param monitor_id: the monitor's UUID.
    :param policy: how the end is learned, as `PollingPolicy.serialize` returns it.
    :param criteria: what checks mean, as `CheckCriteria.serialize` returns it.
    :param check_id: the check to wait for; None: the next one that finishes.
    :param after: only checks that finished later, ISO 8601, by the service's clock; None: since the DAG run
        started where the triggerer knows that (tasks that start in the triggerer), else from now on.
    :param deadline: seconds since the epoch; None: a minute before Airflow's own timeout of the deferral.
    """

    def __init__(
        self,
        webdata_conn_id: str,
        monitor_id: str,
        policy: Mapping[str, Any],
        criteria: Mapping[str, Any],
        check_id: str | None = None,
        after: str | None = None,
        deadline: float | None = None,
    ) -> None:
        super().__init__(webdata_conn_id, after, deadline)
        self.monitor_id = monitor_id
        self.policy = policy
        self.criteria = criteria
        self.check_id = check_id

    @property
    def _kind(self) -> str:
        return "check"

    async def _wait(self, hub: Hub, mailbox: Mailbox) -> dict[str, Any]:
        policy = PollingPolicy.deserialize(self.policy)
        after = self._after() or start_of_run(self.task_instance)
        queue = CheckQueue(CheckCriteria.deserialize(self.criteria), after, self.check_id)
        follower = CheckFollower(hub, mailbox, self.monitor_id, queue, self.log)
        try:
            self._announce(self._what(after), await follower.start(policy))
            found = await follower.next()
            if isinstance(found, Expired):
                return timeout_event(self._what(after), follower.state())
            if isinstance(found, WaitFailure):
                return error_event(found)
            return event_of(found.check, found.decision, monitor_id=self.monitor_id, via=found.via)
        finally:
            follower.close()

    def _what(self, after: datetime) -> str:
        what = f"check {self.check_id}" if self.check_id else "a check"
        since = "" if self.check_id else f" that finished after {after.isoformat()}"
        return f"{what} of monitor {self.monitor_id}{since}"
