# SPDX-License-Identifier: Apache-2.0
"""Canned answers: values that a test or demo sets for a page because the sandbox cannot generate them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webdata_sandbox.reference.errors import UnsupportedHereError
from webdata_sandbox.reference.scrape_options import format_names, pdf_parser
from webdata_sandbox.reference.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.store import Store

    from .media import Media
    from .page import Page

_FILE = "https://files.example/"
FILES = "file:///"
"""Beginning of the addresses of uploaded files."""


@dataclass(frozen=True)
class _Kind:
    """A kind of answer: the type of its value, and an example in Python."""

    value_type: type
    example: str


KINDS: dict[str, _Kind] = {
    "json": _Kind(object, '{"price": 12}'),
    "answer": _Kind(str, '"12 EUR"'),
    "highlights": _Kind(str, '"The price is 12 EUR."'),
    "screenshot": _Kind(str, f'"{_FILE}page.png"'),
    "audio": _Kind(str, f'"{_FILE}page.mp3"'),
    "video": _Kind(str, f'"{_FILE}page.mp4"'),
    "branding": _Kind(dict, '{"colorScheme": "light"}'),
    "product": _Kind(dict, '{"title": "Kettle", "variants": []}'),
    "menu": _Kind(dict, '{"isMenu": True, "sections": []}'),
    "actions": _Kind(dict, f'{{"screenshots": ["{_FILE}step.png"]}}'),
    "blocks": _Kind(list, '[{"pageNumber": 1, "items": []}]'),
}
"""The kinds of canned answers, by their field in the document."""

_FORMATS = ("screenshot", "audio", "video", "branding", "product", "menu")
"""Formats that need a canned answer or a file of the page."""


def needed(options: Json, page: Page | None = None) -> Iterator[str]:
    """Yield the kinds of canned answers that scrape options require.

    :param page: the page, if known. Only PDFs have blocks.
    """
    yield from (name for name in format_names(options) if name in _FORMATS)
    if any(action["type"] != "wait" for action in options.get("actions", [])):
        yield "actions"
    if page is not None and page.is_pdf and pdf_parser(options).get("blocks"):
        yield "blocks"


class CannedAnswers:
    """The canned answers of pages, including files."""

    def __init__(self, store: Store, media: Media) -> None:
        self._store, self._media = store, media

    def put(self, url: str, answers: Json) -> None:
        """Set answers of a page. Answers of other kinds are unchanged; None removes one.

        :raises ValueError: an answer has the wrong type.
        """
        for kind, answer in answers.items():
            if not isinstance(answer, (KINDS[kind].value_type, type(None))):
                raise ValueError(f"{kind} must be like {KINDS[kind].example}, not {answer!r}")
        merged = {**self.get(url), **answers}
        answers = {kind: answer for kind, answer in merged.items() if answer is not None}
        self._store.put("canned", canonical(url), {"answers": answers})

    def get(self, url: str) -> Json:
        """Return the answers of a page, by kind, without its files."""
        stored = self._store.get("canned", canonical(url))
        answers: Json = stored["answers"] if stored else {}
        return answers

    def forget(self, url: str) -> None:
        """Remove all answers of a page."""
        self._store.delete("canned", canonical(url))

    def meet(self, options: Json, page: Page, address: str) -> Json:
        """Return the answers of a page or a file that the options require.

        :param address: its URL, or :func:`address_of_file`.
        :raises UnsupportedHereError: an answer is not set; the error explains how to set it.
        """
        canned = self.get(address)
        found: Json = {}
        for kind in needed(options, page):
            found[kind] = self._media.link(address, kind) or canned.get(kind)
            if found[kind] is None:
                raise _refusal(kind, address)
        return found

    def refuse_unknown(self, options: Json, url: str) -> None:
        """Refuse, before anything is scraped, kinds of answers that no page has.

        :param url: the requested page.
        :raises UnsupportedHereError: no page has an answer; the error explains how to set it.
        """
        known = {
            kind for stored in self._store.list("canned") for kind in stored["answers"]
        } | self._media.kinds()
        for kind in needed(options):
            if kind not in known:
                raise _refusal(kind, url)


def address_of_file(name: str) -> str:
    """Return the address under which an uploaded file has answers, such as ``file:///report.pdf``."""
    return FILES + name


def _refusal(kind: str, url: str) -> UnsupportedHereError:
    what = f"the format {kind!r}" if kind in _FORMATS else repr(kind)
    line = f'control.set_page("{canonical(url)}", {kind}={KINDS[kind].example})'
    return UnsupportedHereError(f"generate {what}. Set it for the page: {line}")
