# SPDX-License-Identifier: Apache-2.0
"""Spellings of private addresses, drawn at random from a seed, against the guarded hook and the toolset."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import random
import socket
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import ada_url
import pytest
from pydantic_ai.exceptions import ModelRetry, ToolFailed

from airflow_provider_webdata.api.errors import CallRefusedError, InvalidRequestError
from airflow_provider_webdata.hooks import host_rules
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.toolsets.webdata import WebDataToolset
from tests.support.fault_server import FaultServer, answer
from tests.support.fuzz import FACTOR, SEED
from tests.support.service import connection_text

DRAWS = 1500 * FACTOR
PRIVATE_V4 = (
    "127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.9", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
    "192.0.0.192", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "100.100.100.200",
)  # fmt: skip
PRIVATE_V6 = (
    "::1",
    "::",
    "fe80::1",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
    "100::1",
    "2001:db8::1",
)
PRIVATE_NAMES = ("localhost", "metadata.google.internal", "a.localhost", "printer.local", "intranet")
PUBLIC = ("river.example", "8.8.8.8", "2606:4700::1111", "127.0.0.1.river.example", "xn--bcher-kva.example")

Draw = random.Random


def ipv4(draw: Draw, address: str) -> str:
    """Write an IPv4 address in one to four parts, each decimal, octal or hexadecimal, with zeros in front."""
    number = int(ipaddress.IPv4Address(address))
    count = draw.randint(1, 4)
    parts = [number >> 24 & 255, number >> 16 & 255, number >> 8 & 255][: count - 1]
    parts.append(number & (1 << 8 * (5 - count)) - 1)
    if count == 4 and draw.random() < 0.05:
        # Some parsers count modulo 256.
        parts[draw.randrange(4)] += 256

    def written(part: int) -> str:
        zeros = "0" * draw.choice((0, 0, 0, 1, 9))
        return draw.choice((f"{part}", f"0{zeros}{part:o}", f"0x{zeros}{part:x}", f"0X{zeros}{part:X}"))

    return ".".join(map(written, parts))


def ipv6(draw: Draw, address: str) -> str:
    """Write an IPv6 address in brackets: short, long, in capitals, with an IPv4 end, with a zone."""
    found = ipaddress.IPv6Address(address)
    low = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    high = found.exploded.split(":")[:6]
    text = draw.choice((str(found), found.exploded, found.exploded.upper(), f"{':'.join(high)}:{low}"))
    zone = draw.choice(("", "", "", "%eth0", "%25eth0", "%251", "%"))
    return f"[{text}{zone}]"


def inside_ipv6(draw: Draw, address: str) -> str:
    """Write an IPv4 address within an IPv6 address that stands for it, or is translated to it."""
    number = int(ipaddress.IPv4Address(address))
    prefix, shift = draw.choice(
        (
            ("::ffff:0:0", 0),
            ("::", 0),
            ("64:ff9b::", 0),
            ("64:ff9b:1::", 0),
            ("2002::", 80),
            ("::ffff:0:0:0", 0),
        )
    )
    return ipv6(draw, str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | number << shift)))


DIGITS = ("０", "𝟎", "𝟘", "𝟢", "𝟬", "𝟶")
"""The zeros of alphabets that IDNA maps to ASCII digits."""


def in_other_digits(draw: Draw, host: str) -> str:
    zero = draw.choice(DIGITS)
    return "".join(chr(ord(zero) + int(sign)) if sign in "0123456789" else sign for sign in host)


def in_circles(draw: Draw, host: str) -> str:
    circled = {**{str(number): chr(0x245F + number) for number in range(1, 10)}, "0": "⓪"}
    return "".join(circled.get(sign, sign) for sign in host)


def in_other_letters(draw: Draw, host: str) -> str:
    """Write letters that lower case, or IDNA, maps to ASCII ones."""
    forms = {"k": "\u212a", "s": "\u017f"}

    def letter(sign: str) -> str:
        wide = chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign
        circle = chr(ord(sign) - 97 + 0x24D0) if "a" <= sign <= "z" else sign
        return draw.choice((sign, sign.upper(), forms.get(sign, sign), wide, circle))

    return "".join(map(letter, host))


def with_other_dots(draw: Draw, host: str) -> str:
    return host.replace(".", draw.choice(("\u3002", "\uff0e", "\uff61", "\u2024", "%2e", "%E3%80%82", "..")))


def escaped(draw: Draw, host: str) -> str:
    """Write some characters as percent escapes, once or twice."""
    percent = draw.choice(("%", "%25"))
    return "".join(
        "".join(f"{percent}{byte:02{draw.choice('xX')}}" for byte in sign.encode("utf-8", "replace"))
        if draw.random() < 0.4
        else sign
        for sign in host
    )


def with_invisible(draw: Draw, host: str) -> str:
    """Put characters that some parsers drop anywhere into it."""
    at = draw.randint(0, len(host))
    signs = (
        "\t",
        "\n",
        "\r",
        " ",
        "\x00",
        "\u00ad",
        "\u200b",
        "\u200d",
        "\ufeff",
        "\u2060",
        "\u0085",
        "\ud800",
    )
    return host[:at] + draw.choice(signs) + host[at:]


def with_end(draw: Draw, host: str) -> str:
    return host + draw.choice(
        (".", "..", "\u3002", "%2e", ":80", ":080", ":", ":65536", ":\uff18\uff10", ".:80", "%00")
    )


HOST_TRICKS: tuple[Callable[[Draw, str], str], ...] = (
    in_other_digits, in_circles, in_other_letters, with_other_dots, escaped, with_invisible, with_end,
)  # fmt: skip
SCHEMES = ("http://", "https://", "HTTP://", "hTTps://", "http:", "http:/", "http:///", "http:\\\\", "//", "", " http://",
           "ht\ntp://", "\x01http://", "ftp://", "file://", "gopher://", "http://http://")  # fmt: skip
FRONTS = ("", "", "", "", "user@", "user:pass@", "river.example@", "river.example:80@", "river.example\\@",
          "river.example#@", "river.example?@", "river.example/@", "@", "%40", "a%40b@",
          "river.example%00@")  # fmt: skip
TAILS = ("", "/", "/a", "?b", "#c", "\\", "/\\a", "\\@river.example", "@river.example", "#@river.example", ";a", "%2f",
         "%23@river.example/", "\t/", "?@river.example/", "/..//river.example")  # fmt: skip


def spelling(draw: Draw) -> str:
    host = draw.choice(
        (
            lambda: ipv4(draw, draw.choice(PRIVATE_V4)),
            lambda: ipv6(draw, draw.choice(PRIVATE_V6)),
            lambda: inside_ipv6(draw, draw.choice(PRIVATE_V4)),
            lambda: draw.choice(PRIVATE_NAMES),
            lambda: draw.choice(PUBLIC),
        )
    )()
    for _ in range(draw.choice((0, 1, 1, 2))):
        host = draw.choice(HOST_TRICKS)(draw, host)
    plain = draw.random() < 0.5
    scheme = "http://" if plain else draw.choice(SCHEMES)
    front, tail = ("", "/") if plain else (draw.choice(FRONTS), draw.choice(TAILS))
    return f"{scheme}{front}{host}{tail}"


# What others make of a URL; none of it is the code under test.


def hosts(url: str) -> Iterator[str]:
    """Yield the hosts that a WHATWG parser and Python see in a URL, with and without a protocol in front."""
    for whole in (url, f"http://{url}", unquote(url)):
        with contextlib.suppress(ValueError, UnicodeError):
            yield ada_url.URL(whole).hostname
        with contextlib.suppress(ValueError):
            yield urlsplit(whole).hostname or ""


def addresses(host: str) -> Iterator[Any]:
    bare = host.strip("[]").rstrip(".").partition("%")[0]
    with contextlib.suppress(ValueError):
        yield ipaddress.ip_address(bare)
    with contextlib.suppress(OSError, UnicodeError, ValueError):
        # As C libraries read it.
        yield ipaddress.IPv4Address(socket.inet_aton(bare))


TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
INNER = tuple(map(ipaddress.ip_network, ("::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "fec0::/10")))


def is_inner(address: Any) -> bool:
    if address.version == 6:
        if any(address in net for net in INNER):
            return True
        low = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in TRANSLATED else None
        if (stands_for := low or address.ipv4_mapped or address.sixtofour) is not None:
            return is_inner(stands_for)
    return not address.is_global or address.is_multicast


def leads_inside(url: str) -> bool:
    for host in hosts(url):
        name = host.rstrip(".").lower()
        if name in PRIVATE_NAMES or name.endswith((".localhost", ".internal", ".local")):
            return True
        if any(map(is_inner, addresses(host))):
            return True
    return False


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    page = {"success": True, "data": {"markdown": "x", "metadata": {"creditsUsed": 1}}}
    server = FaultServer([answer(body=json.dumps(page))])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    # Names lead nowhere here; what they are spelled like is what counts.
    monkeypatch.setattr(host_rules, "_leads_inside", lambda _: False)
    yield server
    server.close()


def sent(server: FaultServer) -> list[str]:
    return [json.loads(request.body)["url"] for request in server.requests]


def test_fuzz_of_urls(service: FaultServer) -> None:
    draw = random.Random(SEED)
    urls = [spelling(draw) for _ in range(DRAWS)]
    assert sum(map(leads_inside, urls)) > DRAWS / 3
    raw: list[tuple[str, Exception]] = []

    @contextlib.contextmanager
    def no_raw_error(url: str) -> Iterator[None]:
        try:
            yield
        except (CallRefusedError, InvalidRequestError, ModelRetry, ToolFailed):
            pass
        except Exception as error:
            raw.append((url, error))

    with WebDataHook().guarded() as hook:
        for url in urls:
            with no_raw_error(url):
                hook.scrape(url=url)
    toolset: Any = WebDataToolset()

    async def read() -> None:
        for number, url in enumerate(urls[: DRAWS // 3]):
            tool = ("read_page", "list_site", "extract_page")[number % 3]
            given = {"url": url, **({"question": "?"} if tool == "extract_page" else {})}
            with no_raw_error(url):
                await toolset.execute_tool(tool, given, ctx=None, tool=None)

    asyncio.run(read())
    assert raw == [], SEED
    assert [url for url in sent(service) if leads_inside(url)] == [], SEED
    assert len(service.requests) > DRAWS / 100
