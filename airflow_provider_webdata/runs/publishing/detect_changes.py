# SPDX-License-Identifier: Apache-2.0
"""Detection of new, changed, and removed pages; see `options.Changes`."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from airflow_provider_webdata.common.arguments import checked_text
from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.dates import moment as moment_of
from airflow_provider_webdata.common.item_urls import site_failed, url_of
from airflow_provider_webdata.common.logs import task_logger
from airflow_provider_webdata.common.xcom_keys import MISSING
from airflow_provider_webdata.hooks.environment import environment
from airflow_provider_webdata.hooks.task_metrics import gauge
from airflow_provider_webdata.results.changes.content import compared_by, digest
from airflow_provider_webdata.results.changes.found_pages import FoundPages
from airflow_provider_webdata.results.changes.items import (
    emitted_item,
    key_of,
    page_key,
    removed_item,
    unversioned_item,
)
from airflow_provider_webdata.results.changes.pages import (
    CHANGES,
    Page,
    RunFacts,
    compared,
    is_emitted_again,
    joined,
    version_after,
)
from airflow_provider_webdata.results.changes.snapshots import SnapshotFolder
from airflow_provider_webdata.results.changes.spool import Spool
from airflow_provider_webdata.results.columns import CHANGES as COLUMNS
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.paths import check_path, warn_if_relative
from airflow_provider_webdata.results.files.storage import check_folder
from airflow_provider_webdata.runs.publishing.consumers import Consumers
from airflow_provider_webdata.runs.publishing.downstream_loads import description_of, loads_of
from airflow_provider_webdata.runs.publishing.requested_content import request_digest
from airflow_provider_webdata.runs.publishing.step import Step
from airflow_provider_webdata.states.shortfalls import Shortfall

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.options import Changes
    from airflow_provider_webdata.results.changes.pages import Again, Found, Outcome
    from airflow_provider_webdata.results.changes.snapshots import Emitter, SnapshotDraft, State
    from airflow_provider_webdata.runs.publishing.step import Results

_SLUG_CHARACTERS = 40
# The flags of an item: the number of its change, and whether it is emitted.
_NEW, _FAILED = CHANGES.index("new"), CHANGES.index("failed")
_EMITTED = 0x10
_WHY: Mapping[Again, str] = {
    "repeated": "this run emitted them before",
    "unconsumed": "the tasks downstream of an earlier run have not succeeded",
    "request": "the request or a load of the file changed",
}


class DetectChanges(Step):
    """Compares the pages of a run with those of earlier runs, and emits what consumers do not have.

    :param changes: the option.
    :param task: the executed operator.
    :param request: returns the request in wire form.
    :param path: the file; None: the results go to XCom.
    :ivar last_count: number of pages that the last run had whose results were published, after the last item.
    """

    reports_missing = True

    def __init__(
        self,
        changes: Changes,
        task: Any,
        context: Context,
        request: Callable[[], Mapping[str, Any]],
        path: str | None,
    ) -> None:
        self.changes = changes
        self.last_count: int | None = None
        self._task = task
        self._log = task_logger(task)
        self._context = context
        self._request = request
        self._loads = [] if path is None else [*loads_of(task, path)]
        self._counts: Counter[str] = Counter(dict.fromkeys(CHANGES, 0))
        self._again: Counter[Again] = Counter()
        self._flags = bytearray()
        self._open = ExitStack()

    @cached_property
    def moment(self) -> int:
        """The time of the run, in seconds since the epoch."""
        return int(self._context["dag_run"].run_after.timestamp())

    @cached_property
    def request(self) -> str:
        """Digest of what the run requests of a page; see `request_digest`."""
        loads = [description_of(load) for load in self._loads]
        return request_digest(self._task, self._request(), self.changes, loads)

    @cached_property
    def source(self) -> str:
        """See `columns.SOURCE`."""
        ti = self._context["ti"]
        parts = (ti.dag_id, ti.task_id, _instance_name(self._task, self._context))
        return "/".join(filter(None, parts))

    @cached_property
    def folder(self) -> SnapshotFolder:
        """The folder of the task's snapshots.

        :raises OutputError: the task is mapped, and nothing names its instance.
        """
        folder = str(self.changes.folder).rstrip("/")
        return SnapshotFolder(f"{folder}/{environment()}/{self.source}")

    @cached_property
    def consumers(self) -> Consumers:
        """The tasks downstream."""
        return Consumers(self._context, [load.task_id for load in self._loads])

    def key(self, url: str) -> str:
        """Return the key of a page."""
        return page_key(url, ignore_query=self.changes.ignore_query)

    def prepare(self) -> None:
        """Fail if the folder cannot be read or written, or an earlier snapshot is damaged."""
        folder = self.changes.folder
        if checked_text(folder) is None:
            raise OutputError(f"changes must name a folder (given after rendering: {folder!r})")
        check_path("changes", str(folder))
        warn_if_relative("changes", str(folder))
        check_folder(self.folder.url)
        with self.folder.opened() as state:
            state.check()

    @contextmanager
    def known(self) -> Iterator[KnownPages]:
        """Open the pages of earlier runs."""
        with self.folder.opened() as state:
            consumed = self.consumers.consumed(state.emitters)
            yield KnownPages(state.pages, self.consumers.token, consumed)

    def record_listed(self, keys: Iterable[str]) -> int:
        """Record that the site lists known pages that the run does not request, and return their number.

        The worker that gets the run's results may be another one, without the list.
        """
        with FoundPages() as found, self.folder.opened() as state, self.folder.draft() as draft:
            found.add_listed(keys)
            if not len(found):
                return 0
            facts = self._facts(state, is_complete=False)
            pairs = ((known, one) for known, one in joined(state.pages(), found.sorted()) if one is not None)
            outcomes = (compared(*pair, facts) for pair in pairs)
            draft.write(outcome.page for outcome in outcomes if outcome is not None)
            draft.publish(None, state.emitters)
            return len(found)

    def count_listed(self) -> int:
        """Return the number of pages that an earlier attempt of this run has recorded as listed."""
        token, moment = self.consumers.token, self.moment
        with self.folder.opened() as state:
            # A page that this run read may be in a snapshot, too, if Airflow did not store its result.
            return sum(
                page.seen == moment and page.read != moment and page.by != token for page in state.pages()
            )

    def transform(self, results: Results) -> Results:
        """Return the emitted items with their `change`, then the removed pages, and the columns of both."""
        return replace(results, items=self._emitted(results), tag_columns=(*COLUMNS, *results.tag_columns))

    def _emitted(self, results: Results) -> Iterator[Any]:
        spool = self._open.enter_context(Spool())
        found = self._open.enter_context(FoundPages())
        compare, flags = compared_by(self.changes.compare, results.kind), self._flags
        for item in results.items:
            key, has_failed = self._identified(item, results)
            spool.add(key, item)
            if has_failed or key is None:
                flags.append(_FAILED if has_failed else _NEW | _EMITTED)
                self._counts["failed" if has_failed else "new"] += 1
            else:
                found.add(key, digest(item, compare, results.kind), len(flags), self._fetched(item))
                flags.append(0)
        self._pages = len(flags) + results.known
        is_complete = bool(len(found) or results.known) and _is_complete(results, len(flags))
        comparison = self._comparison = self._compare(results, found, is_complete=is_complete)
        removed: list[Page] = []
        self._draft = self._open.enter_context(self.folder.draft())
        self._draft.write(self._noted(comparison.outcomes(), removed))
        version = comparison.run.version
        for number, key, item in spool.items(self._is_emitted):
            own = flags[found.repeats.get(number, number)] & ~_EMITTED
            if key is None or own == _FAILED:
                yield unversioned_item(item, CHANGES[own], key)
            else:
                yield emitted_item(item, CHANGES[own], key, version, self.source)
        for page in removed:
            yield removed_item(page, results.kind, self.source, self.moment)
        self._report()

    def _is_emitted(self, number: int) -> bool:
        is_first = number not in self._comparison.found.repeats
        return self.changes.emit == "all" or bool(self._flags[number] & _EMITTED and is_first)

    def _identified(self, item: Mapping[str, Any], results: Results) -> tuple[str | None, bool]:
        """Return the key of an item, and whether its page or its call failed."""
        if results.key is not None:
            key = results.key(item)
            return (None if key is None else key_of(key)), "error" in item
        url, metadata = url_of(item), item.get("metadata")
        # A search result whose page failed is a result.
        has_failed = results.kind == "document" and isinstance(metadata, dict) and site_failed(metadata)
        return (None if url is None else self.key(url)), has_failed

    def _fetched(self, item: Mapping[str, Any]) -> int | None:
        """Return the time when the service fetched a page from its cache, if that was before the run."""
        metadata = item.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("cacheState") != "hit":
            return None
        cached = moment_of(str(metadata.get("cachedAt")))
        return None if cached is None else min(int(cached.timestamp()), self.moment)

    def _compare(self, results: Results, found: FoundPages, *, is_complete: bool) -> _Comparison:
        state = self._open.enter_context(self.folder.opened())
        self.last_count = state.last_count
        # Without a site, the run could see only what it requested.
        requested = None if results.site is not None else {self.key(str(url)) for url in results.inputs}
        return _Comparison(state, found, self._facts(state, is_complete=is_complete), requested)

    def _facts(self, state: State, *, is_complete: bool) -> RunFacts:
        return RunFacts(
            self.consumers.token,
            version_after(state.newest, time.time()),
            self.moment,
            self.request,
            int(self.changes.removed_after.total_seconds()),
            is_complete,
            self.consumers.consumed(state.emitters),
            self.changes.emit == "all",
        )

    def _noted(self, outcomes: Iterable[tuple[Found | None, Outcome]], removed: list[Page]) -> Iterator[Page]:
        """Yield the pages; count them, and note which items are emitted and which pages removed."""
        for found, outcome in outcomes:
            if (change := outcome.change) is not None:
                self._counts[change] += 1
                if found is not None and found.index >= 0:
                    self._flags[found.index] = CHANGES.index(change) | _EMITTED * outcome.is_emitted
                else:
                    removed.append(outcome.page)
                if outcome.again is not None:
                    self._again[outcome.again] += 1
            yield outcome.page

    def summary(self) -> Mapping[str, Any]:
        """Return the counts."""
        counts = {change: self._counts[change] for change in CHANGES}
        return {"changes": {"emit": self.changes.emit, **counts, "emitted_again": self._again.total()}}

    def shortfalls(self) -> Sequence[Shortfall]:
        """Return that a run without results follows one that had some."""
        known = self._comparison.known
        return [Shortfall("no_results", known, known)] if known and not self._pages else ()

    def rejected(self) -> None:
        """Write a snapshot whose emissions no task will consume: the results may be accepted by hand."""
        comparison = self._comparison
        rejected = replace(comparison, run=comparison.run._replace(is_rejected=True))
        with self.folder.draft() as draft:
            draft.write(outcome.page for _, outcome in rejected.outcomes())
            self._publish(draft, self.last_count, {})
        self._open.close()

    def written(self) -> None:
        """Write the snapshot of this run."""
        emitter = self.consumers.emitter()
        emitters = {} if emitter is None else {self.consumers.token: emitter}
        if emitter is None and self._emits:
            self._log.warning(
                "All tasks downstream have started before, so none will read these results, and later runs emit the "
                "same pages again. To use them now, clear the tasks downstream, too"
            )
        path = self._publish(self._draft, self._pages, emitters)
        self._open.close()
        for change in CHANGES:
            gauge("webdata.changes", self._counts[change], self._context, change=change)
        self._log.info("Wrote the state to %s", path)

    def _publish(self, draft: SnapshotDraft, pages: int | None, emitters: Mapping[str, Emitter]) -> str:
        state, own = self._comparison.state, self.consumers.token
        earlier = {token: one for token, one in state.emitters.items() if token != own}
        path = draft.publish(pages, {**earlier, **emitters})
        self.folder.delete(state.names)
        return path

    @property
    def _emits(self) -> bool:
        return bool(self._counts["removed"]) or any(map(self._is_emitted, range(len(self._flags))))

    def _report(self) -> None:
        counts, log = self._counts, self._log
        log.info(
            "%d pages are new, %d changed, %d unchanged, %d removed, %d failed",
            *(counts[change] for change in CHANGES),
        )
        for why, number in self._again.items():
            log.info("%d of these were emitted before, and are again: %s", number, _WHY[why])
        if (known := self._comparison.known) and not self._pages:
            log.warning(
                "This run has no results, but earlier runs saw %d pages. Check the site and the task's filters",
                known,
            )

    def verdict(self) -> None:
        """Skip the task if nothing is emitted and `on_unchanged` says so."""
        if self.changes.on_unchanged == "skip" and not self._emits:
            raise AirflowSkipException("No page is emitted: none is new, changed, or removed")


@dataclass
class KnownPages:
    """The pages of earlier runs.

    :param pages: yields them, sorted by key.
    :param token: token of this run.
    :param consumed: see `RunFacts`.
    """

    pages: Callable[[], Iterator[Page]]
    token: str
    consumed: Collection[str]

    def is_open(self, page: Page) -> bool:
        """Return whether this run emits a page even if it is unchanged."""
        return is_emitted_again(page, self.token, self.consumed)


@dataclass
class _Comparison:
    """The comparison of a run with the state.

    :param requested: keys of the pages that the run could see; None: all.
    :param known: number of pages that earlier runs saw, and that are not removed, once all are compared.
    """

    state: State
    found: FoundPages
    run: RunFacts
    requested: Collection[str] | None
    known: int = 0

    def outcomes(self) -> Iterator[tuple[Found | None, Outcome]]:
        """Yield what the run makes of each page, sorted by key."""
        requested, partly = self.requested, self.run._replace(is_complete=False)
        self.known = 0
        for known, found in joined(self.state.pages(), self.found.sorted()):
            self.known += known is not None and known.digest is not None
            is_expected = requested is None or known is None or known.key in requested
            if (outcome := compared(known, found, self.run if is_expected else partly)) is not None:
                yield found, outcome


def _is_complete(results: Results, count: int) -> bool:
    """Return whether a page that a run did not see is missing."""
    summary = results.summary
    return (
        (results.site is not None or results.kind == "document")
        and summary.get("status", "completed") == "completed"
        and not summary.get(MISSING)
        and results.covers_all(count)
    )


def _instance_name(task: Any, context: Context) -> str | None:
    """Return the name of a mapped instance, which is the same in each run; None if the task is not mapped."""
    if not Attempt(context).is_mapped:
        return None
    template = getattr(task, "map_index_template", None)
    text = getattr(task, "url", None)
    if template is not None:
        text = task.get_dag().get_template_env().from_string(template).render(context)
    if not isinstance(text, str) or not text.strip():
        raise OutputError(
            f"changes: nothing names the instances of the mapped task {task.task_id!r} across runs, because an index "
            "changes with the list. Set map_index_template, such as map_index_template='{{ task.query }}' "
            f"(rendered: {text!r})"
        )
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower())[:_SLUG_CHARACTERS].strip("-")
    return f"{slug}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"
