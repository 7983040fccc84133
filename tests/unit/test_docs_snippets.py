"""Every DAG that the documentation shows loads as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "docs" / "monitors.md",
        ROOT / "docs" / "search.md",
        *(ROOT / "docs" / "operators").glob("*.md"),
    ]
)
WITHOUT_DAG = {"docs/operators/README.md", "docs/operators/jobs.md"}
"""Pages that are about several operators; the operators' own pages have the DAGs."""


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _snippets(page: Path) -> list[tuple[int, str]]:
    """Return line number and text of each Python block of the page that defines a DAG."""
    text = page.read_text(encoding="utf-8")
    blocks = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [
        (text.count("\n", 0, block.start()) + 2, block[1])
        for block in blocks
        if re.search(r"\bDAG\(|@dag\b", block[1])
    ]


SNIPPETS = [
    pytest.param(line, code, id=f"{_name(page)}:{line}") for page in PAGES for line, code in _snippets(page)
]


@pytest.mark.parametrize(("line", "code"), SNIPPETS)
def test_a_dag_of_the_documentation_loads(line: int, code: str, tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    # Blank lines in front make an error name the page's own line.
    file.write_text("\n" * (line - 1) + code, encoding="utf-8")

    bag = DagBag(str(file), collect_dags=False)
    bag.process_file(str(file))

    assert bag.import_errors == {}
    [made] = bag.dags.values()
    restored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(made))
    assert set(restored.task_dict) == {task.task_id for task in made.tasks}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_each_page_has_a_dag(page: Path) -> None:
    assert bool(_snippets(page)) is (_name(page) not in WITHOUT_DAG)
