"""Comparison of a declared and a stored schedule: the service stores a phrase as cron."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api.cron import Cron, CronError, read_cron
from airflow_provider_webdata.api.phrases import PhraseError, plain, read_phrase

if TYPE_CHECKING:
    from airflow_provider_webdata.api.target_diff import Wire


def same_moments(declared: Wire, stored: str, applied: Wire | None) -> bool:
    """Return whether a declared schedule means the stored one.

    :param declared: the schedule as declared, by cron or by phrase.
    :param stored: the stored cron.
    :param applied: phrase and stored cron of an earlier attempt, where known: the service chose what was left open.
    """
    if (text := declared.get("text")) is None:
        return _same_cron(str(declared.get("cron") or ""), stored)
    if applied and plain(str(applied.get("text") or "")) == plain(str(text)):
        return _same_cron(str(applied.get("cron") or ""), stored)
    try:
        phrase = read_phrase(str(text))
    except PhraseError:
        return False
    return _same_cron(phrase.cron, stored) or (not phrase.names_a_time and _same_period(phrase.cron, stored))


def _same_cron(one: str, other: str) -> bool:
    first, second = _read(one), _read(other)
    if first is None or second is None:
        return one.split() == other.split()
    return first == second


def _same_period(one: str, other: str) -> bool:
    first, second = _read(one), _read(other)
    return (
        first is not None
        and second is not None
        and first.days == second.days
        and first.months == second.months
        and _is_shifted(first.minutes, second.minutes, 60)
        and _is_shifted(first.hours, second.hours, 24)
        and _is_shifted(first.weekdays, second.weekdays, 7)
    )


def _is_shifted(values: frozenset[int], others: frozenset[int], period: int) -> bool:
    return any(frozenset((value + step) % period for value in values) == others for step in range(period))


def _read(cron: str) -> Cron | None:
    try:
        return read_cron(cron)
    except CronError:
        return None
