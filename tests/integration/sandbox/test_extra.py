"""The sandbox without the libraries of its extra."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import requires

import pytest

from tests.support.waiting import PATIENCE

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


def run(missing: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(missing=missing, arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)


def test_the_extra_names_what_is_imported() -> None:
    extra = [
        text for text in requires("airflow-provider-webdata") or () if re.search(r"extra == .sandbox", text)
    ]
    assert {re.split(r"[^\w-]", text)[0] for text in extra} == set(LIBRARIES)


@pytest.mark.parametrize("missing", LIBRARIES.values())
def test_without_one_it_says_what_to_install(missing: str) -> None:
    ended = run([missing])
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1] == (
        f"sandbox: {missing} is missing; pip install 'airflow-provider-webdata[sandbox]' brings it"
    )
    assert "Traceback" not in ended.stderr


def test_without_any_it_still_tells_of_itself() -> None:
    ended = run(list(LIBRARIES.values()), "--quirk", "list")
    assert ended.returncode == 0
    assert "chunked" in ended.stdout
