"""What the tests of the models share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError


@pytest.fixture
def problems() -> Callable[[type[BaseModel], Any], dict[str, str]]:
    """Return a function from model and input to the problems found: path to text, empty when it is valid."""

    def find(model: type[BaseModel], data: Any) -> dict[str, str]:
        try:
            model.model_validate(data)
        except ValidationError as error:
            return {".".join(str(part) for part in issue["loc"]): issue["msg"] for issue in error.errors()}
        return {}

    return find
