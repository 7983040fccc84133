# SPDX-License-Identifier: Apache-2.0
"""Parser for the service's schedule phrases, an alternative to cron."""

from __future__ import annotations

import re
from dataclasses import dataclass

_START = r"(?:starting|start)(?: (?:at|on))?"


class PhraseError(ValueError):
    """The service does not support this phrase; the message lists the supported ones."""


@dataclass(frozen=True)
class Phrase:
    """A parsed phrase.

    :param cron: cron expression with five fields.
    :param names_a_time: whether the phrase specifies the minute or hour; otherwise, the service chooses it.
    """

    cron: str
    names_a_time: bool


def plain(text: str) -> str:
    """Return a phrase in lower case, without dots, commas, and extra whitespace, which the service ignores."""
    return " ".join(re.sub(r"[.,]", "", text.lower()).split())


def read_phrase(text: str) -> Phrase:
    """Parse a phrase.

    :param text: such as `every 30 minutes` or `daily at 9:30 am`.
    :raises PhraseError: the service does not support the phrase.
    """
    for pattern, reader in _READERS.items():
        if found := re.fullmatch(pattern, plain(text)):
            parts = found.groupdict()
            numbers = {name: int(value) for name, value in parts.items() if value and value.isdigit()}
            return reader(numbers, parts.get("half"))
    raise PhraseError(
        "the service does not support this phrase; supported are 'every N minutes', 'hourly', 'every N hours', "
        "'daily at 9:00', and 'weekly'. Use cron for other schedules"
    )


def _minutes(given: dict[str, int], _: str | None) -> Phrase:
    every, offset = given["every"], _minute(given.get("offset"))
    if every < 5 or 60 % every:
        raise PhraseError(
            "'every N minutes' requires an N that divides 60 and is at least 5; otherwise, use cron"
        )
    start = f"{offset}-59" if offset else "*"
    return Phrase(f"{start}/{every} * * * *", offset is not None)


def _hour(given: dict[str, int], _: str | None) -> Phrase:
    offset = _minute(given.get("offset"))
    return Phrase(f"{offset or 0} * * * *", offset is not None)


def _hours(given: dict[str, int], _: str | None) -> Phrase:
    every = given["every"]
    if not every or 24 % every:
        raise PhraseError("'every N hours' requires an N that divides 24; otherwise, use cron")
    return Phrase(f"0 */{every} * * *", False)


def _day(given: dict[str, int], half: str | None) -> Phrase:
    hour, minute = given.get("hour"), _minute(given.get("minute"))
    if hour is None:
        return Phrase("0 0 * * *", False)
    if half and not 1 <= hour <= 12:
        raise PhraseError("with am or pm, the hour must be in the range 1 to 12")
    if hour > 23:
        raise PhraseError("the hour must be in the range 0 to 23")
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return Phrase(f"{minute or 0} {hour} * * *", True)


def _minute(given: int | None) -> int | None:
    if given is not None and given > 59:
        raise PhraseError("the minute must be in the range 0 to 59")
    return given


_READERS = {
    rf"every (?P<every>[0-9]+) (?:minutes?|mins?)(?: {_START} :?(?P<offset>[0-9]{{1,2}}))?": _minutes,
    rf"(?:hourly|every hour)(?: (?:at|on|{_START}) :?(?P<offset>[0-9]{{1,2}}))?": _hour,
    r"every (?P<every>[0-9]+) (?:hours?|hrs?)": _hours,
    r"(?:daily|every day)(?: at (?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))? ?(?P<half>am|pm)?)?": _day,
    r"weekly|every week": lambda *_: Phrase("0 0 * * 0", False),
}
