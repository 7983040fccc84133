"""Canned answers, which a test or demo sets for a page because the sandbox cannot generate them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_webdata.sandbox.reference.errors import UnsupportedHereError
from airflow_provider_webdata.sandbox.reference.scrape_options import format_names, pdf_parser
from airflow_provider_webdata.sandbox.reference.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.sandbox.reference.wire import Json
    from airflow_provider_webdata.sandbox.state.store import Store

    from .media import Media
    from .page import Page

_FILE = "https://files.example/"


@dataclass(frozen=True)
class _Kind:
    """A kind of answer: its type, and how a line of Python writes one."""

    of: type
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
"""The answers that a page can be given, by the field of the document in which they stand."""

_FORMATS = ("screenshot", "audio", "video", "branding", "product", "menu")
"""Formats that only a canned answer, or a file of the page, can meet."""


def needed(options: Json, page: Page | None = None) -> Iterator[str]:
    """Yield the kinds of answers that scrape options ask for and that the sandbox cannot make.

    :param page: the page, if it is known. Only PDFs have blocks.
    """
    yield from (name for name in format_names(options) if name in _FORMATS)
    if any(action["type"] != "wait" for action in options.get("actions", [])):
        yield "actions"
    if page is not None and page.is_pdf and pdf_parser(options).get("blocks"):
        yield "blocks"


class CannedAnswers:
    """The answers that pages were given, their files among them."""

    def __init__(self, store: Store, media: Media) -> None:
        self._store, self._media = store, media

    def put(self, url: str, answers: Json) -> None:
        """Set answers of a page. Those of other kinds stay; None removes one.

        :raises ValueError: a kind is unknown, or an answer of the wrong type.
        """
        for kind, answer in answers.items():
            if not isinstance(answer, (KINDS[kind].of, type(None))):
                raise ValueError(f"{kind} must be like {KINDS[kind].example}, not {answer!r}")
        kept = {**self.of(url), **answers}
        answers = {kind: answer for kind, answer in kept.items() if answer is not None}
        self._store.put("canned", canonical(url), {"answers": answers})

    def of(self, url: str) -> Json:
        """Return the answers of a page, by kind, without its files."""
        kept = self._store.get("canned", canonical(url))
        answers: Json = kept["answers"] if kept else {}
        return answers

    def forget(self, url: str) -> None:
        """Take all answers of a page away."""
        self._store.delete("canned", canonical(url))

    def meet(self, options: Json, page: Page) -> Json:
        """Return the answers of a page that the options need.

        :raises UnsupportedHereError: one is not set. The error explains how to set it.
        """
        canned = self.of(page.url)
        found: Json = {}
        for kind in needed(options, page):
            found[kind] = self._media.link(page.url, kind) or canned.get(kind)
            if found[kind] is None:
                raise _refusal(kind, page.url)
        return found

    def refuse_unknown(self, options: Json, url: str) -> None:
        """Refuse a kind of answer that was set for no page, before anything is scraped.

        :param url: the page that the call is about.
        :raises UnsupportedHereError: saying how to give it to that page.
        """
        known = {
            kind for kept in self._store.list("canned") for kind in kept["answers"]
        } | self._media.kinds()
        for kind in needed(options):
            if kind not in known:
                raise _refusal(kind, url)


def _refusal(kind: str, url: str) -> UnsupportedHereError:
    what = f"make the format {kind!r}" if kind in _FORMATS else f"make {kind!r}"
    line = f'control.set_page("{canonical(url)}", {kind}={KINDS[kind].example})'
    return UnsupportedHereError(f"{what} of a page that was given none. Give the page one: {line}")
