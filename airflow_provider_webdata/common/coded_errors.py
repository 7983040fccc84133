# SPDX-License-Identifier: Apache-2.0
"""Errors with a short code, for which docs/errors.md describes the cause and the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class CodedError(Exception):
    """Base class of all errors that users see.

    Its text ends with the next step, the code, and the address of the section about the code. A class has its own code
    if it requires a different reaction; otherwise, it inherits the code of its base class. Codes from 200 are HTTP
    statuses of the service.

    Messages may quote text from outside: the error cleans it. Its own lines are only those of `problems`.
    """

    help_code: ClassVar[str] = ""
    """Code of the error in docs/errors.md, such as `WD-429`. Not the service's `APIError.code`."""

    advice: str = ""
    """Next step as a sentence, if the task knows more than `remedy`."""

    @property
    def remedy(self) -> str:
        """The next step, as the rest of a sentence."""
        # Imported here: DAG files import this module.
        from airflow_provider_webdata.common.remedies import REMEDIES

        return REMEDIES.get(self.help_code, "")

    billed: str = ""
    """Whether the failed call was billed, if it was or may have been."""

    reasons: Sequence[Mapping[str, Any]] = ()
    """The first failed pages, searches, or calls, for XCom `failure`."""

    accepted_with: Mapping[str, float] = {}
    """Arguments of the operator with which the task would have continued, for XCom `failure`."""

    @property
    def inspect_first(self) -> bool:
        """Whether a person must take the next step before the task is cleared, which may bill again or lose results."""
        from airflow_provider_webdata.common.error_codes import CODES

        return self.help_code in CODES and CODES[self.help_code].inspect_first

    problems: Sequence[str] = ()
    """Sentences that the text lists below the message, each on a line."""

    def text(self) -> str:
        """Return the message and the problems without the next step and the code, as clean text."""
        # Imported here: DAG files import this module.
        from airflow_provider_webdata.common.clean_text import cleaned, own_lines

        return cleaned(self._message()) + own_lines(self.problems, "\n  - ")

    def _message(self) -> str:
        return super().__str__()

    def brief(self) -> str:
        """Return the message with its code and without the next step, to quote it in another text."""
        ending = f" ({self.help_code})"
        return self.text().removesuffix(ending) + ending if self.help_code else self.text()

    def __str__(self) -> str:
        text = self.text()
        if self.billed and self.billed not in text:
            text = f"{text.removesuffix(f' ({self.help_code})').removesuffix('.')}. {self.billed}"
        if not self.help_code:
            return text
        from airflow_provider_webdata.common.clean_text import cleaned
        from airflow_provider_webdata.common.remedies import sentence, with_ending

        return with_ending(text, self.help_code, cleaned(self.advice or sentence(self.remedy)))

    def __reduce__(self) -> tuple[Any, ...]:
        # An initializer may require more arguments than `args` contains.
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[CodedError], args: tuple[Any, ...]) -> CodedError:
    return kind.__new__(kind, *args)


def brief(error: BaseException) -> str:
    """Return an error's text to quote it in another text, cleaned if it is foreign; see `CodedError.brief`."""
    if isinstance(error, CodedError):
        return error.brief()
    # Imported here because DAG files import this module.
    from airflow_provider_webdata.common.clean_text import cleaned
    from airflow_provider_webdata.common.plain_errors import plain_reason

    return cleaned(plain_reason(error) if isinstance(error, OSError) else str(error))


def traceback_of(error: BaseException) -> str:
    """Return an error's traceback for a log, on separate lines.

    A foreign error may quote the URL of a secrets backend or a proxy, so its lines are cleaned.
    """
    import traceback

    from airflow_provider_webdata.common.clean_text import own_lines

    return own_lines("".join(traceback.format_exception(error)).splitlines())


class ArgumentError(CodedError, ValueError):
    """An argument is invalid."""

    help_code = "WD-003"


class UnknownArgumentError(ArgumentError, TypeError):
    """An argument is unknown; the message suggests the nearest one."""
