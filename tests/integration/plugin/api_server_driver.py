# SPDX-License-Identifier: Apache-2.0
"""What this package adds to an API server, in a separate process and Airflow home.

The first argument is a JSON object of booleans: `hidden`, whether Airflow does not see the package; `only_migrates`,
whether to create Airflow's tables and no server; and `served`, whether to print the server's address and a token, and
to serve until it is killed.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

IDLE_SECONDS = 6.0
"""Longer than the inbox needs for its first statements."""


def hide() -> None:
    """Make Airflow see no entry point of this package and its sandbox."""
    from airflow import plugins_manager
    from airflow._shared import module_loading
    from airflow.providers_manager import ProvidersManager

    found = module_loading.metadata.distributions
    others = (one for one in found() if "webdata" not in (one.metadata["Name"] or ""))
    module_loading.metadata = SimpleNamespace(distributions=lambda: others)  # type: ignore[assignment]
    # The process from which this one was forked may have read them.
    ProvidersManager._instance, ProvidersManager._initialized = None, False
    for cached in (module_loading._get_grouped_entry_points, plugins_manager._get_plugins):
        cached.cache_clear()


def command(*argv: str) -> None:
    from airflow.cli.cli_parser import get_parser

    args = get_parser().parse_args(argv)
    args.func(args)


def tables() -> list[str]:
    from airflow import settings
    from sqlalchemy import inspect

    assert settings.engine is not None
    return sorted(inspect(settings.engine).get_table_names())


def route_names(routes: Iterable[Any], prefix: str = "") -> list[str]:
    found = []
    for route in routes:
        found.append(prefix + str(getattr(route, "path", route)))
        found += route_names(getattr(route, "routes", None) or (), found[-1])
    return found


def main(hidden: bool = False, only_migrates: bool = False, served: bool = False) -> dict[str, Any]:
    if hidden:
        hide()
    if only_migrates:
        command("db", "migrate")
        return {}
    # The database is that of an Airflow without this package.
    command("db", "check-migrations", "--migration-wait-timeout", "1")
    before = tables()
    command("db", "migrate")

    import uvicorn
    from airflow import plugins_manager
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    statements: list[str] = []

    @event.listens_for(Engine, "before_cursor_execute")
    def _(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        statements.append(statement)

    application = create_app()
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_config=None, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.05)
    if served:
        port = server.servers[0].sockets[0].getsockname()[1]
        token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="admin", role="ADMIN"))
        print(f"\nSERVING {json.dumps({'url': f'http://127.0.0.1:{port}', 'token': token})}", flush=True)
        threading.Event().wait()
    else:
        time.sleep(IDLE_SECONDS)
    threads = sorted(one.name.rpartition("_")[0] or one.name for one in threading.enumerate())
    server.should_exit = True
    thread.join(60)
    plugins = plugins_manager.get_plugin_info(["external_views"])
    return {
        "plugins": [plugin["name"] for plugin in plugins],
        "new tables": sorted(set(tables()) - set(before)),
        "routes": route_names(application.routes),
        "middlewares": [str(one) for one in application.user_middleware],
        "threads": threads,
        "statements": statements,
        "views": [view for plugin in plugins for view in plugin["external_views"]],
    }


if __name__ == "__main__":
    sys.stdout.write(f"\nANSWER {json.dumps(main(**json.loads(sys.argv[1])))}\n")
