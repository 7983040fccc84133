# SPDX-License-Identifier: Apache-2.0
"""Items of the catalog with any JSON in their fields: a call by their contract can be built."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api.models import DataTool, ProviderRequest
from airflow_provider_webdata.runs.provider import _by_contract

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
OPTION = JSON | st.fixed_dictionaries({"name": JSON | st.just("q"), "type": JSON, "required": JSON})
FIELDS = ("id", "provider", "capability", "description", "creditsCost", "perRecord", "execute", "next")
ITEMS = st.fixed_dictionaries(
    {
        **dict.fromkeys(FIELDS, JSON),
        "options": JSON | st.lists(OPTION, max_size=3),
        "response": JSON | st.fixed_dictionaries({"fields": JSON | st.lists(JSON, max_size=3), "key": JSON}),
    }
)
CALL = {"provider": "prices", "capability": "history", "options": {"q": "1", "other": True}}


@pytest.mark.slow
@given(ITEMS)
def test_any_item_is_called(item: dict[str, Any]) -> None:
    tool = DataTool.model_validate(item)
    assert all(isinstance(field["name"], str) for field in tool.fields)
    request = _by_contract(ProviderRequest.model_validate({"calls": [CALL]}), [tool])
    (call,) = request.calls
    assert (call.options or {}).keys() == {"q", "other"}
