"""`airflow webdata doctor`: a summary, and a line per check, followed by the next step if there is a problem."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from airflow_provider_webdata.commands.command import command, print_document
from airflow_provider_webdata.doctor import examination

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from airflow_provider_webdata.doctor.finding import Finding, State

JSON_VERSION = 1
"""Version of the `--json` output. Additional fields do not change it. See docs/doctor.md#for-machines."""

_RESULTS: dict[State, str] = {"ok": "passed", "wrong": "failed", "warning": "warning", "unknown": "skipped"}
_WIDTH = 12
_MARGIN = " " * (2 + 8 + _WIDTH + 1)
_NARROWEST = 60


@command()
def doctor(args: argparse.Namespace) -> Iterator[str]:
    """Check the installation and the connections, and print the findings; exit with 1 if a check failed.

    :param args: conn_id (a list), json, offline.
    """
    found = examination.findings(args.conn_id, offline=args.offline, seconds=examination.SECONDS)
    counts: Counter[str] = Counter(finding.state for finding in found)
    if args.json:
        document = {
            "version": JSON_VERSION,
            "ok": not counts["wrong"],
            "offline": args.offline,
            "findings": [{**asdict(finding), "state": _RESULTS[finding.state]} for finding in found],
        }
        print_document(document, "json")
    else:
        yield _summary(counts)
        yield from _lines(found)
    if counts["wrong"]:
        raise SystemExit(1)


def _summary(counts: Counter[str]) -> str:
    warnings = "warning" if counts["warning"] == 1 else "warnings"
    words = {**_RESULTS, "warning": warnings}
    parts = [f"{counts[state]} {word}" for state, word in words.items() if counts[state] or state == "ok"]
    return f"{counts.total()} checks: {', '.join(parts)}"


def _lines(found: Sequence[Finding]) -> Iterator[str]:
    conn_id: str | None = ""
    for finding in found:
        if finding.conn_id != conn_id:
            conn_id = finding.conn_id
            yield f"Connection {conn_id}" if conn_id else "Airflow"
        yield from _wrapped(f"  {_RESULTS[finding.state]:<8}{finding.check:<{_WIDTH}} {finding.seen}")
        if finding.advice:
            yield from _wrapped(f"{_MARGIN}{finding.advice}")


def _wrapped(line: str) -> list[str]:
    """Return a line as lines that fit the terminal. In a file or pipe, a finding has one line."""
    width = shutil.get_terminal_size().columns
    if not sys.stdout.isatty() or width < _NARROWEST:
        return [line]
    return textwrap.wrap(
        line, width, subsequent_indent=_MARGIN, break_long_words=False, break_on_hyphens=False
    )
