# SPDX-License-Identifier: Apache-2.0
"""Templates whose outside text cannot change the direction of the text around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinja2.ext import Extension
from jinja2.lexer import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2.lexer import TokenStream

FILTER = "isolated"
"""Name of the filter that puts text into `<bdi>`."""

# Their content is text without markup.
_TEXT_ELEMENT = re.compile(r"<(/?)(?:title|option|script|style|textarea)\b")


class IsolateText(Extension):
    """Applies the filter to each `{{ value }}` between tags, but not in attributes."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """Yield the tokens of a template with the filter."""
        is_markup = is_open = True
        is_filtered = False
        for token in stream:
            if token.type == "data":
                last = max(token.value.rfind("<"), token.value.rfind(">"))
                is_markup = is_markup if last < 0 else token.value[last] == ">"
                for element in _TEXT_ELEMENT.finditer(token.value):
                    is_open = bool(element[1])
            if token.type == "variable_end" and is_filtered:
                for kind, value in (("rparen", ")"), ("pipe", "|"), ("name", FILTER)):
                    yield Token(token.lineno, kind, value)
                is_filtered = False
            yield token
            if token.type == "variable_begin" and is_markup and is_open:
                yield Token(token.lineno, "lparen", "(")
                is_filtered = True
