# SPDX-License-Identifier: Apache-2.0
"""Text from outside, cleaned."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.common.clean_text import MAX_TEXT, cleaned, one_line, own_lines, trimmed


@given(
    st.text(st.sampled_from("\x1b\x9b[]0;m\\\x07\x00\u202e\ud83d ax") | st.characters(exclude_categories=()))
)
def test_no_control_character_remains(text: str) -> None:
    line = one_line(text)
    assert not [
        character for character in line if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}
    ]
    assert not set(line) & {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("plain  text\n", "plain text"),
        ("a\u061c\u200e\u202e\u2067b\ufeff", "ab"),
        ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x9b2Jthe \x1bcend", "red the end"),
        ("naïve 日本 😀 \u200d", "naïve 日本 😀 \u200d"),
        ("\x1b]0;" + "x" * 300, "0;" + "x" * 300),
    ],
)
def test_one_line(given: str, line: str) -> None:
    assert one_line(given) == line


TEXT = st.text(st.characters() | st.sampled_from("\x1b[m\n\u202e:/@?&=%*"), max_size=200)


@given(TEXT)
def test_cleaning_is_idempotent(text: str) -> None:
    for clean in (cleaned, trimmed):
        once = clean(text)
        assert clean(once) == once
        assert len(once.splitlines()) <= 1
        assert len(once) <= MAX_TEXT


def test_own_lines_keep_their_indentation() -> None:
    assert own_lines(["a\nb", "    c", " " * 10**6 + "d"]) == "\n  a b\n      c\n  " + " " * 40 + "d"
    assert own_lines([]) == ""
