# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata inbox serve`: the same routes over Airflow's database and connections, and a clean shutdown."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import threading
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from tests.integration.inbox.http.airflow_home import AirflowHome
from tests.integration.inbox.http.raw_client import RawConnection, head
from tests.integration.inbox.http.served_inbox import (
    ALL_SECRETS,
    PREVIOUS_SECRET,
    SECRET,
    bearer,
    event,
    signature,
)
from tests.support.service import SIGNATURE_HEADER
from tests.support.waiting import PATIENCE, wait_until

RIGHT = {SECRET_HEADER: SECRET}
NO_TABLES = "Run `airflow db migrate`, or set `inbox_create_tables = True`"


def test_deliveries_and_readers(airflow_home: AirflowHome) -> None:
    with airflow_home.serving() as process, httpx.Client(base_url=process.url, timeout=PATIENCE) as http:
        process.warm_up()
        body = event(webhookId="w-1")
        both = {**RIGHT, SIGNATURE_HEADER: signature(body)}
        for conn_id, headers, status in (
            ("secret", RIGHT, 200),
            ("rotating", {SECRET_HEADER: PREVIOUS_SECRET}, 200),
            ("signed", both, 200),
            ("both", both, 200),
            ("both", RIGHT, 401),
        ):
            answer = http.post(f"/webdata/inbox/{conn_id}/k", content=body, headers=headers)
            assert (conn_id, answer.status_code) == (conn_id, status)

        # All connections that cannot receive look the same, whatever a delivery carries.
        seen = set()
        for conn_id in ("secret", "other", "open", "broken", "unknown", "x" * 300):
            headers = {**both, SECRET_HEADER: SECRET if conn_id != "secret" else "wrong"}
            answer = http.post(f"/webdata/inbox/{conn_id}/k", content=body, headers=headers)
            named = {name: value for name, value in answer.headers.items() if name != "date"}
            seen.add((answer.status_code, answer.content, tuple(sorted(named.items()))))
            assert http.get(f"/webdata/deliveries/{conn_id}", headers=bearer("other")).status_code == 401
        assert len(seen) == 1
        assert seen.pop()[0] == 401

        page = http.get("/webdata/deliveries/secret", headers=bearer("secret")).json()
        assert json.loads(body) in [record.get("body") for record in page["deliveries"]]
        too_large = http.post("/webdata/inbox/secret/k", content=b" " * (2**20 + 1), headers=RIGHT)
        assert too_large.status_code == 413
        assert http.get("/webdata/inbox-health").json() == {"status": "ok"}
        for path in ("/", "/api/v2/version", "/webdata", "/docs", "/webdata/openapi.json"):
            assert (path, http.get(path).status_code) == (path, 404)
        # Shutdown releases waiting readers.
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(
                http.get,
                f"/webdata/deliveries/secret?after={page['cursor']}&wait=30",
                headers=bearer("secret"),
            )
            with pytest.raises(futures.TimeoutError):
                waiting.result(5)
            process.send(signal.SIGTERM)
            assert waiting.result().json()["deliveries"] == []
        assert process.wait() == -signal.SIGTERM
    assert not [secret for secret in (*ALL_SECRETS, "wd-key-0123456789") if secret in process.output]
    assert "unknown" in process.output


