# SPDX-License-Identifier: Apache-2.0
"""Hosts in every spelling that a list of tricks against server-side request forgery knows."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.common.hosts import is_private_name, is_public, normal_host, url_host

DOTS = ("\u3002", "\uff0e", "\uff61")

# Host, and what it is.
HOSTS: list[tuple[str, str | None]] = [
    *((f"169.254.169.254{dot}", "169.254.169.254") for dot in DOTS),
    *((f"169{dot}254{dot}169{dot}254", "169.254.169.254") for dot in DOTS),
    ("\u2460\u2461\u2466.0.0.1", "127.0.0.1"),
    ("0x7f.1", "127.0.0.1"),
    ("0177.0.0.01", "127.0.0.1"),
    ("2130706433", "127.0.0.1"),
    ("[::ffff:10.0.0.1]", "10.0.0.1"),
    ("[::FFFF:A00:1]", "10.0.0.1"),
    ("[64:ff9b::10.0.0.1]", "10.0.0.1"),
    ("[0:0:0:0:0:0:0:1]", "::1"),
    ("2606:4700::1111", "2606:4700::1111"),
    ("B\u00dcCHER.example.", "xn--bcher-kva.example"),
    ("fa\u00df.example", "xn--fa-hia.example"),
    ("\u24d4xample.com", "example.com"),
    ("exa\u00admple.com", "example.com"),
    ("a_b.example", "a_b.example"),
    ("1.2.3.4.5", None),
    ("256.1.1.1", None),
    ("a.0x7f", None),
    ("a..example", None),
    (".example", None),
    (f"{'a' * 64}.example", None),
    ("a.example:80", None),
    ("user@a.example", None),
    ("a.example%00", None),
    ("a.ex\ud800mple", None),
    ("[::1%25eth0]", None),
    ("a.example\u2028b", None),
    ("*.example", None),
    ("", None),
]


def test_a_host_has_one_spelling() -> None:
    assert {host: normal_host(host) for host, _ in HOSTS} == dict(HOSTS)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("HTTPS://A.example:8443/b@c?d#e", "a.example"),
        ("a.example:80/x", "a.example"),
        ("http://a.example:", "a.example"),
        ("http://a.example:65536", None),
        ("http://a.example:\u0661", None),
        ("http:///a.example", None),
        ("http:a.example", None),
        ("ftp://a.example", None),
        ("http://::1/", None),
        ("http://[::1]:80/", "::1"),
        ("http://a.example\\.b.example/", None),
    ],
)
def test_the_host_of_a_url(url: str, host: str | None) -> None:
    assert url_host(url) == host


def test_hosts_that_are_private_by_their_form() -> None:
    private = "localhost a.localhost api host.docker.internal nas.local 10.0.0.5 172.16.0.1 192.168.1.1 127.0.0.1 ::1"
    private += " 169.254.169.254 fe80::1 fd00::1"
    assert [host for host in private.split() if not is_private_name(host)] == []
    public = "river.example 8.8.8.8 2606:4700::1111 localhost.example internal.example"
    assert [host for host in public.split() if is_private_name(host)] == []


def test_addresses_outside_global_unicast_are_not_public() -> None:
    inside = """::127.0.0.1 ::8.8.8.8 fec0::1 64:ff9b:1::808:808 64:ff9b::a00:1 ::ffff:0:8.8.8.8 2002:a00:1:: 2001::1
        fc00::1 fe80::1%eth0 ff02::1 100::1 0.0.0.0 100.64.0.1 192.168.0.8 198.18.0.1 240.0.0.1 255.255.255.255
        168.63.129.16 ::ffff:168.63.129.16 2002:a83f:8110:: 64:ff9b::a83f:8110 192.0.0.192 192.0.0.9 100.100.100.200"""
    assert [address for address in inside.split() if is_public(address)] == []
    outside = """8.8.8.8 168.63.129.15 168.63.129.17 192.0.1.1
        2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::"""
    assert [address for address in outside.split() if not is_public(address)] == []
