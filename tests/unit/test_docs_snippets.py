# SPDX-License-Identifier: Apache-2.0
"""Every DAG in the documentation loads unchanged, and is fit for every run."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
from jinja2 import Environment, nodes

from tests.support.airflow_features import HAS_LOOPS
from tests.support.snippets import PAGES, ROOT, name_of, snippets

WITHOUT_DAG = {"docs/operators/README.md", "docs/operators/jobs.md"}
"""Pages that are about several operators; the operators' own pages have the DAGs."""


def test_the_dags_of_the_documentation_load(tmp_path: Path) -> None:
    loaded = 0
    for found in (found for page in PAGES for found in snippets(page) if found.defines_dag):
        # Airflow's provider of agents does not support Python 3.10.
        if ".toolsets." in found.code and not find_spec("pydantic_ai"):
            continue
        if "LoopDecision" in found.code and not HAS_LOOPS:
            continue
        # Blank lines in front make an error name the page's own line.
        file = tmp_path / f"{found.page.replace('/', '_')}_{found.line}.py"
        file.write_text("\n" * (found.line - 1) + found.code, encoding="utf-8")

        bag = DagBag(str(file), collect_dags=False)
        bag.process_file(str(file))

        assert bag.import_errors == {}
        assert bag.dags, f"{found.page}:{found.line}"
        for made in bag.dags.values():
            restored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(made))
            assert set(restored.task_dict) == {task.task_id for task in made.tasks}
        loaded += 1
    assert loaded > 30


def test_the_page_of_an_operator_has_a_dag() -> None:
    pages = [*(ROOT / "docs" / "operators").glob("*.md")]
    without = {name_of(page) for page in pages if not any(found.defines_dag for found in snippets(page))}
    assert without == WITHOUT_DAG


OF_A_LOGICAL_DATE = {
    *("ds", "ds_nodash", "ts", "ts_nodash", "ts_nodash_with_tz", "logical_date"),
    *("data_interval_start", "data_interval_end"),
    *("prev_data_interval_start_success", "prev_data_interval_end_success"),
}
"""What a template cannot use in a run that `airflow dags trigger`, the REST API or an asset has started."""

CODE = {f"{found.page}:{found.line}": found.code for page in PAGES for found in snippets(page)} | {
    name_of(file): file.read_text(encoding="utf-8")
    for folder in ("example_dags", "docs/tutorial")
    for file in sorted((ROOT / folder).rglob("*.py"))
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
