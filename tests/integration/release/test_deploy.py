# SPDX-License-Identifier: Apache-2.0
"""The deployment files and their guide, run without containers on a real PostgreSQL, nginx, and inbox."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from airflow.models.base import Base
from airflow.models.connection import Connection
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ProgrammingError

from airflow_provider_webdata.hooks.connection import settings_of
from airflow_provider_webdata.hooks.webhooks import inbox_address
from airflow_provider_webdata.inbox.reader import InboxReader
from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from tests.integration.inbox.http.airflow_home import AirflowHome
from tests.integration.inbox.http.conftest import certificate
from tests.integration.inbox.http.nginx import Nginx
from tests.integration.inbox.http.served_inbox import SECRET, event
from tests.integration.inbox.http.test_nginx import client
from tests.support import compose
from tests.support.postgres import Postgres
from tests.support.snippets import ROOT
from tests.support.waiting import wait_until
from tests.support.warm import SETTINGS, Warm

__all__ = ["certificate"]

# As in `deploy/.env`.
ENVIRON = {
    **dict.fromkeys(("API_SECRET_KEY", "JWT_SECRET", "FERNET_KEY", "WEBDATA_API_KEY"), "not-asked-for"),
    "WEBDATA_BASE_URL": "https://api.service.example",
    "POSTGRES_PASSWORD": "of-the-owner",
    "INBOX_PASSWORD": "of-the-inbox",
    "WEBHOOK_SECRET": SECRET,
}


def inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}


def give_role(owner: str, password: str) -> None:
    """Run the service `inbox-role` on the database of this owner."""
    service = compose.services({**ENVIRON, "INBOX_PASSWORD": password})["inbox-role"]
    program, *flags = service["entrypoint"]
    (script,) = [volume.split(":") for volume in service["volumes"]]
    file = (compose.PATH.parent / script[0]).resolve()
    there = make_url(owner)
    place = {
        "PGHOST": str(there.host),
        "PGPORT": str(there.port),
        "PGDATABASE": str(there.database),
        "PGUSER": str(there.username),
        "PGPASSWORD": str(there.password),
    }
    argv = [str(shutil.which(program)), *(flag.replace(script[1], str(file)) for flag in flags)]
    environ = {**inherited(), **service["environment"], **place}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert password not in done.stdout + done.stderr


def test_inbox_and_nginx_of_compose(
    postgres: Postgres, certificate: tuple[Path, Path], warm: Warm, tmp_path: Path
) -> None:
    owner = postgres.create_database("composed")
    engine = create_engine(owner)
    metadata.create_all(engine)
    # Airflow's tables, which the role may not read.
    Base.metadata.create_all(engine, [Base.metadata.tables[name] for name in ("team", "connection")])
    # It runs at each start, with the current password of the file.
    give_role(owner, "an-older-one")
    give_role(owner, ENVIRON["INBOX_PASSWORD"])

    service = compose.services(ENVIRON)["inbox"]
    written = make_url(service["environment"]["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    there = make_url(owner)
    url = written.set(host=there.host, port=there.port, database=there.database)
    env = {
        **inherited(),
        **SETTINGS,
        **service["environment"],
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url.render_as_string(hide_password=False),
        "AIRFLOW_HOME": str(tmp_path),
    }
    # A free port replaces the one that nginx is configured with.
    flags = service["command"][3 : service["command"].index("--port")]
    body = event(webhookId="w-1")
    with AirflowHome(tmp_path, env, warm).serving(*flags) as process:
        process.warm_up()
        upstream = process.url.removeprefix("http://").replace("0.0.0.0", "127.0.0.1")
        with Nginx(tmp_path, upstream, certificate) as nginx, client(nginx, certificate) as http:
            path = "/webdata/inbox/webdata_default/key-1"
            assert http.post(path, content=body, headers={SECRET_HEADER: SECRET}).json() == {
                "status": "stored"
            }
            assert http.post(path, content=body).status_code == 401
            assert http.get("/webdata/inbox-health").status_code == 404
        health = httpx.URL(service["healthcheck"]["test"][-1]).path
        port = httpx.URL(process.url).port
        assert httpx.get(f"http://127.0.0.1:{port}{health}", timeout=60).json() == {"status": "ok"}
    restricted = create_engine(url)
    with restricted.connect() as link, pytest.raises(ProgrammingError, match="permission denied"):
        link.execute(text("SELECT * FROM connection"))
    restricted.dispose()
    with engine.connect() as link:
        assert link.execute(text("SELECT count(*) FROM webdata_inbox_delivery")).scalar() == 1
    engine.dispose()


def test_an_inbox_beside_a_managed_airflow(postgres: Postgres, warm: Warm, tmp_path: Path) -> None:
    """As in the guide: a database without Airflow's tables, and a reader with the address of the inbox."""
    guide = (ROOT / "docs" / "managed.md").read_text(encoding="utf-8")
    (block,) = [part for part in re.findall(r"```sh\n(.*?)```", guide, re.DOTALL) if "inbox serve" in part]
    exports = dict(re.findall(r"^export (\w+)='?([^'\n]*)'?$", block, re.MULTILINE))
    assert re.search(r"^airflow webdata inbox serve ", block, re.MULTILINE)
    env = {
        **inherited(),
        **SETTINGS,
        **exports,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": postgres.create_database("beside"),
        "AIRFLOW_CONN_WEBDATA_DEFAULT": exports["AIRFLOW_CONN_WEBDATA_DEFAULT"].replace("SECRET", SECRET),
        "AIRFLOW_HOME": str(tmp_path),
    }
    body = event(webhookId="w-1")
    with AirflowHome(tmp_path, env, warm).serving() as process:
        path = f"{process.url}/webdata/inbox/webdata_default/key-1"
        # Creating the tables may take longer than a delivery waits: the service sends it again.
        assert wait_until(
            lambda: httpx.post(path, content=body, headers={SECRET_HEADER: SECRET}, timeout=60).is_success,
            pause=1.0,
        )

        # Airflow's table of other connections does not exist.
        other = f"{process.url}/webdata/inbox/nobody"
        assert httpx.post(other, content=body, headers={SECRET_HEADER: SECRET}, timeout=60).status_code == 503

        managed = {
            "conn_type": "webdata",
            "host": "https://api.service.example",
            "password": "wd-key-0123456789",
            "extra": {
                "webhook_url": "https://inbox.example.com",
                "webhook_secret": SECRET,
                "inbox_url": process.url,
            },
        }
        settings = settings_of(Connection.from_json(json.dumps(managed), conn_id="webdata_default"))
        with InboxReader(inbox_address(settings)) as reader:
            (found,) = reader.feed().deliveries
        assert (found.key, found.payload()) == ("key-1", json.loads(body))
