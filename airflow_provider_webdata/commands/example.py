# SPDX-License-Identifier: Apache-2.0
"""The example DAG as a file in the DAG folder."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.hooks.probe import has_crawl
from airflow_provider_webdata.hooks.webdata import WebDataHook

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_webdata.api.config import ClientConfig

Example = Literal["river_news", "site_pages", "one_page"]
"""A module of this package, whose DAG searches, crawls, or scrapes."""

_FIRST_ARGUMENT = re.compile(r'task_id="\w+",')
_LONGEST_SUFFIX = 100


def example_for(client: ClientConfig, *, untested: bool) -> Example:
    """Return an example that a server can run.

    :param untested: send no call to the server, and assume that it has crawls.
    """
    if client.server.has_search:
        return "river_news"
    return "site_pages" if untested or has_crawl(client) else "one_page"


@dataclass(frozen=True)
class ExampleDag:
    """The example DAG.

    :param folder: the DAG folder, created if it is missing.
    :param conn_id: the DAG's connection.
    :param example: the module with the DAG.
    """

    folder: Path
    conn_id: str
    example: Example

    @property
    def dag_id(self) -> str:
        """The DAG's id, which differs between connections."""
        if self.conn_id == WebDataHook.default_conn_name:
            return self.example
        suffix = re.sub(r"[^A-Za-z0-9]+", "_", self.conn_id).strip("_")[:_LONGEST_SUFFIX]
        return f"{self.example}_{suffix}"

    @property
    def path(self) -> Path:
        """The DAG's file."""
        return self.folder / f"{self.dag_id}.py"

    @property
    def source(self) -> str:
        """The file's content."""
        text = files(__package__).joinpath(f"{self.example}.py").read_text(encoding="utf-8")
        if self.conn_id == WebDataHook.default_conn_name:
            return text
        argument = f"webdata_conn_id={json.dumps(self.conn_id)},"
        text = text.replace(f'DAG("{self.example}"', f'DAG("{self.dag_id}"')
        return _FIRST_ARGUMENT.sub(lambda first: f"{first[0]} {argument}", text, count=1)

    def check(self, *, replace: bool) -> None:
        """Fail if a different file has this name.

        :param replace: accept such a file.
        :raises ConfigurationError: a different file exists.
        """
        try:
            is_other = self.path.exists() and self.path.read_bytes() != self.source.encode()
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be read: {plain_reason(error)}; correct its permissions"
            ) from None
        if is_other and not replace:
            raise ConfigurationError(
                f"{self.path} exists with other content; --force replaces it, --no-example leaves it unchanged"
            )

    def write_part(self) -> Path:
        """Write the DAG to a temporary file beside `path`, and return its path; renaming it completes the write.

        :raises ConfigurationError: the folder cannot be written.
        """
        part = self.path.with_suffix(".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_text(self.source, encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(
                f"the example DAG cannot be written: {plain_reason(error)}; choose another folder with "
                "--dags-folder, or use --no-example"
            ) from None
        return part
