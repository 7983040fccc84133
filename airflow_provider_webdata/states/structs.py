# SPDX-License-Identifier: Apache-2.0
"""Helpers for msgspec structs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import msgspec


def nondefault_fields(struct: msgspec.Struct) -> dict[str, Any]:
    """Return the fields with non-default values, by name."""
    names, defaults = struct.__struct_fields__, struct.__struct_defaults__
    optional = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    values = {name: getattr(struct, name) for name in names}
    return {name: value for name, value in values.items() if name not in optional or value != optional[name]}
