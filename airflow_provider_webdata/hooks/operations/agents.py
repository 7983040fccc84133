"""The service's records of agent runs: lists, threads, traces, snapshots. See docs/service.md#agent-records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.hooks.calls import Call
from airflow_provider_webdata.hooks.operations.base import Operations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_provider_webdata.api import models


class RunPages:
    """Where the listing of runs stands; a link that comes twice ends it, and so do runs that were seen."""

    def __init__(self) -> None:
        self.link: str | None = None
        self._links: set[str] = set()
        self._seen: set[str] = set()

    def take(self, page: models.AgentRuns) -> list[models.AgentRun]:
        """Return the page's runs that are new, and move on."""
        fresh = [run for run in page.agents if run.id not in self._seen]
        self._seen.update(run.id for run in fresh)
        self.link = page.next if fresh and page.next not in self._links else None
        self._links.add(self.link or "")
        return fresh


def _list_agents(before: int | None) -> Call[models.AgentRuns]:
    return Call(endpoints.LIST_AGENTS, query={"before": before})


def _thread(thread_id: str, include_data: bool) -> Call[models.AgentThreadResponse]:
    query = {"includeData": "true"} if include_data else None
    return Call(endpoints.AGENT_THREAD, path={"thread_id": thread_id}, query=query)


def _trace(job_id: str, live_view: bool) -> Call[models.AgentTrace]:
    query = {"liveView": "true"} if live_view else None
    return Call(endpoints.AGENT_TRACE, path={"job_id": job_id}, query=query)


def _snapshot(job_id: str, snapshot_id: str) -> Call[models.AgentSnapshot]:
    return Call(endpoints.AGENT_SNAPSHOT, path={"job_id": job_id, "snapshot_id": snapshot_id})


class AgentOperations(Operations):
    """Records of agent runs. None of them bills."""

    async def list_agents(self, *, before: int | None = None) -> models.AgentRuns:
        """Return at most 20 of the team's agent runs, newest first.

        :param before: milliseconds since the epoch: only runs that were started earlier.
        """
        return await self._execute(_list_agents(before))

    async def iter_agents(self) -> AsyncIterator[models.AgentRun]:
        """Yield every agent run of the team once, newest first, 20 at a time."""
        pages = RunPages()
        for run in pages.take(await self._execute(_list_agents(None))):
            yield run
        while pages.link is not None:
            for run in pages.take(await self._follow(endpoints.LIST_AGENTS, pages.link)):
                yield run

    async def agent_thread(self, thread_id: str, *, include_data: bool = False) -> models.AgentThread:
        """Return a thread with its runs, oldest first.

        :param thread_id: the thread's UUID: `threadId` of each of its runs.
        :param include_data: with the data of each run.
        :raises NotFoundError: unknown, or of another team.
        """
        return (await self._execute(_thread(thread_id, include_data))).thread

    async def agent_trace(self, job_id: str, *, live_view: bool = False) -> models.AgentTrace:
        """Return the steps of an agent run.

        :param job_id: the run's UUID.
        :param live_view: include links to the live view of running browsers; a link gives its holder access.
        :raises NotFoundError: unknown, of another team, or expired.
        """
        return await self._execute(_trace(job_id, live_view))

    async def agent_snapshot(self, job_id: str, snapshot_id: str) -> str:
        """Return the content that a step of a trace refers to, as text.

        :param job_id: the run's UUID.
        :param snapshot_id: `artifact["snapshotId"]` of an event `artifact.updated`.
        :raises NotFoundError: unknown, of another team, or expired.
        """
        return (await self._execute(_snapshot(job_id, snapshot_id))).snapshot
