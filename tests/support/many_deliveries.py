# SPDX-License-Identifier: Apache-2.0
"""An inbox with very many deliveries, which the database generates."""

from __future__ import annotations

from sqlalchemy import Engine, text

_COLUMNS = (
    "id, position, conn_id, dedupe, correlation_key, event, operation, name, job_id, monitor_id, dag_id, "
    "page_hash, received_at, size, body"
)
_NAME = "CASE WHEN i % 49 = 0 THEN 'check.completed' ELSE 'page' END"
_FILL = {
    "sqlite": f"""
        INSERT INTO webdata_inbox_delivery ({_COLUMNS})
        WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < :rows)
        SELECT i, :base + i * :step, CASE WHEN i % 10 = 0 THEN 'other' ELSE :conn_id END, printf('%064x', i),
            'key-' || (i / 5), 'monitor.' || {_NAME}, 'monitor', {_NAME}, 'job-' || (i / 5), 'monitor-' || (i % 100),
            'dag-' || (i % 100), (i / 5) * 1000003,
            strftime('%Y-%m-%d %H:%M:%f000', (:base + i * :step) / 1000000, 'unixepoch'), 2, zeroblob(400)
            FROM numbers""",
    "postgresql": f"""
        INSERT INTO webdata_inbox_delivery ({_COLUMNS})
        SELECT i, :base + i * :step, CASE WHEN i % 10 = 0 THEN 'other' ELSE :conn_id END,
            lpad(to_hex(i), 64, '0'), 'key-' || (i / 5), 'monitor.' || {_NAME}, 'monitor', {_NAME}, 'job-' || (i / 5),
            'monitor-' || (i % 100), 'dag-' || (i % 100), (i / 5) * 1000003,
            to_timestamp((:base + i * :step) / 1000000), 2, decode(repeat('61', 400), 'hex')
            FROM generate_series(1::bigint, :rows) i""",
}


def fill(engine: Engine, conn_id: str, rows: int, base: int, step: int = 10**6) -> None:
    """Fill an empty inbox.

    Nine of ten deliveries are for the connection, five for each job, and one in 49 is the end of a check.

    :param base: time and position of the first delivery, in microseconds since 1970.
    :param step: microseconds between two of them.
    """
    statement = _FILL[engine.dialect.name].replace(":conn_id", f"'{conn_id}'")
    for name, value in {"base": base, "step": step, "rows": rows}.items():
        statement = statement.replace(
            f":{name}", str(value) if engine.dialect.name == "sqlite" else f"{value}::bigint"
        )
    with engine.begin() as connection:
        connection.exec_driver_sql(
            statement.replace("%", "%%") if engine.dialect.name == "postgresql" else statement
        )
        connection.execute(text("DELETE FROM webdata_inbox_counter"))
        connection.execute(text(f"INSERT INTO webdata_inbox_counter VALUES (1, {base + (rows + 1) * step})"))
    if engine.dialect.name == "postgresql":
        # As autovacuum does it before long; SQLite is never told.
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE webdata_inbox_delivery"))
