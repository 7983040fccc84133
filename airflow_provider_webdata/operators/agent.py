# SPDX-License-Identifier: Apache-2.0
"""The operator that runs the service's AI agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.base.job_operator import WebDataJobOperator
from airflow_provider_webdata.base.operator import RequestFields
from airflow_provider_webdata.common.coded_errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.options import Quality


class WebDataAgentOperator(
    WebDataJobOperator,
    fields=RequestFields(
        "AgentRequest",
        options=("save_to", "media_to", "result_schema", "result_rows", "quality", "credit_limit"),
    ),
):
    """Run the service's AI agent to collect data from the web, and wait for it. Bills credits.

    All arguments up to `zero_data_retention` are templated fields of POST /v2/agent. Omitted arguments are not sent;
    the defaults below are the service's. Nested mappings accept wire and Python names. Your own `webhook` replaces the
    one of this Airflow's inbox. `WebDataJobOperator` documents how the task starts, waits for, and cancels the run. A
    canceled run stops, and stops billing, at its next step.

    XCom: the service's response with wire names: `data`, `creditsUsed`, `model`, `threadId`, and other fields, and
    `id`. With `save_to`, a description of the written file replaces `data`. If a run fails, the task logs its last
    steps. If a run stops at its credit limit, the XCom `partial` contains its results up to then.

    :param prompt: description of the data to collect, at most 10,000 characters.
    :param urls: pages to visit first, or exclusively with `strict_constrain_to_urls`.
    :param strict_constrain_to_urls: visit only the pages in `urls`.
    :param schema: JSON Schema of the result.
    :param max_credits: maximum credits of the run, more than 0. A run that exceeds them fails without data and is not
        billed. Default: 2500. Daily free runs are not available with a higher limit.
    :param model: model of the agent: `spark-2`, `spark-1-mini` or `spark-1-pro`. Default: `spark-1-pro`.
    :param audit_metadata: user to record in the audit log: `username`.
    :param threat_protection: threat protection override, for teams with this feature.
    :param webhook: endpoint that receives the job's events: `url`, `events`, `headers`, `metadata`.
    :param effort: effort of the agent: `low`, `medium`, or `high`. This and the following fields are not publicly
        documented.
    :param mode: with `extract`, each turn of a thread returns all its data; with `chat`, a later turn may return only
        text, as `message`. Default: the mode of the thread, or `extract`.
    :param thread_id: UUID of the thread to continue: the `threadId` of an earlier run. Its `mode`, `urls`, `schema`,
        and `exchange` apply unless set. Default: a new thread.
    :param exchange: data providers that the run may call: `enabled`, `toolkits`, `maxCalls`, `requireApproval`,
        `approve`, `decline`, `onTermsRequired`.
    :param location: location to fetch pages from: `country`.
    :param zero_data_retention: retain no data, for teams with this feature. Default: false.
    :param save_to: path or URL of a file for the results, in any storage that Airflow knows (templated). `*` in its
        name becomes a name of the task instance, so that each run and each mapped instance has its own file. Its suffix
        is the format, such as `.jsonl.gz` or `.parquet`; `docs/results.md` lists them. The file is written completely
        or not at all, and a retry replaces it. XCom then has `path`, `count`, and `bytes` instead of the results.
        Default: XCom.
    :param documents: flat rows for retrieval instead of the items: `id` (the same for a page in all runs), `url`,
        `title`, `text`, `metadata`, and `digest`. For pages, search results, and links. Default: false.
    :param media_to: path or URL of a folder for screenshots, audio, video, and PDFs, whose links expire (templated).
        The links in the results then point to the downloaded files. Default: media is not kept.
    :param max_media_mb: maximum size of such a file in MiB, more than 0; larger ones are not kept. Default: 500.
    :param result_schema: schema that structured results must match, the `json` of pages or the data of an agent: JSON
        Schema as a mapping, pydantic model, or the model's import path, such as `shop.models.Product`. An invalid
        result gets a first field `validationErrors`, and XCom `validation` counts them; see `docs/results.md`. Default:
        the schema that the request contains, if any.
    :param on_invalid_result: `keep`, or `fail`: fail the task, without a retry, after all results are published.
        Default: `keep`.
    :param result_rows: path of the list in `data` whose elements are the results, such as `companies` or
        `answer.companies`. Each is then a separate item, and `result_schema` describes one item. The rest of `data`
        goes to XCom. Without such a list, `data` is the only item. Default: `data`, or its elements if it is a list.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param credit_limit: maximum credits for all attempts until the task is cleared (templated). A call of a killed
        attempt counts with its maximum cost. A call whose documented price may exceed the limit or is unbounded is not
        sent, and the task fails with WD-034. Default: no limit.
    :param kwargs: arguments of `WebDataJobOperator`, `WebDataOperator`, and `BaseOperator`.
    """

    _job_kind: JobKind = "agent"

    def __init__(
        self,
        *,
        # fields of AgentRequest, written by tools/operator_fields.py
        prompt: str,
        urls: Sequence[str] | None = None,
        strict_constrain_to_urls: bool | str | None = None,
        schema: Mapping[str, Any] | type | None = None,
        max_credits: float | str | None = None,
        model: str | None = None,
        audit_metadata: Mapping[str, Any] | None = None,
        threat_protection: Mapping[str, Any] | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        effort: str | None = None,
        mode: str | None = None,
        thread_id: str | None = None,
        exchange: Mapping[str, Any] | None = None,
        location: Mapping[str, Any] | None = None,
        zero_data_retention: bool | str | None = None,
        save_to: str | None = None,
        documents: bool = False,
        media_to: str | None = None,
        max_media_mb: float = 500,
        result_schema: Mapping[str, Any] | type | str | None = None,
        on_invalid_result: Literal["keep", "fail"] = "keep",
        result_rows: str | None = None,
        quality: Quality | int | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of AgentRequest, written by tools/operator_fields.py
        self.prompt = prompt
        self.urls = urls
        self.strict_constrain_to_urls = strict_constrain_to_urls
        self.schema = schema
        self.max_credits = max_credits
        self.model = model
        self.audit_metadata = audit_metadata
        self.threat_protection = threat_protection
        self.webhook = webhook
        self.effort = effort
        self.mode = mode
        self.thread_id = thread_id
        self.exchange = exchange
        self.location = location
        self.zero_data_retention = zero_data_retention
        self.save_to = save_to
        self.documents = documents
        self.media_to = media_to
        self.max_media_mb = max_media_mb
        self.result_schema = result_schema
        self.on_invalid_result = on_invalid_result
        self.result_rows = result_rows
        self.quality = quality
        self.credit_limit = credit_limit
        # end of fields
        self._check_arguments()

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        if isinstance(self.urls, (list, tuple, set)) and not self.urls:
            raise ArgumentError(
                "urls is empty: the agent would search the whole web. Omit urls for that, or skip the task"
            )
