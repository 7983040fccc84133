"""Where a job can be seen that an earlier try may have started: the inbox, the running crawls, the team's activity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.tasks.intent import SERVICE_CLOCK_SKEW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_webdata.api.errors import WebDataError
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.states.jobs import JobKind

_MOST_ITEMS = 1000
_MOST_DOUBTFUL = 10


@dataclass
class Traces:
    """What was found.

    :param jobs: ids of jobs that are the task's own, with their generation where that is known; oldest first.
    :param blind: why nobody can tell whether there are others; empty: there are none.
    :param remarks: what else could not be looked at.
    """

    jobs: list[tuple[int | None, str]] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def why(self, otherwise: str) -> str:
        """Return in words why the job is not known.

        :param otherwise: what to say if everything could be looked at.
        """
        return "; ".join([*self.blind, *self.remarks]) or otherwise


@dataclass(frozen=True)
class Search:
    """What to look for.

    :param hook: of the connection.
    :param kind: of the job.
    :param keys: correlation keys that the job's webhook may have, each with its generation; empty: it has none.
    :param targets: URLs or texts by which the team's activity would name the job.
    :param since: when the job can have been started at the earliest.
    :param known: ids of jobs that were there before.
    """

    hook: WebDataHook
    kind: JobKind
    keys: Mapping[str, int]
    targets: Sequence[str]
    since: datetime | None
    known: frozenset[str] = frozenset()

    def traces(self) -> Traces:
        """Look everywhere, best evidence first.

        :raises WebDataError: somewhere it could not be looked now, and later it can.
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
        sure = [job_id for job_id, exact in by_id.items() if exact or self._is_ours(job_id)]
        doubtful = [job_id for job_id in by_id if job_id not in sure]
        alive = [job_id for job_id in sure if self._is_alive(job_id)] if len(sure) > 1 else sure
        if len(alive) > 1:
            found.blind.append(f"several jobs look like it: {', '.join(alive[:_MOST_DOUBTFUL])}")
        else:
            # The service lists the newest first.
            found.jobs = [(None, job_id) for job_id in reversed(sure)]
        if doubtful and not sure:
            found.blind.append(f"one of these jobs may be it: {', '.join(doubtful[:_MOST_DOUBTFUL])}")
        return found

    def _in_inbox(self, found: Traces) -> None:
        from airflow_provider_webdata.api.errors import WebDataError

        jobs: dict[str, int | None] = {}
        cursor: str | None = None
        try:
            with self.hook.inbox() as inbox:
                while True:
                    page = inbox.search(keys=list(self.keys), after=cursor)
                    for delivery in page.deliveries:
                        if delivery.job_id and delivery.key is not None and delivery.key in self.keys:
                            jobs.setdefault(delivery.job_id, self.keys[delivery.key])
                    if not page.more:
                        break
                    cursor = page.cursor
        except WebDataError as error:
            if not is_lasting(error):
                raise
            found.remarks.append(f"the inbox could not be read ({error})")
        found.jobs = [
            (generation, job_id) for job_id, generation in sorted(jobs.items(), key=lambda item: item[1] or 0)
        ]

    def _running_crawls(self, found: Traces) -> dict[str, bool]:
        from airflow_provider_webdata.api.errors import WebDataError

        try:
            crawls = self.hook.active_crawls().crawls
        except WebDataError as error:
            if not is_lasting(error):
                raise
            found.remarks.append(f"the running crawls could not be listed ({error})")
            return {}
        return {
            crawl.id: True
            for crawl in crawls
            if crawl.id
            and self._may_be(crawl.id, getattr(crawl, "created_at", None))
            and self._is_target(crawl.url)
        }

    def _in_activity(self, found: Traces) -> dict[str, bool]:
        from airflow_provider_webdata.api.errors import WebDataError

        try:
            # Texts that name neither a URL nor a prompt of ours are those of other jobs.
            return {
                item.id: item.target is not None
                for item in self._recent()
                if item.target is None or self._is_target(item.target)
            }
        except WebDataError as error:
            if not is_lasting(error):
                raise
            found.blind.append(f"the team's activity could not be read ({error})")
            return {}

    def _recent(self) -> Iterator[Any]:
        from airflow_provider_webdata.states.checks import moment

        for number, item in enumerate(self.hook.iter_activity(endpoint=self.kind)):
            created = moment(item.created_at)
            if number >= _MOST_ITEMS or (
                created and self.since and created < self.since - SERVICE_CLOCK_SKEW
            ):
                return
            if item.id and item.id not in self.known:
                yield item

    def _may_be(self, job_id: str, created_at: str | None) -> bool:
        from airflow_provider_webdata.states.checks import moment

        created = moment(created_at)
        too_old = created and self.since and created < self.since - SERVICE_CLOCK_SKEW
        return job_id not in self.known and not too_old

    def _is_target(self, text: str | None) -> bool:
        return text is not None and _plain(text) in {_plain(target) for target in self.targets}

    def _is_alive(self, job_id: str) -> bool:
        from airflow_provider_webdata.api.errors import NotFoundError
        from airflow_provider_webdata.tasks.jobs.poll import poll_job

        try:
            return poll_job(self.hook, self.kind, job_id).is_alive
        except NotFoundError:
            return False

    def _is_ours(self, job_id: str) -> bool:
        """Return whether a batch that the activity does not name has pages of ours, and no others."""
        from airflow_provider_webdata.api.errors import NotFoundError

        if self.kind != "batch_scrape":
            return False
        try:
            documents = self.hook.job_status(self.kind, job_id, limit=_MOST_DOUBTFUL).data or ()
        except NotFoundError:
            return False
        pages = [getattr(document.metadata, "source_url", None) for document in documents]
        return bool(pages) and all(map(self._is_target, pages))


def is_lasting(error: WebDataError) -> bool:
    """Return whether asking again would bring the same: a part of the service or the inbox is not there for us.

    :param error: what a call raised.
    """
    from airflow_provider_webdata.api.errors import NotFoundError
    from airflow_provider_webdata.inbox.reader import InboxError, InboxUnreachableError

    if isinstance(error, InboxError):
        return not isinstance(error, InboxUnreachableError)
    return error.verdict == "never" or isinstance(error, NotFoundError)


def _plain(target: str) -> str:
    """Return a URL without what the service may add to it."""
    return target.strip().removeprefix("https://").removeprefix("http://").rstrip("/")
