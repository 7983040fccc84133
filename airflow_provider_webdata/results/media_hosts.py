"""Which hosts media is fetched from: a page that is scraped says where its media is, and must not reach inside.

A name is resolved once, its addresses are judged, and the connection is made to one of those: whoever answers another
address the next time gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket
import urllib.request
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    import httpx

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class HostRefusedError(Exception):
    """Media is not fetched from this host; the message says why, and how to allow it."""


def is_public(address: str) -> bool:
    """Return whether an IP address is reached over the public internet."""
    found: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    return found.is_global and not found.is_multicast


def addresses_for(url: httpx.URL, allowed: Collection[str]) -> list[str]:
    """Return the IP addresses at which a URL's host may be asked, best first.

    :param allowed: hosts, in lower case, that may have any address.
    :raises HostRefusedError: none is public.
    :raises OSError: the name cannot be resolved.
    """
    host = url.host
    port = url.port or (443 if url.scheme == "https" else 80)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if host.lower() in allowed:
        return addresses
    public = [address for address in addresses if is_public(address)]
    if not public:
        raise HostRefusedError(
            f"is not fetched: {host} is no public host ({', '.join(addresses)}). To allow it, name it in the "
            "connection's media_hosts"
        )
    return public


def goes_through_proxy(url: httpx.URL, proxy: str | None) -> bool:
    """Return whether a proxy, of the connection or of the environment, resolves the URL's host."""
    found = urllib.request.getproxies()
    in_environment = url.scheme in found or "all" in found
    return proxy is not None or (in_environment and not urllib.request.proxy_bypass(url.host))
