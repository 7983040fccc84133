# SPDX-License-Identifier: Apache-2.0
"""Changed values of pages, as the overview and the card show them."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.api.models import MonitorCheckPage
from airflow_provider_webdata.ui.changes import ChangedValue, values_in

URL = "https://docs.example/"


@pytest.mark.parametrize(
    ("diff", "change"),
    [
        ("-8 EUR\n+9 EUR", ("8 EUR", "9 EUR")),
        # Markdown has empty lines between paragraphs.
        ("-Old\n+\n+New", ("Old", "New")),
        (" same\n+\n+New", ("", "New")),
        # Lines of two places are not one change.
        ("+Added above\n same\n-8 EUR\n+9 EUR", ("", "Added above")),
    ],
)
def test_the_first_change_of_a_text(diff: str, change: tuple[str, str]) -> None:
    page = MonitorCheckPage.model_validate({"url": URL, "status": "changed", "diff": diff})
    assert [*values_in(page)] == [ChangedValue(URL, "text", *change)]


def test_a_sentence_is_short() -> None:
    """A paragraph does not fill Airflow's Home, and leaves room for what it became."""
    sentence = ChangedValue(URL, "text", "a" * 1000, "b" * 1000).sentence
    assert len(sentence) < 300
    assert "a… → b" in sentence
