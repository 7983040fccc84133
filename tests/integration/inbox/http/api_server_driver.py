# SPDX-License-Identifier: Apache-2.0
"""Sends requests to the real API server application behind uvicorn, in a separate process and Airflow home."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import threading
from typing import Any

HEAVY = (
    "fastapi",
    "starlette",
    "sqlalchemy",
    "httpx",
    "pydantic",
    "uvicorn",
    "airflow_provider_webdata.inbox",
)
BODY = b'{"webhookId": "plugin", "type": "check.completed"}'


def imported_by_plugin() -> list[str]:
    """Return the modules that the plugin imports beyond those of Airflow's plugin manager."""
    script = (
        "import sys, json\n"
        "import airflow.plugins_manager\n"
        "before = set(sys.modules)\n"
        "import airflow_provider_webdata.plugin\n"
        f"print(json.dumps([name for name in set(sys.modules) - before if name.startswith({HEAVY!r})]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> dict[str, Any]:
    import httpx
    import uvicorn
    from airflow.api_fastapi.app import create_app

    from airflow_provider_webdata.inbox.probe import new_probe
    from airflow_provider_webdata.inbox.wire import SECRET_HEADER
    from tests.integration.inbox.http.raw_client import RawConnection, head
    from tests.integration.inbox.http.served_inbox import SECRET, bearer, event

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(create_app(), log_config=None, log_level="error"))
    running = threading.Thread(target=server.run, args=([listener],), daemon=True)
    running.start()
    loud: list[str] = []
    errors = logging.Handler(logging.ERROR)
    errors.emit = lambda record: loud.append(record.getMessage())  # type: ignore[method-assign]
    for name in ("", "uvicorn.error"):
        logging.getLogger(name).addHandler(errors)
    right, token = {SECRET_HEADER: SECRET}, bearer("secret")
    seen: dict[str, Any] = {"imported by the plugin": imported_by_plugin()}

    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}", timeout=600, trust_env=False, verify=False
    ) as http:

        def ask(method: str, path: str, **options: Any) -> list[Any]:
            answer = http.request(method, path, **options)
            is_json = answer.headers.get("content-type", "").startswith("application/json")
            return [answer.status_code, answer.json() if is_json else answer.text[:200]]

        inbox, deliveries = "/webdata/inbox/secret", "/webdata/deliveries/secret"
        seen["airflow's version"] = ask("GET", "/api/v2/version")
        seen["airflow's dags, not logged in"] = ask("GET", "/api/v2/dags")
        seen["delivery"] = ask("POST", f"{inbox}/key-1", content=BODY, headers=right)
        seen["again"] = ask("POST", f"{inbox}/key-1", content=BODY, headers=right)
        seen["by hand"] = ask("POST", inbox, content=event(webhookId="plugin by hand"), headers=right)
        seen["forged"] = ask("POST", f"{inbox}/key-1", content=BODY, headers={SECRET_HEADER: "forged"})
        seen["unknown"] = ask("POST", "/webdata/inbox/unknown/key-1", content=BODY, headers=right)
        seen["slash in the id"] = ask("POST", "/webdata/inbox/of%2Fteam/key-1", content=BODY, headers=right)
        seen["too large"] = ask("POST", inbox, content=b" " * (2**20 + 1), headers=right)
        seen["probe"] = ask("POST", inbox, content=new_probe(), headers=right)
        seen["not JSON"] = ask("POST", inbox, content=b"{", headers=right)
        seen["wrong method"] = ask("GET", inbox)
        seen["no such path"] = ask("POST", "/webdata/outbox/secret")
        seen["no such key"] = ask("POST", f"{inbox}/a%20b", content=BODY, headers=right)
        seen["no token"] = ask("GET", deliveries)

        pages = [ask("GET", deliveries, headers=token)]
        cursor = pages[0][1]["cursor"]
        pages.append(ask("GET", f"{deliveries}?after={cursor}", headers=token))
        late = threading.Timer(0.2, httpx.post, [f"http://127.0.0.1:{port}{inbox}"])
        late.kwargs = {"content": event(id="woken", webhookId="plugin woken"), "headers": right}
        late.start()
        pages.append(ask("GET", f"{deliveries}?after={cursor}&wait=30", headers=token))
        late.join()
        seen["pages"] = pages

    with RawConnection(port) as raw:
        upgrade = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }
        raw.send(head("GET", f"{inbox}/key-1", upgrade))
        reply = raw.reply()
        seen["web socket"] = [reply.status if reply else None]
    loud.clear()
    for broken_off in (
        head("POST", f"{inbox}/key-1", {**right, "Content-Length": "100"}) + b"{",
        head("POST", f"{inbox}/key-1", {"X-Signature": "sha256=0", "Content-Length": "100"}) + b"{",
        head("GET", f"{deliveries}?wait=30&after=end", token),
    ):
        with RawConnection(port) as raw:
            raw.send(broken_off)
    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}", timeout=600, trust_env=False, verify=False
    ) as http:
        seen["afterwards"] = http.get("/webdata/inbox-health").status_code
    # The server ends after it has served all requests.
    server.should_exit = True
    running.join(60)
    seen["errors in the log"] = loud
    return seen


if __name__ == "__main__":
    sys.stdout.write(f"\nANSWER {json.dumps(main())}\n")
