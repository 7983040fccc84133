# SPDX-License-Identifier: Apache-2.0
"""The error for a person at the terminal: one sentence, and where to look next."""

from __future__ import annotations


class StackError(Exception):
    """A started program cannot continue. The message is for the person at the terminal."""
