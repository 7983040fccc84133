"""Quarantine beside an output: rejected results, which are already billed and can still be published."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.formats import LIST_SUFFIX, QUARANTINE, format_of
from airflow_provider_webdata.results.files.partitions import delete_stale, files_of, paths_of_run, writer_of
from airflow_provider_webdata.results.files.storage import (
    modified_at,
    move_file,
    storage_errors,
    storage_path,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

log = logging.getLogger(__name__)

_PART_BYTES = 2**20


def publish(url: str, *, force: bool = False) -> list[str]:
    """Replace an output by its quarantined results; return the paths of deleted files.

    A file is replaced atomically. The list of a partitioned output is replaced last. Files that only an earlier attempt
    of the same run listed are deleted.

    :param url: path or URL of the output, or of the list (`.files.json`) of a partitioned output.
    :param force: replace the output even if it is newer than the quarantined results.
    :raises OutputError: the path is not that of an output, the output has no quarantined results or is newer, a file of
        the results is missing, or the storage is unavailable here.
    """
    url = url.strip().removesuffix(QUARANTINE)
    is_list = url.endswith(LIST_SUFFIX)
    try:
        if not is_list:
            format_of(url)
    except OutputError as error:
        raise OutputError(
            f"{url!r} is not the path of an output. Specify a file such as prices.jsonl, or the list ({LIST_SUFFIX}) "
            "of a partitioned output, as the error of the task names it"
        ) from error
    before: list[str] = []
    files: list[str] = []
    try:
        if not force:
            _check_age(url)
        if is_list:
            files = files_of(url, QUARANTINE)
            before = paths_of_run(url, writer_of(url, QUARANTINE))
            # An interrupted call may have moved a file already.
            waiting = [path for path in files if _exists(path + QUARANTINE)]
            if missing := [path for path in files if path not in waiting and not _exists(path)]:
                raise OutputError(
                    f"{url}{QUARANTINE} names {missing[0]}, but neither this file nor {missing[0]}{QUARANTINE} exists. "
                    "Nothing was published; restore the file, or clear the task to request the results again"
                )
            for path in waiting:
                move_file(f"{path}{QUARANTINE}", path)
        move_file(f"{url}{QUARANTINE}", url)
    except FileNotFoundError as error:
        raise OutputError(
            f"{url}{QUARANTINE} does not exist. Specify the output of a task that rejected its results, where "
            "it was written"
        ) from error
    return delete_stale(before, files)


def quarantined_at(url: str) -> datetime | None:
    """Return when an output's quarantine was written; None if there is none, or if the storage does not tell."""
    with suppress(Exception):
        return modified_at(url + QUARANTINE)
    return None


def discard(url: str, written: datetime | None, files: Collection[str], run: str) -> bool:
    """Delete an output's quarantine after a run whose results replace it; return whether it was deleted.

    An error is only logged.

    The quarantine of a partitioned output stays if it has partitions of another run that this run did not write.

    :param url: see `publish`.
    :param written: `quarantined_at` before the run wrote: a quarantine that changed since then stays.
    :param files: the files that the run wrote.
    :param run: see `PartitionedOutput`.
    """
    if written is None or quarantined_at(url) != written:
        return False
    try:
        quarantined: list[str] = []
        if url.endswith(LIST_SUFFIX):
            quarantined = files_of(url, QUARANTINE)
            if writer_of(url, QUARANTINE) != run and not {*quarantined} <= {*files}:
                return False
        for path in (*quarantined, url):
            with suppress(FileNotFoundError):
                storage_path(path + QUARANTINE).unlink()
    except Exception as error:  # noqa: BLE001 - the results are written
        log.warning("%s%s, which this run replaces, could not be deleted: %s", url, QUARANTINE, brief(error))
        return False
    log.info("Deleted the rejected results of an earlier attempt or run, %s%s", url, QUARANTINE)
    return True


def _exists(url: str) -> bool:
    with storage_errors(url, "read"):
        return bool(storage_path(url).exists())


def _was_copied(url: str) -> bool:
    """Return whether an output equals its quarantine: a call was interrupted between copying and deleting it."""
    # Files may differ although their lists are equal.
    if url.endswith(LIST_SUFFIX):
        return False
    with storage_errors(url, "read"):
        paths: list[Any] = [storage_path(url), storage_path(url + QUARANTINE)]
        if len({path.stat().st_size for path in paths}) > 1:
            return False
        with paths[0].open("rb") as output, paths[1].open("rb") as rejected:
            return all(
                part == rejected.read(len(part)) for part in iter(lambda: output.read(_PART_BYTES), b"")
            )


def _check_age(url: str) -> None:
    rejected = modified_at(url + QUARANTINE)
    try:
        written = modified_at(url)
    except FileNotFoundError:
        return
    if rejected is None or written is None:
        raise OutputError(
            f"The storage of {url} does not tell which results are newer. Compare {url} and {url}{QUARANTINE}; to "
            "replace the first by the second, add --force (in Python: force=True)"
        )
    if written > rejected and not _was_copied(url):
        raise OutputError(
            f"{url} was written at {written:%Y-%m-%d %H:%M:%S} UTC, after the rejected results "
            f"({rejected:%Y-%m-%d %H:%M:%S} UTC). To replace newer results by older ones, add --force (in Python: "
            "force=True)"
        )
