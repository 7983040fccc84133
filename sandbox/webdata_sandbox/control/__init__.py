# SPDX-License-Identifier: Apache-2.0
"""Control API of a running sandbox, for tests and demos.

:class:`SandboxControl` is the client; ``routes.py`` defines the routes under ``/_sandbox``.
"""

from __future__ import annotations

from .client import ControlError, SandboxControl

__all__ = ["ControlError", "SandboxControl"]
