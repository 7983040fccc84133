"""Guards against monitors that cost more than their author meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.runs.checked_number import checked_number

if TYPE_CHECKING:
    from airflow_provider_webdata.api.models import MonitorCreateRequest


def credit_limit(given: Any) -> float | None:
    """Return the most credits that a monitor may cost a month, or None where no limit is given.

    :param given: `max_credits_per_month`, rendered: a number, or text.
    :raises InvalidRequestError: it is no number of at least 0.
    """
    return checked_number("create monitor", "max_credits_per_month", given)


def refuse_unlimited_crawls(request: MonitorCreateRequest) -> None:
    """Refuse crawl targets for which the service would reserve credits without an end.

    :param request: the declared monitor.
    :raises InvalidRequestError: a crawl target has no limit.
    """
    from airflow_provider_webdata.api.errors import InvalidRequestError
    from airflow_provider_webdata.api.models import CrawlTarget

    problems = [
        f"targets[{index}].crawlOptions.limit: is not given, so that the service would reserve 10,000 credits "
        f"for every check of {target.url!r}; set a limit, or allow_unlimited_crawl=True"
        for index, target in enumerate(request.targets)
        if isinstance(target, CrawlTarget)
        and (target.crawl_options is None or target.crawl_options.limit is None)
    ]
    if problems:
        raise InvalidRequestError("create monitor", problems)
