# SPDX-License-Identifier: Apache-2.0
"""Media is kept before its links expire, whatever its hosts do."""

from __future__ import annotations

import base64
import contextlib
import gzip
import itertools
import json
import socket
import ssl
import threading
import time
import tracemalloc
import zlib
from datetime import datetime, timedelta, timezone
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from airflow_provider_webdata.common.hosts import addresses_for
from airflow_provider_webdata.results.media.copies import MediaReport, keep_media
from airflow_provider_webdata.results.media.fetch import CONCURRENCY, MAX_REDIRECTS, MediaSettings
from tests.integration.results.media_server import MediaServer, first, redirect, serve, status, unannounced
from tests.support.fault_server import FaultServer, answer
from tests.support.tables import each_row
from tests.support.waiting import PATIENCE

PNG = b"\x89PNG\r\n\x1a\n" + b"screenshot" * 100
MP3 = b"ID3\x04" + b"sound" * 100
MP4 = b"\x00\x00\x00\x18ftypmp42" + b"film" * 100
PDF = b"%PDF-1.7\n" + b"paper" * 100
LOOPBACK = frozenset({"127.0.0.1"})
SMALL = MediaSettings(max_bytes=10_000, timeout=30.0, attempts=3, hosts=LOOPBACK)


@pytest.fixture
def server():
    running = MediaServer()
    yield running
    running.close()


@pytest.fixture
def other():
    running = MediaServer()
    yield running
    running.close()


def document(number=0, **fields):
    return {"markdown": "x", **fields, "metadata": {"sourceURL": f"https://shop.example/{number}"}}


def kept(items, folder, settings=SMALL):
    report = MediaReport()
    return [*keep_media(items, str(folder), settings, report)], report


@pytest.mark.rule("document-screenshot", "document-media", "document-actions")
def test_every_kind(server, tmp_path):
    """Each link leads to the kept file afterwards; what it was, and what became of it, is beside it."""
    server.routes = {
        "/shot": serve(PNG),
        "/sound": serve(MP3, "audio/mpeg"),
        "/film": serve(MP4, "video/mp4; codecs=avc1"),
        "/paper": serve(PDF, "application/pdf"),
    }
    item = document(
        screenshot=f"{server.url}/shot?signature=1",
        audio=f"{server.url}/sound",
        video=f"{server.url}/film",
        actions={
            "screenshots": [f"{server.url}/shot", "data:image/png;base64," + base64.b64encode(PNG).decode()],
            "pdfs": [f"{server.url}/paper", base64.b64encode(PDF).decode()],
            "scrapes": [{"url": "https://shop.example/", "html": "<p>"}],
        },
        rawBase64=base64.b64encode(PDF).decode(),
    )
    before = json.dumps(item)
    (after,), report = kept([item], tmp_path)
    assert json.dumps(item) == before
    places = {
        "screenshot": (after["screenshot"], PNG, "png"),
        "audio": (after["audio"], MP3, "mp3"),
        "video": (after["video"], MP4, "mp4"),
        "actions.screenshots[0]": (after["actions"]["screenshots"][0], PNG, "png"),
        "actions.screenshots[1]": (after["actions"]["screenshots"][1], PNG, "png"),
        "actions.pdfs[0]": (after["actions"]["pdfs"][0], PDF, "pdf"),
        "actions.pdfs[1]": (after["actions"]["pdfs"][1], PDF, "pdf"),
        "rawBase64": (after["rawBase64"], PDF, "pdf"),
    }
    for url, content, end in places.values():
        assert (tmp_path / url.rpartition("/")[2]).read_bytes() == content
        assert url.startswith(str(tmp_path))
        assert url.endswith(f".{end}")
    assert len({url for url, _, _ in places.values()}) == len(places)
    records = {record["field"]: record for record in after["keptMedia"]}
    assert records.keys() == places.keys()
    assert records["screenshot"] == {
        "field": "screenshot",
        "source": f"{server.url}/shot?signature=1",
        "url": after["screenshot"],
        "contentType": "image/png",
        "bytes": len(PNG),
    }
    assert records["actions.screenshots[1]"]["source"] == "data:"
    assert after["actions"]["scrapes"] == item["actions"]["scrapes"]
    assert (report.kept, report.failed) == (8, 0)


