"""The number of examples that a property is tried with."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# On a contributor's machine a run is one of many; in CI it is the last one before a merge.
EXAMPLES = 200 if os.environ.get("CI") else 25


def load_profile() -> None:
    """Make this the default of all properties.

    The time to draw examples depends on the machine, and a fixture may serve all examples of a test.
    """
    settings.register_profile(
        "any machine",
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=[
            HealthCheck.data_too_large,
            HealthCheck.too_slow,
            HealthCheck.filter_too_much,
            HealthCheck.function_scoped_fixture,
        ],
    )
    settings.load_profile("any machine")


def examples(share: float) -> settings:
    """Return settings with a share of the default number of examples, or a multiple of it."""
    return settings(max_examples=max(5, round(EXAMPLES * share)))
