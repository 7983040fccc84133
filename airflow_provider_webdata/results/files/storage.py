# SPDX-License-Identifier: Apache-2.0
"""Atomic file writes: a reader sees the old file or the new file, never a partial one.

On a local file system, the bytes are written to a hidden file in the same folder, which is renamed after it is complete
and synced to disk. In an object store, they are written to an upload that is visible only once completed. Leftovers of
a killed process (the hidden file, parts of an upload) are invisible to readers.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import secrets
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.results.errors import MissingFileError, OutputError, StorageError
from airflow_provider_webdata.results.files.paths import path_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import IO

    from airflow.sdk import ObjectStoragePath
    from typing_extensions import Self

log = logger(__name__)

_S3 = frozenset({"s3", "s3a", "s3n"})
_OBJECT_STORES = _S3 | {"gs", "gcs", "abfs", "abfss", "adl", "az", "wasb", "wasbs", "oss"}
_BAD_CREDENTIALS = frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidClientTokenId"})

# Object stores accept at most 10,000 parts of at least 5 MiB: this allows files of up to 78 GiB with 8 MiB of memory.
_PART_BYTES = 8 * 2**20

# JSON of pages shrinks to about a quarter; higher levels save little and are slow.
_GZIP_LEVEL = 6

# A disk without space still creates empty files.
_PROBE_BYTES = 2**20

# Errors that persist until a user fixes the cause.
_LASTING = frozenset(
    {errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EROFS, errno.ENAMETOOLONG}
)

_NEXT_STEPS = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
        "Free space, or raise the quota, on the machine that runs the task",
    ),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "Correct its permissions"),
    **dict.fromkeys((errno.ENOTDIR, errno.EISDIR, errno.EEXIST), "Correct the path"),
    errno.ENAMETOOLONG: "Shorten the path",
    **dict.fromkeys(
        (errno.EMFILE, errno.ENFILE), "Raise the limit of open files on the machine that runs the task"
    ),
    errno.ENOENT: "Create its folder or bucket, or correct the path",
}
_CREDENTIALS = "Renew the credentials of the connection"
_REGION = "Set the bucket's region in the connection"
_CERTIFICATE_VARIABLES = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")

_STEPS_BY_CODE = {
    "NoSuchBucket": "Create the bucket, or correct the path",
    "InvalidBucketName": "Correct the bucket's name",
    # s3fs raises FileNotFoundError, as for a bucket.
    "NoSuchUpload": "Something aborted the upload, such as a lifecycle rule of the bucket; a new attempt begins one",
    **dict.fromkeys(
        (*_BAD_CREDENTIALS, "ExpiredToken", "InvalidToken", "TokenRefreshRequired"), _CREDENTIALS
    ),
    **dict.fromkeys(("PermanentRedirect", "AuthorizationHeaderMalformed"), _REGION),
    "RequestTimeTooSkewed": "Set the clock of the machine that runs the task",
    "InvalidObjectState": "Restore the object from its archive",
}
"""The next steps by codes of S3."""


@contextlib.contextmanager
def storage_errors(url: str, what: str = "written") -> Iterator[None]:
    """Translate the errors of a storage within this block, except for a missing file.

    :param url: path or URL of the file or folder.
    :param what: past participle of the operation.
    :raises StorageError: the storage failed.
    """
    try:
        yield
    except (CodedError, FileNotFoundError):
        raise
    except Exception as error:
        raise storage_error(url, error, what) from error


def storage_error(url: object, error: Exception, what: str = "written") -> Exception:
    """Return an error with a code, the path, and the next step for any error of a storage; see `storage_errors`."""
    if isinstance(error, CodedError):
        return error
    code = error.errno if isinstance(error, OSError) else None
    if code is None:
        # Object stores set no number.
        numbers: dict[type, int] = {FileNotFoundError: errno.ENOENT, PermissionError: errno.EACCES}
        code = numbers.get(type(error))
    step = _STEPS_BY_CODE.get(_s3_code(error) or "") or _NEXT_STEPS.get(code or 0)
    step = step or _missing_certificates() or "Check that the storage is available"
    reason = plain_reason(error)
    kind = StorageError
    if code == errno.ENOENT and what == "read" and _s3_code(error) != "NoSuchBucket":
        kind, step = MissingFileError, "Create the file, or correct the path"
    return kind(f"{url} cannot be {what}: {reason.removesuffix('.')}. {step}")


def _missing_certificates() -> str | None:
    """Return the next step if a variable by which libraries of storages find certificates names a missing path."""
    for name in _CERTIFICATE_VARIABLES:
        if (path := os.environ.get(name)) and not os.path.exists(path):
            return (
                f"The environment variable {name} names {path!r}, which does not exist; correct or unset it"
            )
    return None


def _s3_code(error: BaseException) -> str | None:
    """Return the code of S3's error response, or None."""
    answer = getattr(error.__cause__ or error, "response", None)
    return answer.get("Error", {}).get("Code") if isinstance(answer, dict) else None


