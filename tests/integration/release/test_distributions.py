"""The wheel and the sdist have the right files, install, and are the same bytes when they are built again."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_provider_webdata import __version__
from tests.support.snippets import ROOT

STEM = f"airflow_provider_webdata-{__version__}"
# 2026-01-01, in seconds.
EPOCH = "1767225600"
# Files in the folders of contributors that belong in no package.
LITTER = [
    ".env",
    ".venv/lib/secret.py",
    ".airflow/airflow.cfg",
    "airflow.cfg",
    "airflow_provider_webdata/__pycache__/plugin.cpython-312.pyc",
    "build/lib/plugin.py",
    "deploy/.env",
    "deploy/tls/key.pem",
    "tests/.pytest_cache/README.md",
    "tests/__pycache__/conftest.cpython-312.pyc",
]
SECRETS = re.compile(
    rb"BEGIN [A-Z ]*PRIVATE KEY|\bAKIA[0-9A-Z]{16}\b|\bfc-[0-9a-f]{32}\b|\bgh[pousr]_\w{36}\b"
)


def tracked() -> frozenset[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    # A file that was deleted since the last commit is listed still.
    return frozenset(path for path in listed.stdout.split("\0") if (ROOT / path).is_file())


def clone(source: Path, folder: Path, paths: frozenset[str]) -> Path:
    """Copy files as a clone does, with the time of the copy."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / path, folder / path)
        shutil.copymode(source / path, folder / path)
    return folder


def build(tree: Path, out: Path, *flags: str) -> None:
    argv = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), *flags, str(tree)]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(argv, env=environ, cwd=out.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Built:
    """The folder of the distributions, that of the files, and the paths of the files."""

    folder: Path
    tree: Path
    paths: frozenset[str]

    @property
    def wheel(self) -> Path:
        return self.folder / f"{STEM}-py3-none-any.whl"

    @property
    def sdist(self) -> Path:
        return self.folder / f"{STEM}.tar.gz"

    def digests(self) -> dict[str, str]:
        files = self.folder.iterdir()
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build as for a release, from a folder with litter: the wheel from the sdist."""
    folder = tmp_path_factory.mktemp("release")
    paths = tracked()
    tree = clone(ROOT, folder / "tree", paths)
    for path in LITTER:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text("litter")
    build(tree, folder / "dist")
    return Built(folder / "dist", tree, paths)


@pytest.mark.timeout(600)
def test_wheel(built: Built) -> None:
    info = f"{STEM}.dist-info"
    own = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    package = {path for path in built.paths if path.startswith("airflow_provider_webdata/")}
    with zipfile.ZipFile(built.wheel) as wheel:
        assert set(wheel.namelist()) == package | {f"{info}/{name}" for name in own}
        assert {entry.date_time for entry in wheel.infolist()} == {(2026, 1, 1, 0, 0, 0)}
        assert [name for name in wheel.namelist() if SECRETS.search(wheel.read(name))] == []
    assert built.wheel.stat().st_size < 2_000_000


def test_sdist(built: Built) -> None:
    """Everything that the tests need, hence every file of the repository, and no other."""
    with tarfile.open(built.sdist) as sdist:
        files = {entry.name for entry in sdist if entry.isfile()}
        assert files == {f"{STEM}/{path}" for path in built.paths | {"PKG-INFO"}}
        assert sdist.getmember(f"{STEM}/.ci/run").mode & 0o111


def test_built_again(built: Built, tmp_path: Path) -> None:
    """In another folder, later, without litter, and the wheel straight from the files."""
    other = clone(built.tree, tmp_path / "other" / "place", built.paths)
    build(other, tmp_path / "dist", "--sdist", "--wheel")
    assert Built(tmp_path / "dist", other, built.paths).digests() == built.digests()


INSTALLED = """
import importlib.metadata, pathlib, sys
import airflow_provider_webdata as package
site = pathlib.Path(sys.argv[1])
folder = pathlib.Path(package.__file__).parent
assert folder == site / "airflow_provider_webdata", folder
found = importlib.metadata.distribution("airflow-provider-webdata")
assert found.version == package.__version__
loaded = {entry.group: entry.load() for entry in found.entry_points}
assert loaded["apache_airflow_provider"]()["versions"] == [package.__version__]
assert loaded["airflow.plugins"].name == "webdata"
from webdata_sandbox.config import SandboxConfig
assert (folder / "inbox_server" / "storage" / "alembic.ini").is_file()
assert (folder / "sandbox" / "web" / "river.example" / "index.html").is_file()
"""


@pytest.mark.timeout(600)
def test_installed(built: Built, tmp_path: Path) -> None:
    """With the installed dependencies, in place of the installed package."""
    site = tmp_path / "site"
    alone = ["--quiet", "--no-index", "--no-deps", "--no-compile"]
    pip = [sys.executable, "-m", "pip", "install", *alone, "--target", str(site), str(built.wheel)]
    subprocess.run(pip, check=True, cwd=tmp_path)
    environ = {**os.environ, "PYTHONPATH": str(site), "AIRFLOW_HOME": str(tmp_path)}
    argv = [sys.executable, "-c", INSTALLED, str(site)]
    done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
