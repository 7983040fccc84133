# SPDX-License-Identifier: Apache-2.0
"""Validation and canonical forms of URLs and host names."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit, urlunsplit

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_HOSTNAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def is_hostname(text: str) -> bool:
    """Return whether the text is a host name: at most 253 characters, without scheme, port, or path."""
    return len(text) <= 253 and _HOSTNAME.fullmatch(text) is not None


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(host: str) -> bool:
    """Return whether the host is this machine, or an address of a private network."""
    if is_loopback(host):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False


def is_address(host: str) -> bool:
    """Return whether the host is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_public(url: str) -> bool:
    """Return whether the service would scrape the URL: http(s), and a host that has a TLD or is an IP address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https"):
        return False
    return is_address(host) or (re.fullmatch(r"([\w-]{1,63}\.)+[^\W\d_][\w-]{1,62}\.?", host) is not None)


def with_scheme(url: str) -> str:
    """Return the URL without blanks around it, prefixed with ``http://`` if it has no scheme."""
    url = url.strip()
    return url if "://" in url else f"http://{url}"


def canonical(url: str) -> str:
    """Return the canonical form of a URL: with scheme, host in lower case, no fragment, no trailing slash."""
    parts = urlsplit(with_scheme(url))
    scheme = "https" if parts.scheme == "http" else parts.scheme.lower()
    return urlunsplit((scheme, parts.netloc.lower(), parts.path.rstrip("/") or "/", parts.query, ""))


def bare(url: str, *, query: bool) -> str:
    """Return the URL without its last slash, even that of the front page, and, unless ``query``, without its query."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/"), query=parts.query if query else ""))


def host_of(url: str) -> str:
    """Return the host of a URL in lower case; empty if it has none."""
    return (urlsplit(url).hostname or "").lower()


def in_domain(host: str, domain: str) -> bool:
    """Return whether a host is the domain or one of its subdomains."""
    domain = domain.strip().lower()
    return host == domain or host.endswith("." + domain)


def base_domain(host: str) -> str:
    """Return the registered domain of a host, approximated by the last two labels."""
    return ".".join(host.split(".")[-2:])
