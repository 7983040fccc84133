"""Operator mixin that reports the failures of attempts."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSkipException, AirflowTaskTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.sdk import BaseOperator, Context
else:
    BaseOperator = object


class FailingTask(BaseOperator):
    """Operator mixin: failed attempts push the XCom `failure`."""

    _run: Any = None

    @contextmanager
    def reporting_failures(self, context: Context) -> Iterator[None]:
        """Push the XCom `failure` if the block fails the attempt."""
        try:
            yield
        except (AirflowRescheduleException, AirflowSkipException):
            raise
        except (Exception, AirflowTaskTimeout) as error:
            self._push_failure(context, error)
            raise

    def _push_failure(self, context: Context, error: BaseException) -> None:
        if not self.do_xcom_push or (ti := context.get("ti")) is None:
            return
        # Without the report, the task must still fail with its own error.
        with suppress(Exception):
            from airflow_provider_webdata.base.failure_report import FAILURE, failure_report

            ti.xcom_push(FAILURE, failure_report(error, getattr(self._run, "explained_error", None)))
