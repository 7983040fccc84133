# SPDX-License-Identifier: Apache-2.0
"""The real API server with the pages, in a separate process with its own Airflow home.

It reads a JSON object from standard input: `tasks` for Airflow's tables, or `service` for the data of `seed`. It prints
its address, a token for each role, and what was seeded.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
from datetime import datetime, timedelta, timezone
from typing import Any

from tests.integration.ui.auth_manager import NO_XCOMS, TEAM, TEAM_CONN_ID, OneHiddenDag
from tests.support.airflow_rows import add_task
from tests.support.service import CONNECTION_ID

SECONDS = 10.0
"""The time for which a page waits for the service."""


def main() -> None:
    import uvicorn
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.models.connection import Connection
    from airflow.models.team import Team
    from airflow.utils.session import create_session
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from airflow_provider_webdata.ui import lookups

    # Time for a busy machine. It is set before the pages are imported.
    lookups.DEADLINE = SECONDS
    application = create_app()
    # Airflow's last route accepts any path.
    asked = Route("/asked", lambda _: JSONResponse(dict(OneHiddenDag.asked)))
    application.router.routes.insert(0, asked)
    order = json.loads(sys.stdin.readline())
    seeded = _seeded(order["service"], order["now"]) if "service" in order else {}
    with create_session() as session:
        for task in order.get("tasks", ()):
            after = timedelta(minutes=task.pop("after", 0))
            add_task(session, **task, after=after)
        session.add(Team(name=TEAM))
        session.flush()
        session.add(Connection(conn_id=TEAM_CONN_ID, conn_type="webdata", team_name=TEAM))
    roles = {"admin": "admin", "op": "op", "viewer": "viewer", "guest": "viewer", NO_XCOMS: "op"}
    tokens = {
        name: get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=name, role=role.upper()))
        for name, role in roles.items()
    }
    # Failures show in the test that sees them.
    logging.getLogger("uvicorn.error").addHandler(logging.StreamHandler(sys.stderr))
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(application, log_config=None, log_level="error"))
    print(f"\nSERVING {json.dumps({'url': address, 'tokens': tokens, 'seeded': seeded})}", flush=True)
    server.run([listener])


def _seeded(service: dict[str, Any], now: float) -> dict[str, Any]:
    from tests.support.seed import seed
    from tests.support.seeded_service import Service

    return seed(CONNECTION_ID, datetime.fromtimestamp(now, timezone.utc), Service.of(service)).as_dict()


if __name__ == "__main__":
    main()
