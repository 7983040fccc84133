# SPDX-License-Identifier: Apache-2.0
"""The schedule of a monitor: a cron expression or a phrase."""

from __future__ import annotations

from typing import Annotated, Any

import pendulum
from pydantic import AfterValidator, Field, model_validator

from airflow_provider_webdata.api.cron import CronError, read_cron
from airflow_provider_webdata.api.models.base import RequestModel, problem
from airflow_provider_webdata.api.models.fields import TEMPLATE_HINT, Text
from airflow_provider_webdata.api.phrases import PhraseError, read_phrase
from airflow_provider_webdata.common.spelling import nearest


def _cron(value: str) -> str:
    try:
        read_cron(value)
    except CronError as error:
        raise problem("cron", str(error)) from None
    return value


def _phrase(value: str) -> str:
    try:
        read_phrase(value)
    except PhraseError as error:
        raise problem("schedule_text", str(error)) from None
    return value


def _time_zone(value: str) -> str:
    try:
        # Directories and other files of the zone database are not zones, and raise various errors.
        # Unlike `pendulum.timezone`, this accepts only names in the zone database, in their case.
        pendulum.Timezone(value)
    except (ValueError, OSError):
        known = False
    else:
        known = value not in {"localtime", "posixrules", "Factory"} and not value.startswith(
            ("posix/", "right/")
        )
    if not known:
        found = nearest(value, pendulum.timezones())
        hint = f"did you mean '{found}'?" if found else "use an IANA name such as Europe/Berlin"
        raise problem("timezone", f"unknown time zone; {hint}")
    return value


class MonitorSchedule(RequestModel):
    """Schedule of a monitor's checks: exactly one of `cron` and `text`.

    The service stores text as cron, and does not check more often than every five minutes. This model checks every
    gap between two runs, including the one across the full hour (it rejects `*/7`: 56 to 60). The service compares
    only the next two runs, so it accepts or rejects such an expression depending on the current time.

    Plain text instead of an object is a cron expression or a phrase.

    :param cron: five numeric fields, at most 128 characters. Supports `*`, lists, ranges, and steps, but no names or
        shorthands.
    :param text: at most 128 characters: `every N minutes` (N divides 60, at least 5; `starting at :MM`),
        `hourly` (`at :MM`), `every N hours` (N divides 24), `daily` (`at 9:00`, `at 9 pm`), `weekly`.
    :param timezone: IANA name, for both forms. Service default: UTC.
    """

    cron: Annotated[Text, Field(max_length=128), AfterValidator(_cron)] | None = None
    text: Annotated[Text, Field(max_length=128), AfterValidator(_phrase)] | None = None
    timezone: Annotated[Text, AfterValidator(_time_zone)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        if not isinstance(data, str):
            return data
        if data.lstrip().startswith("{"):
            raise problem("mapping", f"must be a mapping, a phrase, or a cron expression ({TEMPLATE_HINT})")
        # Phrases start with a letter, and cron expressions with a digit or a star.
        return {"text" if data.strip()[:1].isalpha() else "cron": data}

    def _check(self) -> None:
        if self.cron is not None and self.text is not None:
            raise problem("schedule", "'cron' and 'text' are mutually exclusive; set one of them")
        if self.cron is None and self.text is None:
            raise problem("schedule", "one of 'cron' and 'text' is required")

    def _own_warnings(self) -> list[str]:
        return list(read_cron(self.cron).warnings) if self.cron is not None else []
