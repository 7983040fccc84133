"""The service's agent under the contract for managed agents of `apache-airflow-providers-common-ai`."""

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
"""How long a run may take unless the request says."""

_FIXED = frozenset({"prompt", "model", "thread_id", "threadId", "webhook"})
"""Fields of the run that options cannot set."""


class WebDataManagedAgentHook(BaseManagedAgentHook):
    """The service's agent, which researches the web, as a specialist that another agent consults.

    An agent is named by its model, such as `spark-1-mini`; see `WebDataAgentOperator`. A session is a thread of runs.
    A run that is not waited for to its end is canceled.

    :param hook: with a guarded one, its caps hold for all runs together. Default: `WebDataHook()`.
    :param options: fields of each run, such as `max_credits` and `urls`; a request's `vendor_options` replace them.
    """

    agent_platform = "webdata.agent"

    def __init__(self, hook: WebDataHook | None = None, *, options: Mapping[str, Any] | None = None) -> None:
        self._hook = hook or WebDataHook()
        self._options = dict(options or {})

    def resolve_agent(self, agent: str) -> ManagedAgentRef:
        """Return the agent's identity, without a request.

        :param agent: name of the model.
        """
        return ManagedAgentRef(self.agent_platform, agent)

    def get_agent_capabilities(self, agent: str) -> ManagedAgentCapabilities:  # noqa: ARG002
        """Return what every model can do, without a request.

        :param agent: name of the model.
        """
        return ManagedAgentCapabilities(sessions=True, structured_output=True, trace=True)

    def invoke_agent(self, agent: str, request: ManagedAgentRequest) -> ManagedAgentResponse:
        """Run the agent and wait for its answer. Bills credits.

        :param agent: name of the model.
        :param request: its `timeout` is 3,600 seconds by default.
        :return: `structured` is the data of the answer, `session_id` the thread, `trace_ref` the id of the run.
        :raises ManagedAgentRejected: another prompt may succeed.
        :raises ManagedAgentInvocationError: the run failed, or no retry can help.
        :raises TimeoutError: the run took longer than the timeout.
        :raises WebDataError: a retry of the task may help.
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
            raise TimeoutError(f"Agent run {run_id} did not end in time, and is canceled")
        if event["status"] != "done":
            raise ManagedAgentInvocationError(str(event.get("error") or event.get("message")))
        status = cast("AgentStatus", self._hook.job_status("agent", run_id))
        log.info("Agent run %s is completed: %s credits", run_id, status.credits_used)
        return ManagedAgentResponse(
            text=status.message or json.dumps(status.data, ensure_ascii=False),
            raw=status.to_wire(),
            structured=status.data,
            session_id=status.thread_id,
            trace_ref=run_id,
        )

    def _body(self, agent: str, request: ManagedAgentRequest) -> dict[str, Any]:
        options = {**self._options, **request.vendor_options}
        if fixed := sorted(_FIXED & options.keys()):
            raise ValueError(f"Options cannot set {', '.join(fixed)}; leave them out")
        if request.prompt is None:
            raise ValueError(
                "The agent takes a prompt, not messages; continue a conversation with session_id"
            )
        return {**options, "prompt": request.prompt, "model": agent, "thread_id": request.session_id}

    def _start(self, body: Mapping[str, Any]) -> str:
        try:
            return self._hook.start_agent(body).id
        except InvalidRequestError as error:
            # The prompt is the calling model's, everything else the author's.
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
        """Return the event of the run's end."""
        target = JobTarget("agent", run_id, PollingPolicy("polling", POLL_SECONDS, POLL_SECONDS), log)
        event: dict[str, Any] = with_hub(
            self._hook.get_settings(), lambda hub: wait(hub, target, deadline, at_least_once=True)
        )
        return event

    def _cancel(self, run_id: str) -> None:
        try:
            self._hook.cancel_job("agent", run_id)
        except WebDataError as error:
            log.warning("Agent run %s continues, because it could not be canceled: %s", run_id, error)
