"""Change the pure parts of the package a little, many times over, and count which changes no test notices.

`python -m tools.mutants` prints a table by file and the names of the mutants that live, and fails where fewer die than
`LEAST`. What is mutated, and which tests are asked, is in `[tool.mutmut]` of `pyproject.toml`;
`mutmut show NAME` shows a mutant. What lives, and why, is in `docs/contributing/mutants.md`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

LEAST = 0.85
DEAD = frozenset({"killed", "timeout", "suspicious", "segfault"})
_RESULT = re.compile(r"^\s*airflow_provider_webdata\.(?P<file>.+)\.x.*__mutmut_\d+: (?P<outcome>.+)$")


def main() -> int:
    """Mutate, test and count; 0 where enough mutants die in every file."""
    mutmut = Path(sys.executable).with_name("mutmut")
    subprocess.run([mutmut, "run", "--max-children", "2"], check=True)
    shown = subprocess.run(
        [mutmut, "results", "--all", "true"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    alive = []
    for line in shown.splitlines():
        if found := _RESULT.match(line):
            counts[found["file"]][found["outcome"]] += 1
            if found["outcome"] not in DEAD:
                alive.append(line.strip())
    print("\n".join(["", *alive, ""]))
    for file, outcomes in [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]:
        dead = sum(outcomes[outcome] for outcome in DEAD)
        print(f"{file:40} {dead:4} of {outcomes.total():4} mutants die, {dead / outcomes.total():.0%}")
    total = sum(counts.values(), Counter())
    return 0 if sum(total[outcome] for outcome in DEAD) >= LEAST * total.total() else 1


if __name__ == "__main__":
    sys.exit(main())
