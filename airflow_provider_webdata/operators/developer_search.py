"""The operator that searches the service's index of developer sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator, checked_limit
from airflow_provider_webdata.options import Output, Quality

if TYPE_CHECKING:
    from collections.abc import Sequence


class WebDataDeveloperSearchOperator(
    WebDataOperator,
    fields=RequestFields("DeveloperSearchRequest", options=("output", "quality", "credit_limit")),
):
    """Search issues, pull requests, READMEs, and documentation. Bills credits: 2 for each 10 results, rounded up.

    The service maintains this index for coding questions. `WebDataSearchOperator(categories=["developer"])` queries the
    same index and returns web results without passages.

    All arguments up to `fork` are templated fields of POST /v2/search/developer. Omitted arguments are not sent;
    the defaults below are the service's.

    XCom: a mapping with the wire names `results` (each with `id`, `type`, `url`, `title`, `passages`), `count`,
    `coverage`, `reranked` and, if requested, `repos` and `sources`; all except `results` and `count` also under their
    own keys. With `output`, the file has columns of the kind `developer`.

    :param query: a question, or words.
    :param k: maximum number of results, 1 to 100. Default: 10.
    :param types: kinds of results: `doc`, `issue`, `pull_request`, `readme`. Default: all.
    :param repos: only these repositories, such as `pipeline/pipeline`; documentation is still included.
    :param sources: only these documentation sites, at most 20 ids of 1 to 512 characters; repositories are still
        included.
    :param skills: `only` restricts results to files that describe skills for agents.
    :param passages: maximum number of passages per result, 1 to 5. Default: 1.
    :param language: main language of the repository, such as `Rust`. This and the next six fields filter repositories;
        without `sources`, they exclude documentation.
    :param topic: topic of the repository, such as `async`.
    :param license: license of the repository, such as `MIT`.
    :param min_stars: minimum number of stars, at least 0.
    :param max_stars: maximum number of stars, at least 0.
    :param archived: include archived repositories or not.
    :param fork: include forks or not.
    :param output: path or URL of a file for the results, or `Output` (templated). Default: XCom.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param credit_limit: maximum credits for all attempts until the task is cleared. On Airflow 3.2, for each attempt
        (templated). A call of a killed attempt counts with its maximum cost. A call whose documented price may exceed
        the limit or is unbounded is not sent, and the task fails with WD-034. Default: no limit.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    run = "airflow_provider_webdata.runs.searches.index_search:DeveloperSearchRun"

    def __init__(
        self,
        *,
        # fields of DeveloperSearchRequest, written by tools/operator_fields.py
        query: str,
        k: int | str | None = None,
        types: Sequence[str] | None = None,
        repos: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
        skills: str | None = None,
        passages: int | str | None = None,
        language: str | None = None,
        topic: str | None = None,
        license: str | None = None,
        min_stars: int | str | None = None,
        max_stars: int | str | None = None,
        archived: bool | str | None = None,
        fork: bool | str | None = None,
        output: Output | str | None = None,
        quality: Quality | int | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of DeveloperSearchRequest, written by tools/operator_fields.py
        self.query = query
        self.k = k
        self.types = types
        self.repos = repos
        self.sources = sources
        self.skills = skills
        self.passages = passages
        self.language = language
        self.topic = topic
        self.license = license
        self.min_stars = min_stars
        self.max_stars = max_stars
        self.archived = archived
        self.fork = fork
        self.output_to = Output.of(output)
        self.quality = Quality.of(quality)
        self.credit_limit = checked_limit(credit_limit)
        # end of fields
