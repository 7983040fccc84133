# SPDX-License-Identifier: Apache-2.0
"""Which file it is, by its host's word and its first bytes."""

from __future__ import annotations

from airflow_provider_webdata.results.media.kinds import extension_of, type_of
from tests.support.tables import each_row

PNG = b"\x89PNG\r\n\x1a\n........"
WEBP = b"RIFF\x00\x00\x00\x00WEBPVP8 "
WAV = b"RIFF\x00\x00\x00\x00WAVEfmt "
MP4 = b"\x00\x00\x00\x18ftypmp42...."
M4A = b"\x00\x00\x00\x18ftypM4A ...."
PDF = b"%PDF-1.7........"
HTML = b"<!doctype html>."
UNKNOWN = b"0123456789abcdef"

TYPES = [
    # said, first bytes, kind, type
    ("image/png", PNG, "image", "image/png"),
    ("IMAGE/PNG; x=y", PNG, "image", "image/png"),
    ("", PNG, "image", "image/png"),
    ("application/octet-stream", WEBP, "image", "image/webp"),
    ("binary/octet-stream", PDF, "pdf", "application/pdf"),
    ("image/x-new", UNKNOWN, "image", None),
    ("image/x-new", PNG, "image", "image/png"),
    ("image/jpeg", PNG, "image", "image/png"),
    ("video/mp4", M4A, "audio", "video/mp4"),
    ("audio/mp3", b"ID3\x04........", "audio", "audio/mpeg"),
    ("audio/webm", b"\x1a\x45\xdf\xa3....", "audio", "audio/webm"),
    ("application/mp4", MP4, "video", "video/mp4"),
    ("", b"OggS........", "audio", "audio/ogg"),
    ("image/svg+xml", b"<svg onload='alert(1)'>", "image", None),
    ("image/svg+xml", b"<?xml version='1.0'?><svg>", "image", None),
    ("image/png", b"<svg/>", "image", None),
    ("audio/mpeg", b"\xff\xfb............", "audio", "audio/mpeg"),
    ("", WAV, "audio", "audio/wav"),
    ("", MP4, "video", "video/mp4"),
    ("", UNKNOWN, "image", None),
    ("text/html", HTML, "image", None),
    ("image/png", HTML, "image", None),
    ("image/png", PDF, "image", None),
    ("application/pdf", PNG, "pdf", None),
    ("text/html", UNKNOWN, "pdf", None),
    ("text/html", PNG, "image", None),
    ("image/png", PNG, "video", None),
    ("", b"", "image", None),
]


@each_row("said, first, kind, expected", TYPES)
def test_type(said, first, kind, expected):
    assert type_of(said, first, kind) == expected


EXTENSIONS = [
    ("image/jpeg", "jpg"),
    ("audio/mpeg", "mp3"),
    ("image/tiff", "tiff"),
    ("audio/webm", "weba"),
    ("image/x-new", "bin"),
]


@each_row("content_type, end", EXTENSIONS)
def test_extension(content_type, end):
    assert extension_of(content_type) == end
