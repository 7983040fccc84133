"""Traces of an earlier request: the inbox, the running crawls, and the team's activity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.runs.intent import SERVICE_CLOCK_SKEW
from airflow_provider_webdata.runs.jobs.start_table import FoundJob

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_webdata.api.errors import WebDataError
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.states.jobs import JobKind

_MOST_ITEMS = 1000
_MOST_NAMED = 10


@dataclass
class Traces:
    """What was found.

    :param jobs: the task's jobs, oldest first.
    :param gaps: why there may be others that were not found; empty: there are none.
    :param notes: what else could not be read.
    """

    jobs: list[FoundJob] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def why(self, otherwise: str = "") -> str:
        """Return a message that says why the job was not found.

        :param otherwise: the message if everything could be read.
        """
        return "; ".join([*self.gaps, *self.notes]) or otherwise


@dataclass(frozen=True)
class JobSearch:
    """A search for the jobs of a task.

    :param keys: correlation keys that the job's webhook may have, each with its generation; empty: it has none.
    :param targets: URLs or texts by which the team's activity would name the job.
    :param since: when the job was started at the earliest.
    :param known: ids of jobs that were there before.
    """

    hook: WebDataHook
    kind: JobKind
    keys: Mapping[str, int]
    targets: Sequence[str]
    since: datetime | None
    known: frozenset[str] = frozenset()

    def traces(self) -> Traces:
        """Search everywhere, best evidence first.

        :raises WebDataError: something cannot be read now, and can be later.
        """
        found = Traces()
        if self.keys:
            self._in_inbox(found)
            if found.jobs:
                return found
        by_id: dict[str, bool] = {}
        if self.kind == "crawl":
            by_id.update(self._running_crawls(found))
        by_id.update(self._in_activity(found))
        certain = [job_id for job_id, exact in by_id.items() if exact or self._has_only_our_pages(job_id)]
        others = [job_id for job_id in by_id if job_id not in certain]
        alive = [job_id for job_id in certain if self._is_alive(job_id)] if len(certain) > 1 else certain
        if len(alive) > 1:
            found.gaps.append(f"several jobs look like it: {', '.join(alive[:_MOST_NAMED])}")
        else:
            # The service lists the newest first.
            found.jobs = [FoundJob(None, job_id) for job_id in reversed(certain)]
        if others and not certain:
            found.gaps.append(f"one of these jobs may be it: {', '.join(others[:_MOST_NAMED])}")
        return found

    def delivered(self) -> list[FoundJob]:
        """Return the task's jobs that deliveries name, oldest first; there may be others.

        :raises WebDataError: the inbox cannot be read now, and can be later.
        """
        found = Traces()
        if self.keys:
            self._in_inbox(found)
        return found.jobs

    def _in_inbox(self, found: Traces) -> None:
        from airflow_provider_webdata.api.errors import WebDataError

        generations: dict[str, int] = {}
        cursor: str | None = None
        try:
            with self.hook.inbox() as inbox:
                while True:
                    page = inbox.search(keys=list(self.keys), after=cursor)
                    for delivery in page.deliveries:
                        if delivery.job_id and delivery.key is not None and delivery.key in self.keys:
                            generations.setdefault(delivery.job_id, self.keys[delivery.key])
                    if not page.more:
                        break
                    cursor = page.cursor
        except WebDataError as error:
            _note(error, found.notes, "the inbox could not be read")
        by_generation = sorted(generations.items(), key=lambda item: item[1])
        found.jobs = [FoundJob(generation, job_id) for job_id, generation in by_generation]

    def _running_crawls(self, found: Traces) -> dict[str, bool]:
        from airflow_provider_webdata.api.errors import WebDataError

        try:
            crawls = self.hook.active_crawls().crawls
        except WebDataError as error:
            _note(error, found.notes, "the running crawls could not be listed")
            return {}
        return {
            crawl.id: True
            for crawl in crawls
            if crawl.id
            and crawl.id not in self.known
            and not self._is_too_old(getattr(crawl, "created_at", None))
            and self._is_target(crawl.url)
        }

    def _in_activity(self, found: Traces) -> dict[str, bool]:
        """Return ids, each with whether the activity names the job's target."""
        from airflow_provider_webdata.api.errors import WebDataError

        try:
            return {
                item.id: item.target is not None
                for item in self._recent()
                if item.target is None or self._is_target(item.target)
            }
        except WebDataError as error:
            _note(error, found.gaps, "the team's activity could not be read")
            return {}

    def _recent(self) -> Iterator[Any]:
        for number, item in enumerate(self.hook.iter_activity(endpoint=self.kind)):
            if number >= _MOST_ITEMS or self._is_too_old(item.created_at):
                return
            if item.id and item.id not in self.known:
                yield item

    def _is_too_old(self, created_at: str | None) -> bool:
        from airflow_provider_webdata.states.checks import moment

        created = moment(created_at)
        return bool(created and self.since and created < self.since - SERVICE_CLOCK_SKEW)

    def _is_target(self, text: str | None) -> bool:
        return text is not None and _plain(text) in {_plain(target) for target in self.targets}

    def _is_alive(self, job_id: str) -> bool:
        from airflow_provider_webdata.api.errors import NotFoundError
        from airflow_provider_webdata.runs.jobs.poll import poll_job

        try:
            return poll_job(self.hook, self.kind, job_id).is_alive
        except NotFoundError:
            return False

    def _has_only_our_pages(self, job_id: str) -> bool:
        """Return whether all pages of a batch that the activity does not name are targets."""
        from airflow_provider_webdata.api.errors import NotFoundError

        if self.kind != "batch_scrape":
            return False
        try:
            documents = self.hook.job_status(self.kind, job_id, limit=_MOST_NAMED).data or ()
        except NotFoundError:
            return False
        pages = [getattr(document.metadata, "source_url", None) for document in documents]
        return bool(pages) and all(map(self._is_target, pages))


def _is_permanent(error: WebDataError) -> bool:
    """Return whether a repeated call would fail alike: a part of the service or the inbox is not there for us."""
    from airflow_provider_webdata.api.errors import NotFoundError
    from airflow_provider_webdata.inbox.reader import InboxError, InboxUnreachableError

    if isinstance(error, InboxError):
        return not isinstance(error, InboxUnreachableError)
    return error.verdict == "never" or isinstance(error, NotFoundError)


def _note(error: WebDataError, notes: list[str], what: str) -> None:
    """Note what cannot be read; raise an error that a retry may not meet."""
    if not _is_permanent(error):
        raise error
    notes.append(f"{what} ({error})")


def _plain(target: str) -> str:
    """Return a URL without what the service may add to it."""
    return target.strip().removeprefix("https://").removeprefix("http://").rstrip("/")
