# SPDX-License-Identifier: Apache-2.0
"""What drivers say, put into words; and the statements for databases that the other tests do not run on."""

from __future__ import annotations

import pytest
from sqlalchemy import exc
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateTable

from airflow_provider_webdata.airflow_db.database import insert_or_ignore, store_error
from airflow_provider_webdata.airflow_db.errors import (
    ContendedError,
    RefusedError,
    StoreUnavailableError,
    TablesMissingError,
)
from airflow_provider_webdata.inbox_server.storage.tables import counter, delivery


class DriverError(Exception):
    """As psycopg2, psycopg and MySQL's drivers raise it."""

    def __init__(self, *args: object, pgcode: str | None = None, sqlstate: str | None = None) -> None:
        super().__init__(*args)
        self.pgcode = pgcode
        self.sqlstate = sqlstate


SECRET = "secret-of-the-address"


@pytest.mark.parametrize(
    ("kind", "original", "error", "says"),
    [
        (
            exc.ProgrammingError,
            DriverError(SECRET, pgcode="42P01"),
            TablesMissingError,
            "airflow db migrate",
        ),
        (
            exc.ProgrammingError,
            DriverError(SECRET, sqlstate="42P01"),
            TablesMissingError,
            "airflow db migrate",
        ),
        (exc.ProgrammingError, DriverError(1146, SECRET), TablesMissingError, "airflow db migrate"),
        (
            exc.ProgrammingError,
            DriverError(1146, SECRET, sqlstate="42S02"),
            TablesMissingError,
            "db migrate",
        ),
        (exc.OperationalError, DriverError(1205, SECRET), ContendedError, "locked"),
        (exc.OperationalError, DriverError(1213, SECRET), ContendedError, "locked"),
        (exc.OperationalError, DriverError(SECRET, pgcode="40P01"), ContendedError, "locked"),
        (exc.OperationalError, DriverError(SECRET, sqlstate="55P03"), ContendedError, "locked"),
        (exc.OperationalError, DriverError(SECRET, pgcode="57014"), StoreUnavailableError, "longer than 4 s"),
        (exc.OperationalError, DriverError(SECRET, pgcode="53100"), StoreUnavailableError, "run out of"),
        (exc.OperationalError, DriverError(1040, SECRET), StoreUnavailableError, "or connections"),
        (exc.InternalError, DriverError(SECRET, pgcode="25006"), StoreUnavailableError, "read-only"),
        (exc.OperationalError, DriverError(SECRET, pgcode="54000"), RefusedError, "rejects the content"),
        (exc.DataError, DriverError(1406, SECRET), RefusedError, "rejects the content"),
        (exc.IntegrityError, DriverError(SECRET, pgcode="23502"), RefusedError, "rejects the content"),
        (exc.OperationalError, DriverError(2006, SECRET), StoreUnavailableError, "cannot be reached"),
        (exc.OperationalError, DriverError(SECRET), StoreUnavailableError, "cannot be reached"),
        (exc.InterfaceError, DriverError(), StoreUnavailableError, "cannot be reached"),
        (exc.NotSupportedError, DriverError(SECRET), StoreUnavailableError, r"failed \(DriverError\)"),
    ],
)
def test_every_failure_has_its_words(
    kind: type[exc.DBAPIError], original: DriverError, error: type[Exception], says: str
) -> None:
    found = store_error(kind("INSERT", {"body": SECRET}, original))
    assert type(found) is error
    with pytest.raises(error, match=says):
        raise found
    assert SECRET not in str(found)


def test_a_value_that_never_reached_the_driver() -> None:
    found = store_error(exc.StatementError(SECRET, "INSERT", {"body": SECRET}, ValueError(SECRET)))
    assert type(found) is RefusedError
    assert SECRET not in str(found)


def test_mysql() -> None:
    dialect = mysql.dialect()  # type: ignore[no-untyped-call]
    made = str(CreateTable(delivery).compile(dialect=dialect))
    assert "body LONGBLOB NOT NULL" in made
    assert "received_at DATETIME(6) NOT NULL" in made
    assert "conn_id VARCHAR(250) COLLATE utf8mb4_bin NOT NULL" in made
    assert "id BIGINT NOT NULL AUTO_INCREMENT" in made
    inserted = str(insert_or_ignore(counter, dialect).compile(dialect=dialect))
    assert inserted.startswith("INSERT IGNORE INTO webdata_inbox_counter")
