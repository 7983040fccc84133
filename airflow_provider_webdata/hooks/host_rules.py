"""Which hosts a guarded hook may have the service visit."""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.results.media_hosts import is_public

if TYPE_CHECKING:
    from collections.abc import Iterable

# What programs read in different ways: one may see another host there than the next.
_AMBIGUOUS = re.compile(r"[\s\\\x00-\x20\x7f]")

_PLAIN = re.compile(r"[a-z0-9_.-]+")

_INSIDE = (".localhost", ".local", ".internal", ".intranet", ".lan", ".corp", ".home", ".home.arpa")
"""Domains that no public host has. A name without a dot is none either."""


def host_of(url: str) -> str | None:
    """Return the host of an http(s) URL in one form, or None if it has none that all programs agree on.

    :param url: without a protocol, `http://` is assumed, as the service does.
    """
    if _AMBIGUOUS.search(url):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme.lower() not in {"http", "https"} or not host or "@" in parts.netloc or "%" in host:
        return None
    host = unicodedata.normalize("NFKC", host).rstrip(".").lower()
    if ":" in host:
        return host
    try:
        ascii_host = host.encode("idna").decode()
    except UnicodeError:
        return None
    return ascii_host if _PLAIN.fullmatch(ascii_host) else None


class HostRules:
    """Tells which URLs may be visited: public ones, of allowed domains, and of no blocked one.

    :param allowed: host names or IP addresses; a name covers its subdomains. None: all.
    :param blocked: the same, of what may not be visited though it is allowed. None: none.
    :raises ArgumentError: one is no host name or address.
    """

    def __init__(self, allowed: Iterable[str] | None, blocked: Iterable[str] | None) -> None:
        self.allowed = None if allowed is None else _hosts("allowed_domains", allowed)
        self.blocked = _hosts("blocked_domains", blocked or ())
        self._inside: dict[str, bool] = {}

    @property
    def limits_domains(self) -> bool:
        """Whether some public hosts may not be visited."""
        return self.allowed is not None or bool(self.blocked)

    def problem(self, url: str, *, resolve: bool) -> str | None:
        """Return why a URL may not be visited, or None if it may.

        :param resolve: look the name up, to see whether it leads to a private address. A name that is not known here
            is left to the service.
        """
        host = host_of(url)
        if host is None:
            return f"{url[:200]!r} is no http(s) URL with a plain host name"
        if self.allowed is not None and not _covers(self.allowed, host):
            return f"{host} is not among the allowed domains ({', '.join(self.allowed) or 'none'})"
        if _covers(self.blocked, host):
            return f"{host} is a blocked domain"
        # Who names a host means it, wherever it stands.
        if host not in (self.allowed or ()) and self._is_inside(host, resolve):
            return f"{host} is a private address, or leads to one"
        return None

    def _is_inside(self, host: str, resolve: bool) -> bool:
        address = _address(host)
        if address is not None:
            return not is_public(address)
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
        host = host_of(f"[{item}]" if isinstance(item, str) and item.count(":") > 1 else str(item))
        if host is None or any(sign in str(item) for sign in ("://", "/", "*", "?", "#")):
            raise ArgumentError(
                f"{name}: {item!r} is no host name; write example.com, which covers its subdomains, without "
                "protocol, path or wildcard"
            )
        hosts.append(host)
    return tuple(dict.fromkeys(hosts))


def _covers(domains: Iterable[str], host: str) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _address(host: str) -> str | None:
    """Return the IP address that a host is, also in the short, octal and hexadecimal forms of IPv4."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return None


def _leads_inside(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return not all(is_public(str(entry[4][0])) for entry in found)
