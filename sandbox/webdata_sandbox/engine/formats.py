# SPDX-License-Identifier: Apache-2.0
"""The formats of a scraped page: conversions of its markup, and substitutes for a language model."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webdata_sandbox.reference.scrape_options import (
    format_names,
    parses_pdfs,
    pdf_parser,
    type_of,
)

from . import html as markup
from .structured_data import json_format
from .words import sentences, sentences_about

if TYPE_CHECKING:
    from collections.abc import Callable

    from lxml.html import HtmlElement

    from webdata_sandbox.reference.wire import Json

    from .page import Page

SUMMARY = "The sandbox has no language model: summary consists of the page's first sentences."
SENTENCES = (
    "The sandbox has no language model: {field} has the page's sentences that share a word with the {option}."
)
NO_SENTENCE = (
    "The sandbox has no language model, and no sentence of the page shares a word with the {option}."
)
PAGE_BREAK = "\f"

_MARKUP = ("markdown", "html", "rawHtml", "links", "images")
_AROUND = markup.selector(
    "header, nav, footer, aside, form, dialog, [role=navigation], [role=banner], [role=contentinfo], "
    "[role=complementary], [role=dialog]"
)
_DATA_IMAGE = re.compile(r"!\[([^\]]*)\]\(data:image/[^)]*\)")


def produce(page: Page, options: Json, sections: list[str], canned: Json) -> Json:
    """Generate the requested formats of a page, with a ``warning`` about substitutes for a language model.

    :param sections: the pages of a PDF to read.
    :param canned: the page's canned answers; they take precedence.
    """
    document = _from_markup(page, options, sections)
    if sections:
        page = replace(page, markdown=PAGE_BREAK.join(sections))
    notes: list[str] = []
    for item in options.get("formats", []):
        name = type_of(item)
        field = "answer" if name == "question" else name
        if field in canned:
            document[field] = canned[field]
        elif name in _GENERATORS:
            document[field], note = _GENERATORS[name](page, item if isinstance(item, dict) else {})
            notes.extend([note] if note else [])
    if sections and pdf_parser(options).get("pages"):
        document["pages"] = [
            {"pageNumber": number, "markdown": section.strip()} for number, section in enumerate(sections, 1)
        ]
    if notes:
        document["warning"] = " ".join(notes)
    return document


def _from_markup(page: Page, options: Json, sections: list[str]) -> Json:
    names = [name for name in format_names(options) if name in _MARKUP]
    filtered = options.get("includeTags") or options.get("excludeTags")
    # A page stored as markdown is parsed only if a format needs the tree.
    untouched = page.markdown is not None and not filtered and "html" not in names
    chosen = markup.together([]) if untouched else content(page, options)
    text = markdown_of(page, options, chosen, sections)
    return {name: _format(name, page, chosen, text) for name in names}


def _format(name: str, page: Page, chosen: HtmlElement, text: str) -> Any:
    if name == "markdown":
        return text
    if name == "links":
        return page.links
    if name == "images":
        return list(dict.fromkeys(picture.url for picture in page.pictures))
    if page.is_pdf:
        return None
    return page.html if name == "rawHtml" else markup.to_html(chosen)


def markdown_of(page: Page, options: Json, chosen: HtmlElement, sections: list[str]) -> str:
    """Return the markdown of a page under the options."""
    filtered = options.get("includeTags") or options.get("excludeTags")
    if page.is_pdf and not parses_pdfs(options):
        # The sandbox's PDFs exist only as text.
        return base64.b64encode((page.markdown or "").encode()).decode()
    if sections:
        text = _joined(sections, markers=pdf_parser(options).get("pageMarkers", False))
    elif page.markdown is not None and not filtered:
        text = page.markdown
    else:
        text = markup.to_markdown(chosen, page.url)
    if options.get("removeBase64Images", True):
        text = _DATA_IMAGE.sub(r"![\1](<Base64-Image-Removed>)", text)
    return text


def _joined(sections: list[str], *, markers: bool) -> str:
    """Join the pages of a PDF; each marker has the number of the page after it."""
    first, *others = (section.strip() for section in sections)
    between = (f"---\n\n<!-- Page {number} -->\n\n" if markers else "" for number, _ in enumerate(others, 2))
    return "\n\n".join([first, *(mark + text for mark, text in zip(between, others, strict=True))])


def content(page: Page, options: Json) -> HtmlElement:
    """Return the part of the page that the options select, without invisible elements."""
    body = next(markup.visible(page.tree).iter("body"))
    if options.get("excludeTags"):
        markup.drop(markup.selector(",".join(options["excludeTags"]))(body))
    if options.get("includeTags"):
        return markup.together(markup.selector(",".join(options["includeTags"]))(body))
    if not options.get("onlyMainContent", True):
        return body
    root = next(body.iter("main"), body)
    markup.drop(_AROUND(root))
    return root


def _summary(page: Page, _: Json) -> tuple[str, str]:
    return " ".join(sentences(page.body_text)[:3]), SUMMARY


def _json(page: Page, options: Json) -> tuple[Any, str | None]:
    return json_format(page, options.get("schema"))


def _about(field: str, option: str) -> Callable[[Page, Json], tuple[str | None, str]]:
    def answer(page: Page, options: Json) -> tuple[str | None, str]:
        found = sentences_about(page.body_text, options[option])
        note = SENTENCES if found else NO_SENTENCE
        return " ".join(found) or None, note.format(field=field, option=option)

    return answer


def _attributes(page: Page, options: Json) -> tuple[list[Json], None]:
    """Return the values of the requested attributes, in page order."""
    found = [
        {
            **wanted,
            "values": [
                node.get(wanted["attribute"]) for node in markup.selector(wanted["selector"])(page.tree)
            ],
        }
        for wanted in options.get("selectors", [])
    ]
    return [
        {**item, "values": [value for value in item["values"] if value is not None]} for item in found
    ], None


_GENERATORS: dict[str, Callable[[Page, Json], tuple[Any, str | None]]] = {
    "summary": _summary,
    "json": _json,
    "question": _about("answer", "question"),
    "highlights": _about("highlights", "query"),
    "attributes": _attributes,
}
FORMATS = (*_MARKUP, *_GENERATORS, "changeTracking")
"""The formats that the sandbox generates for any page."""
