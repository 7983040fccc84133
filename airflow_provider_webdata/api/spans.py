"""An OpenTelemetry span for each call, if tracing is enabled in Airflow.

This module does not import OpenTelemetry: unless another module has imported it, no spans are recorded.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata import __version__
from airflow_provider_webdata.api.prices import reported_credits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.api.endpoints import Endpoint
    from airflow_provider_webdata.api.retry import Attempts


def active_tracer() -> Any | None:
    """Return the tracer of this package, or None if spans are not recorded."""
    otel: Any = sys.modules.get("opentelemetry.trace")
    if otel is None:
        return None
    provider = otel.get_tracer_provider()
    if isinstance(provider, (otel.ProxyTracerProvider, otel.NoOpTracerProvider)):
        return None
    return provider.get_tracer("airflow_provider_webdata", __version__)


@contextmanager
def call_span(tracer: Any, endpoint: Endpoint[Any], attempts: Attempts) -> Iterator[None]:
    """Record a span for the call within this block, including all its attempts.

    The span contains no address, parameter, text, or secret.

    :param tracer: the tracer from `active_tracer`.
    """
    otel: Any = sys.modules["opentelemetry.trace"]
    attributes = {"webdata.operation": endpoint.label, "http.request.method": endpoint.method}
    # The message of an exception may contain parameters.
    with tracer.start_as_current_span(
        f"webdata {endpoint.label}",
        kind=otel.SpanKind.CLIENT,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(otel.StatusCode.ERROR)
            raise
        else:
            if (used := reported_credits(attempts.answer)) is not None:
                span.set_attribute("webdata.credits", used)
        finally:
            span.set_attribute("webdata.attempts", attempts.made)
            if attempts.status is not None:
                span.set_attribute("http.response.status_code", attempts.status)
