"""The quarantine beside an output: results that were billed and not accepted, until someone publishes them."""

from __future__ import annotations

from contextlib import suppress

from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.formats import LIST_SUFFIX, QUARANTINE
from airflow_provider_webdata.results.partitions import delete_stale, files_of
from airflow_provider_webdata.results.storage import move_file


def publish(url: str) -> None:
    """Move quarantined results to the place of their output, which they replace.

    A file is replaced atomically. Of a partitioned output, the list of files is replaced last.

    :param url: path or URL of the output; of a partitioned one, of its list (`.files.json`).
    :raises OutputError: nothing is quarantined there, or its storage is unknown here.
    """
    url = url.removesuffix(QUARANTINE)
    before: list[str] = []
    files: list[str] = []
    if url.endswith(LIST_SUFFIX):
        files = files_of(url, QUARANTINE)
        with suppress(OutputError):
            before = files_of(url)
        for path in files:
            # An interrupted call has moved it.
            with suppress(FileNotFoundError):
                move_file(f"{path}{QUARANTINE}", path)
    try:
        move_file(f"{url}{QUARANTINE}", url)
    except FileNotFoundError as error:
        raise OutputError(
            f"{url}{QUARANTINE} does not exist; name the output of a task whose checks failed, on the machine or in "
            "the storage where it was written"
        ) from error
    delete_stale(before, files)
