# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL that a test of the inbox may stop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.postgres import Postgres


@pytest.fixture
def stoppable_postgres(postgres: Postgres) -> Iterator[Postgres]:
    """The session's server, which runs again after the test."""
    yield postgres
    if not postgres.pid:
        postgres.start()
