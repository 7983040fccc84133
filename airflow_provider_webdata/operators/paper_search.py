"""The operator that searches the service's index of research papers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator, checked_limit
from airflow_provider_webdata.options import Output, Quality

if TYPE_CHECKING:
    from collections.abc import Sequence


class WebDataPaperSearchOperator(
    WebDataOperator, fields=RequestFields("PaperSearchRequest", options=("output", "quality", "credit_limit"))
):
    """Search abstracts of research papers. Bills credits: 2 for each 10 results, rounded up.

    The service maintains an index of papers, mostly from the life sciences.
    `WebDataSearchOperator(categories=["research"])` is different: a web search of scientific sites. To read papers, use
    the hook's methods `get_paper`, `read_paper`, and `similar_papers`.

    All arguments up to `to_date` are templated parameters of GET /v2/search/research/papers. Omitted arguments are
    not sent; the defaults below are the service's.

    XCom: a mapping with the wire names `results` (each with `paperId`, `primaryId`, `ids`, `title`, `abstract`,
    `score`) and `count`. With `output`, the file has columns of the kind `paper`.

    :param query: topic of the papers, in natural language.
    :param k: maximum number of papers, 1 to 500. Default: 40.
    :param authors: parts of author names; a paper must match all.
    :param categories: categories of papers, such as `cs.LG`; a paper must be in all.
    :param from_date: earliest date on which a paper was created or updated, such as `2026-01-31`.
    :param to_date: latest such date.
    :param output: path or URL of a file for the results, or `Output` (templated). Default: XCom.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param credit_limit: maximum credits for all attempts until the task is cleared. On Airflow 3.2, for each attempt
        (templated). A call of a killed attempt counts with its maximum cost. A call whose documented price may exceed
        the limit or is unbounded is not sent, and the task fails with WD-034. Default: no limit.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    run = "airflow_provider_webdata.runs.searches.index_search:PaperSearchRun"

    def __init__(
        self,
        *,
        # fields of PaperSearchRequest, written by tools/operator_fields.py
        query: str,
        k: int | str | None = None,
        authors: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        from_date: str | None = None,
        to_date: str | None = None,
        output: Output | str | None = None,
        quality: Quality | int | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of PaperSearchRequest, written by tools/operator_fields.py
        self.query = query
        self.k = k
        self.authors = authors
        self.categories = categories
        self.from_date = from_date
        self.to_date = to_date
        self.output_to = Output.of(output)
        self.quality = Quality.of(quality)
        self.credit_limit = checked_limit(credit_limit)
        # end of fields
