# SPDX-License-Identifier: Apache-2.0
"""What the script that follows the first pages takes from them."""

from __future__ import annotations

from pathlib import Path

from tools.first_steps import COOKBOOK, FIRST_RECIPES, ROOT, commands

PAGE = """\
# Page

## Install

```sh
pip install x
x --run &
```

```python
# no heading, and no command
```

```sh
y
```

## From a clone

```sh
make demo  # not now
make up
```
"""


def test_commands_are_taken_with_their_headings(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert list(commands(page)) == [
        ("Install", "pip install x"),
        ("Install", "x --run &"),
        ("Install", "y"),
        ("From a clone", "make up"),
    ]


def test_the_pages_have_what_is_waited_for() -> None:
    readme = [command for _, command in commands(ROOT / "README.md")]
    tutorial = [command for _, command in commands(ROOT / "docs" / "tutorial.md")]
    assert readme[-1] == "airflow dags test river_news"
    for name in FIRST_RECIPES:
        recipe = [command for _, command in commands(COOKBOOK / f"{name}.md")]
        assert recipe[-1].startswith("airflow dags test ")
    assert "make up" in tutorial
    assert tutorial[-1] == "make down"
