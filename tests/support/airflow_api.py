# SPDX-License-Identifier: Apache-2.0
"""The few calls of Airflow's public REST API that run DAGs and read the results."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote

import httpx

from tests.support.waiting import PATIENCE

ENDED = frozenset({"success", "failed"})
PAGE = 100
_LOCKED_TRIES = 10


class AirflowAPI:
    """One logged-in user of the API server at `url`."""

    def __init__(self, url: str, username: str, password: str) -> None:
        self._credentials = {"username": username, "password": password}
        # An HTTP proxy in the environment has no business between two programs on one machine.
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def healthy(self) -> dict[str, str]:
        """Each component and its status; empty while nothing answers."""
        try:
            answer = self._http.get("/api/v2/monitor/health")
        except httpx.TransportError:
            return {}
        if answer.status_code != httpx.codes.OK:
            return {}
        return {name: str(component["status"]) for name, component in answer.json().items() if component}

    def call(self, method: str, path: str, **kwargs: Any) -> Any:
        """JSON of an API call below `/api/v2`; raises `httpx.HTTPStatusError` with the server's words."""
        answer = self._send(method, path, **kwargs)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            del self._http.headers["Authorization"]
            answer = self._send(method, path, **kwargs)
        # SQLite on a busy machine: it was locked for too long, and nothing was written.
        for _ in range(_LOCKED_TRIES):
            if answer.status_code != httpx.codes.INTERNAL_SERVER_ERROR or "Database error" not in answer.text:
                break
            time.sleep(1)
            answer = self._send(method, path, **kwargs)
        if answer.is_error:
            raise httpx.HTTPStatusError(
                f"{method} {path}: {answer.status_code} {answer.text[:500]}",
                request=answer.request,
                response=answer,
            )
        return answer.json() if answer.content else None

    def add_connection(self, connection: dict[str, Any]) -> None:
        """Create or replace a connection, given with the API's own field names."""
        name = quote(connection["connection_id"], safe="")
        try:
            self.call("GET", f"/connections/{name}")
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.NOT_FOUND:
                raise
            self.call("POST", "/connections", json=connection)
        else:
            self.call("PATCH", f"/connections/{name}", json=connection)

    def add_pool(self, name: str, slots: int) -> None:
        """Create a pool in which deferred tasks count, or set its number of slots."""
        pool = {"slots": slots, "include_deferred": True}
        try:
            self.call("POST", "/pools", json={"name": name, **pool})
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.CONFLICT:
                raise
            self.call("PATCH", f"/pools/{quote(name, safe='')}", json={"pool": name, **pool})

    def import_errors(self) -> dict[str, str]:
        """DAG file to stack trace."""
        found = self.call("GET", "/importErrors")["import_errors"]
        return {error["filename"]: error["stack_trace"] for error in found}

    def dag_ids(self) -> set[str]:
        """Every DAG that was parsed so far."""
        return {dag["dag_id"] for dag in self.call("GET", "/dags", params={"limit": PAGE})["dags"]}

    def unpause(self, dag_id: str) -> None:
        """Hand the DAG to the scheduler."""
        self.call("PATCH", f"/dags/{dag_id}", json={"is_paused": False})

    def start_watching(self, dag_id: str) -> None:
        """Hand an event-driven DAG to the scheduler and parse its file again, which alone sets up watchers."""
        self.unpause(dag_id)
        token = self.call("GET", f"/dags/{dag_id}")["file_token"]
        try:
            self.call("PUT", f"/parseDagFile/{token}")
        except httpx.HTTPStatusError as error:
            # The same request is still pending.
            if error.response.status_code != httpx.codes.CONFLICT:
                raise

    def unpause_all(self, pattern: str) -> None:
        """Hand the DAGs with such ids (`%` is any text) to the scheduler."""
        self.call(
            "PATCH", "/dags", params={"dag_id_pattern": pattern, "limit": PAGE}, json={"is_paused": False}
        )

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None, run_id: str | None = None) -> str:
        """Start a manual run; returns its id, generated if none is given."""
        body = {"logical_date": None, "conf": conf or {}, "dag_run_id": run_id}
        return str(self.call("POST", f"/dags/{dag_id}/dagRuns", json=body)["dag_run_id"])

    def backfill(self, dag_id: str, first: str, last: str, conf: dict[str, Any]) -> None:
        """Create a run for each interval between two dates."""
        span = {"from_date": first, "to_date": last, "max_active_runs": 10, "dag_run_conf": conf}
        self.call("POST", "/backfills", json={"dag_id": dag_id, **span})

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """The DAG's runs, oldest first."""
        return self._all(f"/dags/{dag_id}/dagRuns", "dag_runs", order_by="run_after")

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """One run."""
        found: dict[str, Any] = self.call("GET", f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}")
        return found

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Task instances of a run, mapped ones one by one."""
        return self._all(f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}/taskInstances", "task_instances")

    def xcom(
        self, dag_id: str, run_id: str, task_id: str, key: str = "return_value", map_index: int = -1
    ) -> Any:
        """The value that a task pushed."""
        task = f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}/taskInstances/{task_id}"
        params = {"map_index": map_index, "deserialize": False, "stringify": False}
        return self.call("GET", f"{task}/xcomEntries/{key}", params=params)["value"]

    def places(self, asset: str) -> list[Any]:
        """The cursors that the watchers of an asset keep in Airflow's asset state store."""
        found = self.call("GET", "/assets", params={"name_pattern": asset})["assets"]
        ids = [entry["id"] for entry in found if entry["name"] == asset]
        stores = [self.call("GET", f"/assets/{number}/state-store") for number in ids]
        return [entry["value"] for store in stores for entry in store["asset_state_store"]]

    def log_lines(
        self, dag_id: str, run_id: str, task_id: str, try_number: int, map_index: int = -1
    ) -> list[str]:
        """The log of a task try, one text per event, exceptions spelled out."""
        path = f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}/taskInstances/{task_id}/logs/{try_number}"
        content = self.call("GET", path, params={"map_index": map_index, "full_content": True})["content"]
        return [line for entry in content for line in _readable(entry)]

    def _all(self, path: str, name: str, **params: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = self.call("GET", path, params={**params, "limit": PAGE, "offset": len(found)})
            found.extend(page[name])
            if len(found) >= page["total_entries"]:
                return found

    def _send(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        if "Authorization" not in self._http.headers:
            login = self._http.post("/auth/token", json=self._credentials)
            login.raise_for_status()
            self._http.headers["Authorization"] = f"Bearer {login.json()['access_token']}"
        return self._http.request(method, f"/api/v2{path}", **kwargs)


def _readable(entry: Any) -> list[str]:
    if not isinstance(entry, dict):
        return str(entry).splitlines()
    text = f"{entry.get('level') or ''} {entry.get('event', '')}".strip()
    lines = text.splitlines()
    for error in entry.get("error_detail") or []:
        lines.append(f"{error.get('exc_type')}: {error.get('exc_value')}")
    return lines
