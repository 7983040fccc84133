# SPDX-License-Identifier: Apache-2.0
"""Words and sentences of a text, for comparison and display."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

WORD = re.compile(r"\w+")


@lru_cache(maxsize=50_000)
def fold(word: str) -> str:
    """Return a word in lower case, without accents and plural s, for comparison."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(c))
    return plain[:-1] if len(plain) > 3 and plain.endswith("s") and not plain.endswith("ss") else plain


def words(text: str) -> list[str]:
    """Return the folded words of a text."""
    return [fold(word) for word in WORD.findall(text)]


def long_words(text: str) -> set[str]:
    """Return the folded words of at least four letters."""
    return {word for word in words(text) if len(word) >= 4}


def sentences(text: str) -> list[str]:
    """Split a text into approximate sentences."""
    return [part for part in re.split(r"(?<=[.!?])\s+", text) if part]


def sentences_about(text: str, prompt: str) -> list[str]:
    """Return the sentences of a text that share a long word with a prompt, in order."""
    wanted = long_words(prompt)
    return [sentence for sentence in sentences(text) if wanted & set(words(sentence))]
