# SPDX-License-Identifier: Apache-2.0
"""The operator that runs code in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator
from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import is_literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class WebDataInteractOperator(
    WebDataOperator,
    fields=RequestFields(
        "InteractRequest",
        own=("steps", "scrape_id", "language", "step_timeout", "check_exit_code"),
        options=("credit_limit",),
    ),
):
    """Open a browser, run steps of code in it, and close it. Bills by time.

    The task always closes the browser: at the end, after a failure or a timeout, and when a user ends the task. If the
    response to opening a session is lost, the task looks for sessions opened meanwhile and closes the session if there
    is exactly one. If there are several, the task logs them, and the session ends at its `ttl`. `ttl` is always sent;
    by default, it is the total time limit of the steps, at least 600 seconds. On Airflow 3.3, a retry closes the
    session of a crashed worker.

    With `scrape_id`, the steps run on the page of an earlier scrape (`metadata.scrapeId` of its document), may be
    prompts, and use the profile of the scrape.

    Steps are never retried after a lost response. A retry of the task starts with the first step in a new browser.

    XCom: a mapping with `sessionId` or `scrapeId`; `steps`, for each executed step the wire names `stdout`, `stderr`,
    `exitCode`, `killed`, `error`, and `result` and `output` if they contain more; `creditsBilled`; `sessionDurationMs`.
    If the task fails, each has a separate key (`session_id`, ...). The URLs that control the browser appear neither
    in XCom nor in logs.

    :param steps: steps to run in order: code as text, or mappings with `code` (at most 100,000 characters) or, with
        `scrape_id`, `prompt` (at most 10,000), and optionally `language`, `timeout` (seconds), and `name` (templated;
        also JSON text of a list).
    :param scrape_id: UUID of an earlier scrape, to run the steps on its page (templated).
    :param language: `python`, `node` (the service's default), or `bash`, for steps without a `language` (templated).
    :param step_timeout: seconds that a step may take, 1 to 300, for steps without a `timeout`. Default: 30
        (templated).
    :param check_exit_code: whether a failed step (a nonzero exit code, an exception, or a timeout) ends the run and
        fails the task (default). Otherwise, the next step runs.
    :param ttl: maximum lifetime of the browser in seconds, 30 to 3600. Default: 300 or 600; sources differ.
    :param activity_ttl: maximum idle time in seconds, 10 to 3600. Default: none or 300; sources differ.
    :param stream_web_view: return a URL for watching the browser. Default: true.
    :param profile: browser state to use: `name`, `saveChanges`; changes are saved when the browser is closed.
    :param block_ads: block advertisements. Default: true. This and the next field are not publicly documented.
    :param record_session: record the session; `GET /v2/interact/{sessionId}/replay` returns the recording.
    :param credit_limit: maximum credits for all attempts until the task is cleared (templated). A call of a killed
        attempt counts with its maximum cost. A call whose documented price may exceed the limit or is unbounded is not
        sent, and the task fails with WD-034. Default: no limit.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`. `extra_body` is merged into the request that opens
        the session or, with `scrape_id`, into the request of each step.
    """

    _run_path = "airflow_provider_webdata.runs.pages.interact:InteractRun"
    template_fields: Sequence[str] = (
        *WebDataOperator.template_fields,
        "steps",
        "scrape_id",
        "language",
        "step_timeout",
    )

    def __init__(
        self,
        *,
        steps: Sequence[str | Mapping[str, Any]] | str,
        scrape_id: str | None = None,
        language: str | None = None,
        step_timeout: int | str | None = None,
        check_exit_code: bool = True,
        # fields of InteractRequest, written by tools/operator_fields.py
        ttl: int | str | None = None,
        activity_ttl: int | str | None = None,
        stream_web_view: bool | str | None = None,
        profile: Mapping[str, Any] | None = None,
        block_ads: bool | str | None = None,
        record_session: bool | str | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.steps = steps
        self.scrape_id = scrape_id
        self.language = language
        self.step_timeout = step_timeout
        self.check_exit_code = check_exit_code
        # fields of InteractRequest, written by tools/operator_fields.py
        self.ttl = ttl
        self.activity_ttl = activity_ttl
        self.stream_web_view = stream_web_view
        self.profile = profile
        self.block_ads = block_ads
        self.record_session = record_session
        self.credit_limit = credit_limit
        # end of fields
        self._check_arguments()

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        if is_literal(self.steps):
            as_list("steps", self.steps, is_code=True)
        of_own_session = ("stream_web_view", "profile", "block_ads", "record_session")
        without_effect = [name for name in of_own_session if getattr(self, name) is not None]
        if self.scrape_id is not None and without_effect:
            raise ArgumentError(
                f"{', '.join(without_effect)}: no effect with scrape_id, because the scrape defines the browser; "
                "remove it"
            )
