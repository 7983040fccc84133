# SPDX-License-Identifier: Apache-2.0
"""Reports about faults of Airflow, and whether the installed Airflow still has them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_provider_webdata.common.supported_airflow import airflow_release

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "contributing" / "upstream"
CODE = ("airflow_provider_webdata", "sandbox/webdata_sandbox")
_MARK = re.compile(r"docs/contributing/upstream/(\w+)\.md")


@dataclass(frozen=True)
class Report:
    """A report about a fault.

    Its third line names the versions: `since X` if older ones lack what is at fault, `fixed in X` if newer ones are
    right.

    :param name: its file, without folder and ending.
    """

    name: str

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.md"

    @property
    def title(self) -> str:
        return self._lines[0].removeprefix("# ")

    @property
    def head(self) -> str:
        """The line that names where it is reported, and the versions."""
        return self._lines[2]

    @property
    def versions(self) -> str:
        return self.head.partition("Version: ")[2].removesuffix(".")

    @property
    def since(self) -> tuple[int, ...]:
        return self._version("since") or (0,)

    @property
    def fixed(self) -> tuple[int, ...] | None:
        return self._version("fixed in")

    @property
    def here(self) -> str:
        """The section about what the fault makes necessary in this package."""
        return self.path.read_text().partition("\n## What it makes necessary here\n")[2].strip()

    def check(self, shown: object) -> None:
        """Fail if the fault is gone from a version that is not known to be right, or is back in one that is.

        :param shown: whether the fault was reproduced; anything but true or false is an unexpected error.
        """
        self.skip_before()
        release, file = airflow_release(), self.path.relative_to(ROOT)
        version = ".".join(map(str, release))
        assert shown in (True, False), f"The reproduction of {file} failed with Airflow {version}: {shown}"
        if self.fixed and release >= self.fixed:
            assert not shown, f"Airflow {version} has this fault again; correct the versions in {file}"
            return
        lines = "\n".join(marks().get(self.name, ()))
        assert shown, (
            f"Airflow {version} no longer has the fault of {file}: {self.title}\n"
            "Write `fixed in` with this version into its third line. Once this is the oldest supported version, these "
            f"lines may go:\n{lines}\n{self.here}"
        )

    def skip_before(self) -> None:
        """Skip the test with an Airflow that is older than what is at fault."""
        if airflow_release() < self.since:
            pytest.skip(f"Older than what {self.path.relative_to(ROOT)} is about: {self.versions}")

    @property
    def _lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    def _version(self, word: str) -> tuple[int, ...] | None:
        found = re.search(rf"\b{word} ([\d.]*\d)", self.versions)
        return tuple(map(int, found[1].split("."))) if found else None


def reports() -> list[Report]:
    """Return all reports, by name."""
    return [Report(path.stem) for path in sorted(FOLDER.glob("*.md")) if path.stem != "README"]


def marks() -> dict[str, list[str]]:
    """Return the lines of code that name a report, as paths with numbers, by the report's name."""
    found = defaultdict(list)
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".js", ".css", ".html"):
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    for name in _MARK.findall(line):
                        found[name].append(f"{path.relative_to(ROOT)}:{number}")
    return dict(found)
