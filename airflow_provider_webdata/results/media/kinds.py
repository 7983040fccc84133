# SPDX-License-Identifier: Apache-2.0
"""The content type of a media file, from its Content-Type header and its first bytes."""

from __future__ import annotations

import mimetypes
from typing import Literal

MediaKind = Literal["image", "audio", "video", "pdf"]

# Offset and magic bytes; a longer prefix precedes a shorter one.
_BEGINNINGS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftypqt", "video/quicktime"),
    (4, b"ftyp", "video/mp4"),
    (4, b"styp", "video/mp4"),
    (4, b"moof", "video/mp4"),
    # A transport stream segment begins with the program or service table.
    (0, b"G@\x00", "video/mp2t"),
    (0, b"G@\x11", "video/mp2t"),
    (0, b"\x1a\x45\xdf\xa3", "video/webm"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf2", "audio/mpeg"),
    (0, b"\xff\xfa", "audio/mpeg"),
    (0, b"\xff\xf9", "audio/aac"),
    (0, b"\xff\xf1", "audio/aac"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"<!DOCTYPE", "text/html"),
    (0, b"<!doctype", "text/html"),
    (0, b"<html", "text/html"),
    (0, b"<svg", "image/svg+xml"),
    (0, b"<?xml", "text/xml"),
)
_EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/jpg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/mp4": "m4a",
    "audio/aac": "aac",
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/webm": "weba",
    "video/mp4": "mp4",
    "video/mp2t": "ts",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "application/pdf": "pdf",
}
# Generic types that servers declare for any file.
_ALSO_FOR_FILES = frozenset(
    {"application/octet-stream", "application/x-download", "application/ogg", "application/mp4"}
)

FIRST_BYTES = 16
"""Number of bytes that `type_of` needs."""


def sniffed(first: bytes) -> str | None:
    """Detect the content type from a file's first bytes, or return None."""
    for offset, beginning, content_type in _BEGINNINGS:
        if first[offset : offset + len(beginning)] == beginning:
            return content_type
    return None


def fits(content_type: str, kind: MediaKind) -> bool:
    """Return whether a content type, in lower case and without parameters, matches a kind."""
    if kind == "pdf":
        return content_type in {"application/pdf", "application/x-pdf"}
    # An SVG may contain scripts.
    if content_type == "image/svg+xml":
        return False
    # Audio may be in a container named for video, and vice versa.
    families = {"image": ("image/",), "audio": ("audio/", "video/"), "video": ("video/", "audio/")}[kind]
    return content_type.startswith(families)


def type_of(declared: str, first: bytes, kind: MediaKind) -> str | None:
    """Return the content type of a file, or None if its first bytes do not match the kind.

    :param declared: the server's Content-Type, used only to choose between types with the same first bytes, such as
        audio and video.
    :param first: the file's first bytes.
    """
    declared = declared.partition(";")[0].strip().lower()
    shown = sniffed(first)
    if shown is None or not fits(shown, kind):
        return None
    if declared.startswith(("text/", "application/")) and declared not in _ALSO_FOR_FILES and kind != "pdf":
        return None
    same_container = declared.partition("/")[2] == shown.partition("/")[2]
    return declared if same_container and fits(declared, kind) else shown


def extension_of(content_type: str) -> str:
    """Return the file name suffix of a content type, without the dot."""
    return _EXTENSIONS.get(content_type) or (mimetypes.guess_extension(content_type) or ".bin")[1:]
