# SPDX-License-Identifier: Apache-2.0
"""Reports of failed attempts."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSkipException, AirflowTaskTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.sdk import BaseOperator, Context


@contextmanager
def reporting_failures(task: BaseOperator, context: Context) -> Iterator[None]:
    """Push the XCom `failure` if the block fails the attempt."""
    try:
        yield
    except (AirflowRescheduleException, AirflowSkipException):
        raise
    except (Exception, AirflowTaskTimeout) as error:
        _push_failure(task, context, error)
        raise


def _push_failure(task: BaseOperator, context: Context, error: BaseException) -> None:
    if not task.do_xcom_push or (ti := context.get("ti")) is None:
        return
    # Without the report, the task must still fail with its own error.
    with suppress(Exception):
        from airflow_provider_webdata.base.failure_report import failure_report
        from airflow_provider_webdata.common.xcom_keys import FAILURE

        ti.xcom_push(
            FAILURE, failure_report(error, getattr(getattr(task, "_run", None), "explained_error", None))
        )
