# SPDX-License-Identifier: Apache-2.0
"""The wheels and sdists of both distributions have the right files, install, and build to the same bytes again."""

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

pytestmark = pytest.mark.timeout(600)

PROVIDER = f"airflow_provider_webdata-{__version__}"
SANDBOX = f"airflow_provider_webdata_sandbox-{__version__}"
# 2026-01-01, in seconds.
EPOCH = "1767225600"
# Files in the folders of contributors that belong in no package.
LITTER = [
    ".env",
    ".venv/lib/secret.py",
    ".airflow/airflow.cfg",
    "airflow.cfg",
    "airflow_provider_webdata/__pycache__/plugin.cpython-312.pyc",
    "sandbox/webdata_sandbox/__pycache__/app.cpython-312.pyc",
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
    """Build both distributions."""
    for project in (tree, tree / "sandbox"):
        argv = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), *flags, str(project)]
        environ = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
        done = subprocess.run(argv, env=environ, cwd=out.parent, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Built:
    """The folder of the distributions, that of the files, and the paths of the files."""

    folder: Path
    tree: Path
    paths: frozenset[str]

    def wheel(self, stem: str) -> Path:
        return self.folder / f"{stem}-py3-none-any.whl"

    def sdist(self, stem: str) -> Path:
        return self.folder / f"{stem}.tar.gz"

    def below(self, folder: str) -> set[str]:
        return {path.removeprefix(folder) for path in self.paths if path.startswith(folder)}

    def digests(self) -> dict[str, str]:
        files = self.folder.iterdir()
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build as for a release, from a folder with litter: the wheels from the sdists."""
    folder = tmp_path_factory.mktemp("release")
    paths = tracked()
    tree = clone(ROOT, folder / "tree", paths)
    for path in LITTER:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text("litter")
    build(tree, folder / "dist")
    return Built(folder / "dist", tree, paths)


@pytest.mark.parametrize(
    ("stem", "root", "package"),
    [(PROVIDER, "", "airflow_provider_webdata/"), (SANDBOX, "sandbox/", "webdata_sandbox/")],
    ids=["provider", "sandbox"],
)
def test_wheel(built: Built, stem: str, root: str, package: str) -> None:
    """The files of the package, and its metadata."""
    own = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    files = {path for path in built.below(root) if path.startswith(package)}
    with zipfile.ZipFile(built.wheel(stem)) as wheel:
        assert set(wheel.namelist()) == files | {f"{stem}.dist-info/{name}" for name in own}
        assert {entry.date_time for entry in wheel.infolist()} == {(2026, 1, 1, 0, 0, 0)}
        assert [name for name in wheel.namelist() if SECRETS.search(wheel.read(name))] == []
    assert built.wheel(stem).stat().st_size < 1_000_000


def test_the_providers_wheel_has_a_provider_alone(built: Built) -> None:
    """No test helper, emulator, or example page, and no entry point of pytest."""
    with zipfile.ZipFile(built.wheel(PROVIDER)) as wheel:
        names = wheel.namelist()
        entry_points = wheel.read(f"{PROVIDER}.dist-info/entry_points.txt").decode()
    assert [
        name for name in names if re.search(r"/(sandbox|testing|tests?|web)/|conftest|pytest", name)
    ] == []
    assert re.findall(r"^\[(.+)\]$", entry_points, re.MULTILINE) == [
        "airflow.plugins",
        "apache_airflow_provider",
    ]


def test_sdist(built: Built) -> None:
    """Everything that the tests need, hence every file of the repository, and no other."""
    with tarfile.open(built.sdist(PROVIDER)) as sdist:
        files = {entry.name for entry in sdist if entry.isfile()}
        assert files == {f"{PROVIDER}/{path}" for path in built.paths | {"PKG-INFO"}}
        assert sdist.getmember(f"{PROVIDER}/.ci/run").mode & 0o111


def test_sdist_of_the_sandbox(built: Built) -> None:
    """The package, without its tests, which need the repository. The build backend adds the rules of Git."""
    files = {path for path in built.below("sandbox/") if not path.startswith("tests/")}
    with tarfile.open(built.sdist(SANDBOX)) as sdist:
        names = {entry.name for entry in sdist if entry.isfile()}
    assert names == {f"{SANDBOX}/{path}" for path in files | {"PKG-INFO", ".gitignore"}}


def test_built_again(built: Built, tmp_path: Path) -> None:
    """In another folder, later, without litter, and the wheels straight from the files."""
    other = clone(built.tree, tmp_path / "other" / "place", built.paths)
    build(other, tmp_path / "dist", "--sdist", "--wheel")
    assert Built(tmp_path / "dist", other, built.paths).digests() == built.digests()


def test_the_image_installs_both(built: Built, tmp_path: Path) -> None:
    """The files that `deploy/Dockerfile` copies are all that the wheels are built from."""
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    place, copied = "/tmp/webdata", re.findall(r"^COPY (.+) (\S+)$", dockerfile, re.MULTILINE)
    ignored = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
    image = tmp_path / "image"
    for sources, target in copied:
        folder = image / target.removeprefix(place).strip("/")
        for source in map(built.tree.joinpath, sources.split()):
            assert f"!{source.relative_to(built.tree)}" in ignored
            if source.is_dir():
                shutil.copytree(source, folder)
            else:
                folder.mkdir(exist_ok=True)
                shutil.copy(source, folder)
    assert f'"{place}[parquet]" {place}/sandbox\n' in dockerfile
    build(image, tmp_path / "dist", "--wheel")
    assert len([*(tmp_path / "dist").iterdir()]) == 2


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
assert (folder / "inbox_server" / "storage" / "alembic.ini").is_file()
import webdata_sandbox as sandbox
emulator = pathlib.Path(sandbox.__file__).parent
assert emulator == site / "webdata_sandbox", emulator
assert (emulator / "web" / "river.example" / "index.html").is_file()
found = importlib.metadata.distribution("airflow-provider-webdata-sandbox")
assert found.version == package.__version__
loaded = {entry.name: entry.load() for entry in found.entry_points}
assert loaded.keys() == {"webdata-sandbox", "webdata"}
"""


def test_installed(built: Built, tmp_path: Path) -> None:
    """With the installed dependencies, in place of the installed packages."""
    site = tmp_path / "site"
    alone = ["--quiet", "--no-index", "--no-deps", "--no-compile"]
    pip = [sys.executable, "-m", "pip", "install", *alone, "--target", str(site)]
    wheels = [str(built.wheel(stem)) for stem in (PROVIDER, SANDBOX)]
    subprocess.run([*pip, *wheels], check=True, cwd=tmp_path)
    environ = {**os.environ, "PYTHONPATH": str(site), "AIRFLOW_HOME": str(tmp_path)}
    argv = [sys.executable, "-c", INSTALLED, str(site)]
    done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
