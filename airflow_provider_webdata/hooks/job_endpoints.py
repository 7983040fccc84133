"""The endpoints of each kind of long job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.states.jobs import JobKind, checked_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.api.endpoints import Endpoint


@dataclass(frozen=True)
class JobEndpoints:
    """The calls of one kind of job. See docs/service.md#endpoints.

    :param status: how it stands.
    :param documents: its result in parts, as plain JSON objects; None if the result is one object.
    :param cancel: ends it early; None where the service has no such call.
    :param errors: pages that failed; None where there are no pages.
    """

    status: Endpoint[Any]
    documents: Endpoint[models.JobDocuments] | None
    cancel: Endpoint[models.CancelResponse] | None
    errors: Endpoint[models.JobErrors] | None


JOB_KINDS: Mapping[JobKind, JobEndpoints] = {
    "crawl": JobEndpoints(
        status=endpoints.CRAWL_STATUS,
        documents=endpoints.CRAWL_DOCUMENTS,
        cancel=endpoints.CANCEL_CRAWL,
        errors=endpoints.CRAWL_ERRORS,
    ),
    "batch_scrape": JobEndpoints(
        status=endpoints.BATCH_SCRAPE_STATUS,
        documents=endpoints.BATCH_SCRAPE_DOCUMENTS,
        cancel=endpoints.CANCEL_BATCH_SCRAPE,
        errors=endpoints.BATCH_SCRAPE_ERRORS,
    ),
    "extract": JobEndpoints(
        status=endpoints.EXTRACT_STATUS,
        documents=None,
        cancel=None,
        errors=None,
    ),
    "agent": JobEndpoints(
        status=endpoints.AGENT_STATUS,
        documents=None,
        cancel=endpoints.CANCEL_AGENT,
        errors=None,
    ),
}


def endpoints_of(kind: JobKind) -> JobEndpoints:
    """Return the calls of a kind of job.

    :raises ArgumentError: there is no such kind.
    """
    return JOB_KINDS[checked_kind(kind)]
