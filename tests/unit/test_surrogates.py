"""Halves of surrogate pairs in JSON text are replaced, and nothing else is touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from airflow_provider_webdata.surrogates import replace_halves

# What looks like a half, or hides one: escaped backslashes, plain text, whole pairs, neighbours of the range.
PIECES = [
    *(r"\ud83d", r"\uD83D", r"\udbff", r"\ude00", r"\uDC00", r"\udfff", r"\ud7ff", r"\ue000", r"\u0041"),
    *("\\\\", r"\n", r"\"", "u", "ud83d", "ude00", "é", "😀"),
]


def well_formed(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_every_half_and_nothing_else(inside: str) -> None:
    text = f'{{"{inside}": "{inside}"}}'
    # Python's own reader takes halves.
    expected = {well_formed(name): well_formed(value) for name, value in json.loads(text).items()}
    replaced = replace_halves(text.encode())
    assert from_json(replaced) == expected
    assert replace_halves(replaced) == replaced
    if expected == json.loads(text):
        assert replaced == text.encode()


@pytest.mark.parametrize(
    "body", [b"", b"\\", b'"\\ud83', b'"\xff\\ud83d"', b'"\xed\xa0\xbd"', b"\xff\xff\xff", b'{"a": 1}']
)
def test_what_is_no_json_or_holds_none_stays(body: bytes) -> None:
    assert replace_halves(body) == body
