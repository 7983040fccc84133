# SPDX-License-Identifier: Apache-2.0
"""Which versions of Airflow are tried, and with what else."""

from __future__ import annotations

import pytest

from tools.airflow_versions import FILES, constraints, newest_prerelease, number, pins


@pytest.mark.parametrize(
    ("versions", "newest"),
    [
        ("3.4.0b2, 3.4.0b1, 3.3.2, 3.3.2rc1", "3.4.0b2"),
        ("3.4.0rc1, 3.4.0b10, 3.4.0b2, 3.3.2", "3.4.0rc1"),
        ("3.4.0b10, 3.4.0b9, 3.3.2", "3.4.0b10"),
        ("3.3.2, 3.3.2rc3, 3.3.1", None),
        ("3.10.0, 3.9.0b1", None),
        ("3.10.0a1, 3.9.0, 2.11.0.post1", "3.10.0a1"),
    ],
)
def test_newest(versions: str, newest: str | None) -> None:
    said = f"apache-airflow (3.4.0b2)\nAvailable versions: {versions}\n  INSTALLED: 3.3.2\n"
    assert newest_prerelease(said) == newest


def test_pip_that_says_nothing() -> None:
    with pytest.raises(SystemExit, match="pip lists no version"):
        newest_prerelease("ERROR: No matching distribution found")


def test_constraints_keep_all_but_what_airflow_releases() -> None:
    text = """# The versions.
aiosqlite==0.22.1
alembic==1.20.1
apache-airflow==3.3.2
apache-airflow-core==3.3.2
apache-airflow-providers-smtp==3.2.0; python_version >= "3.11"
apache-airflow-task-sdk==1.3.2
httpx==0.28.1
"""
    assert constraints(text, "3.4.0b2") == "alembic==1.20.1\nhttpx==0.28.1\napache-airflow==3.4.0b2\n"


@pytest.mark.parametrize("name", FILES)
def test_a_version_with_a_file_has_the_pins_of_the_file(name: str) -> None:
    text = FILES[name].read_text()
    assert pins(name) == pins(number(text)) == text


def test_a_version_without_a_file_has_other_pins_for_airflow_alone() -> None:
    assert number(pins("3.3.0")) == "3.3.0"
    assert {*pins("3.3.0").splitlines()} - {*pins("newest").splitlines()} == {"apache-airflow==3.3.0"}


def test_a_name_that_is_no_version() -> None:
    with pytest.raises(
        SystemExit, match=r"'lts' is no version of Airflow: use floor, newest, next, or a number"
    ):
        pins("lts")