def test_names_stay_the_same_on_a_retry(server, tmp_path):
    """The page is scraped anew: its links and the ids of its scrapes are others, its files are not."""
    server.routes = {"/a": serve(PNG), "/b": serve(PNG + b"new")}
    names = []
    for path, scrape in (("/a", "1"), ("/b", "2")):
        item = document(screenshot=f"{server.url}{path}?signature={scrape}")
        item["metadata"]["scrapeId"] = scrape
        ((after,), _) = kept([item], tmp_path)
        names.append(after["screenshot"])
    assert names[0] == names[1]
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [PNG + b"new"]


def test_no_two_pages_share_a_file(server, tmp_path):
    server.routes = {"/shot": serve(PNG)}
    items, report = kept([document(n, screenshot=f"{server.url}/shot") for n in range(40)], tmp_path)
    assert len({item["screenshot"] for item in items}) == 40
    assert [item["metadata"]["sourceURL"] for item in items] == [
        f"https://shop.example/{n}" for n in range(40)
    ]
    assert report.bytes == 40 * len(PNG)


def test_two_results_of_a_page_share_no_file(server, tmp_path):
    """Such as those of two searches, with other options."""
    server.routes = {"/a": serve(PNG + b"a"), "/b": serve(PNG + b"b")}
    paths = ["/a", "/b", "/a"]
    names: dict[str, str] = {}
    shots = [
        item["screenshot"]
        for path in paths
        for item in keep_media([document(screenshot=server.url + path)], str(tmp_path), SMALL, None, names)
    ]
    assert [Path(shot).read_bytes()[-1:] for shot in shots] == [b"a", b"b", b"a"]
    assert len(set(shots)) == 2


def test_nothing_of_ours_is_told(server, other, tmp_path):
    """No key, no cookie, not even those that the hosts set themselves."""
    server.routes = {"/shot": redirect(f"{other.url}/shot")}
    other.routes = {"/shot": serve(PNG)}
    kept([document(n, screenshot=f"{server.url}/shot") for n in range(3)], tmp_path)
    assert len(other.requests) == 3
    for _, headers in server.requests + other.requests:
        assert headers.keys() <= {"host", "accept", "accept-encoding", "connection", "user-agent"}


FAULTS = {
    "expired": (status(403), "is gone (HTTP 403)"),
    "not found": (status(404), "is gone (HTTP 404)"),
    "gone": (status(410), "is gone (HTTP 410)"),
    "forbidden to us": (status(401), "HTTP 401"),
    "error page": (
        serve(b"<html>Sorry</html>", "text/html"),
        "is not of kind image: its Content-Type is 'text/html'",
    ),
    "error page that says it is an image": (
        serve(b"<!DOCTYPE html>", "image/png"),
        "its first bytes show text/html",
    ),
    "sound in place of an image": (serve(MP3, "audio/mpeg"), "is not of kind image"),
    "unknown bytes of unknown type": (serve(b"who knows what this is", None), "is not of kind image"),
    "empty": (serve(b""), "is empty"),
    "too large, announced": (serve(PNG * 20), "more than the 10000 allowed"),
    "too large, not announced": (unannounced(lambda: [PNG] * 20, "image/png"), "more than the 10000 bytes"),
    "without an end": (unannounced(lambda: itertools.repeat(PNG), "image/png"), "more than the 10000 bytes"),
    "cut off": (serve(PNG, length=len(PNG) + 500), "could not be fetched: RemoteProtocolError"),
    "overloaded for good": (status(503), "could not be fetched: HTTP 503"),
    "redirect to a file": (redirect("file:///etc/passwd"), "redirects from http to file"),
    "redirect to another scheme": (redirect("ftp://127.0.0.1/x"), "redirects from http to ftp"),
    "redirect to itself": (redirect("/fault"), f"redirects more than {MAX_REDIRECTS} times"),
    "redirect to nowhere": (redirect("http://127.0.0.1:1/x"), "could not be fetched: ConnectError"),
    "redirect to nonsense": (redirect("http://[/x"), "is no host name"),
}


