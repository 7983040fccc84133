# SPDX-License-Identifier: Apache-2.0
"""Requests drawn within the limits of their fields survive the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.request_fields import alias, drawn, request_endpoints


@pytest.mark.slow
@examples(2)
@given(data=st.data())
def test_a_valid_request_survives_the_wire(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from([*request_endpoints()]))
    body: dict[str, Any] = data.draw(drawn(model))
    request = model.model_validate(body)
    assert request.to_wire() == body
    assert json.loads(json.dumps(body)) == body
    assert model.model_validate_json(json.dumps(body)) == request
    assert model.model_validate(request) == request
    python = {alias(model, name): name for name in model.model_fields}
    assert model.model_validate({python[name]: value for name, value in body.items()}) == request
    assert all(isinstance(warning, str) for warning in request.warnings())
