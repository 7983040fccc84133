# SPDX-License-Identifier: Apache-2.0
"""Download of screenshots, audio, video, and PDFs before their links expire.

Links to screenshots expire after 24 hours, and links to audio and video after one hour
(sandbox/docs/service.md#document-media-expires). Each file is written to the configured folder under a
name that is the same in every attempt, and its URL replaces the item's link. The item's key `keptMedia` has the outcome
of each link.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from itertools import islice
from operator import getitem
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.common.url_secrets import without_secrets
from airflow_provider_webdata.results.files.storage import storage_path
from airflow_provider_webdata.results.item_paths import at_path
from airflow_provider_webdata.results.media.fetch import (
    CONCURRENCY,
    MediaError,
    MediaFetcher,
    MediaSettings,
    StoredMedia,
)
from airflow_provider_webdata.results.media.kinds import extension_of

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

    from airflow_provider_webdata.results.media.kinds import MediaKind

_FIELDS: Mapping[str, MediaKind] = {
    "screenshot": "image",
    "audio": "audio",
    "video": "video",
    "actions.screenshots": "image",
    "actions.pdfs": "pdf",
    "rawBase64": "pdf",
}
# `%PDF-` in base64. Other content of `rawBase64` may not be a file.
_PDF_IN_BASE64 = "JVBERi0"

KEPT_MEDIA = "keptMedia"
# Number of items whose files are fetched concurrently, before the next items are read.
_ITEMS_AT_ONCE = 16
REPORTED_ERRORS = 20


@dataclass(frozen=True)
class _MediaLink:
    """A link to media in an item.

    :param path: path of keys and indexes in the item, such as `("actions", "screenshots", 0)`.
    :param kind: expected kind of media.
    :param link: an http(s) or `data:` URL, or base64 text.
    :param name: name of the kept file without suffix, the same in every attempt for the same page and path.
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


@dataclass
class MediaReport:
    """Number and total bytes of kept media files, number of failed files, and errors of the first 20."""

    kept: int = 0
    bytes: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list)

    def to_wire(self) -> dict[str, Any]:
        """Return the report as pushed to XCom."""
        return asdict(self)


def keep_media(
    items: Iterable[Any],
    folder: str,
    settings: MediaSettings,
    report: MediaReport | None = None,
    names: dict[str, str] | None = None,
) -> Iterator[Any]:
    """Download the media of items, and yield the items in order with the links replaced.

    Items are not changed in place. Items without media, and those that this function returned, are yielded unchanged.
    `keptMedia` has for each file `field`
    (the path of the link), `source` (the original link; `data:` for a file embedded in the response), and either `url`,
    `contentType`, and `bytes`, or `error`. The link of a failed file is unchanged.

    :param items: pages or search results, as the service sent them; consumed a few at a time.
    :param folder: path or URL of the folder for the files; see `storage.storage_path`.
    :param report: counts of all items' media, updated.
    :param names: names of the files that the task has kept, with digests of their links, updated. Other media of the
        same page gets another name.
    :raises OutputError: the folder's storage is unavailable here.
    """
    report = report if report is not None else MediaReport()
    names = names if names is not None else {}
    target = storage_path(folder)
    fetcher = MediaFetcher(settings)
    pool = ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="keep-media")
    try:
        remaining = iter(items)
        while batch := list(islice(remaining, _ITEMS_AT_ONCE)):
            wanted = [[_distinct(link, names) for link in _media_links(item)] for item in batch]
            fetched = [[pool.submit(_kept, fetcher, link, target) for link in links] for links in wanted]
            for item, links, futures in zip(batch, wanted, fetched, strict=True):
                if not links:
                    yield item
                    continue
                outcomes = [future.result() for future in futures]
                yield _rewritten(item, links, outcomes, report)
    finally:
        fetcher.stop()
        pool.shutdown(cancel_futures=True)
        fetcher.close()


def _kept(fetcher: MediaFetcher, link: _MediaLink, folder: ObjectStoragePath) -> StoredMedia | MediaError:
    def path_for(content_type: str) -> ObjectStoragePath:
        return folder / f"{link.name}.{extension_of(content_type)}"

    try:
        return fetcher.keep(link.link, link.kind, path_for)
    except MediaError as error:
        return error
    except Exception as error:  # noqa: BLE001 - no storage error may cost the page's content
        return MediaError(f"could not be stored: {type(error).__name__}: {plain_reason(error)}")


def _rewritten(
    item: Mapping[str, Any],
    links: list[_MediaLink],
    outcomes: list[StoredMedia | MediaError],
    report: MediaReport,
) -> dict[str, Any]:
    touched = {str(link.path[0]) for link in links}
    changed: Any = {name: copy.deepcopy(value) if name in touched else value for name, value in item.items()}
    records = []
    for link, outcome in zip(links, outcomes, strict=True):
        in_answer = not link.link.startswith(("http://", "https://"))
        record: dict[str, Any] = {"field": link.field, "source": "data:" if in_answer else link.link}
        if isinstance(outcome, StoredMedia):
            record |= {"url": outcome.url, "contentType": outcome.content_type, "bytes": outcome.size}
            reduce(getitem, link.path[:-1], changed)[link.path[-1]] = outcome.url
            report.kept += 1
            report.bytes += outcome.size
        else:
            record["error"] = outcome.brief()
            report.failed += 1
            if len(report.errors) < REPORTED_ERRORS:
                report.errors.append(f"{link.field} of {_page_of(item)} {outcome}")
        records.append(record)
    return {**changed, KEPT_MEDIA: records}


def _page_of(item: Mapping[str, Any]) -> str:
    metadata = item.get("metadata")
    address = metadata.get("sourceURL") if isinstance(metadata, Mapping) else None
    return without_secrets(str(address or item.get("url") or "a page without URL"))


def _media_links(item: Any) -> Iterator[_MediaLink]:
    """Yield the media of an item: a page or a search result, as the service sent it."""
    if not isinstance(item, Mapping) or KEPT_MEDIA in item:
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


def _link(item: Mapping[str, Any], path: tuple[str | int, ...], kind: MediaKind, link: str) -> _MediaLink:
    suffix = "-".join(str(part) for part in path)
    return _MediaLink(path, kind, link, f"{_digest(_identity(item, link))[:24]}-{suffix}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _distinct(link: _MediaLink, names: dict[str, str]) -> _MediaLink:
    """Return a link whose file has no name that other media of the task has."""
    digest = _digest(link.link)[:8]
    return (
        link if names.setdefault(link.name, digest) == digest else replace(link, name=f"{link.name}-{digest}")
    )


def _identity(item: Mapping[str, Any], link: str) -> str:
    """Return an identifier of the page that stays the same when the page is scraped again.

    Signatures in links and scrape ids change.
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
