# SPDX-License-Identifier: Apache-2.0
"""The monitor of a declaration, in all short histories."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.inbox.wire import delivery_url, place_of
from airflow_provider_webdata.states.monitor_decision import (
    WAYS,
    Create,
    Declared,
    Listed,
    Mark,
    Refuse,
    Reporter,
    Use,
    decide,
    mark_of,
)
from tests.support.monitor_player import Player

HERE = Reporter("production", "https://airflow.example")
MARK = Mark("production", "d", "t", "prices")
THEIRS = MARK._replace(environment="laptop")
THEIR_URL = delivery_url("https://laptop.example", "web", "key")


@pytest.mark.slow
def test_all_short_histories() -> None:
    player = Player(decide)
    player.walk(4)
    assert player.states > 100_000
    # Every action, and every way out of a refusal.
    assert {*player.counts} == {Create.__name__, Use.__name__} | WAYS.keys()


def test_a_refusal_has_both_addresses_and_the_ways_out() -> None:
    declared = Declared(MARK, HERE, is_managed=True, is_answered=True)
    refusal = decide(declared, [Listed("m", "prices", THEIR_URL, THEIRS)])
    assert isinstance(refusal, Refuse)
    assert refusal.text == (
        "Monitor m ('prices') reports to another Airflow: https://laptop.example, environment 'laptop', task 't' of "
        "DAG 'd'. This one is https://airflow.example, environment 'production'. Use another name. To take it "
        "over, set adopt=True. If this Airflow was moved, set [webdata] environment to its former value, laptop"
    )


def test_a_refusal_has_no_password() -> None:
    declared = Declared(MARK, HERE, is_managed=True, is_answered=True)
    url = "https://user:hush@laptop.example/webdata/inbox/web/key"
    refusal = decide(declared, [Listed("m", "prices", url)])
    assert isinstance(refusal, Refuse)
    assert "https://user:***@laptop.example." in refusal.text
    assert "hush" not in refusal.text


def test_reuse_changes_nothing_and_therefore_refuses_no_other_declaration() -> None:
    declared = Declared(MARK, HERE, is_managed=True, is_answered=True, reuse=True)
    assert decide(declared, [Listed("m", "prices", THEIR_URL, THEIRS)]) == Use("m")


def test_a_monitor_may_report_to_another_airflow_by_the_webhook_of_its_author() -> None:
    declared = Declared(MARK, HERE, url=THEIR_URL)
    assert decide(declared, [Listed("m", "prices", THEIR_URL)]) == Use("m")
    assert isinstance(decide(declared._replace(url=None), [Listed("m", "prices", THEIR_URL)]), Refuse)


def test_a_monitor_that_was_renamed_in_the_dag_file_is_kept_by_its_id() -> None:
    declared = Declared(MARK._replace(name="costs"), HERE, is_managed=True, is_answered=True)
    former = Listed("m", "prices", delivery_url("https://airflow.example", "web", "key"), MARK)
    assert decide(declared, [former]) == Create()
    assert decide(declared._replace(monitor_id="m"), [former]) == Use("m", reports=True, key="key")


def test_labels_of_an_author_are_no_mark() -> None:
    assert mark_of(MARK.metadata) == MARK
    assert mark_of({**MARK.metadata, "run_id": "r"}) == MARK
    for labels in (None, {}, {"environment": "staging"}, {**MARK.metadata, "monitor": 1}):
        assert mark_of(labels) is None


@pytest.mark.parametrize("key", ["key", None])
def test_the_parts_of_an_address(key: str | None) -> None:
    url = delivery_url("https://airflow.example/base/", "a/b", key)
    assert place_of(url) == ("https://airflow.example/base", "a/b", key)


@pytest.mark.parametrize("url", [None, "", "https://chat.example/hook", "https://a.example/webdata/inbox/"])
def test_no_address_of_an_inbox(url: str | None) -> None:
    assert place_of(url) is None
