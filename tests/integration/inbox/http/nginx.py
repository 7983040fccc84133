# SPDX-License-Identifier: Apache-2.0
"""A real nginx with the documented configuration, in a separate folder and on a free port."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.support.ports import free_port
from tests.support.waiting import PATIENCE

CONFIGURATION = Path(__file__).parents[4] / "docs" / "nginx" / "webdata-inbox.conf"

_AROUND = """
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/webdata-inbox.conf;
}}
"""


def program() -> str:
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    assert found, (
        "nginx is not on this machine; run tools/nginx-setup as root, or install nginx (package nginx-light)"
    )
    return found


class Nginx:
    """A proxy of an upstream, `host:port`; a context manager.

    It replaces only addresses, paths, and limits in the documented file, each of which must be there.

    :param rate: of the requests of one address.
    :param seconds: time limit of a client, without unit.
    :param connections: maximum number of connections to the upstream.
    """

    def __init__(
        self,
        folder: Path,
        upstream: str,
        certificate: tuple[Path, Path],
        *,
        rate: str = "50r/s",
        seconds: int = 10,
        connections: int = 500,
    ) -> None:
        self.port = free_port()
        self.url = f"https://localhost:{self.port}"
        self._folder = folder
        text = CONFIGURATION.read_text()
        for before, after in (
            ("server 127.0.0.1:8080 max_conns=500;", f"server {upstream} max_conns={connections};"),
            ("listen 443 ssl;", f"listen 127.0.0.1:{self.port} ssl;"),
            ("server_name airflow.example.com;", "server_name localhost;"),
            ("rate=50r/s;", f"rate={rate};"),
            ("client_header_timeout 10s;", f"client_header_timeout {seconds}s;"),
            ("client_body_timeout 10s;", f"client_body_timeout {seconds}s;"),
            ("ssl_certificate /etc/ssl/certs/airflow.example.com.pem;", f"ssl_certificate {certificate[0]};"),
            (
                "ssl_certificate_key /etc/ssl/private/airflow.example.com.key;",
                f"ssl_certificate_key {certificate[1]};",
            ),
        ):
            assert text.count(before) == 1, f"{CONFIGURATION} has no {before!r}"
            text = text.replace(before, after)
        (folder / "webdata-inbox.conf").write_text(text)
        # Started as root, nginx would give its workers to a user that cannot read this folder.
        user = "user root;" if os.getuid() == 0 else ""
        (folder / "nginx.conf").write_text(_AROUND.format(user=user, folder=folder))
        self._argv = [
            program(),
            "-p",
            str(folder),
            "-c",
            str(folder / "nginx.conf"),
            "-e",
            str(folder / "error.log"),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Nginx:
        self._process = subprocess.Popen(self._argv, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            time.sleep(0.01)
        self.__exit__()
        raise AssertionError(f"nginx did not start: {(self._folder / 'error.log').read_text()}")

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)
