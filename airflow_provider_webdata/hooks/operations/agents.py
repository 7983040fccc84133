"""The service's records of agent runs: lists, threads, traces, and snapshots. See docs/service.md#agent-records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.hooks.calls import Call
from airflow_provider_webdata.hooks.operations.base import Operations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_provider_webdata.api import models


class AgentOperations(Operations):
    """Records of agent runs. All calls are free."""

    async def list_agents(self, *, before: int | None = None) -> models.AgentRuns:
        """Return at most 20 of the team's agent runs, newest first.

        :param before: milliseconds since the epoch; return only runs started earlier.
        """
        return await self._execute(Call(endpoints.LIST_AGENTS, query={"before": before}))

    async def iter_agents(self) -> AsyncIterator[models.AgentRun]:
        """Yield every agent run of the team once, newest first, 20 at a time."""
        seen: set[str] = set()
        links: set[str | None] = {None}
        page = await self._execute(Call(endpoints.LIST_AGENTS))
        while True:
            fresh = [run for run in page.agents if run.id not in seen]
            seen.update(run.id for run in fresh)
            for run in fresh:
                yield run
            link = page.next
            if not fresh or not link or link in links:
                return
            links.add(link)
            page = await self._follow(endpoints.LIST_AGENTS, link)

    async def agent_thread(self, thread_id: str, *, include_data: bool = False) -> models.AgentThread:
        """Return a thread with its runs, oldest first.

        :param thread_id: the thread's UUID: `threadId` of each of its runs.
        :param include_data: include the data of each run.
        :raises NotFoundError: the thread does not exist or belongs to another team.
        """
        query = {"includeData": "true"} if include_data else None
        call = Call(endpoints.AGENT_THREAD, path={"thread_id": thread_id}, query=query)
        return (await self._execute(call)).thread

    async def agent_trace(self, job_id: str, *, live_view: bool = False) -> models.AgentTrace:
        """Return the steps of an agent run.

        :param job_id: the run's UUID.
        :param live_view: include links to the live view of running browsers. Anyone with a link has access.
        :raises NotFoundError: the run does not exist, belongs to another team, or has expired.
        """
        query = {"liveView": "true"} if live_view else None
        return await self._execute(Call(endpoints.AGENT_TRACE, path={"job_id": job_id}, query=query))

    async def agent_snapshot(self, job_id: str, snapshot_id: str) -> str:
        """Return the content that a step of a trace refers to, as text.

        :param job_id: the run's UUID.
        :param snapshot_id: `artifact["snapshotId"]` of an event `artifact.updated`.
        :raises NotFoundError: the snapshot does not exist, belongs to another team, or has expired.
        """
        path = {"job_id": job_id, "snapshot_id": snapshot_id}
        return (await self._execute(Call(endpoints.AGENT_SNAPSHOT, path=path))).snapshot
