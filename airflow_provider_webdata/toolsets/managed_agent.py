"""The service's agent as a managed agent of `apache-airflow-providers-common-ai`."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.common.ai.exceptions import ManagedAgentInvocationError, ManagedAgentRejected
from airflow.providers.common.ai.managed_agents.base import (
    BaseManagedAgentHook,
    ManagedAgentCapabilities,
    ManagedAgentRef,
    ManagedAgentRequest,
    ManagedAgentResponse,
)

from airflow_provider_webdata.api.errors import BadRequestError, InvalidRequestError, WebDataError
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.runs.wait import with_hub
from airflow_provider_webdata.waiting.job_target import JobTarget
from airflow_provider_webdata.waiting.policy import PollingPolicy
from airflow_provider_webdata.waiting.wait import wait

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.api.models import AgentStatus

log = logging.getLogger(__name__)

POLL_SECONDS = 5.0
LONGEST_SECONDS = 3600.0
"""Default timeout of a run."""

_FIXED = frozenset({"prompt", "model", "thread_id", "threadId", "webhook"})
"""Request fields that options cannot set."""


class WebDataManagedAgentHook(BaseManagedAgentHook):
    """The service's web research agent, for other agents to consult.

    An agent is identified by its model, such as `spark-1-mini`; see `WebDataAgentOperator`. A session is a thread of
    runs. If the wait for a run is interrupted or times out, the run is canceled.

    :param hook: the hook to use. The limits of a guarded hook apply to all runs together. Default: `WebDataHook()`.
    :param options: request fields of each run, such as `max_credits` and `urls`; a request's `vendor_options` override
        them.
    """

    agent_platform = "webdata.agent"

    def __init__(self, hook: WebDataHook | None = None, *, options: Mapping[str, Any] | None = None) -> None:
        self._hook = hook or WebDataHook()
        self._options = dict(options or {})

    def resolve_agent(self, agent: str) -> ManagedAgentRef:
        """Return a reference to the agent, without a request.

        :param agent: name of the model.
        """
        return ManagedAgentRef(self.agent_platform, agent)

    def get_agent_capabilities(self, agent: str) -> ManagedAgentCapabilities:  # noqa: ARG002
        """Return the capabilities, which all models share, without a request.

        :param agent: name of the model.
        """
        return ManagedAgentCapabilities(sessions=True, structured_output=True, trace=True)

    def invoke_agent(self, agent: str, request: ManagedAgentRequest) -> ManagedAgentResponse:
        """Run the agent and wait for its answer. Bills credits.

        :param agent: name of the model.
        :param request: the prompt and options. Default `timeout`: 3,600 seconds.
        :return: the answer; `structured` is its data, `session_id` the thread, `trace_ref` the id of the run.
        :raises ManagedAgentRejected: the service refuses the prompt; another one may succeed.
        :raises ManagedAgentInvocationError: the run failed, or no retry can succeed.
        :raises TimeoutError: the run took longer than the timeout.
        :raises WebDataError: the call failed; a retry of the task may succeed.
        """
        deadline = time.time() + (LONGEST_SECONDS if request.timeout is None else request.timeout)
        run_id = self._start(self._body(agent, request))
        is_over = False
        try:
            event = self._ended(run_id, deadline)
            is_over = event["status"] in {"done", "failed"}
        finally:
            if not is_over:
                self._cancel(run_id)
        if event["status"] == "timeout":
            raise TimeoutError(f"Agent run {run_id} timed out and was canceled; raise the request's timeout")
        if event["status"] != "done":
            raise ManagedAgentInvocationError(str(event.get("error") or event.get("message")))
        status = cast("AgentStatus", self._hook.job_status("agent", run_id))
        log.info("Agent run %s completed and used %s credits", run_id, status.credits_used)
        message = status.message if isinstance(status.message, str) else ""
        text = message or json.dumps(status.data, ensure_ascii=False)
        return ManagedAgentResponse(
            text=text,
            raw=status.to_wire(),
            structured=status.data,
            session_id=status.thread_id,
            trace_ref=run_id,
        )

    def _body(self, agent: str, request: ManagedAgentRequest) -> dict[str, Any]:
        options = {**self._options, **request.vendor_options}
        if fixed := sorted(_FIXED & options.keys()):
            raise ArgumentError(f"options cannot set {', '.join(fixed)}; remove them")
        if request.prompt is None:
            raise ArgumentError(
                "the agent accepts a prompt, not messages; to continue a conversation, set session_id"
            )
        return {**options, "prompt": request.prompt, "model": agent, "thread_id": request.session_id}

    def _start(self, body: Mapping[str, Any]) -> str:
        try:
            return self._hook.start_agent(body).id
        except InvalidRequestError as error:
            # The calling model wrote the prompt; the DAG author set all other fields.
            if all(problem.startswith("prompt") for problem in error.problems):
                raise ManagedAgentRejected(error.text()) from None
            raise ManagedAgentInvocationError(str(error)) from error
        except BadRequestError as error:
            raise ManagedAgentRejected(error.text()) from None
        except WebDataError as error:
            if error.verdict == "never":
                raise ManagedAgentInvocationError(str(error)) from error
            raise

    def _ended(self, run_id: str, deadline: float) -> dict[str, Any]:
        """Wait for the run and return its event."""
        target = JobTarget("agent", run_id, PollingPolicy("polling", POLL_SECONDS, POLL_SECONDS), log)
        event: dict[str, Any] = with_hub(
            self._hook.get_settings(), lambda hub: wait(hub, target, deadline, at_least_once=True)
        )
        return event

    def _cancel(self, run_id: str) -> None:
        try:
            self._hook.cancel_job("agent", run_id)
        except WebDataError as error:
            log.warning("Could not cancel agent run %s, which continues and bills: %s", run_id, error)