def storage_path(url: str) -> ObjectStoragePath:
    """Return the path of a URL, on a file system that Airflow can create on this worker.

    :param url: such as `s3://conn_id@bucket/key`, `gs://bucket/key`, `file:///data/x`, or `/data/x`.
    :raises OutputError: the URL is ambiguous (see `paths.path_problem`), no installed provider supports the scheme, or
        the file system cannot be created.
    """
    from airflow.sdk import ObjectStoragePath

    if problem := path_problem(url):
        raise OutputError(f"{url}: {problem}")
    try:
        path = ObjectStoragePath(url)
        # Created here, once: some file systems use their own event loop, which fails inside another one.
        _ = path.fs
    except Exception as error:
        hint = " (pip install 'apache-airflow-providers-amazon[s3fs]')" if url.startswith("s3") else ""
        raise OutputError(f"{url}: this storage is unavailable on this worker{hint}: {error}") from error
    return path


def check_storage(url: str) -> ObjectStoragePath:
    """Check the storage of a URL, and return its path.

    :param url: path or URL of a file or folder.
    :raises OutputError: see `storage_path`; or the connection in the URL does not exist.
    """
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    path = storage_path(url)
    try:
        if path.conn_id is not None:
            BaseHook.get_connection(path.conn_id)
    except AirflowNotFoundException as error:
        # Some storages would continue without credentials, and fail only after the results are billed.
        raise OutputError(
            f"{url}: connection {path.conn_id!r} does not exist; create it, or correct the part before @"
        ) from error
    return path


def check_file(url: str, *, movable: bool = False) -> None:
    """Check that a file can be written, without side effects on existing data.

    In a local file system, this creates the folder and writes 1 MiB to a temporary hidden file. In S3, this begins an
    upload, as a write does, and aborts it: no object appears, and no notification is sent. In other object stores, this
    checks only the bucket, and in other storages nothing.

    :param url: path or URL of the file.
    :param movable: see `WholeFile`; this also checks the folder of temporary files.
    :raises OutputError: the file can never be written; see also `check_storage`.
    :raises StorageError: the file temporarily cannot be written.
    """
    path = check_storage(url)
    if movable and not _is_local(path):
        _check_temporary_folder()
    with storage_errors(url):
        if path.protocol in _OBJECT_STORES:
            _check_bucket(path)
            if path.protocol in _S3:
                _check_upload(path)
        elif _is_local(path):
            try:
                _probe(path.path)
            except OSError as error:
                if error.errno in _LASTING:
                    raise OutputError(
                        f"{url} cannot be written on this machine: {plain_reason(error)}; correct the path, "
                        "or its folder's permissions"
                    ) from error
                raise storage_error(url, error) from error


def _probe(path: str) -> None:
    folder = Path(path).parent
    # Only an existing folder rejects a name that is too long.
    folder.mkdir(parents=True, exist_ok=True)
    # From Python 3.14, Path.is_dir() hides that error.
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        around = folder.stat()
        may_replace = (found.st_uid, around.st_uid, 0)
        if around.st_mode & stat.S_ISVTX and os.geteuid() not in may_replace:
            raise PermissionError(errno.EPERM, "another user's file in a sticky folder cannot be replaced")
    file, draft = _open_draft(path)
    try:
        with file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        draft.unlink()


