# SPDX-License-Identifier: Apache-2.0
"""The span of a DAG run's data: every timetable of the installed Airflow, from its scheduler to its SDK."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pendulum
import pytest
from airflow.partition_mappers import temporal
from airflow.sdk import DAG, Asset, AssetOrTimeSchedule, PartitionedAssetTimetable, StartOfDayMapper
from airflow.sdk import CronDataIntervalTimetable as SdkCronDataInterval
from airflow.sdk import CronPartitionTimetable as SdkCronPartition
from airflow.sdk import MultipleCronTriggerTimetable as SdkMultipleCron
from airflow.sdk.api.datamodels._generated import DagRun
from airflow.timetables.base import TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable, DeltaDataIntervalTimetable
from airflow.timetables.trigger import (
    CronPartitionTimetable,
    CronTriggerTimetable,
    DeltaTriggerTimetable,
    MultipleCronTriggerTimetable,
)

from airflow_provider_webdata.api.query import tbs
from airflow_provider_webdata.common.run_span import run_span, time_zone_of

NAMES_PARTITION_DATES = "partition_date" in DagRun.model_fields
BERLIN = "Europe/Berlin"
DAY = timedelta(days=1)
# Airflow runs it on 6 January 2026.
DUE = pendulum.datetime(2026, 1, 6, tz=BERLIN)
NOW = pendulum.datetime(2026, 11, 24, 14, 8)


def run_of(**fields: Any) -> DagRun:
    """Return a run as the SDK hands it to a task."""
    if not NAMES_PARTITION_DATES:
        fields.pop("partition_date", None)
    return DagRun.model_validate(
        {
            **dict.fromkeys(
                ("logical_date", "data_interval_start", "data_interval_end", "start_date", "end_date")
            ),
            "dag_id": "d",
            "run_id": "r",
            "run_after": NOW,
            "run_type": "scheduled",
            "state": "running",
            "consumed_asset_events": [],
            "partition_key": None,
            **fields,
        }
    )


def scheduled(timetable: Any) -> DagRun:
    """Return the run that the scheduler makes on 6 January."""
    info = timetable.next_dagrun_info_v2(
        last_dagrun_info=None, restriction=TimeRestriction(DUE.in_timezone("UTC"), None, catchup=True)
    )
    start, end = info.data_interval or (None, None)
    return run_of(
        run_after=info.run_after,
        logical_date=start,
        data_interval_start=start,
        data_interval_end=end,
        partition_key=info.partition_key,
        partition_date=info.partition_date,
    )


def consumer(mapper: Any, key: str) -> DagRun:
    """Return the run that the scheduler makes today for a key that a mapper has made."""
    decode = getattr(mapper, "to_partition_date", lambda _: None)
    return run_of(run_type="asset_triggered", partition_key=key, partition_date=decode(key))


ZONE: dict[str, Any] = {"timezone": BERLIN}
SCHEDULED = {
    "cron trigger (@daily)": (CronTriggerTimetable("@daily", **ZONE), "01/06", "01/06", "01-06"),
    "cron trigger, interval": (
        CronTriggerTimetable("@daily", interval=DAY, **ZONE),
        "01/05",
        "01/05",
        "01-06",
    ),
    "crons": (MultipleCronTriggerTimetable("0 9 * * *", "0 12 * * *", **ZONE), "01/06", "01/06", "01-06T09"),
    "cron interval": (CronDataIntervalTimetable("@daily", BERLIN), "01/06", "01/06", "01-07"),
    "weekly cron interval": (CronDataIntervalTimetable("@weekly", BERLIN), "01/11", "01/17", "01-18"),
    "delta trigger": (DeltaTriggerTimetable(DAY), "01/06", "01/06", "01-06"),
    "delta interval": (DeltaDataIntervalTimetable(DAY), "01/06", "01/06", "01-07"),
    "cron partition": (CronPartitionTimetable("@daily", **ZONE), "01/06", "01/06", "01-06"),
    "cron partition before": (
        CronPartitionTimetable("@daily", run_offset=-1, **ZONE),
        *("01/05", "01/05", "01-05"),
    ),
    "cron partition, days": (
        CronPartitionTimetable("@daily", run_offset=-1, key_format="%Y-%m-%d", **ZONE),
        # Airflow 3.2 writes the key in UTC.
        *(("01/05", "01/05", "01-06") if NAMES_PARTITION_DATES else ("01/04", "01/04", "01-05")),
    ),
    # Its key names a moment, not a month.
    "cron partition, monthly": (
        CronPartitionTimetable("@monthly", run_offset=-1, **ZONE),
        *("01/01", "01/01", "01-01"),
    ),
}
if NAMES_PARTITION_DATES:
    SCHEDULED["cron partition, months"] = (
        CronPartitionTimetable("@monthly", run_offset=-1, key_format="%Y-%m", **ZONE),
        *("01/01", "01/31", "02-01"),
    )


@pytest.mark.parametrize(("timetable", "first", "last", "moment"), SCHEDULED.values(), ids=SCHEDULED)
def test_a_scheduled_run(timetable: Any, first: str, last: str, moment: str) -> None:
    run = scheduled(timetable)
    assert tbs(run, tz=BERLIN) == f"cdr:1,cd_min:{first}/2026,cd_max:{last}/2026"
    start, end = run_span(run, ZoneInfo(BERLIN))
    assert start.date() == datetime.strptime(f"{first}/2026", "%m/%d/%Y").date()
    assert end.isoformat().startswith(f"2026-{moment}")


MAPPERS = {
    "hour": ("StartOfHourMapper", "2026-01-05T23", "01/05", "01/05"),
    "day": ("StartOfDayMapper", "2026-01-05", "01/05", "01/05"),
    "week": ("StartOfWeekMapper", "2026-01-05 (W02)", "01/05", "01/11"),
    "month": ("StartOfMonthMapper", "2026-01", "01/01", "01/31"),
    "quarter": ("StartOfQuarterMapper", "2026-Q1", "01/01", "03/31"),
}


@pytest.mark.parametrize("zone", ["UTC", BERLIN, "America/New_York"])
@pytest.mark.parametrize(("mapper", "key", "first", "last"), MAPPERS.values(), ids=MAPPERS)
def test_the_consumer_of_a_partition(mapper: str, key: str, first: str, last: str, zone: str) -> None:
    if zone != "UTC" and mapper == "StartOfHourMapper" and not NAMES_PARTITION_DATES:
        pytest.skip("Airflow 3.2 does not say in which zone an hour is")
    # Rollups and fan-outs hand on keys of these mappers too. Wherever the day is, its name is that of the key.
    run = consumer(getattr(temporal, mapper)(timezone=zone), key)
    for tz in (zone, BERLIN if mapper != "StartOfHourMapper" else zone):
        assert tbs(run, tz=tz) == f"cdr:1,cd_min:{first}/2026,cd_max:{last}/2026"


@pytest.mark.parametrize("day", ["2026-04-23", "2026-04-24"])
def test_a_day_without_a_midnight(day: str) -> None:
    """Clocks in Cairo go from 24:00 of the 23rd to 01:00 of the 24th; each day is its own all the same."""
    month, number = day[5:7], day[8:]
    found = tbs(consumer(temporal.StartOfDayMapper(timezone="Africa/Cairo"), day), tz="Africa/Cairo")
    assert found == f"cdr:1,cd_min:{month}/{number}/2026,cd_max:{month}/{number}/2026"


JANUARY_5 = ("01/05", "01/05")
RUNS = {
    "manual, without date": ({}, "11/24", "11/24"),
    "manual late in the evening": ({"run_after": pendulum.datetime(2026, 11, 24, 23, 30)}, "11/25", "11/25"),
    "manual with a logical date": (
        dict.fromkeys(("data_interval_start", "data_interval_end"), pendulum.datetime(2026, 1, 5, 23)),
        *("01/06", "01/06"),
    ),
    "triggered by an asset": ({"run_type": "asset_triggered"}, "11/24", "11/24"),
    "key set at run time": ({"partition_key": "2026-01-05"}, *JANUARY_5),
    "key with a time and a zone": ({"partition_key": "2026-01-05T23:30:00+00:00"}, "01/06", "01/06"),
    "key that is no date": ({"partition_key": "us-east"}, "11/24", "11/24"),
    "key that is a number": ({"partition_key": "2026"}, "11/24", "11/24"),
    "key of a day that does not exist": ({"partition_key": "2026-02-30"}, "11/24", "11/24"),
    "key at the end of the calendar": ({"partition_key": "9999-12-31"}, "11/24", "11/24"),
    "key that is no date, with an interval": (
        {"partition_key": "us", "data_interval_start": DUE - DAY, "data_interval_end": DUE},
        *JANUARY_5,
    ),
}
DATED = {
    "date alone": ({"partition_date": DUE - DAY}, *JANUARY_5),
    "several segments": ({"partition_key": "us|2026-01-05", "partition_date": DUE - DAY}, *JANUARY_5),
    "key of 3.2, in UTC": (
        {"partition_key": "2026-01-04T23:00:00", "partition_date": pendulum.datetime(2026, 1, 4, 23)},
        *JANUARY_5,
    ),
    "year": ({"partition_key": "2026", "partition_date": pendulum.datetime(2026, 1, 1)}, "01/01", "12/31"),
    "a backfill, with an interval too": (
        {"partition_date": DUE - DAY, "data_interval_start": DUE, "data_interval_end": DUE},
        *JANUARY_5,
    ),
}


@pytest.mark.parametrize(
    ("fields", "first", "last"),
    [
        *(pytest.param(*case, id=name) for name, case in RUNS.items()),
        *(
            pytest.param(
                *case, id=name, marks=pytest.mark.skipif(not NAMES_PARTITION_DATES, reason="Airflow 3.3")
            )
            for name, case in DATED.items()
        ),
    ],
)
def test_any_other_run(fields: dict[str, Any], first: str, last: str) -> None:
    assert tbs(run_of(**fields), tz=BERLIN) == f"cdr:1,cd_min:{first}/2026,cd_max:{last}/2026"


def test_the_days_follow_each_other_in_a_zone_that_changes_its_clock() -> None:
    days = [run_span(run_of(partition_key=f"2026-03-{day}"), ZoneInfo(BERLIN)) for day in (28, 29, 30)]
    ends = [(start.astimezone(timezone.utc), end.astimezone(timezone.utc)) for start, end in days]
    assert [end for _, end in ends[:-1]] == [start for start, _ in ends[1:]]


ASSET = Asset("a")
ZONES: dict[str, tuple[Any, str]] = {
    "cron text": ("@daily", BERLIN),
    "none": (None, BERLIN),
    "delta": (DAY, BERLIN),
    "its own": (SdkCronPartition("@daily", timezone="Asia/Tokyo"), "Asia/Tokyo"),
    "an interval's": (SdkCronDataInterval("@daily", timezone=pendulum.timezone("Asia/Tokyo")), "Asia/Tokyo"),
    "several crons": (SdkMultipleCron("@daily", "@hourly", timezone="Asia/Tokyo"), "Asia/Tokyo"),
    "assets or time": (
        AssetOrTimeSchedule(timetable=SdkCronPartition("@daily", timezone="Asia/Tokyo"), assets=[ASSET]),
        "Asia/Tokyo",
    ),
    "partitioned asset": (
        PartitionedAssetTimetable(assets=ASSET, default_partition_mapper=StartOfDayMapper()),
        BERLIN,
    ),
}


@pytest.mark.parametrize(("schedule", "zone"), ZONES.values(), ids=ZONES)
def test_the_time_zone_of_a_dag(schedule: Any, zone: str) -> None:
    with DAG("d", schedule=schedule, start_date=pendulum.datetime(2026, 1, 1, tz=BERLIN)) as dag:
        assert str(time_zone_of(dag)) == zone
    assert time_zone_of(None) is None
    assert time_zone_of(SimpleNamespace(timezone=None)) is None
