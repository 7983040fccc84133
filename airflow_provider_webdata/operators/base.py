"""What all operators of the service share: the hook, templating, and what a failure means for the task."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from airflow.sdk import BaseOperator

from airflow_provider_webdata.operators.retry import HAS_RETRY_POLICIES, WebDataRetryPolicy, rate_limit_wait

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import jinja2
    from airflow.sdk import Context
    from pydantic import JsonValue

    from airflow_provider_webdata.api.errors import RateLimitError, WebDataError
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.hooks.webdata import WebDataHook

    RequestT = TypeVar("RequestT", bound=RequestModel)

RATE_LIMIT_TIMEOUT_SECONDS = 6 * 3600.0


class WebDataOperator(BaseOperator):
    """Base of the service's operators; a subclass says what to call in `call_service`.

    Bad input fails the task before any request and without a retry. A refusal for rate that outlasts the
    connection's retry budget gives the worker slot back: the task is rescheduled to the time that the service
    named, which takes no try. What no retry can help fails the task at once. All else is retried as the
    task says.

    :param webdata_conn_id: id of a connection of type `webdata` (templated).
    :param extra_body: merged into the request unchecked: for what the service knows and this provider does not
        yet (templated). Not for operators whose request has no body.
    :param rate_limit_timeout: seconds for which one try may come back after refusals for rate, counted from the
        first; then it fails with the last refusal. 0: do not come back.
    :param kwargs: arguments of `BaseOperator`. `retry_policy` is `WebDataRetryPolicy` unless given, here or in
        `default_args`.
    """

    template_fields: Sequence[str] = ("webdata_conn_id", "extra_body")
    template_fields_renderers: ClassVar[dict[str, str]] = {"extra_body": "json"}
    ui_color = "#d9ecf2"

    request_fields: ClassVar[Sequence[str]] = ()
    """Arguments that become fields of the request, by their Python names."""

    def __init__(
        self,
        *,
        webdata_conn_id: str = "webdata_default",
        extra_body: Mapping[str, Any] | str | None = None,
        rate_limit_timeout: float = RATE_LIMIT_TIMEOUT_SECONDS,
        **kwargs: Any,
    ) -> None:
        if extra_body is not None and not self.request_fields:
            raise ValueError(f"{type(self).__name__} sends no body, so that extra_body would have no effect")
        super().__init__(**kwargs)
        if HAS_RETRY_POLICIES and self.retry_policy is None:
            self.retry_policy = WebDataRetryPolicy()
        self.webdata_conn_id = webdata_conn_id
        self.extra_body = extra_body
        self.rate_limit_timeout = rate_limit_timeout

    @cached_property
    def hook(self) -> WebDataHook:
        """The hook of the operator's connection."""
        from airflow_provider_webdata.hooks.webdata import WebDataHook

        return WebDataHook(self.webdata_conn_id)

    def call_service(self, context: Context) -> Any:
        """Call the service and return what becomes the task's XCom.

        :param context: the task's context.
        """
        raise NotImplementedError

    def execute(self, context: Context) -> Any:
        """Call the service; say what a failure means for the task.

        :param context: the task's context.
        :raises AirflowFailException: no retry can help.
        :raises AirflowRescheduleException: the service asks to come back later.
        :raises WebDataError: a retry may help, or the task's retry policy decides.
        """
        from airflow_provider_webdata.api.errors import RateLimitError, WebDataError

        try:
            with self.hook:
                return self.call_service(context)
        except RateLimitError as error:
            self._come_back_later(error, context)
        except WebDataError as error:
            self._fail(error)

    def _fail(self, error: WebDataError) -> NoReturn:
        from airflow.sdk.exceptions import AirflowFailException

        from airflow_provider_webdata.api.errors import InvalidRequestError

        asks_policy = HAS_RETRY_POLICIES and self.retry_policy is not None
        # The same input is as bad on the next try, whatever a policy that does not know our errors may say.
        if isinstance(error, InvalidRequestError) or (error.verdict == "never" and not asks_policy):
            raise AirflowFailException(str(error)) from error
        raise error

    def _come_back_later(self, error: RateLimitError, context: Context) -> NoReturn:
        from airflow.sdk.exceptions import AirflowRescheduleException

        ti = context.get("ti")
        if ti is None or self.rate_limit_timeout <= 0:
            raise error
        now = datetime.now(timezone.utc)
        when = now + rate_limit_wait(error)
        since = ti.get_first_reschedule_date(context) or now
        last = since + timedelta(seconds=self.rate_limit_timeout)
        if when > last:
            self.log.error(
                "Rate limited since %s; coming back at %s would be over rate_limit_timeout=%g s",
                since.isoformat(timespec="seconds"),
                when.isoformat(timespec="seconds"),
                self.rate_limit_timeout,
            )
            raise error
        self.log.info("%s. The task comes back at %s", error, when.isoformat(timespec="seconds"))
        raise AirflowRescheduleException(when) from error  # type: ignore[no-untyped-call]

    def given(self) -> dict[str, Any]:
        """Return the request's fields that were given, by their Python names; None means not given."""
        fields = {name: getattr(self, name) for name in self.request_fields}
        return {name: value for name, value in fields.items() if value is not None}

    def checked_request(self, model: type[RequestT], operation: str) -> RequestT:
        """Return the request that the arguments make, and log what is allowed but doubtful in it.

        :param model: the request model.
        :param operation: what the error calls the call.
        :raises InvalidRequestError: a field breaks a documented rule.
        """
        from airflow_provider_webdata.hooks.calls import body_for

        request = body_for(model, self.given(), operation)
        for doubt in request.warnings():
            self.log.warning("%s: %s", operation, doubt)
        return request

    def checked_extra_body(self, operation: str) -> Mapping[str, Any] | None:
        """Return `extra_body` as a mapping; a template may have made JSON text of it.

        :param operation: what the error calls the call.
        :raises InvalidRequestError: it is no object.
        """
        import contextlib
        import json
        from collections.abc import Mapping

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

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        # Airflow stores the rendered fields right after this; by then its masker must know the header values.
        super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        if parent is self:
            self._mask_header_values()

    def _mask_header_values(self) -> None:
        from airflow.sdk.log import mask_secret

        from airflow_provider_webdata.operators.header_secrets import header_values

        values: list[JsonValue] = [*header_values([getattr(self, name) for name in self.template_fields])]
        if values:
            mask_secret(values)
