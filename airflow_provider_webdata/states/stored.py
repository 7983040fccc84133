# SPDX-License-Identifier: Apache-2.0
"""Trigger arguments and outcomes that Airflow stores as a mapping while the task waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.states.structs import nondefault_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self


class OtherReleaseError(CodedError, ValueError):
    """A value stored by another release of this package contains an unknown field, or lacks one."""

    help_code = "WD-007"


class Stored(msgspec.Struct, frozen=True):
    """Base class of values that are stored as a mapping of JSON values.

    Other releases must be able to read the mapping. It omits fields at their defaults, so that a new field appears only
    when it is used; defaults therefore never change. A missing field has its default. An unknown field is an error: a
    release that ignored it could end a wait with the wrong result. An outcome, which ends a wait already, ignores it.
    """

    def serialize(self) -> dict[str, Any]:
        """Return the mapping."""
        return nondefault_fields(self)

    @classmethod
    def deserialize(cls, stored: Mapping[str, Any]) -> Self:
        """Create and validate a value from a stored mapping.

        :param stored: return value of `serialize`, from this release or another.
        :raises OtherReleaseError: a field is unknown to this release.
        :raises ArgumentError: a value is unknown to this release.
        """
        known = cls.__struct_fields__
        if unknown := sorted(set(stored) - set(known)):
            raise OtherReleaseError(
                f"this release of the provider does not support {', '.join(unknown)} of {cls.__name__}, only "
                f"{', '.join(known)}; install the release that deferred the task on the triggerer as well"
            )
        return cls(**stored)
