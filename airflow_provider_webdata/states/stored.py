"""Arguments of a trigger that are one mapping: Airflow stores it while the task waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.structs import nondefault_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self


class OtherReleaseError(CodedError, ValueError):
    """What another release of this package stored has a field that this one does not know."""

    help_code = "WD-007"


class Stored(msgspec.Struct, frozen=True):
    """Base of values that are stored as a mapping of JSON values.

    The mapping is made to be read by other releases. A field at its default is left out, so that one that is added
    later is in no mapping before it is used; a default therefore never changes. A missing field has its default. An
    unknown one is refused: a release that ignored what it does not know could end a wait with the wrong result.
    """

    def serialize(self) -> dict[str, Any]:
        """Return the mapping."""
        return nondefault_fields(self)

    @classmethod
    def deserialize(cls, stored: Mapping[str, Any]) -> Self:
        """Return what was stored, validated again.

        :param stored: as `serialize` returned it, in this release or another.
        :raises OtherReleaseError: a field that this release does not know.
        :raises ArgumentError: a value that it does not know.
        """
        known = cls.__struct_fields__
        if unknown := sorted(set(stored) - set(known)):
            raise OtherReleaseError(
                f"this release of the provider does not know {', '.join(unknown)} of {cls.__name__}, only "
                f"{', '.join(known)}: install the release that deferred the task on the triggerer too"
            )
        return cls(**stored)
