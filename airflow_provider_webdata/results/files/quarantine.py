"""Quarantine beside an output: rejected results, which are already billed and can still be published."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.formats import QUARANTINE, format_of
from airflow_provider_webdata.results.files.storage import (
    modified_at,
    move_file,
    storage_errors,
    storage_path,
)

if TYPE_CHECKING:
    from datetime import datetime

log = logging.getLogger(__name__)

_PART_BYTES = 2**20


def publish(url: str, *, force: bool = False) -> None:
    """Replace an output by its quarantined results, atomically.

    :param url: path or URL of the output.
    :param force: replace the output even if it is newer than the quarantined results.
    :raises OutputError: the path is not that of an output, the output has no quarantined results or is newer, or the
        storage is unavailable here.
    """
    url = url.strip().removesuffix(QUARANTINE)
    try:
        format_of(url)
    except OutputError as error:
        raise OutputError(
            f"{url!r} is not the path of an output. Specify a file such as prices.jsonl, as the error of the task "
            "names it"
        ) from error
    try:
        if not force:
            _check_age(url)
        move_file(f"{url}{QUARANTINE}", url)
    except FileNotFoundError as error:
        raise OutputError(
            f"{url}{QUARANTINE} does not exist. Specify the output of a task that rejected its results, where "
            "it was written"
        ) from error


def quarantined_at(url: str) -> datetime | None:
    """Return when an output's quarantine was written; None if there is none, or if the storage does not tell."""
    with suppress(Exception):
        return modified_at(url + QUARANTINE)
    return None


def discard(url: str, written: datetime | None) -> bool:
    """Delete an output's quarantine after a run whose results replace it; return whether it was deleted.

    An error is only logged.

    :param url: see `publish`.
    :param written: `quarantined_at` before the run wrote: a quarantine that changed since then stays.
    """
    if written is None or quarantined_at(url) != written:
        return False
    try:
        with suppress(FileNotFoundError):
            storage_path(url + QUARANTINE).unlink()
    except Exception as error:  # noqa: BLE001 - the results are written
        log.warning("%s%s, which this run replaces, could not be deleted: %s", url, QUARANTINE, brief(error))
        return False
    log.info("Deleted the rejected results of an earlier attempt or run, %s%s", url, QUARANTINE)
    return True


def _was_copied(url: str) -> bool:
    """Return whether an output equals its quarantine: a call was interrupted between copying and deleting it."""
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
