# SPDX-License-Identifier: Apache-2.0
"""docs/stability.md puts each class of the provider's metadata into one list, and names nothing that does not exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from airflow_provider_webdata.get_provider_info import get_provider_info
from tools.metadata import modules_of

ROOT = Path(__file__).parents[2]
PACKAGE = "airflow_provider_webdata"
ROOMS = ("operators", "sensors", "transfers", "hooks", "triggers", "retry-policies", "toolsets")


def listed() -> dict[str, list[str]]:
    """Return the modules in the first cells of each list, without the name of the package."""
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)[1:]
    cells = {
        name: re.findall(r"^\| (.+?) \|", text, re.MULTILINE)
        for name, text in zip(sections[::2], sections[1::2], strict=True)
    }
    return {
        name: [module for cell in cells[name] for module in re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)`", cell)]
        for name in ("Stable", "Experimental")
    }


def classes() -> Iterator[tuple[str, str]]:
    """Yield each public class of the modules in the metadata, with its module."""
    for module in modules_of(*ROOMS):
        path = ROOT.joinpath(*module.split("."))
        # Not imported: Python 3.10 has no toolsets.
        for file in path.glob("*.py") if path.is_dir() else [path.with_suffix(".py")]:
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield module.removeprefix(f"{PACKAGE}."), node.name


def test_each_class_is_in_one_list() -> None:
    found = {
        f"{module}.{name}": [
            room for room, parts in listed().items() for part in parts if f"{module}.".startswith(f"{part}.")
        ]
        for module, name in classes()
    }
    assert len(found) > 25
    assert {name: rooms for name, rooms in found.items() if len(rooms) != 1} == {}


def test_each_module_of_a_list_exists() -> None:
    for part in (part for parts in listed().values() for part in parts):
        path = ROOT.joinpath(PACKAGE, *part.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), part


def test_the_functions_of_asset_uris_are_stable() -> None:
    """The metadata names them by path."""
    assets = [
        path
        for entry in get_provider_info()["asset-uris"]
        for path in entry.values()
        if isinstance(path, str)
    ]
    assert assets
    assert [path for path in assets if not path.startswith(f"{PACKAGE}.assets.")] == []
    assert "assets" in listed()["Stable"]
