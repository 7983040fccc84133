"""What of a task's results is new or changed since its earlier runs, and nothing else where so wished."""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.run_span import run_span, time_zone_of
from airflow_provider_webdata.tasks.arguments import checked_text, removal_limit
from airflow_provider_webdata.tasks.result_output import ResultDelivery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.results.columns import Column
    from airflow_provider_webdata.results.manifest.comparison import Comparison
    from airflow_provider_webdata.results.manifest.folder import Known, ManifestFolder, Run


class ChangedResults(ResultDelivery):
    """Base of operators whose results are pages, links or search results, which their earlier runs may have seen.

    :param changes: path or URL of a folder in which each run writes what it saw, or `Changes` (templated). Default: no
        comparison.
    :param kwargs: arguments of the other base classes.
    """

    _flowing: Sequence[bool] = ()
    _is_unchanged = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Have the folder's path rendered."""
        super().__init_subclass__(**kwargs)
        if "changes" not in cls.template_fields:
            cls.template_fields = (*cls.template_fields, "changes")

    def __init__(self, *, changes: Changes | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.changes = Changes.of(changes)

    def execute(self, context: Context) -> Any:
        """Read what is known, then call the service."""
        from airflow_provider_webdata.results.errors import OutputError

        if self.changes is not None:
            # Before anything is paid for.
            folder, run, _ = self.read_manifest(self.changes, context)
            try:
                folder.claim(run)
            except OutputError as error:
                self.refuse(error)
        return super().execute(context)

    def finished(self, result: Any, context: Context) -> Any:
        """Return the result of a task that has delivered it.

        :raises AirflowSkipException: nothing changed, and the task is to be skipped then.
        """
        result = super().finished(result, context)
        if self._is_unchanged and self.changes is not None and self.changes.on_unchanged == "skip":
            from airflow.sdk.exceptions import AirflowSkipException

            raise AirflowSkipException("Nothing is new, changed or removed since the last run")
        return result

    def deliver(
        self,
        items: Iterable[Any],
        kind: str,
        context: Context,
        summary: Mapping[str, Any],
        *,
        inputs: Sequence[str] = (),
        value: Callable[[list[Any], dict[str, Any]], Any] | None = None,
    ) -> Any:
        """Deliver the results, or what of them is to flow on; see `ResultDelivery.deliver`."""
        asked = self.changes
        if asked is None:
            return super().deliver(items, kind, context, summary, inputs=inputs, value=value)
        from airflow_provider_webdata.results.manifest.comparison import Comparison
        from airflow_provider_webdata.results.manifest.content import compared

        folder, run, known = self.read_manifest(asked, context)
        compare = compared(asked.compare, kind)
        by = compare if isinstance(compare, str) else ",".join(compare)
        if known.compares - {by}:
            self.log.warning(
                "Earlier runs compared by %s, this one by %s: what they saw may count as changed once",
                " and ".join(sorted(known.compares - {by})),
                by,
            )
        comparison = Comparison(known.entries, run.stored_moment, compare, ignore_query=asked.ignore_query)
        changes: dict[str, Any] = {}
        result = super().deliver(
            self._compared(items, kind, asked, comparison, summary, changes, self.known_pages(context)),
            kind,
            context,
            ChainMap(changes, summary),  # type: ignore[arg-type]
            inputs=inputs,
            value=value,
        )
        path = folder.write(run, known, comparison.entries(), by)
        folder.tidy(run, asked.keep)
        counts = changes["changes"]
        self.push(context, **changes)
        self.log.info(
            "%d results are new, %d changed, %d the same, %d removed; %d failed. What was seen is in %s",
            *(counts[name] for name in ("new", "changed", "same", "removed", "failed")),
            path,
        )
        self._is_unchanged = not (counts["new"] or counts["changed"] or counts["removed"])
        return result

    def columns(self, kind: str) -> tuple[Column, ...]:
        """Return the columns of a table of the results, with what the manifest says of each."""
        from airflow_provider_webdata.results.columns import CHANGES

        return super().columns(kind) + (CHANGES if self.changes is not None else ())

    def in_place(self, items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any] | None]:
        """Yield the items that flowed on, and None in the place of those that did not."""
        if self.changes is None:
            yield from items
            return
        flowing = iter(items)
        for flows in self._flowing:
            yield next(flowing) if flows else None

    def covers_all(self, count: int) -> bool:  # noqa: ARG002
        """Return whether a call that brought so many results saw all that there is."""
        return True

    def known_pages(self, context: Context) -> Sequence[str]:  # noqa: ARG002
        """Return the keys of the pages that are there and were not asked for."""
        return ()

    def _compared(
        self,
        items: Iterable[Any],
        kind: str,
        asked: Changes,
        comparison: Comparison,
        summary: Mapping[str, Any],
        changes: dict[str, Any],
        known_pages: Sequence[str],
    ) -> Iterator[Any]:
        from airflow_provider_webdata.results.manifest.comparison import CHANGES
        from airflow_provider_webdata.results.tombstones import Tombstone
        from airflow_provider_webdata.tasks.tagged_items import tagged

        self._flowing = flowing = []
        for item in items:
            change = comparison.change_of(item)
            flows = asked.emit == "all" or change in ("new", "changed")
            flowing.append(flows)
            if flows:
                page = comparison.page_of(item)
                # A field of its own with that name is not ours.
                is_told = page is not None or "page" in item
                yield tagged(item, change=change, **({"page": page} if is_told else {}))
        comparison.leave(known_pages)
        most = removal_limit(asked.max_removed, comparison.known)
        if not asked.shared and self._saw_all(kind, len(flowing), comparison, summary):
            for entry in comparison.removed(asked.removed_after, most):
                if asked.emit == "changed":
                    yield Tombstone(
                        kind, change="removed", page=entry.key, url=entry.key, lastSeen=entry.last_seen
                    )
        counts = comparison.counts
        changes["changes"] = {
            name: counts[name] for name in CHANGES if name != "known" or counts[name] or known_pages
        }
        if comparison.held_back:
            changes["changes"]["heldBack"] = comparison.held_back
            self.log.warning(
                "%d of %d known pages seem to be gone, and max_removed allows %d: none is removed. Look at the site; "
                "if they are gone, raise max_removed for one run",
                comparison.held_back,
                comparison.known,
                most,
            )

    def _saw_all(self, kind: str, count: int, comparison: Comparison, summary: Mapping[str, Any]) -> bool:
        """Return whether what this run did not see may be gone."""
        if kind.startswith("search") or summary.get("status", "completed") != "completed":
            return False
        total = summary.get("total")
        if not self.covers_all(max(count, total) if isinstance(total, int) else count):
            self.log.warning("The limit was reached: what lies beyond it does not count as removed; raise it")
            return False
        # Where nothing could be read, it is the site that is down.
        counts = comparison.counts
        return bool(counts["new"] or counts["changed"] or counts["same"]) or not counts["failed"]

    def read_manifest(self, changes: Changes, context: Context) -> tuple[ManifestFolder, Run, Known]:
        """Return where the manifests are, this run, and what was known before it."""
        from airflow_provider_webdata.results.errors import OutputError
        from airflow_provider_webdata.results.manifest.folder import ManifestFolder
        from airflow_provider_webdata.results.storage import check_folder

        if checked_text(changes.manifest) is None:
            self.refuse(f"changes must name a folder (given after rendering: {changes.manifest!r})")
        folder, run = ManifestFolder(str(changes.manifest), shared=changes.shared), _run_of(context)
        try:
            check_folder(folder.url)
            known = folder.known_before(run)
        except OutputError as error:
            self.refuse(error)
        if len(known.files) > 1:
            self.log.warning(
                "%d runs wrote to %s at the same time: this one compares with all that they saw (%s)",
                len(known.files),
                folder.url,
                ", ".join(known.files),
            )
        return folder, run, known


def _run_of(context: Context) -> Run:
    from airflow_provider_webdata.results.manifest.folder import Run

    ti = context["ti"]
    # Files that were written before partitions counted have the time at which their run was due. They stay in the
    # order of those times: a run may compare with an older one, or with none, and count its pages as new or changed
    # once. None counts as removed for it, since that takes pages that are known.
    _, moment = run_span(context["dag_run"], time_zone_of(context.get("dag")))
    return Run(moment, ti.dag_id, ti.run_id, ti.task_id, -1 if ti.map_index is None else ti.map_index)
