"""The address of an inbox, and how to connect to it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_webdata import __version__


@dataclass(frozen=True)
class InboxAddress:
    """Where an inbox is and how to show that one may read it.

    :param url: address of the server, without the inbox's own path.
    :param secret: the connection's signing secret, or its webhook secret where it has no other.
    :param ca_files: paths of CA bundles that are trusted besides the usual ones.
    """

    url: str
    conn_id: str
    secret: str = field(repr=False)
    verify: bool = True
    ca_files: tuple[str, ...] = ()


def client_options(address: InboxAddress) -> dict[str, Any]:
    """Return the arguments of `httpx.Client` and `httpx.AsyncClient` for an inbox."""
    verify: Any = address.verify
    if verify and address.ca_files and address.url.startswith("https:"):
        verify = ssl.create_default_context()
        for path in address.ca_files:
            verify.load_verify_locations(path)
    return {
        "headers": {
            "accept": "application/json",
            "user-agent": f"airflow-provider-webdata/{__version__}",
        },
        "follow_redirects": False,
        "verify": verify,
    }
