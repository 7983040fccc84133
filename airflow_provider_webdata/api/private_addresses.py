"""Advice about private addresses, which a self-hosted server refuses unless it is configured to accept them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.common.hosts import is_private_name, url_host

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_webdata.api.servers import Server


def may_refuse_private(code: object) -> bool:
    """Return whether a failed page with this code may be a refused private address: other codes name their cause."""
    return code == "SCRAPE_ALL_ENGINES_FAILED" or not str(code or "").startswith("SCRAPE_")


def private_target_remedy(server: Server, urls: Iterable[object]) -> str:
    """Return the next step after a page failed, as the rest of a sentence; empty if no URL is private."""
    host = _first_private(server, urls)
    if host is None:
        return ""
    return (
        f"set {server.local_switch} for the server, which otherwise refuses private addresses such as {host}"
    )


def private_webhook_note(server: Server, url: str) -> str:
    """Return what deliveries to a private webhook URL require, as a sentence; empty if the URL is not private."""
    host = _first_private(server, [url])
    if host is None:
        return ""
    return f"{host} is a private address, to which the server delivers only with {server.local_switch}"


def _first_private(server: Server, urls: Iterable[object]) -> str | None:
    if server.local_switch is None:
        return None
    hosts = (url_host(url) for url in urls if isinstance(url, str))
    return next((host for host in hosts if host is not None and is_private_name(host)), None)
