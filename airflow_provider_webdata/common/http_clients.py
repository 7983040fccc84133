# SPDX-License-Identifier: Apache-2.0
"""HTTP clients whose proxies come from the connection or from the environment."""

from __future__ import annotations

import ipaddress
import os
import ssl
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from airflow_provider_webdata.common.deadline import BlockingTransport
from airflow_provider_webdata.common.http_library import httpx
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.common.tls import UnusableVariableError, tls_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

log = logger(__name__)

PROXY_RULE = (
    "must be a URL that starts with http:// or https:// and names a host; in its user name and password, encode "
    "# / ? @ [ as %23 %2F %3F %40 %5B"
)


def http_client(*, is_direct: bool = False, **options: Any) -> httpx.Client:
    """Return a blocking client, which enforces deadlines; see `routed` for its proxies."""
    return httpx.Client(**routed(options, BlockingTransport, is_direct=is_direct))


def async_http_client(*, is_direct: bool = False, **options: Any) -> httpx.AsyncClient:
    """Return a non-blocking client; see `routed` for its proxies."""
    return httpx.AsyncClient(**routed(options, httpx.AsyncHTTPTransport, is_direct=is_direct))


def routed(options: Mapping[str, Any], transport: Callable[..., Any], *, is_direct: bool) -> dict[str, Any]:
    """Return the arguments of a client, with the proxies of the environment unless `proxy` is given.

    :param is_direct: whether the client ignores the environment, for requests that address a host by its IP:
        `NO_PROXY` lists names, see `goes_through_proxy`.
    :raises UnusableVariableError: a proxy in the environment is invalid, or a variable of TLS; see `tls_context`.
    """
    rest = {**options}
    verify, proxy = rest.pop("verify", True), rest.pop("proxy", None)
    context = tls_context(verify=verify) if isinstance(verify, bool) else verify
    limits = {"limits": rest.pop("limits")} if "limits" in rest else {}
    through = partial(transport, verify=context, trust_env=False, **limits)
    proxies = environment_proxies() if proxy is None and not is_direct else {}
    mounts = {pattern: None if url is None else through(proxy=url) for pattern, url in proxies.items()}
    return {**rest, "transport": through(proxy=proxy), "mounts": mounts, "trust_env": False}


def context_for(url: str, *, proxy: str | None = None, **options: Any) -> ssl.SSLContext:
    """Return the TLS context of a client for one host.

    Without TLS on the way, it trusts no server, and neither the environment nor a file is read.

    :param proxy: the client's own proxy.
    :param options: of `tls.tls_context`.
    :raises UnusableVariableError: see `routed`.
    """
    hops = (url, *([proxy] if proxy else filter(None, environment_proxies().values())))
    if any(hop.lower().startswith("https:") for hop in hops):
        return tls_context(**options)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def goes_through_proxy(url: httpx.URL, proxy: str | None) -> bool:
    """Return whether a client from `http_client` sends requests for a URL to a proxy, which then resolves the host.

    :param proxy: the client's own proxy.
    :raises UnusableVariableError: a proxy in the environment is invalid.
    """
    if proxy is not None:
        return True
    mounts = {
        pattern: None if found is None else _Route(is_proxied=True)
        for pattern, found in environment_proxies().items()
    }
    # By other rules than those of httpx, the client could resolve the name again, after the check of its addresses.
    with httpx.Client(transport=_Route(is_proxied=False), mounts=mounts, trust_env=False) as client:
        try:
            client.get(url)
        except _RouteFound as route:
            return route.is_proxied
    raise AssertionError("httpx sends each request by a transport")


class _RouteFound(Exception):  # noqa: N818 - ends a request that must not be sent
    def __init__(self, *, is_proxied: bool) -> None:
        self.is_proxied = is_proxied


class _Route(httpx.BaseTransport):
    def __init__(self, *, is_proxied: bool) -> None:
        self._is_proxied = is_proxied

    def handle_request(self, request: httpx.Request) -> httpx.Response:  # noqa: ARG002
        raise _RouteFound(is_proxied=self._is_proxied)


def is_proxy(url: str, *, may_be_socks: bool = False) -> bool:
    """Return whether a text is the URL of an HTTP proxy.

    :param may_be_socks: whether a SOCKS proxy is accepted too, if its library is installed.
    """
    try:
        parts = httpx.URL(url)
        _ = urlsplit(url).port
    except (ValueError, httpx.InvalidURL):
        return False
    schemes = {"http", "https"}
    if may_be_socks and find_spec("socksio"):
        schemes |= {"socks5", "socks5h"}
    # An unescaped # / or ? in a password would end the host, and the user name would be taken for it.
    return (
        parts.scheme in schemes
        and bool(parts.host)
        and "@" not in f"{parts.raw_path.decode()}{parts.fragment}"
    )


def environment_proxies() -> dict[str, str | None]:
    """Return the proxies of the environment by URL pattern of httpx; None: no proxy.

    :raises UnusableVariableError: a proxy is invalid.
    """
    given = getproxies()
    hosts = [host.strip() for host in given.get("no", "").split(",") if host.strip()]
    if "*" in hosts:
        return {}
    proxies: dict[str, str | None] = {}
    for scheme in ("http", "https", "all"):
        if url := given.get(scheme):
            url = url if "://" in url else f"http://{url}"
            if not is_proxy(url, may_be_socks=True):
                lower = f"{scheme}_proxy"
                name = lower if os.environ.get(lower) else lower.upper()
                raise UnusableVariableError(f"The environment variable {name} {PROXY_RULE}")
            proxies[f"{scheme}://"] = url
    if proxies:
        proxies |= dict.fromkeys(_bypassed(tuple(hosts)))
    return proxies


@lru_cache(maxsize=8)
def _bypassed(hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the patterns of hosts without a proxy, as httpx derives them. Warns about the others once."""
    ignored = [host for host in hosts if not any(True for _ in _patterns(host))]
    if ignored:
        log.warning(
            "NO_PROXY: %d of %d entries are ignored, because they are neither hosts nor addresses (IPv6 networks are "
            "unsupported): %s",
            len(ignored),
            len(hosts),
            ", ".join(ignored[:5]),
        )
    return tuple(pattern for host in hosts for pattern in _patterns(host))


def _patterns(host: str) -> Iterator[str]:
    plain = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        address = ipaddress.ip_address(plain.partition("/")[0])
    except ValueError:
        pattern = host if "://" in host else f"all://{'' if host.lower() == 'localhost' else '*'}{host}"
    else:
        if address.version == 6 and "/" in plain:
            return
        pattern = f"all://[{plain}]" if address.version == 6 else f"all://{plain}"
    try:
        httpx.URL(pattern)
    except (ValueError, httpx.InvalidURL):
        return
    yield pattern
