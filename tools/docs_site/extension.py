# SPDX-License-Identifier: Apache-2.0
"""Sphinx extension: HTML anchors as link targets, links from class names to the reference, an inventory of classes,
and a faster sidebar and search index.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes
from sphinx.domains.python import ObjectEntry
from sphinx.search.en import SearchEnglish
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

from tools.docs_site.reference import place_of_class, place_of_import

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

_ANCHOR = re.compile(r'<a id="([^"]+)">')


class Anchors(SphinxTransform):
    """Convert `<a id="...">` to link targets, so that Sphinx can check links to them."""

    default_priority = 100
    """Before links within a page are resolved."""

    def apply(self, **_: Any) -> None:
        """Replace the anchors of a page, and register them with its headings."""
        known = self.env.metadata[self.env.docname].setdefault("myst_slugs", {})
        for raw in [*self.document.findall(nodes.raw)]:
            if anchor := _ANCHOR.fullmatch(raw.astext()):
                name = anchor[1]
                raw.replace_self(nodes.target("", "", ids=[name]))
                known[name] = (raw.line or 0, name, name)
            elif raw.astext() == "</a>":
                raw.parent.remove(raw)
        self.document.myst_slugs = known


class ClassLinks(SphinxPostTransform):
    """Link class names to their description in the reference."""

    default_priority = 20

    def run(self, **_: Any) -> None:
        """Link the class names of a page."""
        places = place_of_class()
        for literal in [*self.document.findall(nodes.literal)]:
            page, anchor = places.get(literal.astext(), ("", ""))
            if page in ("", self.env.docname) or _is_in_link(literal):
                continue
            address = self.app.builder.get_relative_uri(self.env.docname, page) + anchor
            link = nodes.reference("", "", internal=True, refuri=address)
            literal.replace_self(link)
            link += literal


def note_classes(_app: Sphinx, env: BuildEnvironment) -> None:
    """List the described classes in `objects.inv`, so that other projects can link to them by import path."""
    for path, (page, anchor) in place_of_import().items():
        env.domains.python_domain.objects[path] = ObjectEntry(page, anchor.removeprefix("#"), "class", False)


class Sidebar:
    """Render the sidebar of each page from the titles of all pages.

    For each sidebar, Sphinx would copy all headings of all pages and drop all but the titles, which took a quarter of
    the build time.
    """

    def __init__(self) -> None:
        self._titles: dict[str, nodes.bullet_list] = {}

    def use(self, app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
        """Replace the function that renders the sidebar."""
        env, toctree = app.env, context["toctree"]
        if not self._titles:
            self._titles = {name: _title_of(toc) for name, toc in env.tocs.items()}

        def from_titles(**options: Any) -> str:
            tocs, env.tocs = env.tocs, self._titles
            try:
                return str(toctree(**options))
            finally:
                env.tocs = tocs

        context["toctree"] = from_titles


def _title_of(toc: nodes.bullet_list) -> nodes.bullet_list:
    """Return a page's table of contents without headings, but with nested toctrees."""
    toc = toc.deepcopy()
    for item in toc.children:
        if len(item.children) > 1:
            inner = [*item.findall(addnodes.toctree)]
            item[1][:] = inner
            if not inner:
                item.pop(1)
    return toc


class English(SearchEnglish):
    """English for the search, with cached word stems."""

    def init(self, options: dict[str, str]) -> None:
        """Cache the stemmer."""
        super().init(options)
        self.stem = cache(super().stem)  # type: ignore[method-assign]


def _is_in_link(node: nodes.Node) -> bool:
    above = node.parent
    while above is not None:
        if isinstance(above, (nodes.reference, nodes.title)):
            return True
        above = above.parent
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transforms, the search's language, and the sidebar."""
    app.add_transform(Anchors)
    app.add_post_transform(ClassLinks)
    app.add_search_language(English)
    app.connect("env-updated", note_classes)
    # Before the theme, which renders the sidebar in its own handler.
    app.connect("html-page-context", Sidebar().use, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
