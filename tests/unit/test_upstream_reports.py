# SPDX-License-Identifier: Apache-2.0
"""Each workaround for a fault of Airflow names a report, and each report names a workaround and has a test."""

from __future__ import annotations

import re

from airflow_provider_webdata.common.supported_airflow import OLDEST_AIRFLOW
from tests.support.upstream import FOLDER, ROOT, Report, marks, reports

TESTS = ROOT / "tests" / "integration" / "upstream"
PARTS = ("What happens", "What would help", "What it makes necessary here")


def test_code_and_reports_name_each_other() -> None:
    assert set(marks()) == {report.name for report in reports()}


def test_each_report_has_a_test() -> None:
    written = "\n".join(path.read_text() for path in TESTS.glob("test_*.py"))
    assert {one.name for one in reports() if f'"{one.name}"' not in written} == set()


def test_each_report_has_the_same_parts() -> None:
    heads = re.compile(
        r"(Ready to be filed with Apache Airflow|Reported as \[(pull request )?\d+\]\(.+)\. Version: .+\."
    )
    for report in reports():
        assert heads.fullmatch(report.head), (report.name, report.head)
        assert tuple(re.findall(r"^## (.+)$", report.path.read_text(), re.MULTILINE)) == PARTS, report.name


def row(report: Report) -> str:
    """Return the report's row of the index."""
    files = dict.fromkeys(mark.rpartition(":")[0] for mark in marks()[report.name])
    return f"| [{report.title}]({report.name}.md) | {report.versions} | {', '.join(f'`{one}`' for one in files)} |"


def test_the_index_lists_each_report() -> None:
    rows = [line for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| [")]
    wanted = sorted(map(row, reports()))
    assert rows == wanted, "The rows of docs/contributing/upstream/README.md must be:\n" + "\n".join(wanted)


def test_no_workaround_outlives_its_fault() -> None:
    """A fault that the oldest supported Airflow lacks needs no workaround."""
    outlived = [report.here for report in reports() if report.fixed and report.fixed <= OLDEST_AIRFLOW]
    assert not outlived, "Delete these lines, and their reports:\n" + "\n".join(outlived)
