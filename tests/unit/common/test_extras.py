# SPDX-License-Identifier: Apache-2.0
"""Advice on how to install what an extra brings, which is true before this package is on an index."""

from __future__ import annotations

import re
import shlex
from importlib import metadata

import pytest

from airflow_provider_webdata.common.extras import _COMMANDS, install_command

DISTRIBUTION = "airflow-provider-webdata"


def extras() -> dict[str, set[str]]:
    """Return the names of the packages of each extra."""
    found: dict[str, set[str]] = {}
    for requirement in metadata.requires(DISTRIBUTION) or ():
        if extra := re.search(r"extra == ['\"](\w+)['\"]", requirement):
            name = re.match(r"[\w.-]+", requirement)
            assert name is not None
            found.setdefault(extra[1], set()).add(name[0])
    return found


def test_each_extra_has_a_command() -> None:
    assert {*_COMMANDS} == {*extras()}


@pytest.mark.parametrize("extra", sorted({*_COMMANDS} - {"sandbox"}))
def test_a_command_installs_the_packages_of_the_extra(extra: str) -> None:
    words = shlex.split(install_command(extra).partition(" (")[0])
    assert words[:2] == ["pip", "install"]
    assert {re.split(r"[\[<>=]", word)[0] for word in words[2:]} == extras()[extra]


def test_the_sandbox_is_installed_from_a_clone() -> None:
    """Like this distribution, it is on no index."""
    assert extras()["sandbox"] == {"airflow-provider-webdata-sandbox"}
    assert install_command("sandbox").startswith("pip install ./sandbox, in a clone ")
