# SPDX-License-Identifier: Apache-2.0
"""Differences between a declared and a stored monitor, and the update that removes them."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.api.monitor_diff import (
    complete_update,
    match_targets,
    monitor_changes,
    previous_values,
)
from airflow_provider_webdata.api.phrases import Phrase, read_phrase

STORED = {
    "id": "m-1",
    "name": "prices",
    "status": "active",
    "goal": "price changes",
    "judgeEnabled": True,
    "schedule": {"cron": "*/30 * * * *", "timezone": "UTC"},
    "targets": [
        {
            "id": "t-1",
            "type": "scrape",
            "urls": ["https://shop.example/a", "https://shop.example/b"],
            "scrapeOptions": {},
        },
        {
            "id": "t-2",
            "type": "crawl",
            "url": "https://docs.example/",
            "crawlOptions": {"limit": 20, "sitemap": "include"},
        },
        {
            "id": "t-3",
            "type": "search",
            "queries": ["new phone"],
            "searchWindow": "24h",
            "maxResults": 10,
            "includeDomains": ["shop.example"],
        },
    ],
    "webhook": {
        "url": "https://hooks.example/x",
        "events": ["monitor.page", "monitor.check.completed"],
        "headers": {"X-Key": "s3cret"},
        "metadata": {},
    },
    "notification": {"email": {"enabled": True, "includeDiffs": False, "recipients": ["A@example.com"]}},
    "retentionDays": 30,
    "estimatedCreditsPerMonth": 100,
}

SCRAPE, CRAWL, SEARCH = STORED["targets"]


def targets(*changes: dict) -> list[dict]:
    """Return the stored targets without ids, with changes laid over them one by one."""
    plain = [{k: v for k, v in target.items() if k != "id"} for target in STORED["targets"]]
    return [{**target, **change} for target, change in zip(plain, [*changes, {}, {}, {}], strict=False)]


SAME = {
    "goal with blanks": {"goal": "  price changes "},
    "cron with other spelling": {"schedule": {"cron": "0,30  * * * *"}},
    "phrase": {"schedule": {"text": "Every 30 minutes."}},
    "targets in another order": {"targets": targets()[::-1]},
    "URLs in another order": {"targets": targets({"urls": ["https://shop.example/b", "https://shop.example/a"]})},
    "URLs without scheme": {"targets": targets({"urls": ["shop.example/a", "SHOP.example/b"]})},
    "URL without the root's slash": {"targets": targets({}, {"url": "https://docs.example"})},
    "options that are the default": {
        "targets": targets({"scrapeOptions": {"formats": ["markdown"], "onlyMainContent": True, "timeout": 60000}})
    },
    "crawl defaults of the service": {"targets": targets({}, {"crawlOptions": {"limit": 20}})},
    "search defaults left out": {
        "targets": targets({}, {}, {"searchWindow": None, "maxResults": None, "includeDomains": [" SHOP.example"]})
    },
    "crawl limit left out": {"targets": targets({}, {"crawlOptions": {}})},
    "webhook without events": {"webhook": {"url": "https://hooks.example/x", "headers": {"X-Key": "s3cret"}}},
    "webhook as text": {"webhook": "https://hooks.example/x"},
    "empty notification": {"notification": {}},
    "empty e-mail": {"notification": {"email": {}}},
    "empty Slack": {"notification": {"slack": {}}},
    "e-mail address in other case": {"notification": {"email": {"enabled": True, "recipients": ["a@example.com"]}}},
}  # fmt: skip


@pytest.mark.rule("monitor-normalised")
@pytest.mark.parametrize("declared", SAME.values(), ids=SAME.keys())
def test_no_difference(declared):
    """Values that the service normalizes or fills in are no difference."""
    changes = monitor_changes(declared, STORED)
    assert not changes
    assert changes.patch == {}
    assert changes.fields == ()


DIFFERENT = {
    "name": ({"name": "other"}, ("name",), {"name": "other"}),
    "cron": (
        {"schedule": {"cron": "0 * * * *"}},
        ("schedule.cron",),
        {"schedule": {"cron": "0 * * * *"}},
    ),
    "cron step that counts once": (
        {"schedule": {"cron": "0/30 * * * *"}},
        ("schedule.cron",),
        {"schedule": {"cron": "0/30 * * * *"}},
    ),
    "time zone": (
        {"schedule": {"cron": "*/30 * * * *", "timezone": "Europe/Berlin"}},
        ("schedule.timezone",),
        {"schedule": {"cron": "*/30 * * * *", "timezone": "Europe/Berlin"}},
    ),
    "phrase": ({"schedule": {"text": "hourly"}}, ("schedule.text",), {"schedule": {"text": "hourly"}}),
    "goal, sent with judging": (
        {"goal": "stock changes"},
        ("goal",),
        {"goal": "stock changes", "judgeEnabled": True},
    ),
    "goal without judging": (
        {"goal": "stock changes", "judgeEnabled": False},
        ("goal", "judgeEnabled"),
        {"goal": "stock changes", "judgeEnabled": False},
    ),
    "goal cleared": ({"goal": " "}, ("goal",), {"goal": None}),
    "judging": ({"judgeEnabled": False}, ("judgeEnabled",), {"judgeEnabled": False}),
    "webhook headers": (
        {"webhook": {"url": "https://hooks.example/x", "headers": {"X-Key": "new"}}},
        ("webhook.headers",),
        {"webhook": {"url": "https://hooks.example/x", "headers": {"X-Key": "new"}}},
    ),
    "webhook headers removed, metadata added, one event": (
        {
            "webhook": {
                "url": "https://hooks.example/y",
                "events": ["monitor.page"],
                "headers": {},
                "metadata": {"a": "b"},
            }
        },
        ("webhook.url", "webhook.events", "webhook.headers", "webhook.metadata"),
        {
            "webhook": {
                "url": "https://hooks.example/y",
                "events": ["monitor.page"],
                "headers": {},
                "metadata": {"a": "b"},
            }
        },
    ),
    "e-mail": (
        {"notification": {"email": {"enabled": False, "recipients": []}}},
        ("notification.email.enabled", "notification.email.recipients"),
        {"notification": {"email": {"enabled": False, "recipients": []}}},
    ),
    "Slack": (
        {"notification": {"slack": {"channel": "#prices"}}},
        ("notification.slack.channel",),
        {"notification": {"slack": {"channel": "#prices"}}},
    ),
    "retention": ({"retentionDays": 7}, ("retentionDays",), {"retentionDays": 7}),
    "unknown field that the service shows": ({"unchangedPagesFree": True}, (), {}),
}


@pytest.mark.rule("monitor-update")
@pytest.mark.parametrize(("declared", "fields", "patch"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_difference(declared, fields, patch):
    """Only differing fields are sent, with the fields that must go with them."""
    changes = monitor_changes(declared, STORED)
    assert changes.fields == fields
    assert changes.patch == patch
    assert bool(changes) is bool(fields)


TARGETS = {
    "one more URL": (
        targets({"urls": [*SCRAPE["urls"], "https://shop.example/c"]}),
        ("targets[0].urls",),
        ["t-1", "t-2", "t-3"],
    ),
    "http is not https": (
        targets({"urls": ["http://shop.example/a", "https://shop.example/b"]}),
        ("targets[0].urls",),
        ["t-1", "t-2", "t-3"],
    ),
    "another crawl address, same place": (
        targets({}, {"url": "https://docs.example/v2"}),
        ("targets[1].url",),
        ["t-1", "t-2", "t-3"],
    ),
    "crawl limit": (
        targets({}, {"crawlOptions": {"limit": 30}}),
        ("targets[1].crawlOptions.limit",),
        ["t-1", "t-2", "t-3"],
    ),
    "scrape option": (
        targets({"scrapeOptions": {"mobile": True}}),
        ("targets[0].scrapeOptions.mobile",),
        ["t-1", "t-2", "t-3"],
    ),
    "formats": (
        targets({"scrapeOptions": {"formats": [{"type": "screenshot", "fullPage": False}]}}),
        ("targets[0].scrapeOptions.formats",),
        ["t-1", "t-2", "t-3"],
    ),
    "search": (
        targets({}, {}, {"queries": ["new phone", "old phone"], "searchWindow": "7d", "maxResults": 5,
                         "includeDomains": [], "excludeDomains": ["bad.example"]}),
        ("targets[2].queries", "targets[2].searchWindow", "targets[2].maxResults", "targets[2].includeDomains",
         "targets[2].excludeDomains"),
        ["t-1", "t-2", "t-3"],
    ),
    "one removed": (targets()[1:], ("targets (1 removed)",), ["t-2", "t-3"]),
    "one added in front": (
        [{"type": "scrape", "urls": ["https://new.example/"]}, *targets()],
        ("targets[0] (new)",),
        [None, "t-1", "t-2", "t-3"],
    ),
    "another type": (
        [{"type": "search", "queries": ["q"]}, *targets()[1:]],
        ("targets[0] (new)", "targets (1 removed)"),
        [None, "t-2", "t-3"],
    ),
}  # fmt: skip


@pytest.mark.rule("target-ids")
@pytest.mark.parametrize(("declared", "fields", "ids"), TARGETS.values(), ids=TARGETS.keys())
def test_targets_keep_their_history(declared, fields, ids):
    """A patch sends all targets, with the id of each that keeps its history."""
    changes = monitor_changes({"targets": declared}, STORED)
    assert changes.fields == fields
    assert [target.get("id") for target in changes.patch["targets"]] == ids
    assert [{k: v for k, v in target.items() if k != "id"} for target in changes.patch["targets"]] == declared


@pytest.mark.rule("target-ids")
def test_matching_prefers_id_then_content_then_place():
    """In this order, a declared target continues a stored one."""
    stored = [
        {"id": "a", "type": "scrape", "urls": ["https://x.example/1"]},
        {"id": "b", "type": "scrape", "urls": ["https://x.example/2", "https://x.example/3"]},
        {"id": "c", "type": "scrape", "url": "https://x.example/4"},
        {"id": "d", "type": "crawl", "url": "https://x.example/1"},
    ]
    declared = [
        {"type": "scrape", "urls": ["https://x.example/4"]},  # same page as c
        {"type": "scrape", "urls": ["https://x.example/3", "https://x.example/9"]},  # shares a page with b
        {
            "type": "scrape",
            "urls": ["https://y.example/"],
        },  # nothing in common: the remaining one of its type
        {"type": "scrape", "urls": ["https://z.example/"]},  # none remains
    ]
    assert match_targets(declared, stored) == list(zip(declared, [*stored[2::-1], None], strict=True))
    by_id = {"type": "scrape", "id": "a", "urls": ["https://x.example/4"]}
    assert match_targets([by_id], stored) == [(by_id, stored[0])]


UPDATES = {
    "pause": ({"status": "paused"}, {"status": "paused"}),
    "resume": (
        {"status": "active"},
        {"status": "active", "schedule": {"cron": "*/30 * * * *", "timezone": "UTC"}},
    ),
    "resume at other times": (
        {"status": "active", "schedule": {"text": "hourly"}},
        {"status": "active", "schedule": {"text": "hourly"}},
    ),
    "goal": ({"goal": "stock "}, {"goal": "stock", "judgeEnabled": True}),
    "goal without judging": ({"goal": "g", "judgeEnabled": False}, {"goal": "g", "judgeEnabled": False}),
    "no goal": ({"goal": " "}, {"goal": None}),
    "stored already": ({"retentionDays": 30}, {"retentionDays": 30}),
    "targets": (
        {"targets": [{"type": "crawl", "url": "https://docs.example/", "crawlOptions": {"limit": 5}}]},
        {"targets": [{"type": "crawl", "url": "https://docs.example/", "crawlOptions": {"limit": 5}, "id": "t-2"}]},
    ),
}  # fmt: skip


@pytest.mark.rule("monitor-update-goal", "monitor-resume")
@pytest.mark.parametrize(("fields", "patch"), UPDATES.values(), ids=UPDATES.keys())
def test_what_goes_along_with_an_update(fields, patch):
    """Given fields are sent even if they seem to be stored already."""
    assert complete_update(fields, STORED) == patch


AT_TEN = "every 30 minutes starting at :10"
SCHEDULES = [
    # declared text, stored cron, applied before (text, cron), differs
    ("every 30 minutes", "*/30 * * * *", None, False),
    ("every 30 minutes", "7-59/30 * * * *", None, False),  # moved within its period
    ("every 30 minutes", "*/15 * * * *", None, True),
    ("every 30 minutes starting at :10", "10-59/30 * * * *", None, False),
    ("every 30 minutes starting at :10", "12-59/30 * * * *", None, True),  # sent again
    (AT_TEN, "12-59/30 * * * *", (AT_TEN, "12,42 * * * *"), False),
    ("hourly", "17 * * * *", None, False),
    ("hourly at :17", "18 * * * *", None, True),
    ("every 6 hours", "13 2-23/6 * * *", None, False),
    ("every 6 hours", "0 */8 * * *", None, True),
    ("daily", "41 3 * * 1", None, True),
    ("daily at 9:30", "30 9 * * *", None, False),
    ("daily at 9", "4 9 * * *", None, True),
    ("daily at 9", "4 9 * * *", ("Daily at 9.", "4 9 * * *"), False),
    ("daily at 9", "4 9 * * *", ("daily at 8", "4 9 * * *"), True),  # the text was changed
    ("daily", "0 3 * * *", ("daily", "41 3 * * *"), True),  # somebody changed the cron
    ("weekly", "20 5 * * 3", None, False),
    ("weekly", "20 5 * * 3,4", None, True),
    ("fortnightly", "0 0 * * 0", None, True),
    ("fortnightly", "0 0 1,15 * *", ("fortnightly", "0 0 1,15 * *"), False),
]  # fmt: skip


@pytest.mark.rule("schedule-stored")
@pytest.mark.parametrize(("text", "cron", "applied", "differs"), SCHEDULES)
def test_schedule_in_words(text, cron, applied, differs):
    """A text comes back as cron, possibly moved."""
    memory = {"text": applied[0], "cron": applied[1]} if applied else None
    changes = monitor_changes(
        {"schedule": {"text": text}}, {"schedule": {"cron": cron, "timezone": "UTC"}}, memory
    )
    assert bool(changes) is differs


PHRASES = [
    ("every 20 mins start at 5", "5-59/20 * * * *", True),
    ("Every 10 min start on :00", "*/10 * * * *", True),
    ("every hour starting at :45", "45 * * * *", True),
    ("every 4 hrs", "0 */4 * * *", False),
    ("every day", "0 0 * * *", False),
    ("daily at 12 pm", "0 12 * * *", True),
    ("daily at 7:05am", "5 7 * * *", True),
    ("every week.", "0 0 * * 0", False),
]


@pytest.mark.rule("schedule-phrases")
@pytest.mark.parametrize(("text", "cron", "own_time"), PHRASES)
def test_documented_cron_of_a_phrase(text, cron, own_time):
    """The table of sandbox/docs/service.md#schedule-phrases."""
    assert read_phrase(text) == Phrase(cron, own_time)


