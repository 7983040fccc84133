"""The comparison with earlier runs; see `options.Changes`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from airflow_provider_webdata.common.arguments import checked_text, removal_limit
from airflow_provider_webdata.common.run_span import run_span, time_zone_of
from airflow_provider_webdata.common.tagged_items import tagged
from airflow_provider_webdata.results.columns import CHANGES as COLUMNS
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.manifest.comparison import CHANGES, Comparison
from airflow_provider_webdata.results.manifest.content import compared
from airflow_provider_webdata.results.manifest.folder import ManifestFolder, Run
from airflow_provider_webdata.results.storage import check_folder
from airflow_provider_webdata.results.tombstones import Tombstone
from airflow_provider_webdata.runs.delivery.step import Step
from airflow_provider_webdata.runs.metrics import gauge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.options import Changes
    from airflow_provider_webdata.results.columns import Column
    from airflow_provider_webdata.results.manifest.folder import Known
    from airflow_provider_webdata.runs.delivery.step import Results


class Compare(Step):
    """Compares items with the manifest, and writes the next one.

    :ivar changes: the option.
    """

    def __init__(self, changes: Changes, context: Context, log: Any) -> None:
        self.changes = changes
        self._context = context
        self._log = log
        self.run = run_of(context)
        self._flowing: list[bool] = []
        self._facts: dict[str, Any] = {}

    @cached_property
    def folder(self) -> ManifestFolder:
        """The folder of the manifests."""
        return ManifestFolder(str(self.changes.manifest), shared=self.changes.shared)

    @cached_property
    def known(self) -> Known:
        """What earlier runs saw. A worker that resumes the task after a wait reads it anew.

        :raises OutputError: it cannot be read.
        """
        known = self.folder.known_before(self.run, self._is_consumed)
        if known.ignored:
            self._log.warning(
                "Downstream tasks have not succeeded in %s, so this run emits the same pages again",
                ", ".join(known.ignored.values()),
            )
        if len(known.files) > 1:
            self._log.warning(
                "%d runs wrote to %s at the same time: this one compares with all that they saw (%s)",
                len(known.files),
                self.folder.url,
                ", ".join(known.files),
            )
        return known

    def prepare(self) -> None:
        """Fail if the folder cannot be read or belongs to another task; else claim it."""
        folder = self.changes.manifest
        if checked_text(folder) is None:
            raise OutputError(f"changes must name a folder (given after rendering: {folder!r})")
        if self.changes.commit == "downstream" and not self._consumers():
            raise OutputError(
                "Changes(commit='downstream') needs a task downstream of this one: add the task that consumes the "
                "results, or remove `commit`"
            )
        check_folder(self.folder.url)
        self.known  # noqa: B018 - what cannot be read fails before anything is billed
        self.folder.claim(self.run)

    def columns(self, columns: tuple[Column, ...], kind: str) -> tuple[Column, ...]:  # noqa: ARG002
        """Add what the manifest says about an item."""
        return columns + COLUMNS

    def items(self, items: Iterable[Any], results: Results) -> Iterator[Any]:
        """Yield the items with their `change`, without those that are not emitted, and what was removed."""
        changes, log = self.changes, self._log
        compare = compared(changes.compare, results.kind)
        self._by = by = compare if isinstance(compare, str) else ",".join(compare)
        if others := sorted(self.known.compares - {by}):
            log.warning(
                "Earlier runs compared by %s, this one by %s: what they saw may count as changed once",
                " and ".join(others),
                by,
            )
        self._comparison = comparison = Comparison(
            self.known.entries,
            self.run.stored_moment,
            compare,
            ignore_query=changes.ignore_query,
            key=results.key,
        )
        for item in items:
            change, page = comparison.change_of(item)
            flows = changes.emit == "all" or change in ("new", "changed")
            self._flowing.append(flows)
            if flows:
                # An item's own field with that name is not ours.
                is_told = page is not None or "page" in item
                yield tagged(item, change=change, **({"page": page} if is_told else {}))
        comparison.leave(results.known)
        most = removal_limit(changes.max_removed, comparison.known)
        if self._saw_all(results):
            for key, entry in comparison.removed(changes.removed_after, most).items():
                if changes.emit == "changed":
                    yield Tombstone(
                        results.kind,
                        change="removed",
                        page=key,
                        url=key,
                        lastSeen=entry.last_seen,
                    )
        counts = comparison.counts
        self._facts = {
            name: counts[name] for name in CHANGES if name != "known" or counts[name] or results.known
        }
        if comparison.known and not (self._flowing or results.known):
            self._facts["knownBefore"] = comparison.known
            log.warning(
                "This run has no results, and earlier ones knew %d pages. Look at the site and at the task's filters",
                comparison.known,
            )
        if comparison.held_back:
            self._facts["heldBack"] = comparison.held_back
            log.warning(
                "%d of %d known pages seem to be gone, and max_removed allows %d: none is removed. Look at the site; "
                "if they are gone, raise Changes(max_removed=) for one run",
                comparison.held_back,
                comparison.known,
                most,
            )

    def in_place(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the items that flowed on, and None in place of the others.

        :param items: those that flowed on.
        """
        flowing = iter(items)
        for flows in self._flowing:
            yield next(flowing) if flows else None

    def facts(self) -> Mapping[str, Any]:
        """Return the counts."""
        return {"changes": self._facts}

    def written(self) -> None:
        """Write what this run saw."""
        items = len(self._flowing) + self._comparison.counts["known"]
        # Until this run is consumed, the next one compares with the same files.
        consumers, needed = (
            (self._consumers(), self.known.files) if self.changes.commit == "downstream" else ((), ())
        )
        path = self.folder.write(self.run, self.known, self._comparison.entries(), self._by, items, consumers)
        self.folder.tidy(self.run, self.changes.keep, needed)
        for change in CHANGES:
            gauge("webdata.changes", self._comparison.counts[change], self._context, change=change)
        self._log.info(
            "%d results are new, %d changed, %d the same, %d removed; %d failed. What was seen is in %s",
            *map(self._facts.get, ("new", "changed", "same", "removed", "failed")),
            path,
        )

    def verdict(self) -> None:
        """Skip the task if nothing changed and `on_unchanged` says so."""
        changed = any(map(self._facts.get, ("new", "changed", "removed")))
        if self.changes.on_unchanged == "skip" and not changed:
            empty = self._facts.get("knownBefore")
            raise AirflowSkipException(
                f"No results, and earlier runs knew {empty} pages"
                if empty
                else "Nothing is new, changed or removed since the last run"
            )

    def _consumers(self) -> set[str]:
        relatives = self._context["ti"].task.get_flat_relatives()
        return {task.task_id for task in relatives if not task.is_teardown}

    def _is_consumed(self, dag_id: str, run_id: str, consumers: Sequence[str]) -> bool:
        found = self._context["ti"].get_task_states(dag_id, task_ids=[*consumers], run_ids=[run_id])
        # Airflow may have deleted the run, and a task may have been removed from the DAG.
        states = found.get(run_id, {}).values()
        return all(state in ("success", "skipped", "removed") for state in states)

    def _saw_all(self, results: Results) -> bool:
        """Return whether what this run did not see may be gone."""
        summary, count = results.summary, len(self._flowing)
        if self.changes.shared or results.kind.startswith("search"):
            return False
        if summary.get("status", "completed") != "completed":
            return False
        total = summary.get("total")
        if not results.covers_all(max(count, total) if isinstance(total, int) else count):
            self._log.warning(
                "The limit was reached: what lies beyond it does not count as removed; raise it"
            )
            return False
        # If nothing could be read, the site is down.
        counts = self._comparison.counts
        return bool(counts["new"] or counts["changed"] or counts["same"]) or not counts["failed"]


def run_of(context: Context) -> Run:
    """Return the run of a task, with the moment by which runs are ordered."""
    ti = context["ti"]
    # Files that were written before partitions counted have the time at which their run was due. They stay in the
    # order of those times: a run may compare with an older one, or with none, and count its pages as new or changed
    # once. None counts as removed for it, since that takes pages that are known.
    _, moment = run_span(context["dag_run"], time_zone_of(context.get("dag")))
    return Run(moment, ti.dag_id, ti.run_id, ti.task_id, -1 if ti.map_index is None else ti.map_index)
