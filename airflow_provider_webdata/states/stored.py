"""What the arguments of a trigger hold as one mapping: Airflow keeps it for as long as the task waits."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self


@dataclass(frozen=True)
class Stored:
    """Base of dataclasses that are stored as a mapping of JSON values.

    The mapping is made to be read by other releases. A field at its default is left out, so that one that is added
    later is in no mapping before it is used; a default therefore never changes. A missing field has its default. An
    unknown one is refused: a release that ignored what it does not know could end a wait with the wrong result.
    """

    def serialize(self) -> dict[str, Any]:
        """Return the mapping."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @classmethod
    def deserialize(cls, stored: Mapping[str, Any]) -> Self:
        """Return what was stored, validated again.

        :param stored: as `serialize` returned it, in this release or another.
        :raises ValueError: a field or a value that this release does not know.
        """
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(stored) - set(known)):
            raise ValueError(
                f"this release of the provider does not know {', '.join(unknown)} of {cls.__name__}, only "
                f"{', '.join(known)}: install the release that deferred the task on the triggerer too"
            )
        return cls(**stored)
