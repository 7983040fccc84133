"""The manifests of a task: a folder with one file per run, written atomically.

A run compares with the files from before its data interval, so that a cleared or backfilled run compares with the same
file as the first time. Each file names the files that it was compared with. Files that no later file names, or that
were written again since, come from concurrent, backfilled, or cleared runs, and the next run uses their union.

Consumers may have a page as any file of the union has it, as this run's own earlier file has it, or as a file has it
whose results only some of them consumed. Where these files differ, the page counts as uncertain and is emitted again.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import re
import time
import zlib
from dataclasses import asdict, dataclass, field
from datetime import timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from typing_extensions import Required, TypedDict

from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.common.stored_record import damage_of
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.formats import rejected_url
from airflow_provider_webdata.results.files.storage import WholeFile, compressed, is_file, storage_path
from airflow_provider_webdata.results.manifest.entries import (
    MAYBE_CHANGED,
    MAYBE_NEW,
    Entry,
    decoded,
    encoded,
    uncertain,
)
from airflow_provider_webdata.results.manifest.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow.sdk import ObjectStoragePath

    IsConsumed = Callable[[str, str, Sequence[str]], bool]

_FORMAT = 1
_OWNER = "owner.json"
_REJECTED = ".rejected"
_NAME = re.compile(rf"\d{{8}}T\d{{12}}Z-[0-9a-f]{{12}}({re.escape(_REJECTED)})?\.jsonl\.gz")
_LISTINGS = 10
_MOST_IGNORED = 30
_DAMAGE = (
    *(EOFError, gzip.BadGzipFile, zlib.error, RecursionError, msgspec.DecodeError),
    *(ValueError, LookupError, TypeError, AttributeError),
)


class _Header(TypedDict, total=False):
    format: Required[int]
    moment: str
    dagId: str
    runId: str
    taskId: str
    mapIndex: int
    compare: str
    comparedWith: list[str]
    items: int
    consumers: list[str]
    ignored: list[str]
    writes: int
    rewritten: dict[str, int]
    removes: bool
    site: str
    rejectedOutput: str


@dataclass(frozen=True)
class ManifestRun:
    """A run of a task.

    :param moment: end of its data interval, or its scheduled time.
    :param map_index: -1 for an unmapped task.
    """

    moment: datetime
    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    @cached_property
    def stamp(self) -> str:
        """The time in the sortable format of file names."""
        return self.moment.astimezone(timezone.utc).strftime("%Y%m%dT%H%M%S%fZ")

    @property
    def stored_moment(self) -> str:
        """The time in the format of file contents."""
        return self.moment.astimezone(timezone.utc).isoformat()

    @property
    def rejected_file_name(self) -> str:
        """Name of the file of the run's rejected results."""
        return self.file_name.replace(".", f"{_REJECTED}.", 1)

    @cached_property
    def file_name(self) -> str:
        """Name of the run's file."""
        identity = json.dumps([self.dag_id, self.run_id, self.task_id, self.map_index])
        return f"{self.stamp}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.jsonl.gz"


@dataclass
class Known:
    """The known pages before a run.

    :param files: names of the files that were read, newest first.
    :param entries: the pages, by key.
    :param compares: the comparison modes of the files' runs.
    :param items: number of results of the newest of these runs; None if its file does not have it.
    :param ignored: ids of the runs whose results were not consumed, by file name. Their pages are emitted again.
    :param sites: the sites that the runs of these files covered.
    :param rewritten: number of writes of each file that a run wrote more than once.
    :param is_followed: True if a file of a later run exists.
    :param listed: names of all files, also those that were not read.
    """

    files: list[str] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    compares: set[str] = field(default_factory=set)
    items: int | None = None
    ignored: dict[str, str] = field(default_factory=dict)
    sites: set[str] = field(default_factory=set)
    rewritten: dict[str, int] = field(default_factory=dict)
    is_followed: bool = False
    listed: list[str] = field(default_factory=list)


