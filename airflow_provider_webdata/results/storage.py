"""Files that are whole or not there: a reader sees the old file or the new one, never half of one.

On a local file system the bytes go to a hidden file in the same folder, which is renamed when it is complete and on
the disk. In an object store they go to an upload that shows only when it is completed. What a killed process leaves
behind (the hidden file, parts of an upload) no reader finds.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.object_store import check_bucket, is_object_store

if TYPE_CHECKING:
    from types import TracebackType

    from airflow.sdk import ObjectStoragePath
    from typing_extensions import Self

# Object stores take at most 10,000 parts of at least 5 MiB: files of up to 78 GiB, for 8 MiB of memory.
_PART_BYTES = 8 * 2**20

# Errors that persist until someone fixes the cause.
_LASTING = frozenset(
    {errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EROFS, errno.ENAMETOOLONG}
)


def storage_path(url: str) -> ObjectStoragePath:
    """Return the path of a URL, on a file system that Airflow can set up here.

    :param url: such as `s3://conn_id@bucket/key`, `gs://bucket/key`, `file:///data/x` or `/data/x`.
    :raises OutputError: no installed provider knows the scheme, or the file system cannot be set up.
    """
    from airflow.sdk import ObjectStoragePath

    try:
        path = ObjectStoragePath(url)
        # Set up here, once: some file systems bring their own event loop, which fails inside another one.
        _ = path.fs
    except Exception as error:
        hint = " (pip install 'apache-airflow-providers-amazon[s3fs]')" if url.startswith("s3") else ""
        raise OutputError(f"{url}: this storage cannot be used here{hint}: {error}") from error
    return path


def check_storage(url: str) -> ObjectStoragePath:
    """Return the path of a URL, after a check that its storage can be used.

    :param url: path or URL of a file or folder in it.
    :raises OutputError: see `storage_path`; or the connection in the URL does not exist.
    """
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    path = storage_path(url)
    try:
        if path.conn_id is not None:
            BaseHook.get_connection(path.conn_id)
    except AirflowNotFoundException as error:
        # Some storages would go on without credentials, and fail only when the results are there.
        raise OutputError(
            f"{url}: there is no connection {path.conn_id!r}; create it, or correct the part before @"
        ) from error
    return path


def check_file(url: str) -> None:
    """Check that a file can be written, with every check that leaves no trace.

    In a local file system, this creates the folder and, in it, a hidden file that is deleted. In an object store, this
    checks the bucket only; a write could trigger notifications, and would need the right to delete.

    :param url: path or URL of the file.
    :raises OutputError: it can never be written; see `check_storage` too.
    :raises OSError: it cannot be written now.
    """
    path = check_storage(url)
    if is_object_store(path):
        check_bucket(path)
    elif _is_local(path):
        try:
            # Path.is_dir() hides a name that is too long, from Python 3.14 on.
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISDIR(os.stat(path.path).st_mode):
                    raise IsADirectoryError(errno.EISDIR, "it is a folder")
            _LocalDraft(path.path).drop()
        except OSError as error:
            if error.errno in _LASTING:
                raise OutputError(
                    f"{url} cannot be written on this machine: {error}; correct the path, or the rights on its folder"
                ) from error
            raise


def check_folder(url: str) -> None:
    """Check that files can be written in a folder; see `check_file`.

    :param url: path or URL of the folder.
    """
    check_file(f"{url.rstrip('/')}/any")


class WholeFile:
    """A file to write that appears under its name when the `with` block ends well, and not at all otherwise.

    Folders above it are created where the storage has folders. A file that is there already is replaced.

    :param movable: `path` may change until the block ends. An upload to an object store has its name from the start,
        so its bytes wait in a temporary file of this machine.
    """

    def __init__(self, path: ObjectStoragePath, *, movable: bool = False) -> None:
        self.path = path
        self.bytes = 0
        self._movable = movable
        self._draft: _Draft | None = None

    def __enter__(self) -> Self:
        """Open it."""
        if _is_local(self.path):
            self._draft = _LocalDraft(self.path.path)
        else:
            self._draft = _SpooledUpload() if self._movable else _Upload(self.path)
        return self

    def write(self, data: Any) -> int:
        """Write bytes and return how many; outside the `with` block they are dropped.

        A compressor that was abandoned writes its end when it is collected.
        """
        size = memoryview(data).nbytes
        if self._draft is None:
            return size
        self._draft.file.write(data)
        self.bytes += size
        return size

    def flush(self) -> None:
        """Do nothing, which compressors ask for: the file appears whole."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Publish it; after an error, drop it."""
        draft, self._draft = self._draft, None
        if draft is None:
            return
        if kind is not None:
            draft.drop()
            return
        try:
            draft.publish(self.path)
        except BaseException:
            draft.drop()
            raise


