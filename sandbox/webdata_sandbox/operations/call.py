# SPDX-License-Identifier: Apache-2.0
"""Input and output of an operation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webdata_sandbox.reference.wire import Json


@dataclass
class Call:
    """A request to the service, with a parsed body.

    ``params`` are the path parameters, ``query_lists`` all values of each query parameter. ``origin`` is the scheme and
    host that the client used. ``headers`` have lowercase names.
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
    """An uploaded file with its options as text, or the error of an invalid form.

    ``content`` is in memory up to 1 MB and on disk beyond. :meth:`close` deletes it.
    """

    filename: str = ""
    content_type: str = ""
    content: IO[bytes] | None = None
    size: int = 0
    sha256: str = ""
    options: str = "{}"
    error: str | None = None

    def to_record(self) -> Json:
        """Return the body to record for this request, without the file content."""
        file = {
            "filename": self.filename,
            "contentType": self.content_type,
            "size": self.size,
            "sha256": self.sha256,
        }
        return {"file": file, "options": self.options, "error": self.error}

    def close(self) -> None:
        """Close the file."""
        if self.content is not None:
            self.content.close()


@dataclass
class Reply:
    """A response: ``body`` is sent as JSON, unless ``raw`` contains the bytes to send."""

    status: int
    body: Json | None = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    content_type: str = "application/json; charset=utf-8"
