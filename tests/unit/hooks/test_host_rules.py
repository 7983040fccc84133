# SPDX-License-Identifier: Apache-2.0
"""Hosts that a guarded hook lets the service visit, in any spelling of the URL."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.hosts import url_host
from airflow_provider_webdata.hooks.host_rules import HostRules

PRIVATE = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f.0.0.1/",
    "http://017700000001/",
    "http://[::1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::a00:1]/",
    "http://[fe80::1]/",
    "http://10.0.0.1:8080/admin",
    "http://172.16.5.4/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0.0.0.0/",
    "http://224.0.0.1/",
    "127.0.0.1:8080/admin",
    "localhost/",
    "http://LOCALHOST./",
    "http://api.localhost/",
    "http://metadata.google.internal/",
    "http://printer.local/",
    "http://intranet/wiki",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://127\u30020\u30020\u30021/",
    "http://169.254.169.254\u3002/",
    "http://169.254.169.254\uff61/",
    "http://[::127.0.0.1]/",
    "http://[fec0::1]/",
    "http://[64:ff9b:1::808:808]/",
]
UNREADABLE = [
    "http://127.0.0.1\\@good.example/",
    "http://good.example\\.evil.example/",
    "http://user:secret@good.example/",
    "http://good.example @evil.example/",
    "http://good.example\n.evil.example/",
    "http://%31%32%37.0.0.1/",
    "http://good.example:port/",
    "http://[::1/",
    "ftp://good.example/",
    "file:///etc/passwd",
    "javascript://good.example/",
    "http://",
    "",
]


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What names lead to; others are not known."""
    known = {
        "good.example": ["93.184.216.34"],
        "two-faced.example": ["93.184.216.34", "10.0.0.7"],
        "inside.example": ["10.0.0.7"],
    }

    def lookup(host: str, *_: Any, **__: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror
        return [(0, 0, 0, "", (address, 0)) for address in known[host]]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return known


def test_private_addresses_are_refused_in_every_spelling() -> None:
    problems = {url: str(HostRules(None).problem(url, resolve=False)) for url in PRIVATE}
    assert [
        url
        for url, problem in problems.items()
        if not problem.endswith("is a private address or resolves to one")
    ] == []


def test_urls_that_programs_parse_differently_are_refused() -> None:
    rules = HostRules(["good.example"])
    assert [url for url in UNREADABLE if url_host(url) is not None] == []
    assert [
        url for url in UNREADABLE if "is not an http(s) URL" not in str(rules.problem(url, resolve=False))
    ] == []


@pytest.mark.parametrize(
    ("host", "is_refused"),
    [
        ("good.example", False),
        ("unknown.example", False),
        ("inside.example", True),
        ("two-faced.example", True),
    ],
)
def test_a_name_is_looked_up(host: str, is_refused: bool) -> None:
    rules = HostRules(None)
    assert (rules.problem(f"https://{host}/", resolve=True) is not None) is is_refused
    # What was looked up once is known.
    assert (rules.problem(f"https://{host}/", resolve=False) is not None) is is_refused


@pytest.mark.parametrize(
    ("allowed", "url", "is_allowed"),
    [
        (["good.example"], "https://good.example/a", True),
        (["good.example"], "https://docs.good.example/", True),
        (["GOOD.example."], "good.example:8443/a", True),
        (["good.example"], "https://notgood.example/", False),
        (["good.example"], "https://good.example.evil.example/", False),
        (["good.example"], "https://evil.example/?good.example", False),
        (["good.example"], "https://evil.example#good.example", False),
        (["docs.good.example"], "https://good.example/", False),
        ([], "https://good.example/", False),
        (None, "https://good.example/", True),
        (["good.example"], "https://www.good\uff0eexample\u3002/", True),
        (["93.184.216.34"], "http://[::ffff:93.184.216.34]/", True),
        (["93.184.216.34"], "http://0x5db8d822/", True),
        (["b\u00fccher.example"], "https://xn--bcher-kva.example/", True),
        # Who names a private host means it; those below it are not named.
        (["10.0.0.5", "wiki.internal"], "http://10.0.0.5/", True),
        (["10.0.0.5", "wiki.internal"], "http://wiki.internal/", True),
        (["wiki.internal"], "http://deep.wiki.internal/", False),
        (["::1"], "http://[::1]/", True),
    ],
)
def test_domains(allowed: Any, url: str, is_allowed: bool) -> None:
    assert (HostRules(allowed).problem(url, resolve=False) is None) is is_allowed


def test_invalid_domains_are_refused() -> None:
    for domain in ("https://a.example", "a.example/path", "*.a.example", "", "a b", "a@b.example"):
        with pytest.raises(ArgumentError, match=r"allowed_domains: .* is not a host name"):
            HostRules([domain])
    with pytest.raises(ArgumentError, match="allowed_domains: must be a list"):
        HostRules("a.example")


@given(st.text())
def test_any_text_is_judged(url: str) -> None:
    host = url_host(url)
    assert host is None or host == url_host(f"http://[{host}]/" if ":" in host else f"http://{host}/")
    HostRules(["good.example"]).problem(url, resolve=False)
