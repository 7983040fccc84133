"""Quarantine beside an output: rejected results, which are already billed and can still be published."""

from __future__ import annotations

from contextlib import suppress

from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.formats import LIST_SUFFIX, QUARANTINE
from airflow_provider_webdata.results.partitions import delete_stale, files_of, paths_of_run, writer_of
from airflow_provider_webdata.results.storage import move_file


def publish(url: str) -> None:
    """Replace an output by its quarantined results.

    A file is replaced atomically. The list of a partitioned output is replaced last.

    :param url: path or URL of the output, or of the list (`.files.json`) of a partitioned output.
    :raises OutputError: the output has no quarantined results, or its storage is unavailable here.
    """
    url = url.removesuffix(QUARANTINE)
    before: list[str] = []
    files: list[str] = []
    if url.endswith(LIST_SUFFIX):
        files = files_of(url, QUARANTINE)
        before = paths_of_run(url, writer_of(url, QUARANTINE))
        for path in files:
            # An interrupted call may have moved the file already.
            with suppress(FileNotFoundError):
                move_file(f"{path}{QUARANTINE}", path)
    try:
        move_file(f"{url}{QUARANTINE}", url)
    except FileNotFoundError as error:
        raise OutputError(
            f"{url}{QUARANTINE} does not exist. Specify the output of a task whose checks failed, on the machine or in "
            "the storage where it was written"
        ) from error
    delete_stale(before, files)
