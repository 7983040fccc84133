# SPDX-License-Identifier: Apache-2.0
"""Long texts, part by part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.toolsets.page_text import part_of


@given(st.text(alphabet="ab. \n", max_size=400), st.integers(1, 50))
def test_the_parts_are_the_text(text: str, max_chars: int) -> None:
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        part, offset = part_of(text, offset, max_chars)
        assert len(part) <= max_chars
        assert part or not text
        parts.append(part)
    assert "".join(parts) == text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("short", "short"),
        ("one two\n\nthree four five six", "one two\n\n"),
        ("one two\nthree four five six", "one two\n"),
        ("One two. Three four five six", "One two. "),
        ("one two three four five six", "one two "),
        ("onetwothreefourfivesix", "onetwothreef"),
        # A paragraph that ends early would make a part of nearly nothing.
        ("a\n\none two three four", "a\n\none two "),
    ],
)
def test_a_part_ends_where_the_text_pauses(text: str, part: str) -> None:
    assert part_of(text, 0, 12)[0] == part
