"""The credits and sources of an agent, for the log, XCom, the next attempt, and OpenLineage."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from airflow_provider_webdata.common.attempt import Attempt, attempt_of_process
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.common.stored_record import place_of
from airflow_provider_webdata.results.lineage import operator_lineage
from airflow_provider_webdata.runs.credit_account import CreditAccount, enter_call
from airflow_provider_webdata.runs.failures import CreditLimitError
from airflow_provider_webdata.runs.jobs.identity import JobIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context

log = logging.getLogger(__name__)

_KEY = "webdata_agent"
_LINEAGE = "get_openlineage_facets_on_complete"


class _Kept(TypedDict):
    sources: dict[str, _Source]
    scrapes: dict[str, str]


class _Source(TypedDict):
    tool: str
    url: str
    title: str


class AgentAccount:
    """Credits and sources of one task attempt, shared by all its toolsets.

    XCom: `sources` (the pages read: `tool`, `url`, and `title`, each page once), `creditsUsed`, and `credits`, which
    `airflow webdata costs` sums. On Airflow 3.3, they include earlier attempts until the task is cleared. On 3.2, each
    attempt reports its own.

    :param context: the task's context; empty outside a task.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self._attempt = Attempt(context)
        self._credits = CreditAccount(context)
        self._conn_id = ""
        self._queries: dict[str, None] = {}
        self._sources: dict[str, dict[str, str]] = {}
        self._scrapes: dict[str, str] = {}
        kept = self._attempt.read(_KEY, _Kept)
        if kept.damage:
            raise CreditLimitError(
                f"the pages that the agent read in earlier attempts are unknown, because their record {_KEY} is "
                f"damaged ({kept.damage}): {place_of(_KEY)}"
            )
        if kept.values:
            self._sources, self._scrapes = kept.values["sources"], kept.values["scrapes"]
        if not self._credits.is_empty:
            # Airflow deletes the XComs of each attempt before the next.
            self._push(self._credits.to_wire())

    def scrape_of(self, tool: str, url: str) -> str | None:
        """Return the id of a tool's scrape of a URL in this attempt or an earlier one, or None."""
        return self._scrapes.get(f"{tool} {url}")

    def request_id(self, call: Mapping[str, Any]) -> str:
        """Return the idempotency key of a call to a data provider. Repeating an earlier attempt's call is free."""
        return JobIdentity.of(self._attempt).request_id(call)

    def enter_search(self, query: str, conn_id: str, used: float | None, search_id: str | None) -> None:
        """Record a search and its credits (None: unknown)."""
        self._queries[query] = None
        self._enter(conn_id, used, "search", search_id, None)

    def enter_page(
        self,
        tool: str,
        asked: str,
        url: str,
        title: str,
        conn_id: str,
        used: float | None,
        *,
        operation: str = "scrape",
        scrape_id: str | None = None,
        formats: Mapping[str, float] | None = None,
    ) -> None:
        """Record a page or site that was read.

        :param url: the URL after redirects.
        :param used: credits; None: unknown.
        """
        key = f"{tool} {asked}"
        self._sources[key] = {"tool": tool, "url": url, "title": title}
        if scrape_id:
            self._scrapes[key] = scrape_id
        self._enter(conn_id, used, operation, scrape_id, formats)

    def enter_failure(self, operation: str, conn_id: str, used: float | None) -> None:
        """Record a failed call and its credits (None: unknown)."""
        if used != 0:
            self._enter(conn_id, used, operation, None, None)

    def _enter(
        self,
        conn_id: str,
        used: float | None,
        operation: str,
        call: str | None,
        formats: Mapping[str, float] | None,
    ) -> None:
        credits = enter_call(self._credits, log, used, operation, conn_id, call=call, formats=formats)
        self._attempt.write(_KEY, {"sources": self._sources, "scrapes": self._scrapes})
        self._conn_id = conn_id
        self._push(credits)

    def _push(self, credits: Mapping[str, Any]) -> None:
        task = self.context.get("task")
        # OpenLineage calls this method of the task. The class of the task belongs to another package and lacks it.
        if task is not None and not hasattr(type(task), _LINEAGE):
            setattr(task, _LINEAGE, self._lineage)
        if self._attempt.ti is None or not getattr(task, "do_xcom_push", True):
            return
        sources = list(self._sources.values())
        for key, value in {"sources": sources, "creditsUsed": credits["used"], "credits": credits}.items():
            self._attempt.ti.xcom_push(key, storable(value))

    def _lineage(self, task_instance: Any) -> Any | None:  # noqa: ARG002
        urls = [source["url"] for source in self._sources.values()]
        return operator_lineage([*self._queries, *urls], None, self._conn_id)


_current: tuple[object, AgentAccount] | None = None


def account_of_attempt(own: AgentAccount | None) -> AgentAccount:
    """Return the account of the attempt that this process runs.

    :param own: the account to return outside a task; None: a new one.
    """
    global _current
    attempt = attempt_of_process()
    if attempt is None:
        return own or AgentAccount({})
    if _current is None or _current[0] != attempt.key:
        _current = (attempt.key, AgentAccount(attempt.context))
    return _current[1]
