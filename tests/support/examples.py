# SPDX-License-Identifier: Apache-2.0
"""The number of examples that a property is tried with."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from .fuzz import FACTOR, IS_FUZZ

EXAMPLES = 25 * FACTOR


def load_profile() -> None:
    """Make this the default of all properties.

    A commit is tested with the same examples each time; `make fuzz` draws others.
    The time to draw examples depends on the machine, and a fixture may serve all examples of a test.
    """
    settings.register_profile(
        "any machine",
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=not IS_FUZZ,
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
