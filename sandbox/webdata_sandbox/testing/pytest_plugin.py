# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: fixtures and a setting, registered by the entry point `pytest11`.

Every pytest run imports this module, so fixtures import their dependencies when they are used.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .airflow_home import AirflowHome
    from .connected_sandbox import ConnectedSandbox

DAGS_FOLDER = "webdata_dags_folder"

_HOME: pytest.StashKey[AirflowHome] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the setting `webdata_dags_folder`."""
    parser.addini(
        DAGS_FOLDER,
        "folder of the tested DAGs, relative to the project's root; the tests then use a temporary Airflow home with "
        "a migrated SQLite database",
        default="",
    )


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Choose the Airflow home before anything can import Airflow, which reads it once."""
    folder = str(early_config.getini(DAGS_FOLDER))
    if folder:
        from .airflow_home import AirflowHome

        early_config.stash[_HOME] = AirflowHome(early_config.rootpath / folder)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Create the database of the Airflow home, from pytest's cache if possible."""
    home = session.config.stash.get(_HOME, None)
    if home is not None and not session.config.option.collectonly:
        cache = getattr(session.config, "cache", None)
        home.create_database(
            cache.mkdir("webdata") if cache else None, session.config.get_terminal_writer().line
        )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the Airflow home."""
    home = config.stash.get(_HOME, None)
    if home is not None:
        home.remove()


@pytest.fixture
def webdata_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectedSandbox]:
    """A sandbox of the service for one test, and the connection `webdata_default` to it.

    See `ConnectedSandbox` for its methods.
    """
    with _connected(tmp_path_factory.mktemp("webdata")) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def webdata_shared_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectedSandbox]:
    """A sandbox shared by all tests that request it; each sees the changes of the others."""
    with _connected(tmp_path_factory.mktemp("webdata_shared")) as sandbox:
        yield sandbox


@contextmanager
def _connected(folder: Path) -> Iterator[ConnectedSandbox]:
    try:
        from .connected_sandbox import connected_sandbox
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing != "airflow_provider_webdata":
            raise
        pytest.fail(
            "The fixtures need airflow-provider-webdata, which is not installed: "
            "run `pip install .` in a clone of its repository",
            pytrace=False,
        )
    with connected_sandbox(folder) as sandbox:
        yield sandbox