def test_previous_values():
    """The values before a patch can be restored, except for fields that were absent."""
    patch = {"goal": "new", "judgeEnabled": True, "schedule": {}, "webhook": {}, "targets": []}
    before = {**STORED, "webhook": None, "goal": None}
    restore, lost = previous_values(patch, before)
    assert restore == {name: before[name] for name in ("goal", "judgeEnabled", "schedule", "targets")}
    assert lost == ("webhook",)


def test_lenient_shapes():
    """A text in place of a list, and a webhook as a plain URL."""
    stored = {
        "targets": [{"id": "t", "type": "scrape", "urls": "https://a.example/"}],
        "webhook": "https://hooks.example/x",
        "notification": {"email": {"recipients": "a@example.com"}},
    }
    declared = {
        "targets": [{"type": "scrape", "urls": ["https://a.example/"]}],
        "webhook": {"url": "https://hooks.example/x"},
        "notification": {"email": {"recipients": ["a@example.com"]}},
    }
    assert not monitor_changes(declared, stored)


def test_a_schema_is_one_value():
    """A property that was removed from it is a difference, and its properties have names of any kind."""

    def declared(*properties: str) -> dict:
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in properties}}
        return {"targets": targets({"scrapeOptions": {"formats": [{"type": "json", "schema": schema}]}})}

    stored = declared("url", "price")
    assert not monitor_changes(declared("price", "url"), stored)
    assert monitor_changes(declared("url"), stored).fields == ("targets[0].scrapeOptions.formats",)


def test_header_values_are_not_among_the_fields():
    """The log names fields, never values."""
    declared = {"webhook": {"url": "https://hooks.example/x", "headers": {"X-Key": "other-s3cret"}}}
    changes = monitor_changes(declared, STORED)
    assert "s3cret" not in " ".join(changes.fields)
