# SPDX-License-Identifier: Apache-2.0
"""docs/contributing/private_parts.md lists the private parts of other packages that the code uses, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from tests.support.private_parts import ROOT, private_uses, uses_in

PAGE = ROOT / "docs" / "contributing" / "private_parts.md"
ROW = re.compile(r"^\| (`.+?) \| (`.+?) \| .+ \|$", re.MULTILINE)


def rows(*headings: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the parts and the files of each row below these headings."""
    sections = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for heading in headings:
        text = sections[sections.index(heading) + 1]
        for parts, files in ROW.findall(text):
            yield re.findall(r"`([^`]+)`", parts), [_path(file) for file in re.findall(r"`([^`]+)`", files)]


def _path(name: str) -> str:
    return name if name.startswith("sandbox/") else f"airflow_provider_webdata/{name}"


@pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="this Airflow does not export what newer ones do")
def test_page_and_code() -> None:
    listed = {
        (part, file) for parts, files in rows("Modules", "Attributes") for part in parts for file in files
    }
    used = {
        next(
            ((name, file) for name in (part, part.rpartition(".")[0]) if (name, file) in listed), (part, file)
        )
        for part, file in private_uses()
    }
    assert sorted(used - listed) == [], "use a public part, or add a row"
    assert sorted(listed - used) == [], "delete the row"


def test_what_reading_has_found_is_still_there() -> None:
    found = [*rows("Undocumented, but without an underscore")]
    assert len(found) > 3
    for (code,), files in found:
        assert [file for file in files if code not in (ROOT / file).read_text(encoding="utf-8")] == [], code


CODE = {
    "import airflow.models.dag": {"airflow.models.dag"},
    "from airflow import settings": {"airflow.settings"},
    "from airflow.sdk import BaseOperator, conf, task": set(),
    "from airflow.sdk import log": {"airflow.sdk.log"},
    "from airflow.sdk.log import mask_secret": set(),
    "from airflow.triggers.base import BaseTrigger": set(),
    "sys.modules.get('airflow.sdk.execution_time.comms')": {"airflow.sdk.execution_time.comms"},
    "open('airflow.cfg')": set(),
    "from httpx import Client": set(),
    "from httpx._utils import URLPattern": {"httpx._utils.URLPattern"},
    "import httpx\nhttpx.Client().close()": set(),
    "import httpx\nhttpx.main2": {"httpx.main2"},
    "from airflow_provider_webdata.common.http_library import httpcore\nhttpcore.Nothing": {
        "httpcore.Nothing"
    },
    "from uvicorn import Server": set(),
    "from uvicorn import logging": set(),
    "from uvicorn import Nothing": {"uvicorn.Nothing"},
    "from os import _exit": set(),
    "client._transport": {"_transport"},
    "getattr(client, '_mounts', None)": {"_mounts"},
    "client(_mounts=1)": {"_mounts"},
    "class A:\n    def _own(self): self._known = 1\nother._own(other._known)": set(),
    "pair._replace(a=1).__class__": set(),
}


@pytest.mark.parametrize(("code", "private"), CODE.items(), ids=CODE)
def test_what_is_private(code: str, private: set[str]) -> None:
    assert uses_in({Path("x.py"): code}) == {(part, Path("x.py")) for part in private}
