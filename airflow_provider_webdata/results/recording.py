"""Storage of a browser session's recording, HLS playlists and segments, before the links expire."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from airflow_provider_webdata.results.media_fetch import MediaError, MediaFetcher
from airflow_provider_webdata.results.media_types import extension_of
from airflow_provider_webdata.results.storage import WholeFile, storage_path

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

    from airflow_provider_webdata.results.media_fetch import MediaSettings

MOST_SEGMENTS = 10_000
"""Maximum segments of one tab: a session lasts at most an hour, with 600 segments of 6 seconds."""

_NAME = re.compile(r"[\w-]{1,64}", re.ASCII)
_URI = re.compile(r'(?<=URI=")[^"]*(?=")')


def folder_of(folder: str, session_id: str) -> str:
    """Return the folder of a session's recording.

    :param folder: path or URL of the folder for media.
    :raises MediaError: the id cannot be part of a path.
    """
    return f"{folder.rstrip('/')}/session-{_checked(session_id)}"


def keep_playlist(playlist: str, base_url: str, folder: str, page_id: str, settings: MediaSettings) -> str:
    """Save the segments of a playlist, then the playlist with links to the saved files; return its path.

    An existing playlist is therefore complete.

    :param playlist: the text of an HLS media playlist.
    :param base_url: address of the playlist, to resolve relative links.
    :param folder: path or URL of the folder for the files.
    :param page_id: base name of the playlist's files.
    :param settings: `max_bytes` limits the total size of all segments.
    :raises MediaError: a segment cannot be saved.
    :raises OutputError: the folder's storage is unavailable on this worker.
    """
    target = storage_path(folder)
    segments = _Segments(
        MediaFetcher(settings), settings.max_bytes, base_url, target, f"page-{_checked(page_id)}"
    )
    try:
        lines = [_kept_line(line.strip(), segments) for line in playlist.splitlines()]
    finally:
        segments.fetcher.close()
    path = target / f"page-{page_id}.m3u8"
    try:
        with WholeFile(path) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise MediaError(f"could not be stored: {type(error).__name__}: {error}") from error
    return str(path)


@dataclass
class _Segments:
    fetcher: MediaFetcher
    room: int
    base_url: str
    folder: ObjectStoragePath
    prefix: str
    names: dict[str, str] = field(default_factory=dict)

    def keep(self, uri: str) -> str:
        """Save the target of a playlist's link; return the name of the file."""
        if uri not in self.names:
            if len(self.names) >= MOST_SEGMENTS:
                raise MediaError(f"has more than {MOST_SEGMENTS} segments")
            stem = f"{self.prefix}-{len(self.names) + 1:05}"
            link = urljoin(self.base_url, uri)
            if not link.startswith(("http://", "https://")):
                raise MediaError("has a segment without an http address")
            kept = self.fetcher.keep(link, "video", lambda kind: self.folder / f"{stem}.{extension_of(kind)}")
            self.room -= kept.size
            if self.room < 0:
                raise MediaError("has more than the bytes allowed")
            self.names[uri] = kept.url.rpartition("/")[2]
        return self.names[uri]


def _kept_line(line: str, segments: _Segments) -> str:
    if line.startswith("#EXT-X-KEY") and "METHOD=NONE" not in line:
        raise MediaError("is encrypted, and its key would expire")
    if line.startswith("#"):
        return _URI.sub(lambda found: segments.keep(found[0]), line)
    return segments.keep(line) if line else line


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise MediaError(f"has an id that cannot be part of a path: {name[:80]!r}")
    return name
