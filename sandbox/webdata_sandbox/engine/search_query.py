# SPDX-License-Identifier: Apache-2.0
"""Parsing of a search query into words, phrases, and operators."""

from __future__ import annotations

import re
from dataclasses import dataclass

OPERATORS = frozenset(
    {"site", "filetype", "inurl", "allinurl", "intitle", "allintitle", "related", "imagesize", "larger"}
)
_TOKEN = re.compile(r'(?P<minus>-?)(?:(?P<op>[a-z]+):)?(?:"(?P<quoted>[^"]*)"?|(?P<bare>[^\s"]\S*))')


@dataclass(frozen=True)
class Clause:
    """One part of a query: a word, a phrase, or an operator with its value."""

    kind: str
    value: str
    negated: bool = False


def parse_query(text: str) -> list[Clause]:
    """Split a query into its clauses. A part that is not an operator is a word."""
    clauses: list[Clause] = []
    spreading: str | None = None  # allinurl: and allintitle: apply to the following words too
    for match in _TOKEN.finditer(text):
        operator, quoted, negated = match["op"], match["quoted"], bool(match["minus"])
        value = quoted if quoted is not None else match["bare"]
        if operator in OPERATORS:
            kind = operator.removeprefix("all")
            clauses.append(Clause(kind, value, negated))
            spreading = kind if operator.startswith("all") and not negated else None
        elif quoted is not None and operator is None:
            clauses.append(Clause("phrase", value, negated))
        else:
            word = f"{operator}:{value}" if operator else value
            plain = spreading if spreading and not negated else "word"
            clauses.append(Clause(plain, word, negated))
    return [clause for clause in clauses if clause.value.strip()]
