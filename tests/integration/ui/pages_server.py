"""Runs in a process of its own, in an Airflow home of its own: the real API server with the pages, and what they show.

It is told by a JSON object on standard input what Airflow's tables hold, and prints its address and a token for each
role.
"""

from __future__ import annotations

import json
import logging
import socket
import sys

from tests.support.airflow_rows import add_task

SECONDS = 10.0
"""For how long a page waits for the service."""


def main() -> None:
    import uvicorn
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.utils.session import create_session

    from airflow_provider_webdata.ui import lookups

    # For a machine that does other things meanwhile. Set before the pages are imported.
    lookups.DEADLINE = SECONDS
    application = create_app()
    with create_session() as session:
        for task in json.loads(sys.stdin.readline()):
            add_task(session, **task)
    roles = {"admin": "admin", "op": "op", "viewer": "viewer", "guest": "viewer"}
    tokens = {
        name: get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=name, role=role.upper()))
        for name, role in roles.items()
    }
    # What fails is shown with the test that sees it.
    logging.getLogger("uvicorn.error").addHandler(logging.StreamHandler(sys.stderr))
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(application, log_config=None, log_level="error"))
    print(f"\nSERVING {json.dumps({'url': address, 'tokens': tokens})}", flush=True)
    server.run([listener])


if __name__ == "__main__":
    main()
