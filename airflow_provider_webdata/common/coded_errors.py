"""Errors with a short code, for which docs/errors.md describes the cause and the remedy."""

from __future__ import annotations

from typing import Any, ClassVar


class CodedError(Exception):
    """Base class of all errors that users see.

    A class has its own code if it requires a different reaction; otherwise, it inherits the code of its base class.
    Codes from 200 are HTTP statuses of the service.
    """

    help_code: ClassVar[str] = ""
    """Code of the error in docs/errors.md, such as `WD-429`. Not the service's `APIError.code`."""

    advice: str = ""
    """Next step, if the task knows it."""

    billed: str = ""
    """Whether the failed call was billed, if it was or may have been."""

    def text(self) -> str:
        """Return the message without the code."""
        return super().__str__()

    def __str__(self) -> str:
        ending = f" ({self.help_code})" if self.help_code else ""
        # A message that was built from another error's message may already contain the code.
        text = self.text().removesuffix(ending)
        for addition in filter(None, (self.billed, self.advice)):
            text = f"{text.removesuffix('.')}. {addition}"
        return text + ending

    def __reduce__(self) -> tuple[Any, ...]:
        # An initializer may require more arguments than `args` contains.
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[CodedError], args: tuple[Any, ...]) -> CodedError:
    return kind.__new__(kind, *args)


class ArgumentError(CodedError, ValueError):
    """An argument is invalid; the message contains its name, the rule, and the given value."""

    help_code = "WD-003"


class UnknownArgumentError(ArgumentError, TypeError):
    """An argument is unknown; the message suggests the nearest one."""
