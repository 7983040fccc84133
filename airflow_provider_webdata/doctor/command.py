"""The `doctor` command: one line per check, followed by the next step if there is a problem."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from airflow_provider_webdata.airflow_db.command_line import (
    providers_configuration_loaded,
    suppress_logs_and_warning,
)
from airflow_provider_webdata.common.terminal import terminal_text

from . import examination

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from .finding import Finding

JSON_VERSION = 1
"""Version of the `--json` output. Additional fields do not change it."""

_WIDTH = 12


@suppress_logs_and_warning
@providers_configuration_loaded
def doctor(args: argparse.Namespace) -> None:
    """Check the installation and the connections, and print the findings; exit with 1 if one is wrong.

    :param args: conn_id (a list), json, offline.
    """
    found = examination.findings(args.conn_id, offline=args.offline, seconds=examination.SECONDS)
    sys.stdout.write(as_json(found, offline=args.offline) if args.json else as_text(found))
    if any(finding.state == "wrong" for finding in found):
        raise SystemExit(1)


def as_json(found: Sequence[Finding], *, offline: bool) -> str:
    """Return findings as JSON. See docs/doctor.md#for-machines."""
    document = {
        "version": JSON_VERSION,
        "ok": not any(finding.state == "wrong" for finding in found),
        "offline": offline,
        "findings": [asdict(finding) for finding in found],
    }
    return json.dumps(document, indent=2) + "\n"


def as_text(found: Sequence[Finding]) -> str:
    """Return findings as text."""
    lines: list[str] = []
    conn_id: str | None = ""
    for finding in found:
        if finding.conn_id != conn_id:
            conn_id = finding.conn_id
            lines.append(f"Connection {conn_id}" if conn_id else "Airflow")
        lines.append(f"  {finding.state:<8} {finding.check:<{_WIDTH}} {terminal_text(finding.seen)}")
        if finding.advice:
            lines.append(f"  {'':<8} {'':<{_WIDTH}} {terminal_text(finding.advice)}")
    counts = Counter(finding.state for finding in found)
    states = [f"{counts[state]} {state}" for state in ("wrong", "warning", "unknown", "ok") if counts[state]]
    return "\n".join([*lines, ", ".join(states), ""])
