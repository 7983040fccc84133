"""The sandbox without the libraries of its extra."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import requires
from pathlib import Path

from tests.support.tables import each_row
from tests.support.warm import Warm, airflow_environ

LIBRARIES = {
    "beautifulsoup4": "bs4",
    "cssselect": "cssselect",
    "lxml": "lxml",
    "markdown-it-py": "markdown_it",
    "markdownify": "markdownify",
    "pypdf": "pypdf",
}
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({missing!r}))
from airflow_provider_webdata import cli
from airflow_provider_webdata.sandbox.cli import main
sys.exit(main({arguments!r}))
"""


def run(warm: Warm, home: Path, missing: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(missing=missing, arguments=list(arguments))
    return warm.run(["-c", code], env=airflow_environ(home))


def test_the_extra_names_what_is_imported() -> None:
    extra = [
        text for text in requires("airflow-provider-webdata") or () if re.search(r"extra == .sandbox", text)
    ]
    assert {re.split(r"[^\w-]", text)[0] for text in extra} == set(LIBRARIES)


@each_row("missing", LIBRARIES.values())
def test_a_missing_library_is_named_with_the_extra(warm: Warm, tmp_path: Path, missing: str) -> None:
    ended = run(warm, tmp_path, [missing])
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1] == (
        f"sandbox: {missing} is not installed; run: pip install 'airflow-provider-webdata[sandbox]'"
    )
    assert "Traceback" not in ended.stderr


def test_quirks_are_listed_without_any_library(warm: Warm, tmp_path: Path) -> None:
    ended = run(warm, tmp_path, list(LIBRARIES.values()), "--quirk", "list")
    assert ended.returncode == 0
    assert "chunked" in ended.stdout
