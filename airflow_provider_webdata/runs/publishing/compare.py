"""Comparison with earlier runs; see `options.Changes`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from airflow_provider_webdata.common.arguments import checked_text, removal_limit
from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.run_span import run_span, time_zone_of
from airflow_provider_webdata.common.url_secrets import without_secrets
from airflow_provider_webdata.common.xcom_keys import MISSING
from airflow_provider_webdata.hooks.task_metrics import gauge
from airflow_provider_webdata.results.changes.content import compared
from airflow_provider_webdata.results.columns import CHANGES as COLUMNS
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.paths import check_path, warn_if_relative
from airflow_provider_webdata.results.files.storage import check_folder, storage_error
from airflow_provider_webdata.results.manifest.comparison import CHANGES, Comparison
from airflow_provider_webdata.results.manifest.folder import ManifestFolder, ManifestRun
from airflow_provider_webdata.results.pages.urls import canonical_url
from airflow_provider_webdata.results.tagged_items import tagged
from airflow_provider_webdata.results.tombstones import Tombstone
from airflow_provider_webdata.runs.publishing.step import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.options import Changes
    from airflow_provider_webdata.results.manifest.folder import Known
    from airflow_provider_webdata.runs.publishing.step import Results


class Compare(Step):
    """Compares items with the manifest and writes the next one.

    :ivar changes: the option.
    """

    reports_missing = True

    def __init__(self, changes: Changes, context: Context, log: Any) -> None:
        self.changes = changes
        self._context = context
        self._log = log
        self.run = run_of(context)
        self._flowing: list[bool] = []
        self._summary: dict[str, Any] = {}

    @cached_property
    def folder(self) -> ManifestFolder:
        """The folder of the manifests."""
        return ManifestFolder(str(self.changes.manifest), shared=self.changes.shared)

    @cached_property
    def known(self) -> Known:
        """The pages that earlier runs saw. A worker that resumes the task after a wait reads them again.

        :raises OutputError: the manifest cannot be read.
        """
        known = self.folder.known_before(self.run, self._is_consumed)
        if known.ignored:
            self._log.warning(
                "Downstream tasks have not succeeded in %s, or its rejected results were accepted, so this run emits "
                "the same pages again",
                ", ".join(known.ignored.values()),
            )
        if len(known.files) > 1:
            self._log.warning(
                "%d runs wrote to %s at the same time, or in another order than their dates. This run compares with "
                "all of them, and emits the pages in which they differ (%s)",
                len(known.files),
                self.folder.url,
                ", ".join(known.files),
            )
        return known

    def known_for(self, site: str | None) -> Known:
        """Return the pages that earlier runs saw; if they covered another site, warn, and forget them.

        :param site: the site that this run covers, if any.
        """
        known, others = self.known, self.known.sites - {_canonical(site)}
        if site is not None and others and not self.changes.shared:
            self._log.warning(
                "Earlier runs with the manifest %s read %s. This run reads %s: it emits all pages, and removes none",
                *(self.folder.url, *map(without_secrets, (" and ".join(sorted(others)), site))),
            )
            self._log.warning(
                "Use a folder for each site. In mapped tasks, use {{ task.url | replace('/', '_') }}: an index changes "
                "with the list"
            )
            known.entries.clear()
            known.sites.clear()
        return known

    def prepare(self) -> None:
        """Fail if the folder is unreadable or belongs to another task; otherwise claim it."""
        folder = self.changes.manifest
        if checked_text(folder) is None:
            raise OutputError(f"changes must name a folder (given after rendering: {folder!r})")
        if self.changes.commit == "downstream" and not self._consumers():
            raise OutputError(
                "Changes(commit='downstream') needs a task downstream of this one: add the task that consumes the "
                "results, or remove `commit`"
            )
        check_path("changes", str(folder))
        warn_if_relative("changes", str(folder))
        check_folder(self.folder.url)
        try:
            self.known  # noqa: B018 - an unreadable manifest fails before any call is billed
            self.folder.claim(self.run)
        except OSError as error:
            raise storage_error(self.folder.url, error, "read") from error

    def transform(self, results: Results) -> Results:
        """Return the emitted items with their `change`, then the removed pages, and the columns of the manifest."""
        return replace(results, items=self._emitted(results), tag_columns=(*COLUMNS, *results.tag_columns))

    def _emitted(self, results: Results) -> Iterator[Any]:
        changes, log = self.changes, self._log
        site = self._site = results.site
        # Search results and records vary from run to run.
        self._removes = not changes.shared and (site is not None or results.kind == "document")
        entries = self.known_for(site).entries
        requested = None
        if site is None:
            urls = map(str, results.inputs)
            requested = {canonical_url(url, ignore_query=changes.ignore_query) for url in urls}
        known = len(entries if requested is None else entries.keys() & requested)
        compare = compared(changes.compare, results.kind)
        self._by = by = compare if isinstance(compare, str) else ",".join(compare)
        if others := sorted(self.known.compares - {by}):
            log.warning(
                "Earlier runs compared by %s, this run by %s. Known pages may count as changed once",
                " and ".join(others),
                by,
            )
        self._comparison = comparison = Comparison(
            entries,
            self.run.stored_moment,
            compare,
            ignore_query=changes.ignore_query,
            key=results.key,
            seen=self._seen,
        )
        for item in results.items:
            change, page, is_repeated = comparison.change_of(item)
            flows = changes.emit == "all" or (change in ("new", "changed") and not is_repeated)
            self._flowing.append(flows)
            if flows:
                # Do not overwrite with None an item's own field of this name.
                is_told = page is not None or "page" in item
                yield tagged(item, change=change, **({"page": page} if is_told else {}))
        comparison.leave(results.known)
        comparison.spare(results.unread)
        most = removal_limit(changes.max_removed, known)
        if self._saw_all(results):
            gone = comparison.removed(changes.removed_after, most, requested, by_links=results.by_links)
            for key, entry in gone.items():
                if changes.emit == "changed":
                    yield Tombstone(
                        results.kind,
                        change="removed",
                        page=key,
                        url=key,
                        lastSeen=entry.last_seen,
                    )
        if comparison.repeated:
            log.info("%d results repeat a page of this run, and count once", comparison.repeated)
        counts = comparison.counts
        self._summary = {
            name: counts[name] for name in CHANGES if name != "known" or counts[name] or results.known
        }
        if comparison.known and not (self._flowing or results.known):
            self._summary["known_before"] = comparison.known
            log.warning(
                "This run has no results, but earlier runs saw %d pages. Check the site and the task's filters",
                comparison.known,
            )
        if comparison.held_back:
            self._summary["held_back"] = comparison.held_back
            log.warning(
                "No page is removed: %d of %d known pages are missing, but max_removed allows %d",
                comparison.held_back,
                known,
                most,
            )
            log.warning("Check the site; if the pages are gone, raise Changes(max_removed=) for one run")

    def in_place(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the emitted items, and None in place of the others.

        :param items: the emitted items.
        """
        flowing = iter(items)
        for flows in self._flowing:
            yield next(flowing) if flows else None

    def summary(self) -> Mapping[str, Any]:
        """Return the counts."""
        return {"changes": self._summary}

    def rejected(self, output: str) -> None:
        """Write a manifest that later runs consider if the results are published after all."""
        self._write(rejected_output=output)

    def written(self) -> None:
        """Write the manifest of this run."""
        # Until the downstream tasks consume this run, the next one compares with the same files.
        path = self._write(self._consumers() if self.changes.commit == "downstream" else ())
        self.folder.tidy(self.run, self.changes.keep, self.known)
        for change in CHANGES:
            gauge("webdata.changes", self._comparison.counts[change], self._context, change=change)
        self._log.info(
            "%d results are new, %d changed, %d unchanged, %d removed, %d failed. Wrote the manifest to %s",
            *map(self._summary.get, ("new", "changed", "same", "removed", "failed")),
            path,
        )
        if (removed := self._summary["removed"]) and self.changes.emit == "all":
            self._log.info(
                "The results do not contain the %d removed pages, because emit is 'all'; emit='changed' adds an item "
                "for each",
                removed,
            )

    def _write(self, consumers: Iterable[str] = (), rejected_output: str | None = None) -> str:
        return self.folder.write(
            self.run,
            self.known,
            self._comparison.entries(),
            self._by,
            len(self._flowing) + self._comparison.counts["known"],
            consumers,
            site=_canonical(self._site),
            removes=self._removes,
            rejected_output=rejected_output,
        )

    def verdict(self) -> None:
        """Skip the task if nothing changed and `on_unchanged` says so."""
        changed = any(map(self._summary.get, ("new", "changed", "removed")))
        if self.changes.on_unchanged == "skip" and not changed:
            empty = self._summary.get("known_before")
            raise AirflowSkipException(
                f"No results, but earlier runs saw {empty} pages"
                if empty
                else "No page is new, changed, or removed since the last run"
            )

    def _consumers(self) -> set[str]:
        relatives = self._context["ti"].task.get_flat_relatives()
        return {task.task_id for task in relatives if not task.is_teardown}

    def _is_consumed(self, dag_id: str, run_id: str, consumers: Sequence[str]) -> bool:
        found = self._context["ti"].get_task_states(dag_id, task_ids=[*consumers], run_ids=[run_id])
        # Airflow may have deleted the run, and a DAG author may have removed a task.
        states = found.get(run_id, {}).values()
        return all(state in ("success", "skipped", "removed") for state in states)

    @property
    def _seen(self) -> str:
        """The time of the run; its start if its partition ends later, because pages may change until then."""
        start = Attempt(self._context).run_start or datetime.now(timezone.utc)
        return min(self.run.moment, start).astimezone(timezone.utc).isoformat()

    def _saw_all(self, results: Results) -> bool:
        """Return whether pages that this run did not see may be gone."""
        summary, count = results.summary, len(self._flowing)
        if not self._removes:
            return False
        if self.known.is_followed:
            self._log.info("Later runs exist: this run removes no page, and the next new run decides")
            return False
        # The job logs missing pages itself.
        if summary.get("status", "completed") != "completed" or summary.get(MISSING):
            return False
        total = summary.get("total")
        if not results.covers_all(max(count, total) if isinstance(total, int) else count):
            self._log.warning(
                "The result may be incomplete: it reached its limit (then raise it), or parts failed or are unknown"
            )
            self._log.warning("Pages that this run did not see do not count as removed")
            return False
        # If no page could be read, the site is down. The service maps such a site as one without links.
        counts = self._comparison.counts
        if counts["new"] or counts["changed"] or counts["same"]:
            return True
        # A job lists pages that were not fetched as errors.
        failed = counts["failed"] or (summary.get("errors") or {}).get("count")
        return bool(counts["known"]) and not failed


def _canonical(site: str | None) -> str | None:
    return None if site is None else canonical_url(site)


def run_of(context: Context) -> ManifestRun:
    """Return a task's run, with the time that orders runs."""
    ti = context["ti"]
    # Files of older releases, which ignored partitions, have their run's due time and stay in that order. A run may
    # then compare with an older run, or with none, and count pages as new or changed once. No page counts as
    # removed by this, since only known pages can be removed.
    _, moment = run_span(context["dag_run"], time_zone_of(context.get("dag")))
    return ManifestRun(moment, ti.dag_id, ti.run_id, ti.task_id, -1 if ti.map_index is None else ti.map_index)
