# SPDX-License-Identifier: Apache-2.0
"""The operator that lists the URLs of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.path_filters import literal_filters, wrong_filters
from airflow_provider_webdata.options import one_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.options import Changes, Quality


class WebDataMapOperator(
    WebDataOperator,
    fields=RequestFields(
        "MapRequest", own=("returns",), options=("save_to", "changes", "quality", "credit_limit")
    ),
):
    """List the URLs of a site. Bills one credit for any number of links.

    All arguments up to `exclude_paths` are templated fields of POST /v2/map. Omitted arguments are not sent; the
    defaults below are the service's.

    XCom: a mapping with the wire names `id`, `warning`, `count`, and `links` (each with `url`, `title`, `description`).
    With `returns`, the return value is only the list, so that
    `WebDataScrapeOperator.partial(...).expand(url=map.output)` can map over it. In both cases, the keys `id` and
    `warning` contain these values.

    :param url: the site.
    :param search: words by which links are ranked.
    :param sitemap: use of the sitemap: `skip`, `include`, or `only`. Default: `include`.
    :param include_subdomains: also list URLs of subdomains. Default: true.
    :param ignore_query_parameters: omit URLs with a query. Default: true.
    :param ignore_cache: fetch the sitemap again; the cached one is up to 7 days old. Default: false.
    :param limit: maximum number of links, 1 to 100,000. Default: 5,000.
    :param timeout: the service's time limit in milliseconds, at least 1. Default: none.
    :param location: location to fetch the site from: `country`, `languages`.
    :param audit_metadata: user to record in the audit log: `username`.
    :param threat_protection: threat protection override, for teams with this feature.
    :param headers: headers of the requests to the site; their values are hidden in logs and rendered templates. This
        and the next four fields are not publicly documented.
    :param filter_by_path: list only URLs below the path of `url`.
    :param use_index: also list URLs from the service's index.
    :param include_paths: regular expressions for the path; only matching URLs are listed.
    :param exclude_paths: regular expressions for the path; matching URLs are omitted.
    :param save_to: path or URL of a file for the results, in any storage that Airflow knows (templated). `*` in its
        name becomes a name of the task instance, so that each run and each mapped instance has its own file. Its suffix
        is the format, such as `.jsonl.gz` or `.parquet`; `docs/results.md` lists them. The file is written completely
        or not at all, and a retry replaces it. XCom then has `path`, `count`, and `bytes` instead of the results.
        Default: XCom.
    :param documents: flat rows for retrieval instead of the items: `id` (the same for a page in all runs), `url`,
        `title`, `text`, `metadata`, and `digest`. For pages, search results, and links. Default: false.
    :param changes: path or URL of a folder for what earlier runs saw, or `Changes` (templated). Default: no comparison.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param credit_limit: maximum credits for all attempts until the task is cleared (templated). A call of a killed
        attempt counts with its maximum cost. A call whose documented price may exceed the limit or is unbounded is not
        sent, and the task fails with WD-034. Default: no limit.
    :param returns: `links` or `urls`: return only the list of links or of their URLs.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    _run_path = "airflow_provider_webdata.runs.pages.site_map:MapRun"

    def __init__(
        self,
        *,
        # fields of MapRequest, written by tools/operator_fields.py
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
        save_to: str | None = None,
        documents: bool = False,
        changes: Changes | str | None = None,
        quality: Quality | int | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        returns: Literal["links", "urls"] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of MapRequest, written by tools/operator_fields.py
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
        self.save_to = save_to
        self.documents = documents
        self.changes = changes
        self.quality = quality
        self.credit_limit = credit_limit
        # end of fields
        self.returns = returns
        self._check_arguments()

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        one_of("returns", self.returns, (None, "links", "urls"))
        if self.returns is not None and self.save_to is not None:
            raise ArgumentError(
                f"returns={self.returns!r} has no effect with save_to, which returns the path of the links; remove one "
                "of them"
            )

    def _contradictions(self, fields: Mapping[str, Any]) -> Sequence[str]:
        """Return contradictions between literal arguments."""
        return wrong_filters(literal_filters(fields))
