"""Header values in rendered arguments, which are secrets."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.tasks.header_secrets import header_values

VALUES = [
    ({"headers": {"X-Key": "secret-1"}}, ["secret-1"]),
    ([{"scrapeOptions": {"headers": {"Cookie": "secret-2"}}}, {"webhook": {"Headers": {"A": "secret-3"}}}],
     ["secret-2", "secret-3"]),
    ({"headers": {"Accept-Language": "en-US", "User-Agent": "me"}}, []),
    ({"headers": {"X-Number": 12345, "X-None": None, "X-Empty": ""}}, ["12345"]),
    ({"headers": "no mapping", "header": {"X": "y"}}, []),
    ('{"webhook": {"headers": {"X-Key": "secret-4"}}}', ["secret-4"]),
    ({"headers": '{"X-Key": "secret-5"}', "url": "https://a.example/"}, ["secret-5"]),
    ("{'url': 'https://a.example/', 'headers': {'X-Key': 'secret-6'}}", ["secret-6"]),
    ("[{'type': 'scrape', 'scrapeOptions': {'headers': {'X-Key': 'secret-7'}}}]", ["secret-7"]),
    ({"headers": "{'X-Key': 'secret-8'}"}, ["secret-8"]),
    ({"headers": "{'X-Key': undefined}"}, []),
    ({"headers": "{{ not JSON }}"}, []),
    ("plain words about headers", []),
    ('"headers"', []),
    (None, []),
]  # fmt: skip


@pytest.mark.parametrize(("value", "secrets"), VALUES)
def test_header_values(value, secrets):
    """At any depth, except for public headers."""
    assert header_values(value) == secrets
