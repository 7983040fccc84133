# SPDX-License-Identifier: Apache-2.0
"""Run tests against a sample of the mutants of each part; list those that no test detects.

    python -m tools.mutants [PART ...] [--sample N] [--seed S] [--against CLONE] [--json FILE]

Exits with 1 if fewer than `LEAST` of the mutants die, or if the tests of the other clone kill a survivor.
"""

from __future__ import annotations

import argparse
import io
import json
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tools.mutants.clone import Clone, mutate_part
from tools.mutants.parts import PARTS, sample

LEAST = 0.85
DEAD = ("killed", "timeout")
COLUMNS = ("mutants", "tried", "killed", "timeout", "survived", "no tests", "die", "lost", "tests", "CPU s")


def main() -> int:
    """Test the mutants; print the survivors and a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: all of {', '.join(PARTS)}")
    parser.add_argument("--sample", type=int, default=50, help="mutants per part, 0 for all; default: 50")
    parser.add_argument("--seed", type=int, default=1, help="selects the sample; default: 1")
    parser.add_argument("--against", type=Path, help="a clone whose tests run against the survivors")
    parser.add_argument("--max-children", type=int, default=2, help="mutants at the same time; default: 2")
    parser.add_argument("--json", type=Path, help="a file for the results")
    options = parser.parse_args()
    if unknown := {*options.parts} - {*PARTS}:
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    limits = {"children": options.max_children}
    report: dict[str, Any] = {"sample": options.sample, "seed": options.seed, "parts": {}}
    with tempfile.TemporaryDirectory(prefix="webdata-mutants-", ignore_cleanup_errors=True) as folder:
        clone = Clone(Path(folder) / "1")
        other = Clone(Path(folder) / "2", options.against.resolve()) if options.against else None
        for name in options.parts or PARTS:
            mutated = mutate_part(PARTS[name], options.max_children)
            changes = {mutant: change for file in mutated for mutant, change in file.mutants.items()}
            names = sample([*changes], options.sample, options.seed)
            part = {"mutants": len(changes), **clone.run(PARTS[name], mutated, names, limits)}
            for mutant, result in part["results"].items():
                result["change"] = changes[mutant]
            alive = sorted(m for m, result in part["results"].items() if result["outcome"] not in DEAD)
            if other and alive:
                part["against"] = other.run(PARTS[name], mutated, alive, limits)
            report["parts"][name] = part
            print_part(name, part)
            if options.json:
                options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    return print_table(report["parts"])


def lost(part: dict[str, Any]) -> dict[str, str]:
    """Return the survivors that the other clone's tests kill, with the killing test."""
    results = part.get("against", {}).get("results", {})
    return {m: result.get("test", "?") for m, result in results.items() if result["outcome"] in DEAD}


def print_part(name: str, part: dict[str, Any]) -> None:
    """Print the survivors of a part."""
    print(f"\n== {name}")
    for test in part["failing"]:
        print(f"Ignored, because it fails without a mutant: {test}")
    for test in part.get("against", {}).get("failing", ()):
        print(f"Ignored in the other clone, because it fails without a mutant: {test}")
    killers = lost(part)
    for mutant, result in sorted(part["results"].items()):
        if result["outcome"] not in DEAD:
            print(f"{mutant}: {result['outcome']}")
            print("    " + result["change"].replace("\n", "\n    "))
        if mutant in killers:
            print(f"    LOST: the other clone's test {killers[mutant]} kills it")


def print_table(parts: dict[str, Any]) -> int:
    """Print a table by part; return the exit status."""
    counts = {}
    for name, part in parts.items():
        counts[name] = Counter(result["outcome"] for result in part["results"].values())
        counts[name].update({column: part[column] for column in ("mutants", "tests")})
        counts[name].update(tried=len(part["results"]), lost=len(lost(part)))
        counts[name]["CPU s"] = round(part["cpu"] + part.get("against", {}).get("cpu", 0))
    total = counts["all"] = sum(counts.values(), Counter())
    print("\n| part | " + " | ".join(COLUMNS) + " |\n|" + " --- |" * (len(COLUMNS) + 1))
    for name, row in counts.items():
        dead = sum(row[outcome] for outcome in DEAD) / max(row["tried"], 1)
        cells = [f"{dead:.0%}" if column == "die" else str(row[column]) for column in COLUMNS]
        print(f"| {name} | " + " | ".join(cells) + " |")
    died = sum(total[outcome] for outcome in DEAD)
    return 0 if died >= LEAST * total["tried"] and not total["lost"] else 1


if __name__ == "__main__":
    sys.exit(main())
