# SPDX-License-Identifier: Apache-2.0
"""The doctor's command: a line per check, followed by the next step if there is a problem, and a summary."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from airflow_provider_webdata.commands.command import command, print_document

from . import checks

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from .finding import Finding, State

_STATES: tuple[State, ...] = ("passed", "failed", "warning", "skipped")
_WIDTH = 12
_MARGIN = " " * (2 + 8 + _WIDTH + 1)
_NARROWEST = 60


@command()
def doctor(args: argparse.Namespace) -> Iterator[str]:
    """Check the installation and the connections, and print each finding; exit with 1 if a check failed.

    :param args: conn_id (a list), offline, output.
    """
    found: list[Finding] = []
    is_document = args.output in {"json", "yaml"}
    is_wrapped = args.output == "table" and sys.stdout.isatty()
    for finding in checks.findings(args.conn_id, offline=args.offline, seconds=checks.SECONDS):
        if not is_document:
            if not found or finding.conn_id != found[-1].conn_id:
                yield f"Connection {finding.conn_id}" if finding.conn_id else "Airflow"
            for line in _lines(finding):
                yield from _wrapped(line) if is_wrapped else [line]
        found.append(finding)
    if is_document:
        print_document([asdict(finding) for finding in found], args.output)
    else:
        yield _summary(found)
    if any(finding.state == "failed" for finding in found):
        raise SystemExit(1)


def _summary(found: list[Finding]) -> str:
    counts = Counter(finding.state for finding in found)
    words = {"warning": "warning" if counts["warning"] == 1 else "warnings"}
    parts = [
        f"{counts[state]} {words.get(state, state)}"
        for state in _STATES
        if counts[state] or state == "passed"
    ]
    return f"{counts.total()} checks: {', '.join(parts)}"


def _lines(finding: Finding) -> Iterator[str]:
    yield f"  {finding.state:<8}{finding.check:<{_WIDTH}} {finding.seen}"
    if finding.advice:
        yield f"{_MARGIN}{finding.advice}"


def _wrapped(line: str) -> list[str]:
    """Return a line as lines that fit the terminal."""
    width = max(shutil.get_terminal_size().columns, _NARROWEST)
    return textwrap.wrap(
        line, width, subsequent_indent=_MARGIN, break_long_words=False, break_on_hyphens=False
    )
