"""`airflow webdata doctor`: one line per check, followed by the next step if there is a problem."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from airflow_provider_webdata.commands.command import command, print_document
from airflow_provider_webdata.doctor import examination

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

JSON_VERSION = 1
"""Version of the `--json` output. Additional fields do not change it. See docs/doctor.md#for-machines."""

_WIDTH = 12


@command()
def doctor(args: argparse.Namespace) -> Iterator[str]:
    """Check the installation and the connections, and print the findings; exit with 1 if one is wrong.

    :param args: conn_id (a list), json, offline.
    """
    found = examination.findings(args.conn_id, offline=args.offline, seconds=examination.SECONDS)
    counts: Counter[str] = Counter(finding.state for finding in found)
    if args.json:
        document = {
            "version": JSON_VERSION,
            "ok": not counts["wrong"],
            "offline": args.offline,
            "findings": [asdict(finding) for finding in found],
        }
        print_document(document, "json")
    else:
        conn_id: str | None = ""
        for finding in found:
            if finding.conn_id != conn_id:
                conn_id = finding.conn_id
                yield f"Connection {conn_id}" if conn_id else "Airflow"
            yield f"  {finding.state:<8} {finding.check:<{_WIDTH}} {finding.seen}"
            if finding.advice:
                yield f"  {'':<8} {'':<{_WIDTH}} {finding.advice}"
        states = ("wrong", "warning", "unknown", "ok")
        yield ", ".join(f"{counts[state]} {state}" for state in states if counts[state])
    if counts["wrong"]:
        raise SystemExit(1)
