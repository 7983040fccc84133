# SPDX-License-Identifier: Apache-2.0
"""The addresses of the inbox."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.inbox.wire import delivery_url, is_key


@pytest.mark.parametrize(
    ("base", "conn_id", "key", "url"),
    [
        ("https://a.example", "web", "k-1", "https://a.example/webdata/inbox/web/k-1"),
        ("https://a.example/", "web", None, "https://a.example/webdata/inbox/web"),
        ("https://a.example/airflow", "web", "k", "https://a.example/airflow/webdata/inbox/web/k"),
        ("https://a.example/webdata/inbox/", "web", "k", "https://a.example/webdata/inbox/web/k"),
        ("https://a.example", "team a/web", None, "https://a.example/webdata/inbox/team%20a%2Fweb"),
    ],
)
def test_delivery_url(base, conn_id, key, url):
    assert delivery_url(base, conn_id, key) == url


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("k", True),
        ("A-z_0.9~", True),
        ("k" * 200, True),
        ("k" * 201, False),
        ("", False),
        ("a/b", False),
        ("ä", False),
    ],
)
def test_is_key(text, fits):
    assert is_key(text) is fits
