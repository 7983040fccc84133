# SPDX-License-Identifier: Apache-2.0
"""Normalization of host names and addresses, and the check for public ones.

An untrusted host name is resolved once, its addresses are checked, and the connection uses one of them. This prevents
DNS rebinding.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_webdata.common.http_library import httpx

# Characters that programs interpret differently, so that they may see different hosts.
_AMBIGUOUS = re.compile(r"[\\\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]")
_HTTP = re.compile(r"https?://", re.IGNORECASE)
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")

_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""The global unicast range of IANA; excludes translation, site-local, and IPv4-compatible prefixes."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_INTERNAL = (
    # IANA's protocol assignments, which older Pythons call global in part. Oracle's cloud has its metadata in them.
    ipaddress.ip_network("192.0.0.0/24"),
    # The virtual machine's host in Azure, in a public range.
    ipaddress.ip_network("168.63.129.16/32"),
)


_PRIVATE_DOMAINS = frozenset({"localhost", "local", "internal"})


class HostRefusedError(Exception):
    """A host has no public address; the message contains the host and its addresses."""


def normal_host(host: str) -> str | None:
    """Normalize a host according to the URL standard; return None if it is invalid.

    Names are in lower case and punycode, without a trailing dot. IPv4 addresses in any notation (short, octal,
    hexadecimal, a single number, full-width digits, mapped to IPv6) become dotted decimals. IPv6 has no brackets.
    """
    from ada_url import URL

    bare = host.removeprefix("[").removesuffix("]")
    if _AMBIGUOUS.search(host) or any(sign in host for sign in "/?#@%"):
        return None
    try:
        found = URL(f"http://[{bare}]/" if ":" in bare else f"http://{host}/").hostname
    except ValueError:
        return None
    if found.startswith("["):
        address = ipaddress.IPv6Address(found[1:-1])
        return str(_inner_ipv4(address) or address)
    found = found.removesuffix(".")
    return found if _NAME.fullmatch(found) else None


def url_host(url: str) -> str | None:
    """Return the normalized host of an http(s) URL (see `normal_host`), or None if it is missing or ambiguous.

    :param url: the URL; without a protocol, `http://` is assumed, as in the service.
    """
    if "://" in url:
        if not _HTTP.match(url):
            return None
        url = url.partition("://")[2]
    authority = re.split(r"[/?#]", url, maxsplit=1)[0]
    if _AMBIGUOUS.search(url):
        return None
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, ""
    if (port and not (port.isascii() and port.isdecimal() and int(port[:6]) < 2**16)) or (
        ":" in host and not (host.startswith("[") and host.endswith("]"))
    ):
        return None
    return normal_host(host)


def is_loopback(host: str | None) -> bool:
    """Return whether a host is this machine, without a DNS lookup."""
    if host is None:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_private_name(host: str) -> bool:
    """Return whether a normalized host is private by its form, without a DNS lookup.

    Such are private addresses, names of one label, as of services in Compose, and names below `localhost`, `local`, and
    `internal`.
    """
    try:
        return not is_public(host)
    except ValueError:
        return "." not in host or host.rpartition(".")[2] in _PRIVATE_DOMAINS


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to the public internet."""
    found: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = _inner_ipv4(found) or found.sixtofour
        if inner is None and found not in _GLOBAL_UNICAST:
            return False
        found = inner or found
    return found.is_global and not found.is_multicast and not any(found in network for network in _INTERNAL)


def addresses_for(url: httpx.URL, allowed: Collection[str]) -> list[str]:
    """Return the permitted IP addresses of a URL's host, best first.

    :param allowed: normalized hosts (see `normal_host`) that may have any address.
    :raises HostRefusedError: the host has no public address.
    :raises OSError: the name cannot be resolved.
    """
    host = normal_host(url.host)
    if host is None:
        raise HostRefusedError(f"{url.host!r} is no host name or address")
    port = url.port or (443 if url.scheme == "https" else 80)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if host in allowed:
        return addresses
    public = [address for address in addresses if is_public(address)]
    if not public:
        raise HostRefusedError(f"{host} is no public host ({', '.join(addresses)})")
    return public


def _inner_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that is embedded in an IPv6 address, if any."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped
