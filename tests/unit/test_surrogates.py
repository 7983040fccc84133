# SPDX-License-Identifier: Apache-2.0
"""Halves of surrogate pairs in JSON text become text, and all else is unchanged."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from airflow_provider_webdata.common.surrogates import escape_halves

# JSON that JSON.stringify writes for a cut emoji and for whole pairs, and the value that a reader gets.
HALVES = [
    (rb'"a\ud83d"', r"a\ud83d"),
    (rb'"\uDE00\ud83d"', r"\uDE00\ud83d"),
    (rb'"\ud83d\ud83d\ude00"', "\\ud83d\U0001f600"),
    (rb'"\ud83d\ude00\ude00"', "\U0001f600\\ude00"),
    (rb'"\ud83d\n\ude00"', "\\ud83d\n\\ude00"),
    (rb'"\\ud83d"', r"\ud83d"),
    (rb'"\\\ud83d"', r"\\ud83d"),
    (rb'"\\ud83d\ude00"', r"\ud83d\ude00"),
    (rb'"\\\\ud83d\\\ude00"', r"\\ud83d\\ude00"),
    (rb'{"\ud83d": ["\udfff"]}', {r"\ud83d": [r"\udfff"]}),
    (rb'"\ud7ff\ue000"', "\ud7ff\ue000"),
]
# Halves, and text that resembles or hides one: escaped backslashes, plain text, whole pairs, the range's neighbors.
PIECES = [
    *(r"\ud83d", r"\uD83D", r"\udbff", r"\ude00", r"\uDC00", r"\udfff", r"\ud7ff", r"\ue000", r"\u0041"),
    *("\\\\", r"\n", r"\"", "u", "ud83d", "ude00", "é", "😀"),
]


@pytest.mark.parametrize(("body", "value"), HALVES, ids=[body.decode() for body, _ in HALVES])
def test_halves_become_text(body, value):
    assert from_json(escape_halves(body)) == value


def as_text(value: str) -> str:
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", value)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.integers(0, 19))
def test_every_half_and_nothing_else(inside: str, before: int) -> None:
    """Compared with the standard library, which accepts halves, and wherever a large text is cut into pieces."""
    for cut in (2**18, *range(before, 80, 20)):
        padding = "x" * (2**18 - cut)
        text = f'{{"{inside}": "{padding}{inside}"}}'
        taken = json.loads(text)
        expected = {as_text(name).lower(): as_text(value).lower() for name, value in taken.items()}
        escaped = escape_halves(text.encode())
        found = from_json(escaped)
        assert {name.lower(): value.lower() for name, value in found.items()} == expected
        assert escape_halves(escaped) == escaped
        if taken == found:
            assert escaped == text.encode()


@pytest.mark.parametrize(
    "body", [b"", b"\\", b'"\\ud83', b'"\xff\\ud83d"', b'"\xed\xa0\xbd"', b"\xff\xff\xff", b'{"a": 1}']
)
def test_other_bytes_stay(body: bytes) -> None:
    assert escape_halves(body) == body
