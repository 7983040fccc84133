# SPDX-License-Identifier: Apache-2.0
"""Parts of other packages that the code uses and that are not public, found by reading it.

An import is public if its package says so: see `PUBLIC`. An attribute with an underscore is private unless this project
defines an attribute of that name.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "airflow_provider_webdata", ROOT / "sandbox" / "webdata_sandbox")

PUBLIC = frozenset(
    {
        # https://airflow.apache.org/docs/apache-airflow/stable/public-airflow-interface.html, which also names all of
        # `airflow.sdk.__all__`.
        "airflow.__version__",
        "airflow.exceptions",
        "airflow.plugins_manager.AirflowPlugin",
        "airflow.sdk.exceptions",
        "airflow.sdk.execution_time.xcom.XCom",
        "airflow.sdk.types",
        "airflow.secrets.metastore.MetastoreBackend",
        "airflow.triggers.base",
        "airflow.utils.state",
        # Commands of a provider: apache-airflow-providers/core-extensions/cli-commands.html
        "airflow.cli.cli_config",
        # Masks of tasks: apache-airflow/stable/security/secrets/mask-sensitive-values.html
        "airflow.sdk.log.mask_secret",
        # Toolsets: apache-airflow-providers-common-ai/stable/toolsets/custom.html
        "airflow.providers.common.ai.utils.toolset_base.AirflowToolset",
        # Lineage: apache-airflow-providers-openlineage/stable/guides/developer.html
        "airflow.providers.openlineage.extractors.OperatorLineage",
        # https://lxml.de/lxmlhtml.html
        "lxml.html.HTMLParser",
        "lxml.html.HtmlElement",
    }
)
"""Modules and names that the documentation of their package offers, and `__all__` does not show."""

_DOCUMENTED_BY_PYTHON = {"_asdict", "_fields", "_replace"}
_OURS = {path.name for path in PACKAGES}


def private_uses() -> set[tuple[str, str]]:
    """Return each private part that the two packages use, with the path of the file from the root."""
    code = {path: path.read_text(encoding="utf-8") for package in PACKAGES for path in package.rglob("*.py")}
    return {(part, str(path.relative_to(ROOT))) for part, path in uses_in(code)}


def uses_in(code: Mapping[Path, str]) -> set[tuple[str, Path]]:
    """Return each private part that these files use, with the file.

    A part is the path of a module, `module.name`, or `_name` for an attribute.

    :param code: the text of each file.
    """
    trees = {path: ast.parse(text) for path, text in code.items()}
    ours = {name for tree in trees.values() for name in _defined(tree)} | _DOCUMENTED_BY_PYTHON
    return {
        (part, path) for path, tree in trees.items() for part in {*_imports(tree), *_attributes(tree, ours)}
    }


def _imports(tree: ast.AST) -> Iterator[str]:
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
            yield from (alias.name for alias in node.names if not _is_public("", alias.name))
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            assert node.module is not None
            for alias in node.names:
                if node.module.endswith(".http_library"):
                    modules[alias.asname or alias.name] = alias.name
                elif not _is_public(node.module, alias.name):
                    yield f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and _is_module_of_airflow(node.value):
            yield node.value
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (module := modules.get(node.value.id))
            and not _is_public(module, node.attr)
        ):
            yield f"{module}.{node.attr}"


def _is_module_of_airflow(value: object) -> TypeGuard[str]:
    # As in `sys.modules.get(...)`.
    return (
        isinstance(value, str)
        and re.fullmatch(r"airflow(\.\w+)+", value) is not None
        and _source(value) is not None
        and not _is_public("", value)
    )


def _is_public(module: str, name: str) -> bool:
    path = f"{module}.{name}".strip(".")
    root = path.partition(".")[0]
    if root in sys.stdlib_module_names or root in _OURS:
        return True
    if {module, path} & PUBLIC:
        return True
    if root == "airflow":
        return path in {"airflow", "airflow.sdk"} or (
            module == "airflow.sdk" and name in (_listed(module) or ())
        )
    if any(part.startswith("_") and not part.endswith("__") for part in path.split(".")):
        return False
    return not module or _exports(module, name)


def _exports(module: str, name: str) -> bool:
    """Return whether a module lists a name in `__all__`, has a submodule of that name, or lists nothing."""
    listed = _listed(module)
    return listed is None or name in listed or _source(f"{module}.{name}") is not None


@cache
def _listed(module: str) -> frozenset[str] | None:
    """Return the `__all__` of a module without importing it, or None if it has none."""
    if (source := _source(module)) is None:
        return None
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return None


def _source(module: str) -> Path | None:
    root, *rest = module.split(".")
    spec = find_spec(root)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent.joinpath(*rest)
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


def _attributes(tree: ast.AST, ours: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        name = None
        if isinstance(node, ast.Attribute):
            name = node.attr
        elif isinstance(node, ast.keyword):
            name = node.arg
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"delattr", "getattr", "hasattr", "setattr"}
            and isinstance(node.args[1], ast.Constant)
        ):
            name = str(node.args[1].value)
        if name and name.startswith("_") and not name.endswith("__") and name not in ours:
            yield name


def _defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id in {"self", "cls"}
        ):
            yield node.attr
