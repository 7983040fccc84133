# SPDX-License-Identifier: Apache-2.0
"""Addresses and certificates with which no inbox can be read."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.inbox.reader import InboxAddress, InboxReader, InboxUnreachableError


def test_a_missing_certificate_is_named() -> None:
    address = InboxAddress("https://airflow.example", "c", "secret", ca_files=("/no/such/cert.pem",))
    with pytest.raises(
        ConfigurationError, match=r"'c': the certificates in '/no/such/cert.pem' cannot be read"
    ):
        InboxReader(address)


@pytest.mark.parametrize("url", ["http://[::1", "http://..", "http://a b"])
def test_an_address_that_is_no_url_does_not_answer(url: str) -> None:
    with InboxReader(InboxAddress(url, "c", "secret")) as inbox, pytest.raises(InboxUnreachableError):
        inbox.check()
