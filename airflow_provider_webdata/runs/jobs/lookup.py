"""Lookup of the jobs that a task may have started: in the inbox, the running crawls, and the team's activity."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import (
    NotFoundError,
    TransportError,
    UndeclaredServerError,
    WebDataError,
)
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.inbox.reader import InboxError, InboxUnreachableError
from airflow_provider_webdata.runs.intent import SERVICE_CLOCK_SKEW

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.hooks.webdata import WebDataHook

_MAX_ITEMS = 1000
_MAX_NAMED = 10


@dataclass
class JobMatches:
    """The result of a lookup.

    :param jobs: ids of the task's jobs, oldest first.
    :param doubts: reasons why the lookup may be incomplete; empty if it is complete.
    :param are_certain: whether an id or a key identifies the jobs. Otherwise, only their targets match.
    """

    jobs: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    are_certain: bool = False

    def note(self, error: WebDataError, what: str) -> WebDataError | None:
        """Note that a source cannot be read; return the error if a retry may succeed."""
        if isinstance(error, InboxError):
            is_lasting = not isinstance(error, InboxUnreachableError)
        else:
            is_never = error.verdict == "never" and not isinstance(error, TransportError)
            is_lasting = is_never or isinstance(error, (NotFoundError, UndeclaredServerError))
        if not is_lasting:
            return error
        self.doubts.append(f"{what} ({error.brief()})")
        return None


@dataclass(frozen=True)
class JobLookup:
    """Criteria and sources for finding a task's jobs.

    :param keys: possible correlation keys of the job's webhook; empty: it has no webhook.
    :param targets: URLs or texts that identify the job in the team's activity; empty: any new one may be the job.
    :param request: the job's request, in wire form.
    :param since: earliest possible start time of the job.
    :param known: ids of jobs that existed before.
    """

    hook: WebDataHook
    kind: JobKind
    keys: Sequence[str]
    targets: Sequence[str]
    request: Mapping[str, Any]
    since: datetime | None
    known: Collection[str]

    def find(self) -> JobMatches:
        """Search all sources, the most reliable first. An unavailable one does not discard what the others name.

        :raises WebDataError: no job was found, and a source cannot be read, but a retry may succeed.
        """
        found = JobMatches()
        passing: list[WebDataError | None] = []
        if self.keys:
            try:
                found.jobs = self._delivered()
            except WebDataError as error:
                passing.append(found.note(error, "the inbox could not be read"))
            if found.jobs:
                found.are_certain = True
                return found
        running: list[str] = []
        if self.kind == "crawl":
            try:
                running = [*self._running_crawls()]
            except WebDataError as error:
                passing.append(found.note(error, "the running crawls could not be listed"))
        activity: dict[str, bool] = {}
        if "activity" not in self.hook.get_settings().client.server.lacks:
            try:
                activity = {item.id: self._is_target(item.target) for item in self._activity()}
            except WebDataError as error:
                passing.append(found.note(error, "the team's activity could not be read"))
        # The service lists newest jobs first, and the newest of all may be missing in the activity.
        named = dict.fromkeys([job_id for job_id in running if job_id not in activity], True) | activity
        named |= dict.fromkeys(running, True)
        ours = [job_id for job_id, is_named in named.items() if is_named or self._has_only_our_pages(job_id)]
        if not ours and (first := next(filter(None, passing), None)):
            raise first
        if named and not ours:
            found.doubts.append(f"it may be one of these jobs: {', '.join([*named][:_MAX_NAMED])}")
        found.jobs = ours[::-1]
        return found

    def delivered(self) -> JobMatches:
        """Search the inbox only; no job is found if it cannot be read."""
        try:
            return JobMatches(self._delivered() if self.keys else [], are_certain=True)
        except WebDataError:
            return JobMatches()

    def _delivered(self) -> list[str]:
        jobs: dict[str, None] = {}
        cursor: str | None = None
        with self.hook.inbox() as inbox:
            while True:
                page = inbox.search(keys=list(self.keys), after=cursor)
                jobs.update(dict.fromkeys(delivery.job_id for delivery in page.deliveries if delivery.job_id))
                if not page.more or not page.deliveries:
                    return [*jobs]
                cursor = page.cursor

    def _running_crawls(self) -> Iterator[str]:
        for crawl in self.hook.active_crawls().crawls:
            is_new = crawl.id not in self.known and not self._is_too_old(getattr(crawl, "created_at", None))
            if crawl.id and is_new and self._is_target(crawl.url) and self._has_our(crawl.options or {}):
                yield crawl.id

    def _has_our(self, options: Mapping[str, Any]) -> bool:
        """Return whether no option of a crawl differs that servers return as it was requested, or empty."""
        return all(
            (self.request.get(name) or None) == (options[name] or None)
            for name in ("limit", "includePaths", "excludePaths")
            if name in options
        )

    def _activity(self) -> Iterator[Any]:
        """Yield the activity items that name one of the targets, or no target; all if the targets are unknown."""
        newest = islice(self.hook.iter_activity(endpoint=self.kind), _MAX_ITEMS)
        for item in takewhile(lambda item: not self._is_too_old(item.created_at), newest):
            if (
                item.id
                and item.id not in self.known
                and (item.target is None or not self.targets or self._is_target(item.target))
            ):
                yield item

    def _is_too_old(self, created_at: str | None) -> bool:
        created = moment(created_at)
        return bool(created and self.since and created < self.since - SERVICE_CLOCK_SKEW)

    def _is_target(self, text: str | None) -> bool:
        return text is not None and _plain(text) in map(_plain, self.targets)

    def _has_only_our_pages(self, job_id: str) -> bool:
        """Return whether all pages of a batch without a target in the activity are targets."""
        if self.kind != "batch_scrape" or not self.targets:
            return False
        try:
            documents = self.hook.job_status(self.kind, job_id, limit=_MAX_NAMED).data or ()
        except NotFoundError:
            return False
        pages = [getattr(document.metadata, "source_url", None) for document in documents]
        return bool(pages) and all(map(self._is_target, pages))


def _plain(target: str) -> str:
    """Return a URL without the scheme and trailing slash, which the service may add."""
    return target.strip().removeprefix("https://").removeprefix("http://").rstrip("/")
