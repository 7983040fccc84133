"""The input and the output of an operation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.sandbox.reference.wire import Json


@dataclass
class Call:
    """One request to the service, its body already parsed.

    ``params`` are the parts of the path, ``query_lists`` all values of each name of the query, ``origin`` the scheme
    and host the caller used, ``headers`` have names in lower case.
    """

    method: str
    path: str
    params: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    origin: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query_lists: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass
class Upload:
    """The body of a call that sends a file: the file, the options as text, or the form's error.

    ``content`` is a file in memory up to 1 MB and on disk beyond; it is gone after :meth:`close`.
    """

    filename: str = ""
    content_type: str = ""
    content: IO[bytes] | None = None
    size: int = 0
    sha256: str = ""
    options: str = "{}"
    error: str | None = None

    def to_record(self) -> Json:
        """Return its entry for the record of requests, which never contains the file."""
        file = {
            "filename": self.filename,
            "contentType": self.content_type,
            "size": self.size,
            "sha256": self.sha256,
        }
        return {"file": file, "options": self.options, "error": self.error}

    def close(self) -> None:
        """Let go of the file."""
        if self.content is not None:
            self.content.close()


@dataclass
class Reply:
    """One answer: ``body`` is sent as JSON, unless ``raw`` holds the bytes to send."""

    status: int
    body: Json | None = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    content_type: str = "application/json; charset=utf-8"
