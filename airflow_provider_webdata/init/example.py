"""The first DAG, as a file in the DAG folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.hooks.webdata import WebDataHook

if TYPE_CHECKING:
    from pathlib import Path

DAG_ID = "river_news"
_NAME = f"{DAG_ID}.py"
_FIRST_ARGUMENT = 'task_id="search",\n'


@dataclass(frozen=True)
class ExampleDag:
    """The first DAG, and where it goes.

    :param folder: the DAG folder, which is made where there is none.
    :param conn_id: the connection that it uses.
    """

    folder: Path
    conn_id: str

    @property
    def path(self) -> Path:
        """The DAG's file."""
        return self.folder / _NAME

    @property
    def source(self) -> str:
        """What is in it."""
        text = files(__package__).joinpath(_NAME).read_text(encoding="utf-8")
        if self.conn_id == WebDataHook.default_conn_name:
            return text
        argument = f"webdata_conn_id={json.dumps(self.conn_id)},\n"
        return text.replace(_FIRST_ARGUMENT, f"{_FIRST_ARGUMENT}        {argument}")

    def check(self, *, replace: bool) -> None:
        """Raise `ConfigurationError` where another file has that name.

        :param replace: whether it may be replaced.
        """
        if self.path.exists() and not replace and self.path.read_text(encoding="utf-8") != self.source:
            raise ConfigurationError(
                f"{self.path} exists and is another DAG; --force replaces it, --no-example leaves it alone"
            )

    def write_part(self) -> Path:
        """Write the DAG beside its file, and return where: renamed to `path`, it is the DAG.

        :raises ConfigurationError: the folder cannot be written.
        """
        part = self.path.with_suffix(".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_text(self.source, encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(
                f"the example DAG cannot be written: {error}; name another folder with --dags-folder, or give "
                "--no-example"
            ) from None
        return part
