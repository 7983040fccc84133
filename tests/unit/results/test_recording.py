"""The lines of a playlist, and the files that they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.results import recording
from airflow_provider_webdata.results.media_fetch import MediaError, MediaSettings, StoredMedia
from airflow_provider_webdata.results.recording import folder_of, keep_playlist

BASE = "https://service.example/v2/interact/s/replay/0"


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the links that are fetched; each leads to a file of 100 bytes."""
    links: list[str] = []

    class Fetcher:
        def __init__(self, settings: MediaSettings) -> None:
            pass

        def keep(self, link: str, kind: str, path_for: Callable[[str], Any]) -> StoredMedia:
            links.append(link)
            return StoredMedia(str(path_for("video/mp2t")), "video/mp2t", 100)

        def close(self) -> None:
            pass

    monkeypatch.setattr(recording, "MediaFetcher", Fetcher)
    return links


def kept(folder: Path, *lines: str, max_bytes: int = 1000) -> str:
    playlist = "\n".join(["#EXTM3U", *lines])
    path = keep_playlist(playlist, BASE, str(folder), "0", MediaSettings(max_bytes=max_bytes))
    return Path(path).read_text()


def test_links_become_names(tmp_path: Path, fetched: list[str]) -> None:
    """A relative link, one in a tag, and one that occurs twice."""
    text = kept(
        tmp_path,
        '#EXT-X-MAP:URI="https://files.example/init",BYTERANGE="9@0"',
        "#EXT-X-KEY:METHOD=NONE",
        "#EXTINF:6,",
        "a.ts\r",
        "",
        "https://files.example/b.ts?signature=s",
        "a.ts",
    )
    assert text.splitlines() == [
        "#EXTM3U",
        '#EXT-X-MAP:URI="page-0-00001.ts",BYTERANGE="9@0"',
        "#EXT-X-KEY:METHOD=NONE",
        "#EXTINF:6,",
        "page-0-00002.ts",
        "",
        "page-0-00003.ts",
        "page-0-00002.ts",
    ]
    base = "https://service.example/v2/interact/s/replay"
    assert fetched == ["https://files.example/init", f"{base}/a.ts", "https://files.example/b.ts?signature=s"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('#EXT-X-KEY:METHOD=AES-128,URI="https://files.example/key"', "encrypted"),
        ("file:///etc/passwd", "without an http address"),
        ("data:video/mp4;base64,AAAA", "without an http address"),
    ],
)
def test_what_is_not_kept(tmp_path: Path, fetched: list[str], line: str, reason: str) -> None:
    with pytest.raises(MediaError, match=reason):
        kept(tmp_path, line)
    assert fetched == []
    assert [*tmp_path.iterdir()] == []


def test_limits(tmp_path: Path, fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{number}.ts" for number in range(5)]
    with pytest.raises(MediaError, match="bytes allowed"):
        kept(tmp_path, *lines, max_bytes=350)
    monkeypatch.setattr(recording, "MOST_SEGMENTS", 3)
    with pytest.raises(MediaError, match="more than 3 segments"):
        kept(tmp_path, *lines)


@pytest.mark.parametrize("name", ["..", "a/b", "", "x" * 65, "ä"])
def test_ids_stay_in_the_folder(tmp_path: Path, fetched: list[str], name: str) -> None:
    with pytest.raises(MediaError, match="part of a path"):
        folder_of("/media", name)
    with pytest.raises(MediaError, match="part of a path"):
        keep_playlist("#EXTM3U\na.ts", BASE, str(tmp_path), name, MediaSettings())
    assert fetched == []
