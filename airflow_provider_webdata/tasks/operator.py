"""What the service's operators share: the request that their arguments make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.tasks.literals import templates_of_none
from airflow_provider_webdata.tasks.service_task import ServiceTask

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import jinja2
    from airflow.sdk import Context

    from airflow_provider_webdata.api.models.base import RequestModel

    RequestT = TypeVar("RequestT", bound=RequestModel)


class RequestFields:
    """Which of an operator's arguments are fields of its request.

    The parameters, their documentation and their assignments are written into the operator from the request's model
    by `tools/operator_fields.py`.

    :param model: name of the request model in `api.models`.
    :param own: arguments of the operator that are no fields.
    :param without: fields that the operator does not take.
    :param defaults: what is sent where nothing is given, in place of the service's own default.
    """

    def __init__(
        self,
        model: str,
        *,
        own: Collection[str] = (),
        without: Collection[str] = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.own = own
        self.without = without
        self.defaults = defaults or {}


class WebDataOperator(ServiceTask):
    """Base of the service's operators; a subclass says what to call in `call_service`.

    Bad input fails the task before any request and without a retry. A 429 that outlasts the connection's
    retry budget gives the worker slot back: the task is rescheduled to the time that the service named, which takes
    no attempt. What no retry can help fails the task at once. All else is retried as the task says.

    :param extra_body: merged into the request unchecked: for what the service knows and this provider does not
        yet (templated). Not for operators whose request has no body.
    :param kwargs: arguments of `ServiceTask` and `BaseOperator`.
    """

    template_fields: Sequence[str] = (*ServiceTask.template_fields, "extra_body")
    template_fields_renderers: ClassVar[dict[str, str]] = {"extra_body": "json"}
    ui_color = "#d9ecf2"

    request_model: ClassVar[str]
    """Name of the request's model in `api.models`."""

    request_fields: ClassVar[Sequence[str]] = ()
    """Arguments that become fields of the request, by their Python names."""

    for_many: ClassVar[Mapping[str, str]] = {}
    """What takes a list of what an argument takes one of."""

    _rendered_none: Sequence[str] = ()

    def __init_subclass__(cls, *, fields: RequestFields | None = None, **kwargs: Any) -> None:
        """Take up the fields of a request, as in `fields=RequestFields("SearchRequest")`.

        All arguments in the signature of `__init__` but its own become `request_fields` and are templated. Those that
        take lists or mappings are shown as JSON.
        """
        super().__init_subclass__(**kwargs)
        if fields is None:
            return
        types: dict[str, str] = cls.__init__.__annotations__
        cls.request_model = fields.model
        cls.request_fields = tuple(name for name in types if name not in {*fields.own, "kwargs", "return"})
        cls.template_fields = (*cls.template_fields, *cls.request_fields)
        structured = [name for name in cls.template_fields if _is_structured(types.get(name, ""))]
        cls.template_fields_renderers = {**cls.template_fields_renderers, **dict.fromkeys(structured, "json")}

    def __init__(self, *, extra_body: Mapping[str, Any] | str | None = None, **kwargs: Any) -> None:
        if extra_body is not None and not self.request_fields:
            raise ArgumentError(
                f"{type(self).__name__} sends no body, so that extra_body would have no effect"
            )
        super().__init__(**kwargs)
        self.extra_body = extra_body

    def call_service(self, context: Context) -> Any:
        """Call the service and return what becomes the task's XCom.

        :param context: the task's context.
        """
        raise NotImplementedError

    def execute(self, context: Context) -> Any:
        """Call the service; see `ServiceTask.calling` for what a failure leads to.

        :param context: the task's context.
        """
        if self._rendered_none:
            self.refuse("; ".join(self._rendered_none))
        with self.calling(context):
            return self.call_service(context)

    def check_literals(self) -> None:
        """Fail while the DAG file is read where a literal argument cannot work.

        :raises ArgumentError: it breaks a rule of its field; rules between fields are held when the task runs.
        """
        if not self.request_fields:
            return
        from airflow_provider_webdata.tasks.checked_arguments import literal_problems

        fields = self.given()
        problems = self._lists_for_text(fields) or literal_problems(self.request_model, fields)
        if problems:
            lines = "".join(f"\n  - {problem}" for problem in problems)
            raise ArgumentError(f"{type(self).__name__} {self.task_id!r} cannot work:{lines}")

    def _lists_for_text(self, fields: Mapping[str, Any]) -> list[str]:
        """Return what to say of lists that were given where one text is expected."""
        from airflow_provider_webdata.tasks.field_rules import RULES

        rules = RULES[self.request_model]
        return [
            f"{name}: one text is expected (given: {type(value).__name__} of {len(value)}). For a task for each, use "
            f".partial(...).expand({name}=[...])"
            + (f"; for all in one task, {self.for_many[name]}" if name in self.for_many else "")
            for name, value in fields.items()
            if isinstance(value, (list, tuple, set)) and rules.get(name, ("",))[0] == "text"
        ]

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        written = self.given() if parent is self else {}
        super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        self._rendered_none = [
            f"{name}: the template {template!r} rendered to None, which would be sent as text. Give it a value, such "
            "as with `| default('...', true)`, or leave the argument out"
            for name, value in written.items()
            for template in templates_of_none(value, getattr(self, name))
        ]

    def given(self) -> dict[str, Any]:
        """Return the request's fields that were given, by their Python names; None means not given."""
        fields = {name: getattr(self, name) for name in self.request_fields}
        return {name: value for name, value in fields.items() if value is not None}

    def request_body(self) -> Mapping[str, Any]:
        """Return the request that the arguments make, in wire form.

        :raises InvalidRequestError: a field breaks a documented rule.
        """
        from airflow_provider_webdata.api import models
        from airflow_provider_webdata.hooks.calls import body_for

        model: type[RequestModel] = getattr(models, self.request_model)
        return body_for(model, self.given(), self.request_model).to_wire()

    def checked_request(
        self, model: type[RequestT], operation: str, fields: Mapping[str, Any] | None = None
    ) -> RequestT:
        """Return the request that the arguments make, and log its warnings and notes.

        :param model: the request model.
        :param operation: what the error calls the call.
        :param fields: the request's fields. Default: the arguments.
        :raises InvalidRequestError: a field breaks a documented rule.
        """
        from airflow_provider_webdata.api.errors import InvalidRequestError
        from airflow_provider_webdata.hooks.calls import body_for

        fields = self.given() if fields is None else fields
        if problems := self._lists_for_text(fields):
            raise InvalidRequestError(operation, problems)
        request = body_for(model, fields, operation)
        for warning in request.warnings():
            self.log.warning("%s: %s", operation, warning)
        for note in request.notes():
            self.log.info("%s: %s", operation, note)
        return request

    def checked_extra_body(self, operation: str) -> Mapping[str, Any] | None:
        """Return `extra_body` as a mapping; a template may have made JSON text of it.

        :param operation: what the error calls the call.
        :raises InvalidRequestError: it is no object.
        """
        import contextlib
        import json

        from airflow_provider_webdata.api.errors import InvalidRequestError

        value: Any = self.extra_body
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = json.loads(value) if value.strip() else None
        if value is not None and not isinstance(value, Mapping):
            raise InvalidRequestError(
                operation, [f"extra_body: must be a mapping or a JSON object (given: {type(value).__name__})"]
            )
        return value


def _is_structured(annotation: str) -> bool:
    return "Mapping[" in annotation or "Sequence[" in annotation
