# SPDX-License-Identifier: Apache-2.0
"""The sources of an agent in a task, for XCom and OpenLineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.common.attempt import attempt_of_process
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.hooks.ledger import Ledger
from airflow_provider_webdata.hooks.task_memory import memory_of
from airflow_provider_webdata.results.lineage import operator_lineage
from airflow_provider_webdata.states.task_record import Source

if TYPE_CHECKING:
    from airflow.sdk import Context

_LINEAGE = "get_openlineage_facets_on_complete"


class AgentSources:
    """The sources of one task attempt, shared by all its toolsets.

    XCom: `sources` (the pages read: `tool`, `url`, and `title`, each page once), and `credits_used` of the ledger. They
    include earlier attempts until the task is cleared: a durable run does not repeat its calls.

    :param context: the task's context; empty outside a task.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self._memory = memory_of(context)
        self._ledger = Ledger(context)
        self._conn_id = ""
        self._queries: dict[str, None] = {}
        if not self._ledger.is_empty:
            # Airflow deletes the XComs of each attempt before the next.
            self._ledger.report()
            self.push()

    def add_search(self, query: str, conn_id: str) -> None:
        """Record a search."""
        self._queries[query] = None
        self._conn_id = conn_id
        self.push()

    def add_page(self, tool: str, asked: str, url: str, title: str, conn_id: str) -> None:
        """Record a page or site that was read.

        :param url: the URL after redirects.
        """
        self._conn_id = conn_id
        with self._memory.lock:
            sources = {**self._memory.record.sources, f"{tool} {asked}": Source(tool, url, title)}
            self._memory.note(sources=sources)
        self.push()

    def push(self) -> None:
        """Push the sources, and the credits of all calls."""
        task = self.context.get("task")
        # OpenLineage calls this method of the task. The class of the task belongs to another package and lacks it.
        if task is not None and not hasattr(type(task), _LINEAGE):
            setattr(task, _LINEAGE, self._lineage)
        if self._memory.attempt.ti is None or not getattr(task, "do_xcom_push", True):
            return
        used = self._ledger.to_wire()["used"]
        sources = [msgspec.to_builtins(source) for source in self._memory.record.sources.values()]
        with self._memory.lock:
            for key, value in {"sources": sources, "credits_used": used}.items():
                self._memory.attempt.ti.xcom_push(key, storable(value))

    def _lineage(self, task_instance: Any) -> Any | None:  # noqa: ARG002
        urls = [source.url for source in self._memory.record.sources.values()]
        return operator_lineage([*self._queries, *urls], None, self._conn_id)


_current: tuple[object, AgentSources] | None = None


def sources_of_attempt(own: AgentSources | None) -> AgentSources:
    """Return the sources of the attempt that this process runs.

    :param own: the sources to return outside a task; None: new ones.
    """
    global _current
    attempt = attempt_of_process()
    if attempt is None:
        return own or AgentSources({})
    memory = memory_of(attempt.context)
    if _current is None or _current[0] is not memory:
        _current = (memory, AgentSources(attempt.context))
    return _current[1]
