# SPDX-License-Identifier: Apache-2.0
"""Rules for the hosts that the service may visit for a guarded hook."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.hosts import is_public, url_host

if TYPE_CHECKING:
    from collections.abc import Iterable

_INSIDE = (".localhost", ".local", ".internal", ".intranet", ".lan", ".corp", ".home", ".home.arpa")
"""Domains of private hosts. A name without a dot is private too."""


class HostRules:
    """Rules for the URLs that may be visited: those of public hosts and of explicitly allowed ones.

    :param allowed: host names or IP addresses; a name includes its subdomains. None: all.
    :raises ArgumentError: an item is not a host name or address.
    """

    def __init__(self, allowed: Iterable[str] | None) -> None:
        self.allowed = None if allowed is None else _hosts("allowed_domains", allowed)
        self._inside: dict[str, bool] = {}

    def problem(self, url: str, *, resolve: bool) -> str | None:
        """Return why a URL may not be visited, or None if it may.

        :param resolve: look up the host name and refuse private addresses. A name that does not resolve here is left
            to the service.
        """
        host = url_host(url)
        if host is None:
            return f"{url[:200]!r} is not an http(s) URL with a plain host name"
        if self.allowed is not None and not _covers(self.allowed, host):
            return f"{host} is not among the allowed domains ({', '.join(self.allowed) or 'none'})"
        # A host that is explicitly allowed may be private.
        if host not in (self.allowed or ()) and self._is_inside(host, resolve):
            return f"{host} is a private address or resolves to one"
        return None

    def _is_inside(self, host: str, resolve: bool) -> bool:
        with suppress(ValueError):
            return not is_public(host)
        if "." not in host or host.endswith(_INSIDE):
            return True
        if not resolve:
            return self._inside.get(host, False)
        if host not in self._inside:
            self._inside[host] = _leads_inside(host)
        return self._inside[host]


def _hosts(name: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise ArgumentError(f"{name}: must be a list of host names (given: text {given!r})")
    hosts = []
    for item in given:
        host = url_host(f"[{item}]" if isinstance(item, str) and item.count(":") > 1 else str(item))
        if host is None or any(sign in str(item) for sign in ("://", "/", "*", "?", "#")):
            raise ArgumentError(
                f"{name}: {item!r} is not a host name; write example.com, which includes its subdomains, without "
                "scheme, path, or wildcard"
            )
        hosts.append(host)
    return tuple(dict.fromkeys(hosts))


def _covers(domains: Iterable[str], host: str) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _leads_inside(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return not all(is_public(str(entry[4][0])) for entry in found)
