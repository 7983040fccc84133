# SPDX-License-Identifier: Apache-2.0
"""A copy of the clone for mutants, with a Python environment."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name

from tools.mutants.parts import Part

ROOT = Path(__file__).parents[2]
PACKAGE = "airflow_provider_webdata"
_TESTS = ("tests/", "conftest.py")
_SWITCH = "from mutmut.mutation.trampoline import"
_RECORDER = "from tools.mutants.recorder import"


@dataclass(frozen=True)
class Mutated:
    """A mutated file.

    :param code: the source with all mutants.
    :param mutants: the changed lines of each mutant, by name.
    """

    path: str
    code: str
    mutants: Mapping[str, str]


def mutate(path: str) -> Mutated:
    """Mutate a file; the path is relative to the clone."""
    mutated = mutate_file_contents(path, (ROOT / path).read_text(encoding="utf-8"))
    lines = mutated.code.splitlines()

    def body(function: str) -> list[str]:
        """Return the lines of a function, without its name."""
        span = mutated.line_span_by_function_name[function]
        return [line.replace(function, "") for line in lines[span.start - 1 : span.end]]

    mutants = {}
    for function in mutated.mutant_names:
        original = body(f"{function.rpartition('_')[0]}_orig")
        changes = list(difflib.unified_diff(original, body(function), n=0, lineterm=""))[3:]
        mutants[get_mutant_name(Path(path), function)] = "\n".join(
            line[0] + line[1:].strip() for line in changes if line[0] in "+-"
        )
    return Mutated(path, mutated.code.replace(_SWITCH, _RECORDER), mutants)


def mutate_part(part: Part, workers: int) -> list[Mutated]:
    """Mutate the files of a part."""
    package = ROOT / PACKAGE
    paths = sorted({path for pattern in part.sources for path in package.glob(pattern)})
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(mutate, [path.relative_to(ROOT).as_posix() for path in paths]))


@dataclass
class Clone:
    """A copy of this clone.

    :param folder: an empty folder for the copy and its Python environment.
    :param tests: the clone with the tests to copy.
    """

    folder: Path
    tests: Path = ROOT
    _python: Path = field(init=False)

    def __post_init__(self) -> None:
        for name in _files(ROOT):
            if not name.startswith(_TESTS):
                self._copy(ROOT, name)
        for name in _files(self.tests):
            if name.startswith(_TESTS):
                self._copy(self.tests, name)
        self._make_environment()

    @property
    def root(self) -> Path:
        """The folder that corresponds to the root of the clone."""
        return self.folder / "clone"

    def run(
        self, part: Part, mutated: list[Mutated], names: list[str], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Run a part's tests against mutants; return the plugin's report.

        :raises SystemExit: the tests could not run.
        """
        tests = [
            path.relative_to(self.root).as_posix()
            for pattern in part.tests
            for path in sorted((self.root / "tests").glob(pattern))
        ]
        answer, log, order = (self.folder / name for name in ("answer.json", "log", "order.json"))
        answer.unlink(missing_ok=True)
        order.write_text(json.dumps({**options, "mutants": names, "answer": str(answer)}))
        for file in mutated:
            (self.root / file.path).write_text(file.code, encoding="utf-8")
        try:
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [
                        *(self._python, "-m", "pytest", "-q", "-s", "-p", "tools.mutants.plugin"),
                        *("-p", "no:xdist", "-p", "no:cacheprovider", "--hypothesis-seed=0"),
                        *(f"--basetemp={self.folder / 'tests'}", *tests),
                    ],
                    cwd=self.root,
                    env={
                        **os.environ,
                        "MUTANTS_ORDER": str(order),
                        "PYTHONPATH": f"{self.root}{os.pathsep}{self.root / 'sandbox'}",
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            try:
                process.wait()
            except BaseException:
                process.send_signal(signal.SIGINT)
                process.wait()
                raise
        finally:
            for file in mutated:
                self._copy(ROOT, file.path)
        if not answer.exists():
            raise SystemExit(
                f"{log.read_text(errors='replace')[-5000:]}\nThe tests could not run; see above."
            )
        return json.loads(answer.read_text())

    def _copy(self, origin: Path, name: str) -> None:
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(origin / name, target)

    def _make_environment(self) -> None:
        """Create an environment with the packages of the running one, which imports the copy instead of the clone."""
        folder = self.folder / "python"
        venv.create(folder, symlinks=True)
        self._python = folder / "bin" / "python"
        site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
        packages = sysconfig.get_path("purelib")
        own = f"{self.root}\n{self.root / 'sandbox'}\n"
        (site / "mutants.pth").write_text(f"{own}import site; site.addsitedir({packages!r})\n")
        shebang = f"#!{sys.executable}".encode()
        for script in Path(sys.executable).parent.iterdir():
            if (
                script.is_file()
                and not script.is_symlink()
                and (text := script.read_bytes()).startswith(shebang)
            ):
                copy = folder / "bin" / script.name
                copy.write_bytes(text.replace(shebang, f"#!{self._python}".encode(), 1))
                copy.chmod(0o755)


def _files(root: Path) -> list[str]:
    """Return the files of a clone that Git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return [name for name in listed.split("\0") if (root / name).is_file()]
