"""The operator that runs the service's AI agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.job_operator import WebDataJobOperator
from airflow_provider_webdata.base.operator import RequestFields, checked_limit
from airflow_provider_webdata.options import Media, Output, Quality, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.common.job_kinds import JobKind


class WebDataAgentOperator(
    WebDataJobOperator,
    fields=RequestFields(
        "AgentRequest", options=("output", "media", "result_schema", "quality", "credit_limit")
    ),
):
    """Run the service's AI agent to collect data from the web, and wait for it. Bills credits.

    All arguments up to `zero_data_retention` are templated fields of POST /v2/agent. Omitted arguments are not sent;
    the defaults below are the service's. Nested mappings accept wire and Python names. Your own `webhook` replaces the
    one of this Airflow's inbox. `WebDataJobOperator` documents how the task starts, waits for, and cancels the run. A
    canceled run stops, and stops billing, at its next step.

    XCom: the service's response with wire names: `data`, `creditsUsed`, `model`, `threadId`, and other fields, and
    `id`. With `output`, a description of the written file replaces `data`. If a run fails, the task logs its last
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
    :param output: path or URL of a file for the results, or `Output` (templated). Default: XCom.
    :param media: path or URL of a folder for screenshots and other media, or `Media` (templated). Default: media is not
        kept.
    :param result_schema: JSON Schema as a mapping, pydantic model, the model's import path, or `Schema`. Default: the
        schema that the request contains, if any.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param credit_limit: maximum credits for all attempts until the task is cleared. On Airflow 3.2, for each attempt
        (templated). A call of a killed attempt counts with its maximum cost. A call whose documented price may exceed
        the limit or is unbounded is not sent, and the task fails with WD-034. Default: no limit.
    :param kwargs: arguments of `WebDataJobOperator`, `WebDataOperator`, and `BaseOperator`.
    """

    job_kind: JobKind = "agent"

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
        output: Output | str | None = None,
        media: Media | str | None = None,
        result_schema: Schema | Mapping[str, Any] | type | str | None = None,
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
        self.output_to = Output.of(output)
        self.media = Media.of(media)
        self.result_schema = Schema.of(result_schema)
        self.quality = Quality.of(quality)
        self.credit_limit = checked_limit(credit_limit)
        # end of fields
