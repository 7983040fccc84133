"""The trigger that waits for a check of a monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.states.checks import Wanted, event_of
from airflow_provider_webdata.waiting.followers.check_follower import CheckFollower
from airflow_provider_webdata.waiting.mailbox import Expired, Failure
from airflow_provider_webdata.waiting.wait_trigger import WaitTrigger, check_looks, error_event

if TYPE_CHECKING:
    from airflow_provider_webdata.states.checks import Choice, Otherwise
    from airflow_provider_webdata.waiting.followers.check_follower import WaitFor
    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.mailbox import Mailbox


class WebDataMonitorCheckTrigger(WaitTrigger):
    """Waits until a check of a monitor has ended, learned by webhook, by polling, or both.

    The one event has a `status`: `done`, `failed` (with `error`), `skip`: with `check_id`, `monitor_id`,
    `check_status` and `via` (`webhook` or `polling`); `timeout`, with a `message` that says what was and was not
    seen; `error`, with `error` and its `verdict`. What the service refuses for good is an error, all else is
    tried again until the deadline and told in the task's log.

    The service has no endpoint that ends a check, so that killing the task leaves the check running.

    :param webdata_conn_id: id of a connection of type `webdata`.
    :param monitor_id: the monitor's UUID.
    :param check_id: the check to wait for; None: the next one that finishes.
    :param after: only checks that finished later, ISO 8601, by the service's clock; None: since the DAG run
        started where the triggerer knows that (tasks that start in the triggerer), else from now on.
    :param wait_for: `webhook`: deliveries, and a look every `safety_poll`. `polling`: a look every
        `poll_interval`. `auto`: as `webhook` where the connection can receive and the monitor reports to it.
    :param poll_interval: seconds between looks where only looking helps, at least 1.
    :param safety_poll: seconds between looks where deliveries come, at least 1; the service gives up redelivering
        after 21 minutes.
    :param deadline: seconds since the epoch; None: a minute before Airflow's own timeout of the deferral.
    :param on_failed: what a failed check means: `fail`, `accept` or `wait`.
    :param on_partial: what a check with page errors means.
    :param on_skipped: what a skipped check means.
    :param only_if_changed: only a check with changed, new or removed pages counts.
    :param only_if_meaningful: only a check with a page whose change was judged meaningful counts.
    :param otherwise: what other checks mean: `wait` or `skip`.
    :raises ValueError: an argument that cannot work.
    """

    def __init__(
        self,
        webdata_conn_id: str,
        monitor_id: str,
        check_id: str | None = None,
        after: str | None = None,
        wait_for: WaitFor = "auto",
        poll_interval: float = 60.0,
        safety_poll: float = 1500.0,
        deadline: float | None = None,
        on_failed: Choice = "fail",
        on_partial: Choice = "accept",
        on_skipped: Choice = "wait",
        only_if_changed: bool = False,
        only_if_meaningful: bool = False,
        otherwise: Otherwise = "wait",
    ) -> None:
        super().__init__(webdata_conn_id, after, deadline)
        self.monitor_id = monitor_id
        self.check_id = check_id
        self.wait_for = wait_for
        self.poll_interval = poll_interval
        self.safety_poll = safety_poll
        self.on_failed = on_failed
        self.on_partial = on_partial
        self.on_skipped = on_skipped
        self.only_if_changed = only_if_changed
        self.only_if_meaningful = only_if_meaningful
        self.otherwise = otherwise

    def _arguments(self) -> dict[str, Any]:
        return {
            "webdata_conn_id": self.webdata_conn_id,
            "monitor_id": self.monitor_id,
            "check_id": self.check_id,
            "after": self.after,
            "wait_for": self.wait_for,
            "poll_interval": self.poll_interval,
            "safety_poll": self.safety_poll,
            "deadline": self.deadline,
            "on_failed": self.on_failed,
            "on_partial": self.on_partial,
            "on_skipped": self.on_skipped,
            "only_if_changed": self.only_if_changed,
            "only_if_meaningful": self.only_if_meaningful,
            "otherwise": self.otherwise,
        }

    async def _wait(self, channel: Hub, mailbox: Mailbox) -> dict[str, Any]:
        wanted = self._wanted()
        follower = CheckFollower(channel, mailbox, self.monitor_id, wanted, self.log)
        try:
            await follower.start(self.wait_for, self.poll_interval, self.safety_poll)
            found = await follower.next()
            if isinstance(found, Expired):
                return {"status": "timeout", "message": f"{self._missed(wanted)}: {follower.state()}"}
            if isinstance(found, Failure):
                return error_event(found)
            return event_of(found.check, found.decision, monitor_id=self.monitor_id, via=found.via)
        finally:
            follower.close()

    def _wanted(self) -> Wanted:
        check_looks(self.wait_for, self.poll_interval, self.safety_poll)
        return Wanted(
            check_id=self.check_id,
            after=self._after() or self._start(),
            on_failed=self.on_failed,
            on_partial=self.on_partial,
            on_skipped=self.on_skipped,
            only_if_changed=self.only_if_changed,
            only_if_meaningful=self.only_if_meaningful,
            otherwise=self.otherwise,
        )

    def _missed(self, wanted: Wanted) -> str:
        what = f"check {self.check_id}" if self.check_id else "a check"
        since = (
            f" that finished after {wanted.after.isoformat()}" if wanted.after and not self.check_id else ""
        )
        return f"{what} of monitor {self.monitor_id}{since} was waited for in vain"
