"""Errors that end with a short code, under which docs/errors.md has their cause and cure."""

from __future__ import annotations

from typing import Any, ClassVar


class CodedError(Exception):
    """Base of all errors that users see.

    A class has its own code if its readers must react differently; other classes inherit the code of their base. Codes
    from 200 on are the HTTP status that the service answered.
    """

    help_code: ClassVar[str] = ""
    """What docs/errors.md explains the error under, such as `WD-429`. Not `APIError.code`, which is the service's."""

    advice: str = ""
    """What to do, where a task knows that."""

    def text(self) -> str:
        """Return what happened, without the code."""
        return super().__str__()

    def __str__(self) -> str:
        ending = f" ({self.help_code})" if self.help_code else ""
        # What was made of another error's text has the code already.
        text = self.text().removesuffix(ending)
        return f"{text.removesuffix('.')}. {self.advice}{ending}" if self.advice else text + ending

    def __reduce__(self) -> tuple[Any, ...]:
        # An initializer may ask for more than `args` holds.
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[CodedError], args: tuple[Any, ...]) -> CodedError:
    return kind.__new__(kind, *args)


class ArgumentError(CodedError, ValueError):
    """An argument cannot work; the message names it, its rule and what was given."""

    help_code = "WD-003"


class UnknownArgumentError(ArgumentError, TypeError):
    """There is no such argument; the message names the nearest one."""
