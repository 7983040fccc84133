# SPDX-License-Identifier: Apache-2.0
"""Markdown for arguments, docstrings, and pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tools.docs_site.docstrings import Docstring

if TYPE_CHECKING:
    from tools.docs_site.subjects import Argument

_CITED = re.compile(r"(?:docs/service\.md)#([a-z0-9-]+)((?:, #[a-z0-9-]+)*)")


def prose(text: str, root: str) -> str:
    """Return a docstring's text with links for citations of the service's rules.

    :param root: path from the page to the site's root.
    """

    def links(match: re.Match[str]) -> str:
        anchors = [match[1], *re.findall(r"#([a-z0-9-]+)", match[2])]
        return ", ".join(f"[{anchor}]({root}service.md#{anchor})" for anchor in anchors)

    return re.sub(r"`{2,}", "`", _CITED.sub(links, text))


def argument(item: Argument, kind: str, rule: str | None, root: str, prefix: str = "") -> str:
    """Return an argument as an item of a definition list: name and default, type, description.

    :param kind: the type in Markdown; empty: the annotation.
    :param rule: anchor of the argument's rule in sandbox/docs/service.md.
    :param root: path from the page to the site's root.
    :param prefix: prefix of the anchor, for pages with the arguments of several objects.
    """
    facts = [kind or f"`{plain_type(item)}`"]
    facts += ["**required**"] if item.default is None else []
    facts += ["templated"] if item.templated else []
    facts += [f"[rule]({root}service.md#{rule})"] if rule else []
    default = f" = `{item.default}`" if item.default else ""
    return (
        f'<a id="{prefix}{item.name}"></a>`{item.name}`{default}\n'
        f": {' · '.join(facts)}\n"
        f": {prose(item.text[:1].upper() + item.text[1:], root)}\n"
    )


def plain_type(item: Argument) -> str:
    """Return an argument's type, without None if that is the default."""
    if item.default == "None":
        return re.sub(r" \| None$", "", item.kind)
    return item.kind


def body(doc: Docstring, root: str) -> list[str]:
    """Return a docstring's summary and body, as parts of a page."""
    return [prose(part, root) for part in (doc.summary, doc.body) if part]


def outcome(doc: Docstring, root: str) -> list[str]:
    """Return a docstring's result and errors, as parts of a page."""
    parts = [f"Returns {prose(doc.returns, root)}"] if doc.returns else []
    if doc.raises:
        parts.append("\n".join(f"- raises `{name}`: {prose(when, root)}" for name, when in doc.raises))
    return parts


def page(title: str, *parts: str | Iterable[str]) -> str:
    """Return a page with these parts, separated by blank lines."""
    flat = [f"# {title}"]
    for part in parts:
        flat += [part] if isinstance(part, str) else [*part]
    return "\n\n".join(text.rstrip("\n") for text in flat if text) + "\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(text: str, language: str = "python") -> str:
    """Return a fenced code block."""
    return f"```{language}\n{text}\n```"
