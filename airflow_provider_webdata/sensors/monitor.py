"""The sensor for checks of a monitor."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.common.arguments import checked_text
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.options import Wait
from airflow_provider_webdata.states.checks import CHECK_COMPLETED, CheckCriteria
from airflow_provider_webdata.tasks.deferral import CHECK_TRIGGER
from airflow_provider_webdata.tasks.monitors.check_result import checked_pages
from airflow_provider_webdata.tasks.sensor import SinceSensor
from airflow_provider_webdata.waiting.policy import CHECK_POLL_INTERVAL, CHECK_SAFETY_POLL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.states.checks import Choice, Otherwise


class WebDataMonitorCheckSensor(SinceSensor):
    """Wait for a check of a monitor and return it.

    Without `check_id`, it is the oldest check that finished after `after` and will do: one that finished since the
    DAG run began counts, also before this task did.

    XCom: the check, with wire names (`id`, `status`, `summary`, ...), and with `include_pages` its `pages`, each with
    `diff` and `judgment`, from all result pages.

    :param monitor_id: UUID of the monitor (templated).
    :param check_id: UUID of the check to wait for (templated); default: the next one. With `wait`, the sensor continues
        with the checks that finish after it.
    :param after: only checks that finished later: ISO 8601 text or a datetime (templated). Default: the start of the
        DAG run.
    :param wait: how to wait, see `Wait`. Default: the triggerer polls every 60 s, every 1500 s while a delivery is
        expected, which is longer than the service tries to deliver. A sensor that is not deferrable polls every
        `poke_interval`: the inbox with `by="webhook"`, otherwise the service.
    :param only_if_changed: only a check with changed, new or removed pages will do.
    :param only_if_meaningful: only a check with a page whose change was judged meaningful will do; needs a monitor
        with a goal.
    :param otherwise: what a check means that these two do not let pass: `wait` for the next one (default), or `skip`
        this task, and so what is downstream of it.
    :param on_failed: what a failed check means: `fail` (default), `accept`, or `wait` for the next one.
    :param on_partial: the same for a check with some page errors; default `accept`.
    :param on_skipped: the same for a check that was skipped; default `wait`.
    :param include_pages: return pages of the check: True for all, `changed` for the changed, new and removed ones, or
        a list of statuses.
    :param kwargs: arguments of `SinceSensor` and `BaseSensorOperator`, such as `deferrable`, `timeout`, `mode`,
        `poke_interval` and `soft_fail`.
    """

    trigger_class = CHECK_TRIGGER
    template_fields: Sequence[str] = (*SinceSensor.template_fields, "monitor_id", "check_id", "after")

    def __init__(
        self,
        *,
        monitor_id: str,
        check_id: str | None = None,
        after: str | datetime | None = None,
        wait: Wait | None = None,
        only_if_changed: bool = False,
        only_if_meaningful: bool = False,
        otherwise: Otherwise = "wait",
        on_failed: Choice = "fail",
        on_partial: Choice = "accept",
        on_skipped: Choice = "wait",
        include_pages: bool | str | Sequence[str] = False,
        **kwargs: Any,
    ) -> None:
        if is_literal(monitor_id) and checked_text(monitor_id) is None:
            raise ArgumentError(f"monitor_id must name a monitor (given: {monitor_id!r})")
        super().__init__(after=after, **kwargs)
        self.monitor_id = monitor_id
        self.check_id = check_id
        self.polling_policy = Wait.of_sensor(wait).policy(CHECK_POLL_INTERVAL, CHECK_SAFETY_POLL)
        self.criteria = CheckCriteria(
            on_failed=on_failed,
            on_partial=on_partial,
            on_skipped=on_skipped,
            only_if_changed=only_if_changed,
            only_if_meaningful=only_if_meaningful,
            otherwise=otherwise,
        )
        self.include_pages = checked_pages(include_pages)
        self._began: float | None = None
        self._polled: float | None = None
        self.start_in_triggerer(knows_when=check_id is not None or after is not None)

    def trigger_kwargs(self) -> dict[str, Any]:
        """Return the trigger's arguments, but for `deadline` and those of `since`."""
        return {
            "webdata_conn_id": self.webdata_conn_id,
            "monitor_id": self._named_monitor(),
            "check_id": checked_text(self.check_id),
            "policy": self.polling_policy.serialize(),
            "criteria": self.criteria.serialize(),
        }

    def show_page(self) -> None:
        """Show the check that is waited for, or the monitor."""
        from airflow_provider_webdata.page_urls import check_page, monitor_page

        conn_id, monitor_id = self.webdata_conn_id, self._named_monitor()
        check_id = checked_text(self.check_id)
        self.webdata_page = (
            check_page(conn_id, monitor_id, check_id) if check_id else monitor_page(conn_id, monitor_id)
        )

    def poll(self, context: Context) -> dict[str, Any] | None:
        """Poll once: the service, or with `Wait(by="webhook")` the inbox first."""
        from airflow_provider_webdata.states.check_queue import CheckQueue
        from airflow_provider_webdata.tasks.monitors.poll import poll_check

        monitor_id, check_id = self._named_monitor(), checked_text(self.check_id)
        after = self.after_moment(context)
        via = "polling"
        if self.polling_policy.wait_by == "webhook":
            if self._was_delivered(monitor_id, check_id, after):
                via = "webhook"
            elif not self._safety_poll_is_due(context):
                return None
        return poll_check(self.hook, monitor_id, CheckQueue(self.criteria, after, check_id), via=via)

    def result_of(self, event: Mapping[str, Any], context: Context) -> Any:  # noqa: ARG002
        """Return the check with the requested pages."""
        from airflow_provider_webdata.tasks.monitors.check_result import check_with_pages, log_end

        log_end(self.log, event)
        return check_with_pages(self.hook, event["monitor_id"], event["check_id"], self.include_pages)

    def _named_monitor(self) -> str:
        monitor_id = checked_text(self.monitor_id)
        if monitor_id is None:
            self.refuse("monitor_id is empty after rendering; it must name a monitor")
        return monitor_id

    def _was_delivered(self, monitor_id: str, check_id: str | None, after: datetime) -> bool:
        about: dict[str, Any] = {"job_ids": [check_id]} if check_id else {"monitor_ids": [monitor_id]}
        with self.hook.inbox() as inbox:
            page = inbox.search(
                **about,
                events=[CHECK_COMPLETED],
                received_after=None if check_id else after.isoformat(),
                limit=1,
            )
        return bool(page.deliveries)

    def _safety_poll_is_due(self, context: Context) -> bool:
        """Return whether it is time to poll the service though no delivery came.

        In reschedule mode, each poke is another process that knows nothing but when the first one was.
        """
        now = time.time()
        ti = context.get("ti")
        first = ti.get_first_reschedule_date(context) if self.reschedule and ti is not None else None
        began = first.astimezone(timezone.utc).timestamp() if first else self._began
        safety = self.polling_policy.safety_poll
        if began is None:
            due = True
        elif first:
            due = (now - began) % safety < 2 * self.poke_interval
        else:
            due = self._polled is None or now - self._polled >= safety
        due = due or (began is not None and now - began + 2 * self.poke_interval > self.timeout)
        self._began = self._began or now
        if due:
            self._polled = now
        return due
