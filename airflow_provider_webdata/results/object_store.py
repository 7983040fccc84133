"""Object stores: which storages are some, and what can be asked of one before there is anything to write."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.results.errors import OutputError

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

log = logging.getLogger(__name__)

_S3 = frozenset({"s3", "s3a", "s3n"})
_PROTOCOLS = _S3 | {"gs", "gcs", "abfs", "abfss", "adl", "az", "wasb", "wasbs", "oss"}
_BAD_CREDENTIALS = frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidClientTokenId"})


def is_object_store(path: ObjectStoragePath) -> bool:
    """Return whether a path leads into an object store: no folders, no renaming."""
    return path.protocol in _PROTOCOLS


def check_bucket(path: ObjectStoragePath) -> None:
    """Check that the bucket of a path is there and answers to these credentials, without writing to it.

    Whoever may write need not be allowed to read: a refusal to answer says nothing.

    :param path: of an object.
    :raises OutputError: there is no such bucket, or the credentials are none.
    :raises Exception: S3 did not answer.
    """
    bucket = path.bucket
    try:
        if path.protocol in _S3:
            # Unlike a HEAD, it is refused with a reason.
            path.fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=path.key, MaxKeys=1)
        else:
            path.fs.info(bucket)
    except FileNotFoundError as error:
        raise OutputError(f"{path}: there is no bucket {bucket!r}; create it, or correct the name") from error
    except Exception as error:
        if (code := _code_of(error)) in _BAD_CREDENTIALS:
            raise OutputError(
                f"{path}: the storage does not know these credentials ({code}); correct the connection"
            ) from error
        if path.protocol in _S3 and not isinstance(error, PermissionError):
            raise
        log.info("%s: bucket %r cannot be looked at beforehand: %s", path, bucket, error)


def _code_of(error: BaseException) -> Any:
    answer = getattr(error.__cause__ or error, "response", None)
    return answer.get("Error", {}).get("Code") if isinstance(answer, dict) else None
