# SPDX-License-Identifier: Apache-2.0
"""Base class of all tasks that call the service: hook, run, and masking."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator, XComArg
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
)

from airflow_provider_webdata.base.arguments.checked_arguments import (
    is_from_mapped,
    is_in_mapped_group,
    naming_unknown,
)
from airflow_provider_webdata.base.arguments.literal_text import LiteralText
from airflow_provider_webdata.base.arguments.result_options import check_file_is_kept
from airflow_provider_webdata.base.failures import reporting_failures
from airflow_provider_webdata.base.links import DashboardLink
from airflow_provider_webdata.common.arguments import seconds
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import is_template
from airflow_provider_webdata.common.page_urls import task_page
from airflow_provider_webdata.options import RATE_LIMIT_TIMEOUT_SECONDS, Option
from airflow_provider_webdata.states.shortfalls import shortfalls

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from datetime import timedelta

    import jinja2
    from airflow.sdk import BaseOperatorLink, Context
    from airflow.sdk.definitions.mappedoperator import OperatorPartial

    from airflow_provider_webdata.hooks.webdata import WebDataHook

_FINAL = (AirflowFailException, AirflowSensorTimeout, AirflowSkipException, ArgumentError)

HAS_RETRY_POLICIES = hasattr(BaseOperator, "retry_policy")
"""Whether this Airflow supports retry policies (3.3 and later)."""

REQUIRED_IF_GIVEN = frozenset(
    (
        "changes",
        "check_id",
        "credit_limit",
        "file",
        "job_id",
        "max_credits_per_month",
        "max_error_ratio",
        "media_to",
        "min_remaining",
        "min_remaining_percent",
        "monitor_id",
        "monitor_name",
        "queries",
        "save_to",
        "scrape_id",
        "steps",
        "url",
        "urls",
    )
)
"""Arguments that must not be None if they come from another task: without them a task would do something else, or
without a limit."""


class ServiceTask(LiteralText, BaseOperator):
    """Base class of the service's operators and sensors.

    Each class assigns its arguments as given, and ends its `__init__` with `_check_arguments()`. Values are converted
    when the task runs. Attributes that begin with `_` are not arguments.

    :param webdata_conn_id: id of a connection of type `webdata` (templated).
    :param rate_limit_timeout: seconds, or a timedelta, for which an attempt may be rescheduled while the service limits
        the rate (429, or 503 with `Retry-After`) or cannot be reached. It counts from the first time; then the attempt
        fails. 0: never reschedule. Default: 6 hours, and 1 hour for a service that cannot be reached.
    :param kwargs: arguments of Airflow's own base class. `retry_policy` is `WebDataRetryPolicy` by default.
    """

    template_fields: Sequence[str] = ("webdata_conn_id",)
    operator_extra_links: Collection[BaseOperatorLink] = (DashboardLink(),)

    _run_path: ClassVar[str] = ""
    """Import path of the class that executes the task, as in `package.module:Class`."""

    _webdata_page = ""
    """Path of the page of the task's monitor, check, or delivery, once known; see `page_urls`."""

    _was_deferred = False
    """Whether the attempt resumes after the worker that deferred it wrote the links."""

    _webdata_job_id = ""
    """Id of the task's job, once known. The task's own page shows the job."""

    _run: Any = None

    def __init__(
        self,
        *,
        webdata_conn_id: str = "webdata_default",
        rate_limit_timeout: float | timedelta = RATE_LIMIT_TIMEOUT_SECONDS,
        **kwargs: Any,
    ) -> None:
        with naming_unknown(type(self), kwargs):
            super().__init__(**kwargs)
        if HAS_RETRY_POLICIES and self.retry_policy is None:
            from airflow_provider_webdata.policies.retry import WebDataRetryPolicy

            self.retry_policy = WebDataRetryPolicy()
        self.webdata_conn_id = webdata_conn_id
        self.rate_limit_timeout = rate_limit_timeout

    @classmethod
    def partial(cls, **kwargs: Any) -> OperatorPartial:
        """Begin a mapped task; see `BaseOperator.partial`.

        :raises ArgumentError: all instances would write the same file.
        """
        check_file_is_kept(kwargs.get("save_to"), None, is_mapped=True)
        return super().partial(**kwargs)

    def _check_arguments(self) -> None:
        """Check the literal arguments while the DAG file is parsed; the last call of each `__init__`.

        The values of a mapped task are known when it runs, and are checked then.

        :raises ArgumentError: an argument is invalid.
        """
        if is_from_mapped(self):
            return
        self._check_values()
        self._check_literals()
        save_to, changes = getattr(self, "save_to", None), getattr(self, "changes", None)
        check_file_is_kept(save_to, changes, is_mapped=is_in_mapped_group(self))
        for option in (getattr(self, "changes", None), getattr(self, "quality", None)):
            if isinstance(option, Option):
                # Airflow finds the XComs in the fields of a task, not those in the fields of an option.
                inside = [getattr(option, name) for name in option.template_fields]
                XComArg.apply_upstream_relationship(self, inside)

    def _check_values(self) -> None:
        """Check the arguments that are not fields of a request: while the DAG file is parsed, and in each attempt.

        Templates have no value while the DAG file is parsed.

        :raises ArgumentError: an argument is invalid.
        """
        seconds("rate_limit_timeout", self.rate_limit_timeout, least=0)

    def _check_literals(self) -> None:
        """Check the literal fields of a request while the DAG file is parsed."""

    def _field_values(self) -> dict[str, Any]:
        """Return the request fields that are not None, by their Python names."""
        return {}

    _sources: Mapping[str, str] = {}

    def _missing(self, context: Context) -> list[str]:  # noqa: ARG002
        """Return a problem for each required argument without a value.

        :param context: the task's context.
        """
        return [
            f"{name} is None: its value comes from {source}"
            for name, source in self._sources.items()
            if name in REQUIRED_IF_GIVEN and getattr(self, name) is None
        ]

    def _rendered(self, written: Mapping[str, Any]) -> None:
        """Process the rendered fields of the request.

        :param written: the fields before rendering.
        """

    def _new_run(self, context: Context) -> Any:
        """Return the run of an attempt."""
        self._run = resolve_name(self._run_path)(self, context)
        return self._run

    def execute_complete(
        self, context: Context, event: Mapping[str, Any], lacks: Any = None, record: Any = None
    ) -> Any:
        """Resume after the wait. See `runs.wait_run.WaitRun.resume`.

        :param lacks: XCom `incomplete` before the wait.
        :param record: the task's record, without a store for it.
        """
        run = self._new_run(context)
        run.is_resumed = True
        if record is not None:
            run.memory.carry(record)
        run.shortfalls |= {one.kind: one for one in shortfalls(lacks)}
        return self._finished(lambda: run.resume(event))

    def _finished(self, work: Callable[[], Any]) -> Any:
        """Do the work of the current run, and return its result as Airflow can store it.

        Records that the attempt has ended, unless Airflow may run the task again.
        """
        run = self._run
        memory = run.memory
        try:
            result = run.storable(work())
            # Airflow fails a task that returns another value.
            self.multiple_outputs = self.multiple_outputs and isinstance(result, Mapping)
            run.push_scalars(result)
            run.refuse_unmappable(result)
        except Exception as error:
            if isinstance(error, _FINAL) or getattr(error, "verdict", None) == "never":
                memory.end(published=False)
            else:
                memory.note()
            raise
        memory.end(published=True)
        return result

    def on_kill(self) -> None:
        """Clean up after a user has ended the task."""
        if self._run is not None:
            self._run.on_kill()

    @cached_property
    def hook(self) -> WebDataHook:
        """The hook of the task's connection."""
        from airflow_provider_webdata.hooks.webdata import WebDataHook

        return WebDataHook(self.webdata_conn_id)

    def post_execute(self, context: Context, result: Any = None) -> None:
        """Link the asset events of the task's outlets to the page of the task's object."""
        if page := self._page(context["ti"]):
            from airflow_provider_webdata.results.assets import link_outlets

            link_outlets(context, page)
        super().post_execute(context, result)

    def _page(self, ti: Any) -> str:
        """Return the path of the page that shows the task's job, monitor, check, or delivery; empty if unknown."""
        if self._webdata_page or not self._webdata_job_id:
            return self._webdata_page
        return task_page(ti.dag_id, ti.run_id, ti.task_id, ti.map_index)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any | None:
        """Return the lineage of the task. The OpenLineage listener calls this if it is installed."""
        from airflow_provider_webdata.results.lineage import operator_lineage

        publication = getattr(self._run, "publication", None)
        inputs, written = ((), None) if publication is None else (publication.inputs, publication.written)
        page = self._page(task_instance)
        return operator_lineage(inputs, written, self.webdata_conn_id, page, self._webdata_job_id)

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        if parent is not self:
            # A nested call for an option.
            super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
            return
        with reporting_failures(self, context):
            self._render_fields(template_fields, context, jinja_env, seen_oids)

    def _render_fields(
        self,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        from airflow_provider_webdata.base.arguments.header_secrets import mask_secrets

        # Airflow renders options in place, and the task that it runs is a shallow copy.
        for name in template_fields:
            if isinstance(option := getattr(self, name, None), Option):
                setattr(self, name, option.copy())
        written = self._field_values()
        values = {name: getattr(self, name, None) for name in template_fields}
        self._sources = {name: source for name, value in values.items() if (source := _source_of(value))}
        # Airflow calls every callable with the context; a pydantic model is a value.
        fields = [name for name in template_fields if not isinstance(getattr(self, name, None), type)]
        super()._do_render_template_fields(self, fields, context, jinja_env, seen_oids)
        # Airflow stores the rendered fields next, so its masker must already know the secrets.
        mask_secrets({name: getattr(self, name) for name in self.template_fields})
        self._rendered(written)


def _source_of(value: Any) -> str:
    """Return where the value of an argument comes from and what to change if it is None, or an empty string."""
    if isinstance(value, XComArg):
        xcoms = (f"XCom {key!r} of task {task.task_id!r}" for task, key in value.iter_references())
        return f"{' and '.join(xcoms)}. Return a value there"
    return f"the template {value!r}. Change it so that it has a value" if is_template(value) else ""
