"""The stored data of each release, as listed in `tests/stored`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tools.stored.connections import own_connection
from tools.stored.forms import FOLDER

RELEASES: dict[str, dict[str, Any]] = {
    file.stem: json.loads(file.read_text()) for file in FOLDER.glob("*.json")
}


@pytest.fixture(params=RELEASES)
def stored(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The stored data of a release."""
    return RELEASES[request.param]


@pytest.fixture
def connected() -> Iterator[None]:
    """Set the connection of the examples."""
    with own_connection():
        yield