def _check_temporary_folder() -> None:
    with _temporary_folder_errors(), tempfile.TemporaryFile() as file:
        file.write(bytes(_PROBE_BYTES))
        file.flush()


@contextlib.contextmanager
def _temporary_folder_errors() -> Iterator[None]:
    """Translate the errors of the temporary folder, whose path is not that of the file to write."""
    try:
        yield
    except OSError as error:
        folder = tempfile.tempdir or os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - only named
        raise StorageError(
            f"The temporary folder {folder}, where results are checked before they are uploaded, cannot be written: "
            f"{plain_reason(error).removesuffix('.')}. Free space there, correct its permissions, or set TMPDIR to "
            "another folder on the worker"
        ) from error


def check_folder(url: str) -> None:
    """Check that files can be written in a folder; see `check_file`."""
    # A name that no user gives to a folder.
    check_file(f"{url.rstrip('/')}/.webdata-check")


class WholeFile:
    """A file to write that appears under its name only if the `with` block ends without an error.

    Parent folders are created if the storage has folders. An existing file is replaced. Opening, writing, and
    publishing raise `StorageError`.

    :param movable: `path` may change until the block ends. An upload to an object store has a fixed name from the
        start, so its bytes are first written to a local temporary file.
    """

    def __init__(self, path: ObjectStoragePath, *, movable: bool = False) -> None:
        self.path = path
        self.bytes = 0
        draft: Callable[[WholeFile], AbstractContextManager[Any]]
        draft = _local if _is_local(path) else _spooled_upload if movable else _upload
        self._draft = draft(self)
        self._file: Any = None

    def __enter__(self) -> Self:
        """Open it."""
        try:
            self._file = self._draft.__enter__()
        except Exception as error:
            raise storage_error(self.path, error) from error
        return self

    def write(self, data: Any) -> int:
        """Write bytes and return their number; outside the `with` block they are discarded.

        An abandoned compressor writes its trailer when it is garbage-collected.
        """
        size = memoryview(data).nbytes
        if self._file is not None:
            try:
                self._file.write(data)
            except Exception as error:
                raise storage_error(self.path, error) from error
            self.bytes += size
        return size

    def flush(self) -> None:
        """Do nothing; required by compressors."""

    def __exit__(self, *error: Any) -> None:
        """Publish the file; after an error, discard it."""
        self._file = None
        try:
            self._draft.__exit__(*error)
        except Exception as problem:
            # After an error, this is that error.
            if any(error):
                raise
            raise storage_error(self.path, problem) from problem


def compressed(file: WholeFile | IO[bytes], level: int = _GZIP_LEVEL) -> gzip.GzipFile:
    """Return a gzip file that writes to an open file. It is deterministic: its header has no name and no time."""
    return gzip.GzipFile(filename="", mode="wb", compresslevel=level, fileobj=file, mtime=0)


def is_file(url: str) -> bool:
    """Return whether a file exists, as far as its storage tells."""
    with contextlib.suppress(Exception):
        path = storage_path(url)
        # Some storages cache listings.
        path.fs.invalidate_cache()
        return bool(path.fs.isfile(path.path))
    return False


@contextlib.contextmanager
def _local(whole: WholeFile) -> Iterator[IO[bytes]]:
    """Open a hidden file in the same folder, which is renamed after it is complete and synced to disk."""
    file, draft = _open_draft(whole.path.path)
    try:
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        draft.replace(whole.path.path)
        _sync_folder(draft.parent)
    except BaseException:
        # Raise the original error, not one from flushing the buffer.
        with contextlib.suppress(OSError):
            file.close()
        draft.unlink(missing_ok=True)
        raise


def _open_draft(path: str) -> tuple[IO[bytes], Path]:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # With up to four bytes per character, the name is short enough for any file system.
    draft = target.parent / f".{target.name[:50]}.{secrets.token_hex(8)}.part"
    return draft.open("xb", buffering=2**20), draft


