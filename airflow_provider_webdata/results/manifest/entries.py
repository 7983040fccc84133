"""The pages in a manifest, in memory and in its lines."""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import islice
from sys import intern
from typing import TYPE_CHECKING, Literal

import msgspec

from airflow_provider_webdata.results.encoding import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from gzip import GzipFile

Change = Literal["new", "changed", "same", "known", "removed", "failed"]

# In place of a digest: consumers may lack the page, or have other content. A run that sees it emits it.
MAYBE_NEW = "new?"
MAYBE_CHANGED = "changed?"

_BATCH_LINES = 1_000
_BATCH_BYTES = 2**18


class Entry(msgspec.Struct, frozen=True, gc=False):
    """The state of a page after a run, stored in a mapping under the page's key (see `urls.canonical_url`).

    :param url: the page's latest URL in results (see `item_urls.url_of`); None if it equals the key.
    :param digest: digest of the content that consumers have; `MAYBE_NEW` or `MAYBE_CHANGED` if that is uncertain.
    :param status: the site's HTTP status, if the service reports it.
    :param first_seen: time of the first run that saw it, ISO 8601.
    :param last_seen: time of the last run that saw it; if that saw a cached page, the time when it was cached.
    :param changed: time of the last run in which it was new or changed.
    :param missing: number of later runs that could have seen it, but did not.
    :param change: change in the current run; None before the page is seen. Not stored in files.
    :param was_uncertain: True if the run that saw it emitted it because its digest was uncertain. It is uncertain
        again until consumers have that run's results.
    :param found: time of the last run that saw it, if `last_seen` differs.
    """

    url: str | None
    digest: str
    status: int | None
    first_seen: str
    last_seen: str
    changed: str
    missing: int = 0
    change: Change | None = None
    was_uncertain: bool = False
    found: str | None = None

    @property
    def last_found(self) -> str:
        """Time of the last run that saw it."""
        return self.found or self.last_seen


@lru_cache(1_000)
def shared_entry(
    url: str | None,
    digest: str,
    status: int | None,
    first_seen: str,
    last_seen: str,
    changed: str,
    missing: int = 0,
    change: Change | None = None,
    was_uncertain: bool = False,
    found: str | None = None,
) -> Entry:
    """Return an `Entry`; equal values share one object where possible.

    A million links, which have no digests, need only a few entries, and a million pages only a few distinct times.
    """
    times = intern(first_seen), intern(last_seen), intern(changed)
    return Entry(url, digest, status, *times, missing, change, was_uncertain, found and intern(found))


def uncertain(entry: Entry, digest: str, missing: int | None = None) -> Entry:
    """Return an entry with `MAYBE_NEW` or `MAYBE_CHANGED` in place of its digest, and perhaps another `missing`."""
    missing = entry.missing if missing is None else missing
    return shared_entry(
        entry.url,
        digest,
        entry.status,
        entry.first_seen,
        entry.last_seen,
        entry.changed,
        missing,
        found=entry.found,
    )


class _Line(
    msgspec.Struct,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    rename={
        "first_seen": "firstSeen",
        "last_seen": "lastSeen",
        "changed": "lastChange",
        "was_uncertain": "wasUncertain",
    },
):
    url: str
    key: str | None = None
    digest: str
    status: int | bool | None = None
    first_seen: str
    last_seen: str
    changed: str
    missing: int = 0
    was_uncertain: bool = False
    found: str | None = None


_encode = msgspec.json.Encoder().encode_lines
_decode = msgspec.json.Decoder(_Line).decode_lines


def encoded(entries: Mapping[str, Entry]) -> Iterator[bytes]:
    """Yield the pages as lines, in batches."""
    pairs = iter(entries.items())
    while batch := [
        _Line(
            url=entry.url or key,
            key=entry.url and key,
            digest=entry.digest,
            status=entry.status,
            first_seen=entry.first_seen,
            last_seen=entry.last_seen,
            changed=entry.changed,
            missing=entry.missing,
            was_uncertain=entry.was_uncertain,
            found=entry.found,
        )
        for key, entry in islice(pairs, _BATCH_LINES)
    ]:
        yield _joined(batch)


def decoded(file: GzipFile) -> Iterator[tuple[str, Entry]]:
    """Yield the pages of a file with their keys.

    :raises ValueError: a line is not valid JSON.
    :raises msgspec.DecodeError: a value is missing or has the wrong type.
    """
    while lines := file.read(_BATCH_BYTES):
        for line in _lines(lines + file.readline()):
            key = line.key or line.url
            yield (
                key,
                shared_entry(
                    None if key == line.url else line.url,
                    line.digest,
                    line.status,
                    line.first_seen,
                    line.last_seen,
                    line.changed,
                    line.missing,
                    None,
                    line.was_uncertain,
                    line.found,
                ),
            )


def _joined(batch: list[_Line]) -> bytes:
    try:
        return _encode(batch)
    except (UnicodeEncodeError, OverflowError):
        return b"".join(json_text(msgspec.to_builtins(line)).encode() + b"\n" for line in batch)


def _lines(lines: bytes) -> list[_Line]:
    try:
        return _decode(lines)
    except msgspec.DecodeError:
        # msgspec rejects lone surrogates.
        return [msgspec.convert(json.loads(line), _Line) for line in lines.splitlines()]
