"""Documents that the service takes longer for than one call may take."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from airflow_provider_webdata.tasks.operator import WebDataOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_webdata.api.errors import ProcessingContinuesError, WebDataError

MOST_RESCHEDULES = 5
"""How often a task is rescheduled for a document that the service still works on."""

LONGEST_PROCESSING = timedelta(minutes=20)
"""How long after the first reschedule a task may be rescheduled again."""


class LargeDocuments(WebDataOperator):
    """An operator whose call may be answered before the service is done with the document.

    The same request, made again at the time that the service names, returns the result and is billed once. Within
    the connection's retry budget the client repeats it; for a longer wait the task is rescheduled, without using up
    a retry or a worker slot: at most 5 times, and within 20 minutes of the first time.
    """

    def _reschedule(self, error: WebDataError, context: Context, limited_since: datetime | None) -> None:
        from airflow_provider_webdata.api.errors import ProcessingContinuesError

        if isinstance(error, ProcessingContinuesError):
            self._reschedule_for_document(error, context)
        else:
            super()._reschedule(error, context, limited_since)

    def _reschedule_for_document(self, error: ProcessingContinuesError, context: Context) -> None:
        from airflow.sdk.exceptions import AirflowRescheduleException

        ti = context.get("ti")
        if ti is None:
            return
        now = datetime.now(timezone.utc)
        wait = error.retry_after
        when = now + timedelta(seconds=wait + random.uniform(0, max(1.0, wait / 10)))  # noqa: S311
        reschedules = int(context.get("task_reschedule_count") or 0)
        since = ti.get_first_reschedule_date(context) or now
        if reschedules >= MOST_RESCHEDULES or when > since + LONGEST_PROCESSING:
            self.log.error(
                "The service has worked on the document since %s; after %d reschedules the task fails",
                since.isoformat(timespec="seconds"),
                reschedules,
            )
            return
        self.log.info(
            "The service still works on the document (%s pages%s). The task is rescheduled to %s",
            "unknown number of" if error.pages is None else error.pages,
            "; it may take longer than the service allows" if error.may_exceed else "",
            when.isoformat(timespec="seconds"),
        )
        raise AirflowRescheduleException(when) from error  # type: ignore[no-untyped-call]