class ManifestFolder:
    """A folder of manifests.

    :param url: path or URL of the folder, in any storage that Airflow supports.
    :param shared: True if several tasks write to it.
    :raises OutputError: the folder's storage is unavailable on this worker.
    """

    def __init__(self, url: str, *, shared: bool = False) -> None:
        self.url = url.rstrip("/")
        self.shared = shared
        self._path: ObjectStoragePath = storage_path(self.url)

    def claim(self, run: ManifestRun) -> None:
        """Record the task as the owner of the folder, unless the folder has another owner.

        :raises OutputError: the folder belongs to another task, or the owner record cannot be read.
        """
        own = {"dagId": run.dag_id, "taskId": run.task_id}
        wanted = {"shared": True} if self.shared else own
        for is_written in (False, True):
            owner = self._owner()
            if owner == wanted:
                return
            if is_written or owner not in (None, own):
                break
            with WholeFile(self._path / _OWNER) as file:
                file.write(json_text(wanted).encode())
        writer = (
            "several tasks with shared=True"
            if owner == {"shared": True}
            else f"task {owner.get('taskId')!r} of DAG {owner.get('dagId')!r}"  # type: ignore[union-attr]
        )
        raise OutputError(
            f"manifest {self.url} belongs to {writer}: pages that another task does not see would count as removed. "
            "Use a separate folder for this task, or set Changes(shared=True) for all tasks of the folder: then no "
            "page counts as removed. If the task was renamed, or no longer shares the folder, delete "
            f"{self.url}/{_OWNER}"
        )

    def known_before(self, run: ManifestRun, is_consumed: IsConsumed = lambda *_: True) -> Known:
        """Return the known pages before a run.

        :param is_consumed: returns whether the consumer tasks of a run have consumed its results; called with the ids
            of the DAG, the run, and these tasks. A repeated run does not call it for files that it compared with or
            ignored the first time.
        :raises OutputError: the file of the first comparison no longer exists, or a file cannot be read.
        """
        for _ in range(_LISTINGS):
            # Another run may delete an old file after it was listed; see `tidy`.
            with contextlib.suppress(FileNotFoundError):
                return self._known_before(run, is_consumed)
        return self._known_before(run, is_consumed)

    def _known_before(self, run: ManifestRun, is_consumed: IsConsumed) -> Known:
        names = self._names()
        known = Known(is_followed=any(name[: len(run.stamp)] > run.stamp for name in names), listed=names)
        covered: set[tuple[str, int]] = set()
        writers: dict[Any, Any] = {}
        own = next(self._read(run.file_name)) if run.file_name in names else {}
        first = set(own.get("comparedWith", ()))
        if missing := first - set(names):
            raise OutputError(
                f"{self.url}: this run was compared with {min(missing)}, which no longer exists. A run that "
                "is older than the stored manifests cannot be repeated. Store more of them with Changes(keep=)"
            )
        for name in names:
            if name >= run.stamp and name != run.rejected_file_name:
                continue
            header = next(self._read(name))
            self._check_writer(header, writers)
            writes = header.get("writes", 1)
            if (name, writes) not in covered:
                if writes > 1:
                    known.rewritten[name] = writes
                if output := header.get("rejectedOutput"):
                    # Without their file, the results were accepted or deleted by a person.
                    if not is_file(rejected_url(output)):
                        known.ignored[name] = header.get("runId", "")
                    continue
                if consumers := header.get("consumers"):
                    ids = header.get("dagId", ""), header.get("runId", "")
                    is_known = name in first or (
                        name not in own.get("ignored", ()) and is_consumed(*ids, consumers)
                    )
                    if not is_known:
                        known.ignored[name] = ids[1]
                        continue
                if not known.files:
                    known.items = header.get("items")
                known.files.append(name)
                known.compares.add(str(header.get("compare")))
            others = header.get("rewritten", {})
            covered.update(
                (other, others.get(other, 1))
                for other in (*header.get("comparedWith", ()), *header.get("ignored", ()))
            )
        self._collect(run, known, [*known.ignored, *([run.file_name] if own else [])])
        return known

    def _collect(self, run: ManifestRun, known: Known, maybe_consumed: Sequence[str]) -> None:
        """Read the known pages, and mark those that consumers may lack or have otherwise."""
        entries, removed_until = known.entries, ""
        for number, name in enumerate([*known.files, *maybe_consumed]):
            pages = self._read(name)
            header = next(pages)
            if site := header.get("site"):
                known.sites.add(site)
            until = header.get("moment", "") if header.get("removes", True) else ""
            seen: set[str] = set()
            for key, entry in pages:
                # If several files have a page, the newest wins.
                if key in entries:
                    is_same = entries[key].digest == entry.digest
                    if number >= len(known.files) and entry.was_uncertain:
                        # Consumers may have it as an even earlier file of that run had it.
                        is_same = False
                    if not is_same and entries[key].digest != MAYBE_NEW:
                        entries[key] = uncertain(entries[key], MAYBE_CHANGED)
                elif number >= len(known.files):
                    # The run's own earlier file is replaced: that it missed a page counts once.
                    missed = entry.missing if name != run.file_name else max(entry.missing - 1, -1)
                    entries[key] = uncertain(entry, MAYBE_NEW, missed)
                else:
                    is_removed = entry.first_seen <= removed_until
                    entries[key] = uncertain(entry, MAYBE_CHANGED) if is_removed else entry
                if number:
                    seen.add(key)
            for key in entries.keys() - seen if number else ():
                if entries[key].first_seen <= until and entries[key].digest != MAYBE_NEW:
                    entries[key] = uncertain(entries[key], MAYBE_CHANGED)
            removed_until = max(removed_until, until)

    def write(
        self,
        run: ManifestRun,
        known: Known,
        entries: Mapping[str, Entry],
        compare: str,
        items: int | None = None,
        consumers: Iterable[str] = (),
        *,
        site: str | None = None,
        removes: bool = True,
        rejected_output: str | None = None,
    ) -> str:
        """Write or replace the file of a run, and return its URL.

        :param entries: the pages, by key.
        :param items: number of the run's results, including existing pages that it did not request.
        :param consumers: ids of tasks that must consume the results before later runs compare with the file.
        :param site: the site that the run covered.
        :param rejected_output: output beside which the results are. Later runs do not compare with the file, but
            consider it if the results are published.
        :param removes: False if pages of the run never count as removed.
        """
        header = {
            "format": _FORMAT,
            "moment": run.stored_moment,
            "dagId": run.dag_id,
            "runId": run.run_id,
            "taskId": run.task_id,
            "mapIndex": run.map_index,
            "compare": compare,
            "comparedWith": known.files,
            **({} if items is None else {"items": items}),
        }
        if tasks := sorted(consumers):
            header["consumers"] = tasks
        if known.ignored:
            header["ignored"] = [*known.ignored]
        name = run.file_name if rejected_output is None else run.rejected_file_name
        if name in self._names():
            header["writes"] = next(self._read(name)).get("writes", 1) + 1
        elif known.is_followed:
            # Later runs may have considered a file of this name that was deleted since: let no number recur.
            header["writes"] = time.time_ns() // 1000
        if rejected_output is not None:
            header["rejectedOutput"] = rejected_output
        if known.rewritten:
            header["rewritten"] = known.rewritten
        if site is not None:
            header["site"] = site
        if not removes:
            header["removes"] = False
        with WholeFile(self._path / name) as file, compressed(file) as lines:
            lines.write(json_text(header).encode() + b"\n")
            for batch in encoded(entries):
                lines.write(batch)
        return f"{self.url}/{name}"

    def plan_of(self, run: ManifestRun) -> Plan | None:
        """Return the crawl plan of an unfinished run, or None.

        :raises OutputError: the plan's file is damaged.
        """
        name = _plan_name(run)
        try:
            plan = json.loads(self._read_bytes(name))
            return Plan(**_checked(plan, Plan))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, RecursionError) as error:
            raise OutputError(
                f"{self.url}/{name} is damaged ({_reason(error)}); delete it to create a new plan"
            ) from error

    def write_plan(self, run: ManifestRun, plan: Plan) -> None:
        """Write a run's crawl plan, for its later attempts."""
        with WholeFile(self._path / _plan_name(run)) as file:
            file.write(json_text(asdict(plan)).encode())

    def delete_plan(self, run: ManifestRun) -> None:
        """Delete the crawl plan of a finished run."""
        with contextlib.suppress(FileNotFoundError):
            (self._path / _plan_name(run)).unlink()

    def tidy(self, run: ManifestRun, keep: int, known: Known) -> None:
        """Delete all but the newest `keep` files up to the run's.

        Files remain that the run compared with, because it may be repeated, those whose results were not consumed, up
        to `_MOST_IGNORED`, and files that it did not consider: those of the same time, which tasks that share the
        folder write, of later runs, and written since it began.

        :param known: what the run compared with.
        """
        names = [name for name in self._names() if name <= run.file_name]
        rejected = [name for name in names if _REJECTED in name]
        old = [name for name in names if name not in rejected][keep:] + rejected[keep:]
        needed = {*known.files, *sorted(known.ignored)[-_MOST_IGNORED:]}
        needed.update(name for name in known.listed if name > run.stamp)
        # Oldest first: a file that is left would count as one that no later file names.
        for name in sorted({*old}.intersection(known.listed) - needed):
            # Another run may delete the same file.
            with contextlib.suppress(FileNotFoundError):
                (self._path / name).unlink()

    def _owner(self) -> dict[str, Any] | None:
        # Another task may have written the file since.
        self._path.fs.invalidate_cache()
        try:
            owner = json.loads(self._read_bytes(_OWNER))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            owner = None
        if isinstance(owner, dict) and (owner == {"shared": True} or owner.keys() >= {"dagId", "taskId"}):
            return owner
        raise OutputError(f"{self.url}/{_OWNER} is damaged; delete it, and the next run writes a new one")

    def _read_bytes(self, name: str) -> Any:
        return self._path.fs.cat_file((self._path / name).path)

    def _check_writer(self, header: dict[str, Any], writers: dict[Any, Any]) -> None:
        if self.shared:
            return
        writer = (header.get("taskId"), header.get("mapIndex"))
        other = writers.setdefault((header.get("dagId"), header.get("runId")), writer)
        if writer != other:
            raise OutputError(
                f"manifest {self.url} is written by several tasks: {other[0]!r} (map index {other[1]}) and "
                f"{writer[0]!r} (map index {writer[1]}) of DAG {header.get('dagId')!r}. Use a separate folder for "
                "each task and each mapped instance, with a template such as {{ task.url | replace('/', '_') }}"
            )

    def _names(self) -> list[str]:
        """Return the names of the files, newest first."""
        fs = self._path.fs
        # Some storages cache listings, which would hide another run's file.
        fs.invalidate_cache()
        try:
            paths = fs.ls(self._path.path, detail=False)
        except FileNotFoundError:
            return []
        names = [str(path).rstrip("/").rpartition("/")[2] for path in paths]
        return sorted(filter(_NAME.fullmatch, names), reverse=True)

    def _read(self, name: str) -> Iterator[Any]:
        """Yield a file's header, then its pages with their keys."""
        url, path = f"{self.url}/{name}", self._path / name
        with path.fs.open(path.path, "rb") as file, gzip.open(file) as lines:
            try:
                header = json.loads(lines.readline())
                if header["format"] > _FORMAT:
                    raise OutputError(
                        f"{url} was written by a newer airflow-provider-webdata. Reinstall it, or use another "
                        "manifest"
                    )
                yield _checked(header, _Header)
                yield from decoded(lines)
            except _DAMAGE as error:
                if isinstance(error, OutputError):
                    raise
                raise OutputError(
                    f"{url} is damaged, or not a manifest ({_reason(error)}). Delete it: later runs then "
                    "compare with the previous one"
                ) from error


def _checked(record: Any, kind: Any) -> Any:
    if damage := damage_of(record, kind):
        raise ValueError(damage)
    return record


def _plan_name(run: ManifestRun) -> str:
    return f"{run.file_name.removesuffix('.jsonl.gz')}.plan.json"


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {plain_reason(error)}"
