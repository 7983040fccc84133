# SPDX-License-Identifier: Apache-2.0
"""Values that Airflow's databases can store."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.common.storable import storable

ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.integers(min_value=2**63)
    | st.text(st.characters(categories=None), max_size=5)
    | st.just("\0"),
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just("\0"), parts, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("a\0b", "a\ufffdb"),
        ("a\ud83d", "a\ufffd"),
        ({"data": [{"k\0": float("nan")}, float("-inf")]}, {"data": [{"k\ufffd": None}, None]}),
        ([2**63, 10**400], [float(2**63), None]),
    ],
)
def test_what_changes(value: Any, stored: Any) -> None:
    assert storable(value) == stored


@given(ANY)
def test_everything_can_be_stored(value: Any) -> None:
    """A worker sends MessagePack, PostgreSQL stores JSON without NUL, and nothing else changes."""
    stored = storable(value)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(stored)) == stored
    text = json.dumps(stored, ensure_ascii=False, allow_nan=False)
    assert "\\u0000" not in text
    text.encode()
    assert storable(stored) is stored
