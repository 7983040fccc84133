# SPDX-License-Identifier: Apache-2.0
"""Write `api/models/__init__.py`, which exports all public models and imports them lazily.

python -m tools.model_exports            write the file
python -m tools.model_exports --check    if the file is outdated, show the differences and exit with 1
"""

from __future__ import annotations

import ast
import difflib
import sys
import textwrap
from pathlib import Path
from string import Template

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "airflow_provider_webdata" / "api" / "models"
PACKAGE = "airflow_provider_webdata.api.models"

TEXT = Template('''\
# SPDX-License-Identifier: Apache-2.0
"""The wire models, one file per resource; a model's file is loaded when the model is first used.

Requests take wire (camelCase) or Python (snake_case) names and forbid unknown fields. Responses keep unknown
fields, so that a newer service never breaks an older provider. Written by tools/model_exports.py.
"""

# ruff: noqa: F403

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
$imports
else:
    _MODELS = {
$models
    }
    _FILES = {name: file for file, names in _MODELS.items() for name in names.split()}

    __all__ = [*_FILES]

    def __getattr__(name: str) -> Any:
        if name not in _FILES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
        globals()[name] = value
        return value
''')
WIDTH = 88
"""Maximum characters of names per line."""


def public_names(file: Path) -> list[str]:
    """Return the public models of a file: classes, and unions of them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    unions = [
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and any(isinstance(part, ast.Name) and part.id == "one_of" for part in ast.walk(node.value))
    ]
    return sorted((name for name in [*classes, *unions] if not name.startswith("_")), key=str.lower)


def written() -> str:
    """Return the text of the file."""
    names = {file.stem: public_names(file) for file in sorted(FOLDER.glob("[a-z]*.py"))}
    names = {module: found for module, found in names.items() if found}
    return TEXT.substitute(
        imports="\n".join(f"    from {PACKAGE}.{module} import *" for module in names),
        models="\n".join(_entry(module, found) for module, found in names.items()),
    )


def _entry(module: str, names: list[str]) -> str:
    first, *more = textwrap.wrap(" ".join(names), WIDTH)
    if not more:
        return f'        "{module}": "{first}",'
    lines = "".join(f'            " {line}"\n' for line in more)
    return f'        "{module}": (\n            "{first}"\n{lines}        ),'


def main() -> int:
    """Write or check the file; return the exit status."""
    file = FOLDER / "__init__.py"
    old, new = file.read_text(encoding="utf-8"), written()
    if "--check" not in sys.argv:
        file.write_text(new, encoding="utf-8")
        return 0
    if old == new:
        return 0
    print(f"{file.relative_to(ROOT)} is outdated; run python -m tools.model_exports")
    print(
        *difflib.unified_diff(old.splitlines(), new.splitlines(), "exported", "defined", n=0, lineterm=""),
        sep="\n",
    )
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