@contextlib.contextmanager
def _upload(whole: WholeFile) -> Iterator[Any]:
    """Open an fsspec file that is visible in object stores only once committed."""
    path, fs = whole.path, whole.path.fs
    with contextlib.suppress(NotImplementedError, FileExistsError, PermissionError):
        # Object stores have no folders, and must not create a bucket.
        if path.protocol not in _OBJECT_STORES:
            fs.makedirs(path.parent.path, exist_ok=True)
    file = fs.open(path.path, "wb", autocommit=False, block_size=_PART_BYTES)
    # fsspec registers the file for a transaction that never commits.
    with contextlib.suppress(ValueError, AttributeError):
        fs.transaction.files.remove(file)
    try:
        yield file
        file.close()
        getattr(file, "commit", lambda: None)()
    except BaseException:
        with contextlib.suppress(Exception):  # raise the original error
            file.discard()
        # Otherwise garbage collection would complete the file.
        with contextlib.suppress(AttributeError):
            file.closed = True
        raise


@contextlib.contextmanager
def _spooled_upload(whole: WholeFile) -> Iterator[Any]:
    """Open a local temporary file that is uploaded once its name is final."""
    with _temporary_folder_errors():
        spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
    with spool:
        yield _Spool(spool)
        with _temporary_folder_errors():
            spool.seek(0)
        with _upload(whole) as file:
            shutil.copyfileobj(spool, file, _PART_BYTES)


class _Spool:
    """The file interface of a temporary file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: Any) -> None:
        with _temporary_folder_errors():
            self._file.write(data)


def _is_local(path: ObjectStoragePath) -> bool:
    from fsspec.implementations.local import LocalFileSystem

    return isinstance(path.fs, LocalFileSystem)


def _check_bucket(path: ObjectStoragePath) -> None:
    """Check that a bucket exists and accepts the credentials, without writing to it.

    Write access does not imply read access, so a denied read is not an error.
    """
    try:
        if path.protocol in _S3:
            # Unlike a HEAD request, its error has a reason.
            path.fs.call_s3("list_objects_v2", Bucket=path.bucket, Prefix=path.key, MaxKeys=1)
        else:
            path.fs.info(path.bucket)
    except FileNotFoundError as error:
        raise _no_bucket(path) from error
    except Exception as error:
        code = _s3_code(error)
        if code in _BAD_CREDENTIALS:
            raise OutputError(
                f"{path}: the storage rejects the credentials ({code}); correct the connection"
            ) from error
        if path.protocol in _S3 and not isinstance(error, PermissionError):
            raise
        log.info(
            "%s: bucket %r cannot be checked before the write (%s). The task continues",
            path,
            path.bucket,
            error,
        )


def _check_upload(path: ObjectStoragePath) -> None:
    """Check that an upload to S3 may begin, and leave nothing behind."""
    fs, place = path.fs, {"Bucket": path.bucket, "Key": path.key}
    try:
        upload = fs.call_s3("create_multipart_upload", **place)
    except FileNotFoundError as error:
        raise _no_bucket(path) from error
    except Exception as error:
        code = _s3_code(error)
        if code in _STEPS_BY_CODE or not isinstance(error, OSError) or error.errno not in (None, *_LASTING):
            raise
        if error.errno is None and not isinstance(error, PermissionError):
            raise
        advice = (
            "shorten the key"
            if error.errno == errno.ENAMETOOLONG
            else "allow the connection s3:PutObject there, or correct the path"
        )
        raise OutputError(f"{path}: the storage refuses to begin an upload ({code}); {advice}") from error
    try:
        fs.call_s3("abort_multipart_upload", **place, UploadId=upload["UploadId"])
    except Exception as error:  # noqa: BLE001 - an upload without parts stores nothing
        log.info(
            "%s: the upload that was begun as a check could not be aborted (%s)", path, plain_reason(error)
        )


def _no_bucket(path: ObjectStoragePath) -> OutputError:
    return OutputError(f"{path}: bucket {path.bucket!r} does not exist; create it, or correct the name")


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
