# SPDX-License-Identifier: Apache-2.0
"""The table of an acceptance run, as Markdown and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

Outcome = Literal["ok", "lacks", "failed", "not run"]


@dataclass
class Result:
    """The result of one operation.

    :param operation: name of an operator, a sensor, or `hook.<method>`.
    :param reason: what the server lacks, the error, or why it did not run; for `ok`, a remark.
    :param credits: credits that the service reported or that have a fixed price.
    :param at_most: upper bound of further credits whose amount is not yet known.
    :param differences: names of fields by kind of difference; see `shape.Differences`.
    :param differs: the differences as text.
    """

    operation: str
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    credits: float = 0.0
    at_most: float = 0.0
    differences: dict[str, list[str]] = field(default_factory=dict)
    differs: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        credits = f"{self.credits:g}" + (f", at most {self.at_most:g} more" if self.at_most else "")
        result = f"{self.outcome}: {self.reason}" if self.reason else self.outcome
        ran = self.outcome != "not run"
        return (
            self.operation,
            result.replace("|", "\\|").replace("\n", " "),
            f"{self.seconds:.1f}" if ran else "",
            credits if ran else "",
            self.differs,
        )


HEAD = ("Operation", "Result", "Seconds", "Credits", "Different from the documentation")


@dataclass
class Report:
    """All results of a run.

    :param about: facts about the run and the server, by name.
    :param left: what the run made and could not remove.
    """

    about: Mapping[str, str]
    results: Sequence[Result]
    left: Sequence[str] = ()

    @property
    def succeeded(self) -> bool:
        """Whether each operation works, is missing as declared, or did not run for a stated reason."""
        return not self.left and all(result.outcome != "failed" for result in self.results)

    def summary(self) -> str:
        """Return the counts on one line."""
        counts = Counter(result.outcome for result in self.results)
        outcomes: tuple[Outcome, ...] = ("ok", "lacks", "failed", "not run")
        return ", ".join(f"{counts[outcome]} {outcome}" for outcome in outcomes)

    def markdown(self) -> str:
        """Return the report as Markdown."""
        rows = [HEAD, ("---", "---", "---:", "---:", "---"), *(result.cells() for result in self.results)]
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        facts = "\n".join(f"- {name}: {value}" for name, value in self.about.items())
        left = "".join(f"\n- not removed: {text}" for text in self.left)
        return f"# Acceptance run\n\n{facts}\n- result: {self.summary()}{left}\n\n{table}\n"

    def write(self, folder: Path) -> None:
        """Write `acceptance.md` and `acceptance.json` into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "acceptance.md").write_text(self.markdown(), encoding="utf-8")
        content = {
            "about": dict(self.about),
            "left": [*self.left],
            "results": [asdict(result) for result in self.results],
        }
        (folder / "acceptance.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
