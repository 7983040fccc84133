"""The media in a page's results: links that expire, and files that are in the answer itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_webdata.results.item_paths import at_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.results.media_types import MediaKind

_FIELDS: Mapping[str, MediaKind] = {
    "screenshot": "image",
    "audio": "audio",
    "video": "video",
    "actions.screenshots": "image",
    "actions.pdfs": "pdf",
    "rawBase64": "pdf",
}
# How `%PDF-` begins in base64; what else comes under `rawBase64` is not known to be a file.
_PDF_IN_BASE64 = "JVBERi0"


@dataclass(frozen=True)
class MediaLink:
    """Media in an item.

    :param path: names and positions from the outside in, such as `("actions", "screenshots", 0)`.
    :param kind: what is expected there.
    :param link: an http(s) or `data:` URL, or base64 text.
    :param name: for the kept file, without suffix: the same in every attempt for the same page and path.
    """

    path: tuple[str | int, ...]
    kind: MediaKind
    link: str
    name: str

    @property
    def field(self) -> str:
        """The path as text: `actions.screenshots[0]`."""
        return "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path
        ).removeprefix(".")


def media_links(item: Any) -> Iterator[MediaLink]:
    """Yield the media of an item: a page or a search result, as the service sent it."""
    if not isinstance(item, Mapping):
        return
    for name, kind in _FIELDS.items():
        value, path = at_path(item, name), tuple(name.split("."))
        if name == "rawBase64" and not str(value).startswith(_PDF_IN_BASE64):
            continue
        if isinstance(value, str) and value:
            yield _link(item, path, kind, value)
        elif isinstance(value, list):
            for position, link in enumerate(value):
                if isinstance(link, str) and link:
                    yield _link(item, (*path, position), kind, link)


def _link(item: Mapping[str, Any], path: tuple[str | int, ...], kind: MediaKind, link: str) -> MediaLink:
    suffix = "-".join(str(part) for part in path)
    digest = hashlib.sha256(_page(item, link).encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return MediaLink(path, kind, link, f"{digest}-{suffix}")


def _page(item: Mapping[str, Any], link: str) -> str:
    """Return what tells the page from others and stays the same when it is scraped again.

    The signatures in links change, and so do the ids of scrapes.
    """
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    for value in (metadata.get("sourceURL"), item.get("url"), metadata.get("url"), metadata.get("scrapeId")):
        if isinstance(value, str) and value:
            return value
    return link if link.startswith("data:") else _without_signature(link)


def _without_signature(link: str) -> str:
    try:
        return urlsplit(link)._replace(query="", fragment="").geturl()
    except ValueError:
        return link
