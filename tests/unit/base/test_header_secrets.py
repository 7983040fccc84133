# SPDX-License-Identifier: Apache-2.0
"""Secrets in rendered arguments: the values of headers, and passwords and tokens in URLs."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.base.arguments.header_secrets import header_values, secrets_in_urls

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


URLS = [
    ("https://user:p%40ss@a.example/", ["p%40ss", "p@ss"]),
    ("https://user:p@ss@a.example/", ["p@ss"]),
    (
        {"urls": ["https://a.example/?token=t-1&page=2", "see http://b.example/?a=b&api_key=t-2."]},
        ["t-1", "t-2."],
    ),
    ("https://a.example/?X-Amz-Signature=t-3&X-Amz-Date=d&sig=t-4#access_token=t-5", ["t-3", "t-4", "t-5"]),
    ("https://a.example:8080/a@b?tokens=1&q=token&design=x&authors=y", []),
    ("token=words", []),
    (["https://user@a.example/", 5, None], []),
    ("https://a.example/?key=t-6&keyword=tea&monkey=x#pass=t-7", ["t-6", "t-7"]),
    (
        "https://a.example/?Subscription-Key=t-8&sort_key=price&sid=t-9;jsessionid=t-10",
        ["t-8", "t-9", "t-10"],
    ),
    ("https://a.example/?user[password]=t-11&user%5Bpass%5D=t-12&tokens[]=5&x[keys]=y", ["t-11", "t-12"]),
    (
        "https://a.example/?to=https%3A%2F%2Fb.example%2F%3Fa%3Db%26api_key%3Dt-13%26c%3Dd%23token%3Dt-14&e=f",
        ["t-13", "t-14"],
    ),
    ("https://ghp_0123456789abcdefghij:x-oauth@a.example/", ["ghp_0123456789abcdefghij", "x-oauth"]),
    ("https://ghp_0123456789abcdefghij@a.example/", ["ghp_0123456789abcdefghij"]),
]


@pytest.mark.parametrize(("value", "secrets"), URLS)
def test_secrets_in_urls(value, secrets):
    assert secrets_in_urls(value) == secrets