@pytest.mark.rule("document-media-expires")
@pytest.mark.parametrize(("route", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_reported_and_costs_nothing_else(server, tmp_path, route, words):
    """The item keeps its link and says why; the items around it are kept, and no half file is left."""
    server.routes = {"/fault": route, "/shot": serve(PNG)}
    items = [
        document(0, screenshot=f"{server.url}/shot"),
        document(1, screenshot=f"{server.url}/fault", audio=None),
        document(2, screenshot=f"{server.url}/shot"),
    ]
    (one, two, three), report = kept(items, tmp_path)
    assert two["screenshot"] == f"{server.url}/fault"
    assert two["markdown"] == "x"
    (record,) = two["keptMedia"]
    assert record.keys() == {"field", "source", "error"}
    assert words in record["error"]
    assert sorted(found.name for found in tmp_path.iterdir()) == sorted(
        item["screenshot"].rpartition("/")[2] for item in (one, three)
    )
    assert (report.kept, report.failed) == (2, 1)
    assert words in report.errors[0]
    assert "screenshot of https://shop.example/1" in report.errors[0]


def test_a_slow_host_is_given_up(server, tmp_path):
    """One that says nothing, and those that drip for ever: content, a header, and gzip without content."""
    over = threading.Event()

    def drip(first=PNG, rest=b"x"):
        yield first
        while not over.wait(0.05):
            yield rest

    def header(handler):
        with contextlib.suppress(OSError):
            for part in drip(b"HTTP/1.1 200 OK\r\nX-Slow: "):
                handler.wfile.write(part)
                handler.wfile.flush()
        handler.close_connection = True

    empty_block = b"\x00\x00\x00\xff\xff"
    packer = zlib.compressobj(wbits=31)
    start = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    server.routes = {
        "/silent": lambda _: over.wait(20) and None,
        "/drip": unannounced(drip, "image/png"),
        "/header": header,
        "/nothing": unannounced(lambda: drip(start, empty_block), "image/png", "gzip"),
    }
    total = {"timeout": 30, "max_seconds": 0.5}
    limits = {"/silent": {"timeout": 0.3}, "/drip": total, "/header": total, "/nothing": total}
    try:
        found = [
            kept(
                [document(screenshot=server.url + path)],
                tmp_path,
                MediaSettings(hosts=LOOPBACK, attempts=1, **limit),
            )
            for path, limit in limits.items()
        ]
    finally:
        over.set()
    errors = [item["keptMedia"][0]["error"] for (item,), _ in found]
    assert "ReadTimeout" in errors[0]
    assert all("took longer than 0.5 seconds" in error for error in errors[1:])
    assert [report.failed for _, report in found] == [1] * len(limits)
    assert [*tmp_path.iterdir()] == []


def test_all_attempts_share_the_time(server, tmp_path):
    def cut(handler):
        time.sleep(0.3)
        serve(PNG, length=len(PNG) + 1)(handler)

    server.routes = {"/cut": cut}
    settings = MediaSettings(hosts=LOOPBACK, attempts=50, max_seconds=0.5)
    (item,), _ = kept([document(screenshot=f"{server.url}/cut")], tmp_path, settings)
    assert "took longer than 0.5 seconds" in item["keptMedia"][0]["error"]
    assert len(server.paths()) < 4


def test_a_compressed_file(server, tmp_path):
    """It is kept as it was before, and its size counts unpacked; its memory is bounded."""
    bomb = gzip.compress(PNG + bytes(50_000_000))
    server.routes = {
        "/packed": serve(gzip.compress(PNG), encoding="gzip"),
        "/plain": serve(PNG, encoding="utf-8"),
        "/bomb": serve(bomb, encoding="gzip"),
        "/twice": serve(gzip.compress(bomb), encoding="gzip, gzip"),
        "/broken": serve(PNG, encoding="gzip"),
        "/more": serve(gzip.compress(PNG) + bytes(900_000), encoding="gzip"),
        "/cut": serve(gzip.compress(PNG)[:-1], encoding="gzip"),
    }
    settings = MediaSettings(hosts=LOOPBACK, max_bytes=1_000_000)
    tracemalloc.start()
    try:
        items, _ = kept(
            [document(screenshot=server.url + path) for path in server.routes], tmp_path, settings
        )
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    records = [item["keptMedia"][0] for item in items]
    assert [record.get("bytes") for record in records] == [len(PNG)] * 2 + [None] * 3 + [len(PNG), None]
    assert [record["error"][:25] for record in records if "error" in record] == [
        "has more than the 1000000",
        "has the Content-Encoding ",
        "is not compressed as its ",
        "ended before its compress",
    ]
    assert most < 20_000_000
    assert {headers["accept-encoding"] for _, headers in server.requests} == {"identity"}


def test_what_passes_is_tried_again(server, tmp_path):
    server.routes = {"/shot": first(status(503), serve(PNG, length=len(PNG) + 1), serve(PNG))}
    _, report = kept([document(screenshot=f"{server.url}/shot")], tmp_path)
    assert report.kept == 1
    assert server.paths() == ["/shot"] * 3


def test_what_is_gone_is_not_tried_again(server, tmp_path):
    server.routes = {"/shot": status(403)}
    kept([document(screenshot=f"{server.url}/shot")], tmp_path)
    assert server.paths() == ["/shot"]


def test_redirects_are_followed(server, other, tmp_path):
    """To another host, as signed storages do, and relative ones."""
    server.routes = {"/shot": redirect("/next"), "/next": redirect(f"{other.url}/shot")}
    other.routes = {"/shot": serve(PNG, "application/octet-stream")}
    ((after,), report) = kept([document(screenshot=f"{server.url}/shot")], tmp_path)
    assert report.kept == 1
    assert after["screenshot"].endswith(".png")


def test_concurrency_is_bounded(server, tmp_path):
    """No more at once than allowed; and that many, each of them waiting for the others."""
    meet = threading.Barrier(CONCURRENCY, timeout=PATIENCE)
    lock = threading.Lock()
    inside, most = 0, 0

    def together(handler):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        meet.wait()
        # Before the answer is whole: the next request may come with its last byte.
        with lock:
            inside -= 1
        serve(PNG)(handler)

    server.routes = {"/shot": together}
    settings = MediaSettings(hosts=LOOPBACK, attempts=1)
    _, report = kept([document(n, screenshot=f"{server.url}/shot") for n in range(12)], tmp_path, settings)
    assert report.kept == 12
    assert most == CONCURRENCY


def test_items_come_as_they_are_asked_for(server, tmp_path):
    """A page of results is not read to its end before its first item is through."""
    server.routes = {"/shot": serve(PNG)}
    asked = itertools.count()
    source = (document(n, screenshot=f"{server.url}/shot") for n in asked)
    kept_items = keep_media(source, str(tmp_path), SMALL)
    next(kept_items)
    kept_items.close()
    assert next(asked) < 100


def test_the_end_of_the_task_does_not_wait_for_slow_hosts(server, tmp_path):
    """A host that drips would hold a killed task for as long as a file may take."""
    over, began = threading.Event(), threading.Event()

    def drip():
        yield PNG
        began.set()
        while not over.wait(0.02):
            yield b"x"

    server.routes = {"/shot": serve(PNG), "/drip": unannounced(drip, "image/png")}
    items = [document(0, screenshot=f"{server.url}/shot"), document(1, screenshot=f"{server.url}/drip")]
    kept_items = keep_media(items, str(tmp_path), MediaSettings(hosts=LOOPBACK, timeout=60, max_seconds=3600))
    try:
        next(kept_items)
        assert began.wait(20)
        kept_items.close()
    finally:
        over.set()
    assert len([*tmp_path.iterdir()]) == 1


def test_into_an_object_store(server, bucket, s3_client):
    server.routes = {"/film": unannounced(lambda: [MP4] * 25_000)}
    settings = MediaSettings(hosts=LOOPBACK, max_bytes=10**9)
    ((after,), report) = kept(
        [document(video=f"{server.url}/film")], f"s3://results_s3@{bucket}/media/2026", settings
    )
    (found,) = s3_client.list_objects_v2(Bucket=bucket)["Contents"]
    assert after["video"] == f"s3://results_s3@{bucket}/{found['Key']}"
    assert found["Size"] == report.bytes == 25_000 * len(MP4)


def test_a_storage_that_fails_costs_no_item(server, bucket, s3_client, tmp_path):
    server.routes = {"/shot": serve(PNG)}
    ((after,), report) = kept(
        [document(screenshot=f"{server.url}/shot")], "s3://results_s3@no-such-bucket/media"
    )
    assert "could not be stored" in after["keptMedia"][0]["error"]
    assert after["screenshot"] == f"{server.url}/shot"
    assert report.failed == 1


NOT_MEDIA = [
    {"markdown": "x"},
    {"screenshot": None, "audio": "", "actions": None},
    {"screenshot": 7, "actions": {"screenshots": None, "pdfs": [None, 3]}},
    {"rawBase64": base64.b64encode(PNG).decode()},
    "no object",
]


@each_row("item", NOT_MEDIA)
def test_items_without_media_are_left_alone(tmp_path, item):
    (after,), report = kept([item], tmp_path / "media")
    assert after is item
    assert not (tmp_path / "media").exists()
    assert (report.kept, report.failed) == (0, 0)


NOT_A_FILE = [
    "no link at all",
    "data:image/png;base64",
    "data:image/png;base64,%%%",
    "file:///etc/passwd",
    "ftp://x/y.png",
]


@pytest.mark.rule("document-screenshot")
@each_row("link", NOT_A_FILE)
def test_text_that_is_no_link(tmp_path, link):
    (after,), _ = kept([document(screenshot=link)], tmp_path)
    assert after["screenshot"] == link
    assert "base64" in after["keptMedia"][0]["error"] or "data:" in after["keptMedia"][0]["error"]


# Hosts: what a page's media may lead to.

INSIDE = [
    "http://127.0.0.1:{port}/shot",
    "http://127.1:{port}/shot",
    "http://2130706433:{port}/shot",
    "http://localhost:{port}/shot",
    "http://[::1]:{port}/shot",
    "http://[::ffff:127.0.0.1]:{port}/shot",
    "http://[64:ff9b::7f00:1]:{port}/shot",
    "http://0.0.0.0:{port}/shot",
    "http://169.254.169.254/latest/meta-data",
    "http://10.0.0.1/shot",
    "http://192.168.1.1/shot",
    "http://172.16.0.1/shot",
    "http://100.64.0.1/shot",
    "http://[fe80::1]/shot",
    "http://[fd00::1]/shot",
    "http://224.0.0.1/shot",
]
STRICT = MediaSettings(max_bytes=10_000, timeout=30.0, attempts=1)


@each_row("link", INSIDE)
def test_what_is_inside_is_not_asked(server, tmp_path, link):
    """However the address is written: the error names the way to allow it."""
    server.routes = {"/shot": serve(PNG)}
    link = link.format(port=server.url.rpartition(":")[2])
    ((item,), report) = kept([document(screenshot=link)], tmp_path, STRICT)
    assert "is no public host" in item["keptMedia"][0]["error"]
    assert "add it to the connection's media_hosts" in report.errors[0]
    assert server.requests == []


@pytest.mark.parametrize("link", [INSIDE[0], INSIDE[7], INSIDE[9]])
def test_what_is_inside_is_not_redirected_to(server, other, tmp_path, link):
    """A host that is allowed leads to one that is not."""
    other.routes = {"/shot": serve(PNG)}
    link = link.format(port=other.url.rpartition(":")[2]).replace("//127.0.0.1", "//127.0.0.2")
    server.routes = {"/shot": redirect(link)}
    ((item,), _) = kept([document(screenshot=f"{server.url}/shot")], tmp_path)
    assert "is no public host" in item["keptMedia"][0]["error"]
    assert (len(server.requests), other.requests) == (1, [])


@pytest.mark.parametrize("no_proxy", [None, "media.example", "http://media.example", ".example, other.test"])
def test_a_name_is_resolved_once_and_asked_where_it_led(server, tmp_path, monkeypatch, no_proxy):
    """A name server that answers otherwise the next time gains nothing; the host is told its own name.

    The same holds for a name that the environment exempts from its proxy, in any form that the client knows.
    """
    asked = []
    if no_proxy is not None:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        monkeypatch.setenv("no_proxy", no_proxy)

    def resolve(host, port, *_, **__):
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "127.0.0.9"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    real = socket.getaddrinfo

    def lookup(host, *arguments, **named):
        return (
            resolve(host, *arguments, **named) if host == "media.example" else real(host, *arguments, **named)
        )

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    server.routes = {"/shot": serve(PNG)}
    port = server.url.rpartition(":")[2]
    settings = MediaSettings(hosts=frozenset({"media.example"}), attempts=1)
    _, report = kept([document(screenshot=f"http://media.example:{port}/shot")], tmp_path, settings)
    assert (report.kept, asked) == (1, ["media.example"])
    assert server.requests[0][1]["host"] == f"media.example:{port}"


def test_of_several_addresses_the_public_ones_count(monkeypatch):
    def resolve(host, port, *_, **__):
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("10.0.0.1", "8.8.8.8")
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert addresses_for(httpx.URL("https://mixed.example/x"), frozenset()) == ["8.8.8.8"]
    assert addresses_for(httpx.URL("https://mixed.example/x"), {"mixed.example"}) == ["10.0.0.1", "8.8.8.8"]


def test_no_svg_is_kept(server, tmp_path):
    server.routes = {"/shot": serve(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml")}
    ((item,), report) = kept([document(screenshot=f"{server.url}/shot")], tmp_path)
    assert (report.kept, report.failed) == (0, 1)
    assert item["screenshot"] == f"{server.url}/shot"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for media.example and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "media.example")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("media.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "media.pem"
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + made.public_bytes(encoding))
    return path


@pytest.mark.parametrize(("host", "trusted"), [("media.example", True), ("other.example", False)])
def test_certificates_are_checked_against_the_name(certificate, tmp_path, monkeypatch, host, trusted):
    """Though the connection is made to an address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = FaultServer([answer(body=PNG, content_type="image/png")], tls=context)
    real = socket.getaddrinfo

    def lookup(name, *arguments, **named):
        return real("127.0.0.1" if name == host else name, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    settings = MediaSettings(hosts=frozenset({host}), ca_file=str(certificate), attempts=1)
    try:
        ((item,), report) = kept([document(screenshot=f"https://{host}:{server.port}/x")], tmp_path, settings)
    finally:
        server.close()
    assert report.kept == trusted
    assert trusted or "CERTIFICATE_VERIFY_FAILED" in item["keptMedia"][0]["error"]
