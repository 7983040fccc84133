# SPDX-License-Identifier: Apache-2.0
"""The inbox alone in a DMZ, with the documented database role, no Fernet key, and secrets in the environment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import httpx
import pytest
from airflow.models.base import Base
from airflow.models.connection import Connection
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ProgrammingError

from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.inbox_server.storage.retention import prune_all
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from tests.integration.inbox.http.airflow_home import AirflowHome
from tests.integration.inbox.http.served_inbox import SECRET, bearer, event
from tests.support.postgres import Postgres
from tests.support.waiting import PATIENCE

GUIDE = Path(__file__).parents[4] / "docs" / "webhooks.md"


def documented(language: str, words: str) -> str:
    """Return the only block of the guide in this language that contains the words."""
    blocks = re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (found,) = [block for block in blocks if words in block]
    return str(found)


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server without the role, which the deployment's own script creates too."""
    with Postgres() as server:
        yield server


def test_least_rights(own_postgres: Postgres, airflow_home: AirflowHome, tmp_path: Path) -> None:
    owner = own_postgres.create_database("least_rights")
    engine = create_engine(owner)
    metadata.create_all(engine)
    # Airflow's tables, which the role may not read.
    Base.metadata.create_all(engine, [Base.metadata.tables[name] for name in ("team", "connection")])
    with engine.begin() as link:
        link.execute(Connection.__table__.insert().values(conn_id="theirs", conn_type="webdata"))
        link.execute(text(documented("sql", "CREATE ROLE")))

    exports = dict(re.findall(r"export (\w+)='(.*)'", documented("sh", "AIRFLOW_CONN_")))
    written = make_url(exports["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    there = make_url(owner)
    url = written.set(host=there.host, port=there.port, database=there.database)
    env = {
        **{name: value for name, value in airflow_home.env.items() if "WEBDATA" not in name},
        **exports,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url.render_as_string(hide_password=False),
        "AIRFLOW_CONN_WEBDATA_DEFAULT": exports["AIRFLOW_CONN_WEBDATA_DEFAULT"].replace("SECRET", SECRET),
        "AIRFLOW__CORE__FERNET_KEY": "",
        "AIRFLOW_HOME": str(tmp_path),
    }
    body = event(webhookId="w-1")
    with (
        replace(airflow_home, folder=tmp_path, env=env).serving() as process,
        httpx.Client(base_url=process.url, timeout=PATIENCE) as http,
    ):

        def deliver(conn_id: str, secret: str) -> httpx.Response:
            path = f"/webdata/inbox/{conn_id}/k"
            return http.post(path, content=body, headers={SECRET_HEADER: secret})

        process.warm_up()
        assert deliver("webdata_default", SECRET).json() == {"status": "stored"}
        assert deliver("webdata_default", SECRET).json() == {"status": "duplicate"}
        # Connections that it may not read look like missing ones.
        for conn_id, secret in (("webdata_default", "wrong"), ("theirs", SECRET), ("unknown", SECRET)):
            assert (conn_id, deliver(conn_id, secret).status_code) == (conn_id, 401)
        page = http.get("/webdata/deliveries/webdata_default", headers=bearer("webdata_default")).json()
        assert [record["body"] for record in page["deliveries"]] == [json.loads(body)]
        assert http.get("/webdata/inbox-health").status_code == 200
    restricted = create_engine(url)
    with restricted.connect() as link, pytest.raises(ProgrammingError, match="permission denied"):
        link.execute(text("SELECT * FROM connection"))
    assert prune_all(DeliveryStore(restricted), datetime.now(timezone.utc)) == 1
    restricted.dispose()
    assert "Traceback" not in process.output
    assert SECRET not in process.output
    engine.dispose()
