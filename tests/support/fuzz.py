# SPDX-License-Identifier: Apache-2.0
"""The seed of random tests, and the number of their draws."""

from __future__ import annotations

import os

IS_FUZZ = "FUZZ_SEED" in os.environ
SEED = int(os.environ.get("FUZZ_SEED", "23"))
FACTOR = int(os.environ.get("FUZZ_FACTOR", "1"))
"""Multiplies the number of draws in the suite; `make fuzz` sets it."""