def move_file(source: str, target: str) -> None:
    """Move a file within a storage. A reader of the target sees the old file or the new one.

    :param source: path or URL.
    :param target: path or URL; an existing file is replaced.
    :raises FileNotFoundError: the source does not exist.
    """
    old, new = storage_path(source), storage_path(target)
    if _is_local(new):
        Path(old.path).replace(new.path)
        _sync_folder(Path(new.path).parent)
    else:
        new.fs.cp_file(old.path, new.path)
        new.fs.rm_file(old.path)


class _Draft(Protocol):
    @property
    def file(self) -> Any: ...

    def publish(self, path: ObjectStoragePath) -> None: ...

    def drop(self) -> None: ...


class _LocalDraft:
    def __init__(self, path: str) -> None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent)
        self._draft = Path(name)
        self.file = os.fdopen(handle, "wb", buffering=2**20)

    def publish(self, path: ObjectStoragePath) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        # mkstemp makes its files readable for their owner only; a result gets the usual permissions.
        os.fchmod(self.file.fileno(), 0o666 & ~_umask())
        self.file.close()
        self._draft.replace(path.path)
        _sync_folder(self._draft.parent)

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(FileNotFoundError):
            self._draft.unlink()


class _Upload:
    """An fsspec file that object stores show only once it is committed."""

    def __init__(self, path: ObjectStoragePath) -> None:
        fs = path.fs
        with contextlib.suppress(NotImplementedError, FileExistsError, PermissionError):
            # Object stores have no folders, and must not create a bucket.
            if not is_object_store(path):
                fs.makedirs(fs._parent(path.path), exist_ok=True)
        self.file = fs.open(path.path, "wb", autocommit=False, block_size=_PART_BYTES)
        # fsspec keeps the file for a transaction that never comes.
        with contextlib.suppress(ValueError, AttributeError):
            fs.transaction.files.remove(self.file)

    def publish(self, path: ObjectStoragePath) -> None:  # noqa: ARG002
        self.file.close()
        commit = getattr(self.file, "commit", None)
        if commit is not None:
            commit()

    def drop(self) -> None:
        with contextlib.suppress(Exception):  # the error that led here is the one to raise
            self.file.discard()
        # Else the file would be completed when it is garbage-collected.
        with contextlib.suppress(AttributeError):
            self.file.closed = True


class _SpooledUpload:
    """A temporary file of this machine that is uploaded when its name is known."""

    def __init__(self) -> None:
        self.file: Any = tempfile.TemporaryFile()  # noqa: SIM115

    def publish(self, path: ObjectStoragePath) -> None:
        self.file.seek(0)
        with WholeFile(path) as upload:
            shutil.copyfileobj(self.file, upload, _PART_BYTES)
        self.file.close()

    def drop(self) -> None:
        self.file.close()


def _is_local(path: ObjectStoragePath) -> bool:
    from fsspec.implementations.local import LocalFileSystem

    return isinstance(path.fs, LocalFileSystem)


def _umask() -> int:
    # os.umask() changes it for a moment, for all threads; Linux shows it in /proc.
    with contextlib.suppress(OSError, StopIteration, ValueError):
        status = Path("/proc/self/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("Umask:")).split()[1], 8)
    return 0o022


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
