# SPDX-License-Identifier: Apache-2.0
"""What asset events carry."""

from __future__ import annotations

from types import SimpleNamespace

from airflow.sdk import Asset, AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_webdata.results.assets import annotate_outlets

FACTS = {"path": "s3://b/x.jsonl", "count": 3, "creditsUsed": 2, "warning": None}


def test_each_outlet_is_told():
    pages, alias = Asset("s3://b/x.jsonl"), AssetAlias("pages")
    events = OutletEventAccessors()
    events[pages].extra["count"] = "the author's own"
    context = {"outlet_events": events, "task": SimpleNamespace(outlets=[pages, alias, "something else"])}
    annotate_outlets(context, FACTS)
    assert events[pages].extra == {"path": "s3://b/x.jsonl", "count": "the author's own", "credits_used": 2}
    assert events[alias].extra == {"path": "s3://b/x.jsonl", "count": 3, "credits_used": 2}


def test_outside_of_a_task():
    annotate_outlets({}, FACTS)
