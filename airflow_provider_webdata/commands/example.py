# SPDX-License-Identifier: Apache-2.0
"""The example DAG as a file in the DAG folder."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow.configuration import conf

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.hooks.probe import has_crawl
from airflow_provider_webdata.hooks.webdata import WebDataHook

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from airflow_provider_webdata.api.config import ClientConfig

Example = Literal["river_news", "site_pages", "one_page"]
"""A module of this package, whose DAG searches, crawls, or scrapes."""

_FIRST_ARGUMENT = re.compile(r'task_id="\w+",')
_LONGEST_SUFFIX = 100
_LOCAL_BUNDLE = "airflow.dag_processing.bundles.local.LocalDagBundle"


def example_for(client: ClientConfig, *, untested: bool) -> Example:
    """Return an example that a server can run.

    :param untested: send no call to the server, and assume that it has crawls.
    """
    if client.server.has_search:
        return "river_news"
    return "site_pages" if untested or has_crawl(client) else "one_page"


def local_dag_folder() -> Path | None:
    """Return the folder of Airflow's first local DAG bundle; None if all of its bundles are elsewhere."""
    bundles: list[dict[str, Any]] = conf.getjson("dag_processor", "dag_bundle_config_list")  # type: ignore[assignment]
    for bundle in bundles:
        if bundle["classpath"] == _LOCAL_BUNDLE:
            path = (bundle.get("kwargs") or {}).get("path")
            return Path(path) if path else Path(conf.get_mandatory_value("core", "dags_folder")).expanduser()
    return None


@dataclass(frozen=True)
class ExampleDag:
    """The example DAG.

    :param folder: the folder of a local DAG bundle, created if it is missing; None if Airflow has none.
    :param conn_id: the DAG's connection.
    :param example: the module with the DAG.
    """

    folder: Path | None
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
    def path(self) -> Path | None:
        """The DAG's file; None without a folder."""
        return self.folder / f"{self.dag_id}.py" if self.folder else None

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
        if self.path is None:
            return
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

    @contextlib.contextmanager
    def written(self) -> Generator[Path | str, None, None]:
        """Write the DAG if the body of the `with` statement succeeds.

        Its value is the file, or the reason why the file cannot be written.
        """
        path = self.path
        if path is None:
            yield "Airflow has no local DAG bundle"
            return
        part = path.with_suffix(".part")
        with contextlib.ExitStack() as undo:
            obstacle = None
            try:
                part.parent.mkdir(parents=True, exist_ok=True)
                with part.open("w", encoding="utf-8") as file:
                    # On a read-only file system, deleting a missing file fails too.
                    undo.callback(part.unlink, missing_ok=True)
                    file.write(self.source)
            except OSError as error:
                obstacle = plain_reason(error)
            yield obstacle or path
            if obstacle is None:
                part.replace(path)

    def lines(self, written: Path | str) -> Iterator[str]:
        """Yield what to print about the DAG.

        :param written: its file, or the reason why there is none.
        """
        if isinstance(written, Path):
            yield f"Example DAG: {written}"
        else:
            yield f"The example DAG was not written: {written}. Add it to a DAG bundle as {self.dag_id}.py:"
            yield ""
            yield from self.source.splitlines()
            yield ""
        yield f"  Run it once: airflow dags test {self.dag_id}"
