"""Host names and addresses in one spelling, and which of them are public.

A name that a stranger chose is resolved once, its addresses are judged, and the connection is made to one of those: a
name server that answers another address the next time gains nothing.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import urllib.request
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_webdata.common.http_library import httpx

# What programs read in different ways: one may see another host there than the next.
_AMBIGUOUS = re.compile(r"[\\\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]")
_HTTP = re.compile(r"https?://", re.IGNORECASE)
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")

_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""All that IANA has allocated to public hosts; translation, site-local and IPv4-compatible prefixes are outside."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class HostRefusedError(Exception):
    """No public address; the message names the host and its addresses."""


def normal_host(host: str) -> str | None:
    """Return a host as the URL standard reads it, or None if it is no host.

    Names are in lower case and punycode, without a dot at the end; IPv4 in four decimals, however written (short,
    octal, hexadecimal, as one number, in full-width digits, mapped into IPv6); IPv6 without brackets.
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
    """Return the host of an http(s) URL, see `normal_host`, or None if it has none that all programs agree on.

    :param url: without a protocol, `http://` is assumed, as the service does.
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


def is_public(address: str) -> bool:
    """Return whether an IP address is reached over the public internet."""
    found: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = _inner_ipv4(found) or found.sixtofour
        if inner is None and found not in _GLOBAL_UNICAST:
            return False
        found = inner or found
    return found.is_global and not found.is_multicast


def addresses_for(url: httpx.URL, allowed: Collection[str]) -> list[str]:
    """Return the IP addresses at which a URL's host may be asked, best first.

    :param allowed: hosts, see `normal_host`, that may have any address.
    :raises HostRefusedError: none is public.
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


def goes_through_proxy(url: httpx.URL, proxy: str | None) -> bool:
    """Return whether a proxy, of the connection or of the environment, resolves the URL's host."""
    found = urllib.request.getproxies()
    in_environment = url.scheme in found or "all" in found
    return proxy is not None or (in_environment and not urllib.request.proxy_bypass(url.host))


def _inner_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that an IPv6 address stands for, if it does."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped
