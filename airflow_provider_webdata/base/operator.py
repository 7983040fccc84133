# SPDX-License-Identifier: Apache-2.0
"""Base class of the service's operators, which builds a request from their arguments."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from airflow.sdk.exceptions import TaskDeferralError, TaskDeferralTimeout

from airflow_provider_webdata.base.arguments.checked_arguments import literal_problems
from airflow_provider_webdata.base.arguments.literal_check import field_rules
from airflow_provider_webdata.base.arguments.result_options import check_result_options
from airflow_provider_webdata.base.failures import reporting_failures
from airflow_provider_webdata.base.service_task import ServiceTask
from airflow_provider_webdata.common.arguments import collection_in, from_json_text, without_sets
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import templates_of_none

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow.sdk import Context
    from airflow.sdk.exceptions import AirflowException


class RequestFields(msgspec.Struct):
    """The arguments of an operator that are fields of its request.

    `tools/operator_fields.py` writes the parameters, their documentation, and their assignments into the operator.

    :param model: name of the request model in `api.models`.
    :param own: arguments of the operator that are not request fields.
    :param without: fields that the operator does not accept.
    :param defaults: default values that the operator sends in place of the service's own defaults.
    :param options: groups of arguments that the operator accepts, of `save_to`, `media_to`, `changes`,
        `result_schema`, `result_rows`, `quality`, and `credit_limit`; see `tools/option_arguments.py`.
    """

    model: str
    own: Collection[str] = ()
    without: Collection[str] = ()
    defaults: Mapping[str, Any] = {}
    options: Collection[str] = ()


OPTION_ARGUMENTS = {
    "save_to": ("save_to", "documents"),
    "media_to": ("media_to", "max_media_mb"),
    "changes": ("changes",),
    "result_schema": ("result_schema", "on_invalid_result"),
    "result_rows": ("result_rows",),
    "quality": ("quality",),
    "credit_limit": ("credit_limit",),
}
"""The arguments of each of `RequestFields.options`."""

TEMPLATED_OPTIONS = ("save_to", "media_to", "changes", "credit_limit")
"""The templated ones of these arguments."""


_ONE_TEXT = frozenset({"query", "search", "url"})
"""Arguments of one text that no author writes as a list, but a template may render as one."""


class WebDataOperator(ServiceTask):
    """Base class of the service's operators. A subclass sets its `_run_path`.

    Invalid input fails the task before any request and without a retry. A 429 that outlasts the connection's retry
    budget releases the worker slot: the task is rescheduled to the time requested by the service, without using up an
    attempt. Permanent errors fail the task immediately. All other errors are retried according to the task's settings.

    :param extra_body: merged into the request unchecked, for fields of the service that this provider does not support
        yet (templated). Not for operators whose request has no body.
    :param kwargs: arguments of `ServiceTask` and `BaseOperator`.
    """

    template_fields_renderers: ClassVar[dict[str, str]] = {}
    ui_color = "#d9ecf2"

    _request_model: ClassVar[str]
    """Name of the request's model in `api.models`."""

    _request_fields: ClassVar[Sequence[str]] = ()
    """Arguments that become fields of the request, by their Python names."""

    _batch_alternative: ClassVar[Mapping[str, str]] = {}
    """Alternatives for arguments that accept one value, for users who pass a list."""

    _work_list: ClassVar[str] = ""
    """The field whose items are the task's work: if the list is empty, so is the result, and no request is sent."""

    _unusable: Sequence[str] = ()

    def __init_subclass__(cls, *, fields: RequestFields | None = None, **kwargs: Any) -> None:
        """Register the fields of a request, as in `fields=RequestFields("SearchRequest")`.

        All arguments in the signature of `__init__`, except its own, become `_request_fields` and are templated. Lists
        and mappings are displayed as JSON.
        """
        super().__init_subclass__(**kwargs)
        if fields is None:
            return
        types: dict[str, str] = cls.__init__.__annotations__
        cls._request_model = fields.model
        options = {name for option in fields.options for name in OPTION_ARGUMENTS[option]}
        own = {*fields.own, *options, "kwargs", "return"}
        cls._request_fields = tuple(name for name in types if name not in own)
        rendered = tuple(name for name in TEMPLATED_OPTIONS if name in options)
        cls.template_fields = (*cls.template_fields, "extra_body", *cls._request_fields, *rendered)
        structured = [name for name in cls.template_fields if _is_structured(types.get(name, ""))]
        structured += ["extra_body", *(name for name in rendered if name == "changes")]
        cls.template_fields_renderers = {**cls.template_fields_renderers, **dict.fromkeys(structured, "json")}

    def __init__(self, *, extra_body: Mapping[str, Any] | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.extra_body = extra_body

    def execute(self, context: Context) -> Any:
        """Call the service. `runs.run.Run.calling` documents the handling of failures."""
        with reporting_failures(self, context):
            run = self._new_run(context)
            if problems := [*self._unusable, *self._missing(context)]:
                run.refuse("; ".join(problems))
            run.read_urls()
            return self._finished(run.execute)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Resume after the trigger; see `ServiceTask.execute_complete`."""
        self._was_deferred = True
        with reporting_failures(self, context):
            try:
                return super().resume_execution(next_method, next_kwargs, context)
            except (TaskDeferralError, TaskDeferralTimeout) as error:
                return self._resume_failed(context, error)

    def _resume_failed(self, context: Context, error: AirflowException) -> Any:  # noqa: ARG002
        """Resume after a trigger that failed, or that no triggerer ran before Airflow's timeout."""
        raise error

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        if self.extra_body is not None and not self._request_fields:
            raise ArgumentError(
                f"{type(self).__name__} sends no body, so extra_body would have no effect; remove it"
            )
        check_result_options(self)

    def _missing(self, context: Context) -> list[str]:
        """Return a problem for each required field that is None, else for other arguments that need a value.

        :param context: the task's context.
        """
        index = getattr(context.get("ti"), "map_index", None)
        where = "" if index is None or index < 0 else f" at map index {index}"
        others = ", ".join(sorted(self.upstream_task_ids)) or (
            "the list that is mapped over" if where else ""
        )
        others = others and f"{others}. Return a value there"
        required = field_rules(self._request_model).get("", ("required",))[1:] if self._request_fields else ()
        return [
            f"{name} is None{where}: " + (f"its value comes from {source}" if source else "pass a value")
            for name in required
            if name in self._request_fields and getattr(self, name) is None
            for source in (self._sources.get(name, others),)
        ] or super()._missing(context)

    def _check_literals(self) -> None:
        """Check the literal arguments while the DAG file is parsed.

        :raises ArgumentError: an argument violates a rule of its field. Rules between fields are checked at run time.
        """
        if not self._request_fields:
            return
        fields = self._field_values()
        if self._has_no_work():
            del fields[self._work_list]
        problems = (
            self._lists_for_text(fields)
            or literal_problems(self._request_model, fields)
            or self._contradictions(fields)
            or self._schema_problems(fields)
        )
        if problems:
            error = ArgumentError(f"{type(self).__name__} {self.task_id!r} is invalid:")
            error.problems = tuple(problems)
            raise error

    def _has_no_work(self) -> bool:
        """Return whether the task's list of work is empty."""
        work = self._field_values().get(self._work_list)
        if isinstance(work, str):
            with suppress(ValueError):
                work = from_json_text(work)
        return isinstance(work, (list, tuple)) and not work

    def _schema_problems(self, fields: Mapping[str, Any]) -> Sequence[str]:
        schema = getattr(self, "result_schema", None)
        if schema is None:
            return ()
        # Few tasks have a schema, and a DAG file is parsed faster without the import.
        from airflow_provider_webdata.base.arguments.schema_check import schema_problems

        return schema_problems(self._request_model, fields, schema, self._has_other_fields())

    def _has_other_fields(self) -> bool:
        """Return whether a request may have fields that are no arguments."""
        return bool(self.extra_body)

    def _contradictions(self, fields: Mapping[str, Any]) -> Sequence[str]:  # noqa: ARG002
        """Return contradictions between literal arguments.

        :param fields: fields of the request, by their Python names.
        """
        return ()

    def _lists_for_text(self, fields: Mapping[str, Any]) -> list[str]:
        """Return the problems of arguments that must be one text but are lists.

        :param fields: fields of the request, by their Python names.
        """
        rules = field_rules(self._request_model)
        return [
            f"{name}: must be one text (given: {type(value).__name__} of {len(value)}). For one task per item, use "
            f".partial(...).expand({name}=[...])"
            + (
                f"; for one task with all items, {self._batch_alternative[name]}"
                if name in self._batch_alternative
                else ""
            )
            for name, given in fields.items()
            if rules.get(name, ("",))[0] == "text"
            for value in (collection_in(given) if isinstance(given, str) and name in _ONE_TEXT else given,)
            if isinstance(value, (list, tuple, set, dict))
        ]

    def _rendered(self, written: Mapping[str, Any]) -> None:
        """Record fields without a usable value, and replace results of another task by their URLs.

        :param written: the fields before rendering.
        """
        # Imported here because DAG files import this module.
        from airflow_provider_webdata.base.returned_files import results_of
        from airflow_provider_webdata.common.item_urls import urls_in

        problems: list[str] = []
        for name, rule in field_rules(self._request_model).items() if self._request_fields else ():
            value = getattr(self, name, None)
            if rule[0] == "list" and isinstance(value, str):
                try:
                    parsed = from_json_text(value)
                except ValueError as error:
                    problems.append(f"{name}: {error}")
                else:
                    setattr(self, name, parsed if isinstance(parsed, list) else value)
        if problems:
            self._unusable = problems
            return
        for name in {"url", "urls"} & {*written}:
            value, paths = results_of(self, name, written[name], getattr(self, name))
            # Without its URLs, the argument names no file either.
            setattr(self, name, None if paths else urls_in(value))
            problems += [
                f"{name}: a result has no URL, and its `path` ({path[:200]!r}) is content, not a file of results. "
                f"Pass what the task with `save_to` returned: {name}=task.output"
                for path in paths[:1]
            ]
        rendered = self._field_values()
        self._unusable = problems or [
            f"{name}: the template {template!r} rendered to None, which would be sent as text. Provide a value, for "
            "example with `| default('...', true)`, or omit the argument"
            for name, value in written.items()
            for template in templates_of_none(value, rendered.get(name))
        ]

    def _field_values(self) -> dict[str, Any]:
        """Return the request fields that are not None, by their Python names."""
        values = ((name, getattr(self, name)) for name in self._request_fields)
        return {name: without_sets(value) for name, value in values if value is not None}


def _is_structured(annotation: str) -> bool:
    return "Mapping[" in annotation or "Sequence[" in annotation
