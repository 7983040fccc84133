# SPDX-License-Identifier: Apache-2.0
"""What refuses a release, and what its site has."""

from __future__ import annotations

import subprocess
import tarfile
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import pytest

from tools.release import build, check, provenance, sbom, site, wheels
from tools.release.__main__ import ALL, main
from tools.release.place import PROVIDER, ROOT, SANDBOX, ReleaseError, version

CHANGELOG = """# Changelog

## 0.2.0 (unreleased)

- Next.

## 0.1.0 (2026-12-01)

- First.
- Second.
"""


def test_two_builds_that_differ() -> None:
    same = {"a.whl": "1", "a.tar.gz": "2"}
    build.compare(same, {**same})
    with pytest.raises(ReleaseError, match=r"differ: a\.whl$"):
        build.compare(same, {**same, "a.whl": "3"})
    with pytest.raises(ReleaseError, match=r"differ: b\.whl$"):
        build.compare(same, {**same, "b.whl": "3"})


def test_packages_that_an_installation_moves() -> None:
    before = {"apache-airflow": "3.2.1", "httpx": "0.28.1", "lxml": "6.0"}
    assert wheels.moved(before, {**before, "ada-url": "4.0.0"}) == []
    assert wheels.moved(before, {"apache-airflow": "3.2.1", "httpx": "0.27.0"}) == [
        "httpx 0.28.1 became 0.27.0",
        "lxml 6.0 became missing",
    ]


def test_only_ada_url_is_no_requirement_of_airflow() -> None:
    """Airflow's own requirements bring all others: `make release-dry STAGES=wheels` installs them."""
    assert {"ada-url", PROVIDER} == wheels.ADDED


def test_a_tag_and_its_section() -> None:
    assert check.is_unreleased(CHANGELOG, "0.2.0")
    assert not check.is_unreleased(CHANGELOG, "0.1.0")
    assert check.notes(CHANGELOG, "0.1.0") == "- First.\n- Second.\n"
    with pytest.raises(ReleaseError, match=r"has no section 0\.3\.0"):
        check.notes(CHANGELOG, "0.3.0")
    with pytest.raises(ReleaseError, match=r"The tag is 'v9\.9\.9', and the version of the package needs 'v"):
        check.check_tag("v9.9.9")


def archive(folder: Path, release: str) -> Path:
    pages = folder / release
    pages.mkdir()
    (pages / "index.html").write_text(release)
    made = folder / f"docs-{release}.tar.gz"
    with tarfile.open(made, "w:gz") as tar:
        tar.add(pages, ".")
    return made


def test_stable_is_the_newest_release(tmp_path: Path) -> None:
    newest = tmp_path / "newest"
    newest.mkdir()
    (newest / "index.html").write_text("main")
    place = tmp_path / "site"
    site.assemble(newest, [], place)
    assert [path.name for path in place.iterdir()] == ["index.html"]
    archives = [archive(tmp_path, release) for release in ("0.9.1", "0.10.0", "0.2.0")]
    site.assemble(newest, archives, place)
    found = {path.parent.name: path.read_text() for path in place.glob("*/index.html")}
    assert found == {"0.9.1": "0.9.1", "0.10.0": "0.10.0", "0.2.0": "0.2.0", "stable": "0.10.0"}
    assert (place / "index.html").read_text() == "main"
    with pytest.raises(ReleaseError, match=r"docs-next\.tar\.gz should have a name such as"):
        site.assemble(newest, [tmp_path / "docs-next.tar.gz"], place)


def bom(**changed: Any) -> dict[str, Any]:
    main = {"name": PROVIDER, "version": version(), **changed}
    return {
        "metadata": {"component": main},
        "components": [{"name": SANDBOX}, {"name": "PyJWT"}, {"name": "pydantic_core"}],
    }


def test_a_bill_of_materials_of_something_else() -> None:
    assert sbom.names(bom()) == {PROVIDER, SANDBOX, "pyjwt", "pydantic-core"}
    with pytest.raises(ReleaseError, match=r"describes airflow-provider-webdata 9"):
        sbom.names(bom(version="9"))
    with pytest.raises(ReleaseError, match=f"lacks {SANDBOX}"):
        sbom.names({**bom(), "components": []})


def test_the_provenance_names_the_files_and_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.whl").write_bytes(b"wheel")
    monkeypatch.setattr(provenance, "DIST", tmp_path)
    made = provenance.statement()
    assert made["subject"] == [{"name": "a.whl", "digest": {"sha256": build.digests(tmp_path)["a.whl"]}}]
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    source, *tools = made["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert source["digest"] == {"gitCommit": head.stdout.strip()}
    assert {tool["name"]: tool["annotations"]["version"] for tool in tools}["build"] == version_of("build")


def test_an_unknown_stage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["publish"])
    assert "unknown stages: publish" in capsys.readouterr().err


def test_a_stage_that_lacks_the_files_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    monkeypatch.setattr("tools.release.place.DIST", tmp_path)
    assert main(["check"]) == 1
    assert "Run first: make release-dry STAGES=build" in capsys.readouterr().err
    assert "publish" not in ALL
