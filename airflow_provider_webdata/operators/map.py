"""The operator that lists the URLs of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_webdata.tasks.result_output import ResultOutput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

_RESULT_KINDS = ("links", "urls")


class WebDataMapOperator(ResultOutput):
    """List the URLs of a site. One credit, whatever the number of links. Supplement 7.

    Every argument up to `integration` is a field of POST /v2/map, templated; what is left out is not sent, so that
    the service's own default applies.

    XCom: a mapping with the wire names `id`, `warning`, `count` and `links` (each with `url`, `title`,
    `description`). With `returns`, the return value is a list alone, so that
    `WebDataScrapeOperator.partial(...).expand(url=map.output)` maps over it; `id` and `warning` are keys of their own
    either way. With `output`, what `ResultOutput` says.

    :param url: the site.
    :param search: words that order the links by relevance.
    :param sitemap: `skip`, `include` (default) or `only`.
    :param include_subdomains: default true.
    :param ignore_query_parameters: leave out URLs with a query; default true.
    :param ignore_cache: read the sitemap anew; the cached one is up to 7 days old. Default false.
    :param limit: most links, 1 to 100000; default 5000.
    :param timeout: milliseconds that the service may take, at least 1; default none.
    :param location: where the site is looked at from: `country`, `languages`.
    :param audit_metadata: whom to name in the audit log: `username`.
    :param threat_protection: threat protection override, for teams that have it.
    :param headers: sent with the requests to the site; their values are hidden in logs and rendered templates. Not
        documented publicly, as are the next four.
    :param filter_by_path: only URLs below the path of `url`.
    :param use_index: also list what the service's own index knows.
    :param include_paths: regular expressions over the path; only matching URLs.
    :param exclude_paths: regular expressions over the path; no matching URLs.
    :param origin: label of the caller, for the service's own statistics; default `api`.
    :param integration: another such label.
    :param returns: `links` or `urls`: return the list of links, or that of their URLs, alone.
    :param kwargs: arguments of `ResultOutput` (`output`), `WebDataOperator` and `BaseOperator`.
    """

    request_fields: ClassVar[Sequence[str]] = (
        "url",
        "search",
        "sitemap",
        "include_subdomains",
        "ignore_query_parameters",
        "ignore_cache",
        "limit",
        "timeout",
        "location",
        "audit_metadata",
        "threat_protection",
        "headers",
        "filter_by_path",
        "use_index",
        "include_paths",
        "exclude_paths",
        "origin",
        "integration",
    )
    template_fields: Sequence[str] = (*ResultOutput.template_fields, *request_fields)
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **ResultOutput.template_fields_renderers,
        "location": "json",
        "audit_metadata": "json",
        "threat_protection": "json",
        "headers": "json",
    }

    def __init__(
        self,
        *,
        url: str,
        search: str | None = None,
        sitemap: str | None = None,
        include_subdomains: bool | str | None = None,
        ignore_query_parameters: bool | str | None = None,
        ignore_cache: bool | str | None = None,
        limit: int | str | None = None,
        timeout: int | str | None = None,
        location: Mapping[str, Any] | None = None,
        audit_metadata: Mapping[str, Any] | None = None,
        threat_protection: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        filter_by_path: bool | str | None = None,
        use_index: bool | str | None = None,
        include_paths: Sequence[str] | None = None,
        exclude_paths: Sequence[str] | None = None,
        origin: str | None = None,
        integration: str | None = None,
        returns: Literal["links", "urls"] | None = None,
        **kwargs: Any,
    ) -> None:
        if returns is not None and returns not in _RESULT_KINDS:
            raise ValueError(f"returns must be one of {', '.join(_RESULT_KINDS)} (given: {returns!r})")
        if returns is not None and kwargs.get("output"):
            raise ValueError(
                f"returns={returns!r} has no effect with output, which returns where the links are"
            )
        super().__init__(**kwargs)
        self.url = url
        self.search = search
        self.sitemap = sitemap
        self.include_subdomains = include_subdomains
        self.ignore_query_parameters = ignore_query_parameters
        self.ignore_cache = ignore_cache
        self.limit = limit
        self.timeout = timeout
        self.location = location
        self.audit_metadata = audit_metadata
        self.threat_protection = threat_protection
        self.headers = headers
        self.filter_by_path = filter_by_path
        self.use_index = use_index
        self.include_paths = include_paths
        self.exclude_paths = exclude_paths
        self.origin = origin
        self.integration = integration
        self.returns = returns

    def call_service(self, context: Context) -> Any:
        """List the site's URLs and return them, or where they were written."""
        from airflow_provider_webdata.api.models import MapRequest
        from airflow_provider_webdata.tasks.metrics import count

        request = self.checked_request(MapRequest, "map")
        answer = self.hook.map(request, extra_body=self.checked_extra_body("map")).to_wire()
        links = answer.pop("links", None) or []
        answer.pop("success", None)
        summary = {"id": None, "warning": None, **answer}
        if summary["warning"]:
            self.log.warning("The service warns: %s", summary["warning"])
        self.log.info("%s has %d links", request.url, len(links))
        count("webdata.map.links", len(links), context)
        if isinstance(credits_used := answer.get("creditsUsed"), (int, float)):
            count("webdata.credits_used", credits_used, context, operation="map")
        self.push(context, **summary)
        return self.deliver(links, "link", context, summary, inputs=[request.url], value=self._value)

    def _value(self, links: list[Any], facts: dict[str, Any]) -> Any:
        if self.returns == "urls":
            return [link["url"] for link in links]
        return links if self.returns == "links" else {**facts, "links": links}
