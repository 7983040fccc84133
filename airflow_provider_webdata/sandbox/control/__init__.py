"""The control API, by which tests and demos control a running sandbox and read the requests it received.

:class:`SandboxControl` is its client, ``routes.py`` its routes under ``/_sandbox``.
"""

from __future__ import annotations

from .client import ControlError, SandboxControl

__all__ = ["ControlError", "SandboxControl"]