@pytest.mark.parametrize("creates_them", [True, False])
def test_a_database_without_tables(airflow_home: AirflowHome, tmp_path: Path, creates_them: bool) -> None:
    """It has none of Airflow's tables either: the connection is in the environment."""
    env = {
        **airflow_home.env,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{tmp_path}/empty.db",
        "AIRFLOW__WEBDATA__INBOX_CREATE_TABLES": str(creates_them),
        "AIRFLOW_CONN_FRESH": json.dumps(
            {
                "conn_type": "webdata",
                "host": "https://api.service.example",
                "password": "wd-key-0123456789",
                "extra": {"webhook_secret": SECRET},
            }
        ),
    }
    home = replace(airflow_home, env=env)
    with home.serving() as process, httpx.Client(base_url=process.url, timeout=PATIENCE) as http:

        def deliver() -> httpx.Response:
            return http.post("/webdata/inbox/fresh/k", content=event(), headers=RIGHT)

        def read() -> httpx.Response:
            return http.get("/webdata/deliveries/fresh", headers=bearer("fresh"))

        # Creating them may take longer than a delivery waits: the service sends it again.
        if creates_them:
            assert wait_until(lambda: deliver().status_code == 200, pause=1.0)
        else:
            # The output precedes the first request, in no order with the address.
            assert wait_until(lambda: NO_TABLES in process.output), process.output
            # For the first request, Airflow imports what it needs to read connections.
            assert wait_until(lambda: NO_TABLES in read().text, pause=1.0)
        answers = {
            "delivery": deliver(),
            "reading": read(),
            "health": http.get("/webdata/inbox-health"),
        }
        process.send(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM
    if creates_them:
        assert {what: answer.status_code for what, answer in answers.items()} == dict.fromkeys(answers, 200)
        assert home.stored("fresh") == [event()]
        return
    assert {what: answer.status_code for what, answer in answers.items()} == dict.fromkeys(answers, 503)
    assert "retry-after" in answers["delivery"].headers
    # Anyone may send a delivery: the response says only that it failed.
    assert "table" not in answers["delivery"].text
    for text in (answers["reading"].text, answers["health"].text, process.output):
        assert NO_TABLES in text
    assert "Failed to store a delivery" in process.output


def test_while_the_inbox_is_off_it_does_not_start(airflow_home: AirflowHome) -> None:
    home = replace(airflow_home, env={**airflow_home.env, "AIRFLOW__WEBDATA__INBOX": "False"})
    done = home.warm.run(["-m", "airflow", "webdata", "inbox", "serve", "--port", "0"], env=home.env)
    assert done.returncode == 2
    assert "Set `inbox = True` in section [webdata] of airflow.cfg" in done.stderr


def test_acknowledged_deliveries_are_stored(airflow_home: AirflowHome) -> None:
    """It shuts down while clients deliver; the body of one delivery has arrived in part."""
    conn_id, name = "renamed", "X-Hub-Signature-256"
    acknowledged: list[bytes] = []
    enough = threading.Event()

    def send(sender: int) -> None:
        with httpx.Client(base_url=process.url, timeout=PATIENCE) as http:
            for count in range(100_000):
                body = event(webhookId=f"{sender}-{count}")
                try:
                    answer = http.post(
                        f"/webdata/inbox/{conn_id}", content=body, headers={name: signature(body)}
                    )
                except httpx.TransportError:
                    return
                if answer.status_code == 200:
                    acknowledged.append(body)
                if len(acknowledged) > 100:
                    enough.set()

    with airflow_home.serving() as process:
        process.warm_up()
        late = event(webhookId="late")
        port = int(process.url.rpartition(":")[2])
        with RawConnection(port) as connection, ThreadPoolExecutor(8) as pool:
            sending = [pool.submit(send, sender) for sender in range(8)]
            assert enough.wait(PATIENCE)
            given = {name: signature(late), "Content-Length": str(len(late))}
            connection.send(head("POST", f"/webdata/inbox/{conn_id}", given) + late[:10])
            process.send(signal.SIGINT)
            for one in sending:
                one.result()
            connection.send(late[10:])
            reply = connection.reply()
        assert process.wait() == 0, process.output
    stored = airflow_home.stored(conn_id)
    assert set(acknowledged) <= set(stored)
    assert len(set(stored)) == len(stored)
    assert reply is None or (reply.status == 200) == (late in stored)


def test_https(airflow_home: AirflowHome, certificate: tuple[Path, Path]) -> None:
    public, private = certificate
    flags = ("--host", "localhost", "--ssl-certfile", str(public), "--ssl-keyfile", str(private))
    with airflow_home.serving(*flags) as process:
        assert process.url.startswith("https://")
        port = process.url.rpartition(":")[2]
        context = ssl.create_default_context(cafile=str(public))
        answer = httpx.get(f"https://localhost:{port}/webdata/inbox-health", verify=context, timeout=PATIENCE)
        assert answer.status_code == 200


def test_invalid_options(airflow_home: AirflowHome, certificate: tuple[Path, Path], tmp_path: Path) -> None:
    """Each is reported in one line."""
    cases = [
        (["--port", "70000"], "--port must be 0 to 65535"),
        (["--ssl-keyfile", str(certificate[1])], "--ssl-keyfile requires --ssl-certfile"),
        (["--ssl-certfile", str(tmp_path / "missing.pem")], "missing.pem"),
        (["--ssl-certfile", str(certificate[0])], "must be a certificate and its key"),
    ]
    script = (
        "import json, sys\n"
        "from airflow.cli.cli_parser import get_parser\n"
        "from airflow_provider_webdata.inbox_server import serve\n"
        "parser = get_parser()\n"
        "for argv in json.loads(sys.argv[1]):\n"
        "    args = parser.parse_args(['webdata', 'inbox', 'serve', *argv])\n"
        "    print('STATUS', serve.run(args), file=sys.stderr)\n"
    )
    done = airflow_home.warm.run(
        ["-c", script, json.dumps([argv for argv, _ in cases])], env=airflow_home.env
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith(("inbox: ", "STATUS "))]
    assert said[1::2] == ["STATUS 2"] * len(cases), done.stderr
    for (_, word), line in zip(cases, said[::2], strict=True):
        assert word in line


def test_an_address_in_use(airflow_home: AirflowHome) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        argv = ["-m", "airflow", "webdata", "inbox", "serve", "--port", str(taken.getsockname()[1])]
        done = airflow_home.warm.run(argv, env=airflow_home.env)
    assert done.returncode != 0
    assert "address already in use" in done.stdout + done.stderr
