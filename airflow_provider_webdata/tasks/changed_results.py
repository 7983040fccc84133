"""What of a task's results is new or changed since its earlier runs, and nothing else where so wished."""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.run_span import run_span, time_zone_of
from airflow_provider_webdata.tasks.arguments import checked_text, count_or_share, removal_limit, whole_number
from airflow_provider_webdata.tasks.result_output import ResultDelivery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.results.columns import Column
    from airflow_provider_webdata.results.manifest.comparison import Comparison
    from airflow_provider_webdata.results.manifest.folder import Known, ManifestFolder, Run

_EMIT = ("all", "changed")
_ON_UNCHANGED = ("empty", "skip")


class ChangedResults(ResultDelivery):
    """Base of operators whose results are pages, links or search results, which their earlier runs may have seen.

    With `manifest`, each run writes what it saw there and compares with the newest file that is older than the end of
    its own partition or data interval; a run without either counts from when it was to run. So a run that is cleared,
    or made later, compares with what was before it, and gives the same again where the service answers the same. Each
    item gets a first field `change`: `new`, `changed`, `same`, or `failed` for a page that came with an error only,
    which flows on with `emit="all"`. Where its URL is not the one that its page has in all runs (without fragment and
    tracking parameters), `page` is that one. XCom `changes` counts the items, and what was `removed`.

    A page counts as removed when `removed_after` runs that went over the whole site have not seen it, or only with an
    error. With `emit="changed"` an item stands for it at the end: `change` is `removed`, `page` and `url` are what it
    has in all runs, `lastSeen` is the run that saw it last. Results of searches are never removed.

    :param manifest: path or URL of a folder of this task's own, in any storage that Airflow knows (templated). A task
        fails before it bills where the folder belongs to another one.
    :param shared: whether several tasks write to the folder; each says so. Then no page counts as removed, since a page
        that one does not see may be another's. Default: no.
    :param emit: `all` results (default), or only what is `changed`: new, changed and removed items; needs `manifest`.
    :param compare: by what an item counts as changed: `content` (its markdown; without it all that was asked for),
        `url` (never changed), `changeTracking` (what the service says; give that format), or a list of paths in an
        item, such as `["json.price"]`. White space and tracking parameters of links never count. Default: pages by
        `content`, links and search results by `url`.
    :param ignore_query: whether URLs that differ in their query only are one page; default: no. Tracking parameters
        such as `utm_source` never count.
    :param removed_after: runs that do not see a page until it counts as removed, at least 1; default 2.
    :param max_removed: most pages that a run may remove: a count, or a share of the known ones (0.0 to 1.0). Where more
        seem to be gone, none is removed, the task warns, and XCom `changes` has their number as `heldBack`; each later
        run decides anew. Default: half of the known pages, where these are more than 20.
    :param manifest_keep: files that are kept, at least 1; default 30. A run older than these cannot be repeated.
    :param on_unchanged: what to do where nothing is new, changed or removed: `empty` succeeds (default), `skip` skips
        the task, and with it those that follow.
    :param kwargs: arguments of the other base classes.
    """

    _flowing: Sequence[bool] = ()
    _is_unchanged = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Have the folder's path rendered."""
        super().__init_subclass__(**kwargs)
        if "manifest" not in cls.template_fields:
            cls.template_fields = (*cls.template_fields, "manifest")

    def __init__(
        self,
        *,
        manifest: str | None = None,
        shared: bool = False,
        emit: Literal["all", "changed"] = "all",
        compare: str | Sequence[str] | None = None,
        ignore_query: bool = False,
        removed_after: int = 2,
        max_removed: float | None = None,
        manifest_keep: int = 30,
        on_unchanged: Literal["empty", "skip"] = "empty",
        **kwargs: Any,
    ) -> None:
        if emit not in _EMIT:
            raise ArgumentError(f"emit must be one of {', '.join(_EMIT)} (given: {emit!r})")
        if on_unchanged not in _ON_UNCHANGED:
            raise ArgumentError(
                f"on_unchanged must be one of {', '.join(_ON_UNCHANGED)} (given: {on_unchanged!r})"
            )
        if manifest is None and (emit != "all" or on_unchanged != "empty" or compare is not None or shared):
            raise ArgumentError(
                "emit, compare, on_unchanged and shared need manifest=: a folder in which each run writes what it saw"
            )
        if compare is not None:
            from airflow_provider_webdata.results.manifest.content import compared

            compared(compare, "generic")
        super().__init__(**kwargs)
        self.manifest = manifest
        self.shared = shared
        self.emit = emit
        self.compare = compare
        self.ignore_query = ignore_query
        self.removed_after = whole_number("removed_after", removed_after)
        self.max_removed = count_or_share("max_removed", max_removed)
        self.manifest_keep = whole_number("manifest_keep", manifest_keep)
        self.on_unchanged = on_unchanged

    def execute(self, context: Context) -> Any:
        """Read what is known, then call the service."""
        from airflow_provider_webdata.results.errors import OutputError

        if self.manifest is not None:
            # Before anything is paid for.
            folder, run, _ = self.read_manifest(context)
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
        if self._is_unchanged and self.on_unchanged == "skip":
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
        if self.manifest is None:
            return super().deliver(items, kind, context, summary, inputs=inputs, value=value)
        from airflow_provider_webdata.results.manifest.comparison import Comparison
        from airflow_provider_webdata.results.manifest.content import compared

        folder, run, known = self.read_manifest(context)
        compare = compared(self.compare, kind)
        by = compare if isinstance(compare, str) else ",".join(compare)
        if known.compares - {by}:
            self.log.warning(
                "Earlier runs compared by %s, this one by %s: what they saw may count as changed once",
                " and ".join(sorted(known.compares - {by})),
                by,
            )
        comparison = Comparison(known.entries, run.stored_moment, compare, ignore_query=self.ignore_query)
        changes: dict[str, Any] = {}
        result = super().deliver(
            self._compared(items, kind, comparison, summary, changes, self.known_pages(context)),
            kind,
            context,
            ChainMap(changes, summary),  # type: ignore[arg-type]
            inputs=inputs,
            value=value,
        )
        path = folder.write(run, known, comparison.entries(), by)
        folder.tidy(run, self.manifest_keep)
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

        return super().columns(kind) + (CHANGES if self.manifest is not None else ())

    def in_place(self, items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any] | None]:
        """Yield the items that flowed on, and None in the place of those that did not."""
        if self.manifest is None:
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
            flows = self.emit == "all" or change in ("new", "changed")
            flowing.append(flows)
            if flows:
                page = comparison.page_of(item)
                # A field of its own with that name is not ours.
                is_told = page is not None or "page" in item
                yield tagged(item, change=change, **({"page": page} if is_told else {}))
        comparison.leave(known_pages)
        most = removal_limit(self.max_removed, comparison.known)
        if self._saw_all(kind, len(flowing), comparison, summary):
            for entry in comparison.removed(self.removed_after, most):
                if self.emit == "changed":
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
        if self.shared or kind.startswith("search") or summary.get("status", "completed") != "completed":
            return False
        total = summary.get("total")
        if not self.covers_all(max(count, total) if isinstance(total, int) else count):
            self.log.warning("The limit was reached: what lies beyond it does not count as removed; raise it")
            return False
        # Where nothing could be read, it is the site that is down.
        counts = comparison.counts
        return bool(counts["new"] or counts["changed"] or counts["same"]) or not counts["failed"]

    def read_manifest(self, context: Context) -> tuple[ManifestFolder, Run, Known]:
        """Return where the manifests are, this run, and what was known before it."""
        from airflow_provider_webdata.results.errors import OutputError
        from airflow_provider_webdata.results.manifest.folder import ManifestFolder
        from airflow_provider_webdata.results.storage import check_folder

        if checked_text(self.manifest) is None:
            self.refuse(f"manifest must name a folder (given after rendering: {self.manifest!r})")
        folder, run = ManifestFolder(str(self.manifest), shared=self.shared), _run_of(context)
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
