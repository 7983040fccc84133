"""The phrases in which a schedule can be given instead of cron, read as the service reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_START = r"(?:starting|start)(?: (?:at|on))?"


class PhraseError(ValueError):
    """The service does not read this phrase; the message says what it would read."""


@dataclass(frozen=True)
class Phrase:
    """A phrase as cron.

    :param cron: five fields.
    :param names_a_time: whether the phrase itself says at which minute or hour; else the service chooses.
    """

    cron: str
    names_a_time: bool


def plain(text: str) -> str:
    """Return a phrase without what the service does not look at: case, dots, commas, and further blanks."""
    return " ".join(re.sub(r"[.,]", "", text.lower()).split())


def read_phrase(text: str) -> Phrase:
    """Read a phrase.

    :param text: such as `every 30 minutes` or `daily at 9:30 am`.
    :raises PhraseError: the service does not read it.
    """
    for pattern, reader in _READERS.items():
        if found := re.fullmatch(pattern, plain(text)):
            parts = found.groupdict()
            numbers = {name: int(value) for name, value in parts.items() if value and value.isdigit()}
            return reader(numbers, parts.get("half"))
    raise PhraseError(
        "the service does not read this phrase; it knows 'every N minutes', 'hourly', 'every N hours', "
        "'daily at 9:00' and 'weekly'. Use cron for anything else"
    )


def _minutes(given: dict[str, int], _: str | None) -> Phrase:
    every, offset = given["every"], _minute(given.get("offset"))
    if every < 5 or 60 % every:
        raise PhraseError("'every N minutes' takes an N that divides 60 and is at least 5; else use cron")
    start = f"{offset}-59" if offset else "*"
    return Phrase(f"{start}/{every} * * * *", offset is not None)


def _hour(given: dict[str, int], _: str | None) -> Phrase:
    offset = _minute(given.get("offset"))
    return Phrase(f"{offset or 0} * * * *", offset is not None)


def _hours(given: dict[str, int], _: str | None) -> Phrase:
    every = given["every"]
    if not every or 24 % every:
        raise PhraseError("'every N hours' takes an N that divides 24; else use cron")
    return Phrase(f"0 */{every} * * *", False)


def _day(given: dict[str, int], half: str | None) -> Phrase:
    hour, minute = given.get("hour"), _minute(given.get("minute"))
    if hour is None:
        return Phrase("0 0 * * *", False)
    if half and not 1 <= hour <= 12:
        raise PhraseError("with am or pm, hours go from 1 to 12")
    if hour > 23:
        raise PhraseError("hours go from 0 to 23")
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return Phrase(f"{minute or 0} {hour} * * *", True)


def _minute(given: int | None) -> int | None:
    if given is not None and given > 59:
        raise PhraseError("minutes go from 0 to 59")
    return given


_READERS = {
    rf"every (?P<every>[0-9]+) (?:minutes?|mins?)(?: {_START} :?(?P<offset>[0-9]{{1,2}}))?": _minutes,
    rf"(?:hourly|every hour)(?: (?:at|on|{_START}) :?(?P<offset>[0-9]{{1,2}}))?": _hour,
    r"every (?P<every>[0-9]+) (?:hours?|hrs?)": _hours,
    r"(?:daily|every day)(?: at (?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))? ?(?P<half>am|pm)?)?": _day,
    r"weekly|every week": lambda *_: Phrase("0 0 * * 0", False),
}
