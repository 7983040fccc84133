"""Base of every task that calls the service: hook, masking, and errors."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from airflow.sdk import BaseOperator

from airflow_provider_webdata.coded_errors import ArgumentError, CodedError
from airflow_provider_webdata.common.arguments import seconds
from airflow_provider_webdata.options import Option
from airflow_provider_webdata.runs.reschedule import reschedule_delay
from airflow_provider_webdata.tasks.checked_arguments import CheckedArguments
from airflow_provider_webdata.tasks.links import DashboardLink
from airflow_provider_webdata.tasks.retry_policy import HAS_RETRY_POLICIES, WebDataRetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import jinja2
    from airflow.sdk import BaseOperatorLink, Context
    from pydantic import JsonValue

    from airflow_provider_webdata.api.errors import WebDataError
    from airflow_provider_webdata.hooks.webdata import WebDataHook

    Postpone = Callable[[WebDataError, Context, datetime | None], None]

ErrorT = TypeVar("ErrorT", bound=CodedError)

RATE_LIMIT_TIMEOUT_SECONDS = 6 * 3600.0


class ServiceTask(BaseOperator, metaclass=CheckedArguments):
    """Base of the service's operators and sensors.

    :param webdata_conn_id: id of a connection of type `webdata` (templated).
    :param rate_limit_timeout: seconds, or a timedelta, for which one attempt may be rescheduled while the service
        answers 429, or 503 with a time to come back, counted from the first; then the attempt fails. 0: never
        reschedule. Default: 6 hours.
    :param kwargs: arguments of Airflow's own base class. `retry_policy` is `WebDataRetryPolicy` unless given, here
        or in `default_args`.
    """

    template_fields: Sequence[str] = ("webdata_conn_id",)
    operator_extra_links: Collection[BaseOperatorLink] = (DashboardLink(),)

    run: ClassVar[str] = ""
    """Path of what executes the task, as in `package.module:Class`."""

    webdata_page = ""
    """Path of the page that shows what this task deals with, once that is known; see `page_urls`."""

    def __init__(
        self,
        *,
        webdata_conn_id: str = "webdata_default",
        rate_limit_timeout: float | timedelta = RATE_LIMIT_TIMEOUT_SECONDS,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if HAS_RETRY_POLICIES and self.retry_policy is None:
            self.retry_policy = WebDataRetryPolicy()
        self.webdata_conn_id = webdata_conn_id
        self.rate_limit_timeout = seconds("rate_limit_timeout", rate_limit_timeout, zero=True)

    def check_literals(self) -> None:
        """Fail while the DAG file is read where a literal argument cannot work."""

    _run: Any = None

    def new_run(self, context: Context) -> Any:
        """Return the run of an attempt.

        :param context: the task's context.
        """
        module, _, name = self.run.partition(":")
        self._run = getattr(import_module(module), name)(self, context)
        return self._run

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        """Resume after the wait; see `runs.wait.WaitRun.resume`.

        :param context: the task's context.
        :param event: of the trigger.
        """
        return self.new_run(context).resume(event or {})

    def on_kill(self) -> None:
        """End what the task has started: a user has ended the task."""
        if self._run is not None:
            self._run.on_kill()

    @cached_property
    def hook(self) -> WebDataHook:
        """The hook of the task's connection."""
        from airflow_provider_webdata.hooks.webdata import WebDataHook

        return WebDataHook(self.webdata_conn_id)

    @contextmanager
    def calling(
        self, context: Context, *, limited_since: datetime | None = None, postpone: Postpone | None = None
    ) -> Iterator[None]:
        """Call the service within this block, which translates errors for Airflow and closes the hook.

        :param limited_since: when the attempt was first asked to wait; default: Airflow's first reschedule.
        :param postpone: called instead of `postpone`.
        :raises AirflowFailException: no retry can help.
        :raises AirflowRescheduleException: the service asks to wait.
        :raises WebDataError: a retry may help, or the task's retry policy decides.
        """
        from airflow_provider_webdata.api.errors import WebDataError

        try:
            with self.hook:
                yield
        except WebDataError as error:
            if error.verdict == "later":
                (postpone or self.postpone)(error, context, limited_since)
            self.fail(error)
        except CodedError as error:
            raise self.explained(error) from None

    def explained(self, error: ErrorT) -> ErrorT:
        """Return an error whose message says, too, which connection it was met with and what to do.

        :param error: any that has a code. Raise it `from None`: what led to it is in its message, and in the log at
            level debug.
        """
        from airflow_provider_webdata.hooks.remedies import advice_for

        if error.__cause__ is not None:
            self.log.debug("What led to it", exc_info=error)
        error.advice = advice_for(error.help_code, error.text(), self.webdata_conn_id)
        return error

    def fail(self, error: WebDataError) -> NoReturn:
        """End the attempt with an error of the service."""
        from airflow.sdk.exceptions import AirflowFailException

        from airflow_provider_webdata.api.errors import InvalidRequestError

        # Airflow shows the traceback of an error, and of all that led to it.
        error = self.explained(error).with_traceback(None)
        asks_policy = HAS_RETRY_POLICIES and self.retry_policy is not None
        # The next attempt would send the same input, even if a policy that does not know our errors allows it.
        if isinstance(error, InvalidRequestError) or (error.verdict == "never" and not asks_policy):
            raise AirflowFailException(str(error)) from None
        raise error from None

    def postpone(self, error: WebDataError, context: Context, limited_since: datetime | None) -> None:
        """Reschedule the task; return if it may not be."""
        from airflow.sdk.exceptions import AirflowRescheduleException

        from airflow_provider_webdata.common.attempt import Attempt

        attempt = Attempt(context)
        if attempt.ti is None or self.rate_limit_timeout <= 0:
            return
        now = datetime.now(timezone.utc)
        when = now + reschedule_delay(error)
        since = limited_since or attempt.first_reschedule or now
        if (when - since).total_seconds() > self.rate_limit_timeout:
            self.log.error(
                "Asked to wait since %s; waiting until %s would exceed rate_limit_timeout=%g s",
                since.isoformat(timespec="seconds"),
                when.isoformat(timespec="seconds"),
                self.rate_limit_timeout,
            )
            return
        self.log.info("%s. The task is rescheduled to %s", error, when.isoformat(timespec="seconds"))
        raise AirflowRescheduleException(when) from error  # type: ignore[no-untyped-call]

    def request_body(self) -> Mapping[str, Any]:
        """Return the request that the arguments make, in wire form; empty of a task that sends none."""
        return {}

    def post_execute(self, context: Context, result: Any = None) -> None:
        """Link the asset events of the task's outlets to its page."""
        if self.webdata_page:
            from airflow_provider_webdata.page_urls import page_url
            from airflow_provider_webdata.results.assets import annotate_outlets

            annotate_outlets(context, {"page_url": page_url(self.webdata_page)})
        super().post_execute(context, result)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any | None:  # noqa: ARG002
        """Return what the task read and wrote; called by OpenLineage's listener where it is installed."""
        from airflow_provider_webdata.results.lineage import operator_lineage

        delivery = getattr(self._run, "delivery", None)
        inputs, written = ((), None) if delivery is None else (delivery.inputs, delivery.written)
        return operator_lineage(inputs, written, self.webdata_conn_id, self.webdata_page)

    def push(self, context: Context, /, **values: Any) -> None:
        """Push XComs beside the return value."""
        if self.do_xcom_push and (ti := context.get("ti")) is not None:
            for key, value in values.items():
                ti.xcom_push(key, value)

    def refuse(self, problem: str | CodedError) -> NoReturn:
        """Fail the task for good.

        :param problem: an error that no retry helps, or what is wrong with an argument and what to change.
        """
        from airflow.sdk.exceptions import AirflowFailException

        error = ArgumentError(problem) if isinstance(problem, str) else problem
        raise AirflowFailException(str(self.explained(error))) from None

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        if parent is self:
            # Airflow renders an option in place, and the task that it runs is a shallow copy.
            for name in template_fields:
                if isinstance(option := getattr(self, name, None), Option):
                    setattr(self, name, replace(option))
        # Airflow stores the rendered fields right after this; by then its masker must know the header values.
        super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        if parent is self:
            self._mask_header_values()

    def _mask_header_values(self) -> None:
        from airflow.sdk.log import mask_secret

        from airflow_provider_webdata.tasks.header_secrets import header_values

        values: list[JsonValue] = [
            *header_values({name: getattr(self, name) for name in self.template_fields})
        ]
        if values:
            mask_secret(values)
