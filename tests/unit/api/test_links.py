# SPDX-License-Identifier: Apache-2.0
"""The trusted part of a `next` link: its path below `/v2/`, and its query."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.errors import InvalidResponseError
from airflow_provider_webdata.api.exchange import path_and_query, prepare_link

LONG = "https://a.example/" + "x" * 300


@pytest.mark.parametrize(
    ("link", "trusted"),
    [
        ("https://a.example/v2/crawl/j?skip=10&limit=5", "/v2/crawl/j?skip=10&limit=5"),
        ("http://10.0.0.1:3002/v2/crawl/j", "/v2/crawl/j"),
        ("https://a.example/some/proxy/v2/crawl/j?skip=1", "/v2/crawl/j?skip=1"),
        ("/v2/crawl/j?skip=1", "/v2/crawl/j?skip=1"),
        ("https://a.example/v2/crawl/j?next=/v2/../x", "/v2/crawl/j?next=/v2/../x"),
        ("https://a.example/v2/a..b", "/v2/a..b"),
    ],
)
def test_trusted_part(link: str, trusted: str) -> None:
    assert path_and_query(endpoints.CRAWL_STATUS, link) == trusted
    config = ClientConfig(base_url="https://own.example", api_key="k")
    prepared = prepare_link(config, endpoints.CRAWL_STATUS, link)
    assert (prepared.request["method"], prepared.request["url"]) == ("GET", f"https://own.example{trusted}")


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("https://a.example/v1/crawl", "'https://a.example/v1/crawl'"),
        ("https://a.example/?x=/v2/", "'https://a.example/?x=/v2/'"),
        ("https://a.example/v2/../admin", "'https://a.example/v2/../admin'"),
        ("https://[broken/v2/", "'https://[broken/v2/'"),
        ("", "''"),
    ],
)
def test_a_link_that_leads_elsewhere(link: str, shown: str) -> None:
    with pytest.raises(InvalidResponseError) as caught:
        path_and_query(endpoints.CRAWL_STATUS, link)
    assert f"{endpoints.CRAWL_STATUS.label}: " in str(caught.value)
    assert f"the next link {shown} has no path below /v2/" in str(caught.value)
    assert caught.value.status == 200


def test_a_long_link_is_shown_in_part() -> None:
    with pytest.raises(InvalidResponseError) as caught:
        path_and_query(endpoints.CRAWL_STATUS, LONG)
    assert LONG[:150] in str(caught.value)
    assert LONG not in str(caught.value)
