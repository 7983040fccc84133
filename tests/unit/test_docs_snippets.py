"""Every DAG that the documentation shows loads as it stands, and is fit for every run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
from jinja2 import Environment, nodes

from tests.support.snippets import PAGES, ROOT, name_of, snippets

WITHOUT_DAG = {"docs/operators/README.md", "docs/operators/jobs.md"}
"""Pages that are about several operators; the operators' own pages have the DAGs."""

DAGS = [
    pytest.param(found.line, found.code, id=f"{found.page}:{found.line}")
    for page in PAGES
    for found in snippets(page)
    if found.defines_dag
]


@pytest.mark.parametrize(("line", "code"), DAGS)
def test_a_dag_of_the_documentation_loads(line: int, code: str, tmp_path: Path) -> None:
    if ".toolsets." in code:
        pytest.importorskip("pydantic_ai", reason="Airflow's provider of agents knows no Python 3.10")
    file = tmp_path / "snippet.py"
    # Blank lines in front make an error name the page's own line.
    file.write_text("\n" * (line - 1) + code, encoding="utf-8")

    bag = DagBag(str(file), collect_dags=False)
    bag.process_file(str(file))

    assert bag.import_errors == {}
    assert bag.dags
    for made in bag.dags.values():
        restored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(made))
        assert set(restored.task_dict) == {task.task_id for task in made.tasks}


@pytest.mark.parametrize("page", (ROOT / "docs" / "operators").glob("*.md"), ids=name_of)
def test_the_page_of_an_operator_has_a_dag(page: Path) -> None:
    assert any(found.defines_dag for found in snippets(page)) is (name_of(page) not in WITHOUT_DAG)


OF_A_LOGICAL_DATE = {
    *("ds", "ds_nodash", "ts", "ts_nodash", "ts_nodash_with_tz", "logical_date"),
    *("data_interval_start", "data_interval_end"),
    *("prev_data_interval_start_success", "prev_data_interval_end_success"),
}
"""What a template cannot use in a run that `airflow dags trigger`, the REST API or an asset has started."""

CODE = {f"{found.page}:{found.line}": found.code for page in PAGES for found in snippets(page)} | {
    name_of(file): file.read_text(encoding="utf-8")
    for folder in ("example_dags", "example_dags/agents", "example_dags/vectors", "docs/tutorial")
    for file in sorted((ROOT / folder).glob("*.py"))
}


def test_templates_need_no_logical_date() -> None:
    # Not those in which the reader is to write something.
    templates = {where: re.findall(r"\{\{(?! \.\.\. ).*?\}\}", code) for where, code in CODE.items()}
    assert sum(map(len, templates.values())) > 10
    wrong = {
        (where, template)
        for where, found in templates.items()
        for template in found
        for name in Environment().parse(template.replace("%s", "given")).find_all(nodes.Name)
        if name.name in OF_A_LOGICAL_DATE
    }
    assert wrong == set()
