"""The seed of random tests, and how much they draw."""

from __future__ import annotations

import os

SEED = int(os.environ.get("FUZZ_SEED", "23"))
FACTOR = int(os.environ.get("FUZZ_FACTOR", "1"))
"""How many times as many draws as in the suite; `make fuzz` sets it."""
