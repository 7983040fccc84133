"""Write `api/models/__init__.py`, which exports every public model and loads it when it is first used.

python -m tools.model_exports            write the file
python -m tools.model_exports --check    name the models that the file lacks, and exit with 1
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "airflow_provider_webdata" / "api" / "models"
PACKAGE = "airflow_provider_webdata.api.models"

DOCSTRING = '''"""The wire models, one file per resource; a model's file is loaded when the model is first used.

Requests take wire (camelCase) or Python (snake_case) names and forbid unknown fields. Responses keep unknown
fields, so that a newer service never breaks an older provider. Written by tools/model_exports.py.
"""'''


def public_names(file: Path) -> list[str]:
    """Return the models that a file defines: its public classes, and unions of them."""
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
    lines = [DOCSTRING, "", "from __future__ import annotations", ""]
    lines += ["from importlib import import_module", "from typing import TYPE_CHECKING, Any", ""]
    lines.append("if TYPE_CHECKING:")
    for module, found in names.items():
        line = f"    from {PACKAGE}.{module} import {', '.join(found)}"
        if len(line) <= 110:
            lines.append(line)
        else:
            lines += [
                f"    from {PACKAGE}.{module} import (",
                *(f"        {name}," for name in found),
                "    )",
            ]
    lines += ["", "__all__ = ["]
    lines += [f'    "{name}",' for name in sorted(name for found in names.values() for name in found)]
    lines += ["]", "", "_FILES = {"]
    lines += [f'    "{name}": "{module}",' for module, found in names.items() for name in found]
    lines += ["}", "", ""]
    lines += [
        "def __getattr__(name: str) -> Any:",
        "    if name not in _FILES:",
        '        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")',
        '    value = getattr(import_module(f"{__name__}.{_FILES[name]}"), name)',
        "    globals()[name] = value",
        "    return value",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write or check the file; return the exit status."""
    file = FOLDER / "__init__.py"
    old, new = file.read_text(encoding="utf-8"), written()
    if "--check" not in sys.argv:
        file.write_text(new, encoding="utf-8")
        return 0
    if old == new:
        return 0
    exported, defined = ({*re.findall(r'^    "(\w+)": "(\w+)",$', text, re.MULTILINE)} for text in (old, new))
    print(f"{file.relative_to(ROOT)} differs from the models; run python -m tools.model_exports")
    for name, module in sorted(defined - exported):
        print(f"  {name} of {module}.py is not exported")
    for name, module in sorted(exported - defined):
        print(f"  {name} is exported, but {module}.py does not define it")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
