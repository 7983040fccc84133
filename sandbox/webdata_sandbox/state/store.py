# SPDX-License-Identifier: Apache-2.0
"""The sandbox's object store: a SQLite database in memory or in a file."""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLES = """
CREATE TABLE IF NOT EXISTS objects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    parent TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (kind, id)
);
CREATE INDEX IF NOT EXISTS objects_parent ON objects (kind, parent, seq);
"""


class Store:
    """JSON objects by kind and id, in order of creation.

    Every write is durable when the call returns, so a killed sandbox loses no acknowledged write.

    :param path: the SQLite file; None: in memory.
    """

    def __init__(self, path: str | None = None) -> None:
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
        if path:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_TABLES)

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return the object, or None."""
        row = self._db.execute("SELECT body FROM objects WHERE kind = ? AND id = ?", (kind, key)).fetchone()
        return json.loads(row[0]) if row else None

    def put(self, kind: str, key: str, body: dict[str, Any], *, parent: str = "") -> None:
        """Create or replace the object; a replaced object keeps its place in the order."""
        self._db.execute(
            "INSERT INTO objects (kind, id, parent, body) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body",
            (kind, key, parent, json.dumps(body)),
        )

    def delete(self, kind: str, key: str) -> None:
        """Delete the object, if it exists."""
        self._db.execute("DELETE FROM objects WHERE kind = ? AND id = ?", (kind, key))

    def slice(self, kind: str, parent: str, skip: int, limit: int) -> list[dict[str, Any]]:
        """Return at most ``limit`` objects of a parent after the first ``skip``, oldest first."""
        rows = self._db.execute(
            "SELECT body FROM objects WHERE kind = ? AND parent = ? ORDER BY seq LIMIT ? OFFSET ?",
            (kind, parent, limit, skip),
        )
        return [json.loads(row[0]) for row in rows]

    def list(self, kind: str, *, parent: str | None = None) -> list[dict[str, Any]]:
        """Return all objects of a kind, oldest first."""
        query, values = "SELECT body FROM objects WHERE kind = ?", [kind]
        if parent is not None:
            query, values = query + " AND parent = ?", [kind, parent]
        return [json.loads(row[0]) for row in self._db.execute(query + " ORDER BY seq", values)]

    def clear(self) -> None:
        """Delete all objects."""
        self._db.execute("DELETE FROM objects")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the writes inside together, or roll them back after an exception."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the database."""
        self._db.close()
