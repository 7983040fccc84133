"""The control API: how tests and demos steer a running sandbox, and see what it was asked.

:class:`SandboxControl` is its client, ``routes.py`` its routes under ``/_sandbox``.
"""

from __future__ import annotations

from .client import ControlError, SandboxControl

__all__ = ["ControlError", "SandboxControl"]
