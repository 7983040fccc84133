"""What Sphinx is taught: anchors that stand in the text as HTML, and links from the names of classes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

from tools.docs_site.reference import place_of_class

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ANCHOR = re.compile(r'<a id="([^"]+)">')


class Anchors(SphinxTransform):
    """`<a id="...">` becomes a target, which links can be checked against."""

    default_priority = 100
    """Before links within a page are resolved."""

    def apply(self, **_: Any) -> None:
        """Replace the anchors of a page, and make them known beside its headings."""
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
    """The name of a class leads to where the reference describes it."""

    default_priority = 20

    def run(self, **_: Any) -> None:
        """Link the names on a page."""
        places = place_of_class()
        for literal in [*self.document.findall(nodes.literal)]:
            page, anchor = places.get(literal.astext(), ("", ""))
            if page in ("", self.env.docname) or _stands_in_link(literal):
                continue
            address = self.app.builder.get_relative_uri(self.env.docname, page) + anchor
            link = nodes.reference("", "", internal=True, refuri=address)
            literal.replace_self(link)
            link += literal


def _stands_in_link(node: nodes.Node) -> bool:
    above = node.parent
    while above is not None:
        if isinstance(above, (nodes.reference, nodes.title)):
            return True
        above = above.parent
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what is above."""
    app.add_transform(Anchors)
    app.add_post_transform(ClassLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
