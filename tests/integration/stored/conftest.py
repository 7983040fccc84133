"""What each release has left in installations, as `tests/stored` lists it."""

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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `stored` runs for every release."""
    if "stored" in metafunc.fixturenames:
        metafunc.parametrize("stored", RELEASES.values(), ids=RELEASES.keys())


@pytest.fixture
def connected() -> Iterator[None]:
    """The examples' connection."""
    with own_connection():
        yield
