# SPDX-License-Identifier: Apache-2.0
"""Write the fields of the requests that methods of the hooks accept as keyword arguments.

    python -m tools.hook_fields            update `hooks/fields.py` if it is outdated
    python -m tools.hook_fields --check    if it is outdated, show the differences and exit with 1

A method names its fields in an annotation: `**fields: Unpack[SearchFields]` stands for the fields of `SearchRequest`.
Names and descriptions come from the model. Types are loose: a choice is a text, and an object is a mapping.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.models.base import RequestModel
from tools.operator_fields import LABELS, WIDTH, FieldsError, changes, descriptions, loose_type

ROOT = Path(__file__).parents[1]
HOOKS = ROOT / "airflow_provider_webdata" / "hooks"
FIELDS = HOOKS / "fields.py"
SUFFIXES = ("Request", "Options")
"""Endings of the names of request models."""

HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""Fields of requests, as keyword arguments of the hooks' methods. Written by tools/hook_fields.py.

The annotations are evaluated on import, without `from __future__ import annotations`: `signatures.py` reads them.
"""

from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
else:
    # Tools that read signatures, such as `HookToolset`, know the types of JSON only.
    Mapping, Sequence = dict, list

T = TypeVar("T")

Needed = Annotated[T, "required"]
"""A required field. Type checkers take all as optional, because a mapping may replace them."""
'''


def text() -> str:
    """Return the content of `hooks/fields.py`.

    :raises FieldsError: a method names fields of a model that does not exist, or a field has no description.
    """
    return HEAD + "".join(f"\n\n{_class(name, model)}" for name, model in sorted(classes().items()))


def classes() -> dict[str, type[RequestModel]]:
    """Return the models of the fields that methods accept, by the name of the class in `hooks/fields.py`."""
    return {name: _model(name) for path in (HOOKS / "operations").glob("*.py") for name in _named(path)}


def _named(path: Path) -> list[str]:
    return re.findall(r"\*\*fields: Unpack\[(\w+)\]", path.read_text(encoding="utf-8"))


def _model(name: str) -> type[RequestModel]:
    stem = name.removesuffix("Fields")
    for suffix in SUFFIXES:
        if stem + suffix in models.__all__:
            model: type[RequestModel] = getattr(models, stem + suffix)
            return model
    raise FieldsError(f"Unpack[{name}]: no model {stem}Request or {stem}Options in api/models")


def _class(name: str, model: type[RequestModel]) -> str:
    described = {
        field: text for field, text in descriptions(model).items() if field.rstrip("_") not in LABELS
    }
    # Required fields first.
    ordered = sorted(described, key=lambda field: not model.model_fields[field].is_required())
    entries = "\n".join(map(_indented, (f":param {one.rstrip('_')}: {described[one]}" for one in ordered)))
    lines = "\n".join(f"    {line}" for line in _lines(model, ordered))
    doc = f'    """Fields of `{model.__name__}`.\n\n{entries}\n    """'
    return f"class {name}(TypedDict, total=False):\n{doc}\n\n{lines}\n"


def _lines(model: type[RequestModel], names: list[str]) -> Iterator[str]:
    for name in names:
        field = model.model_fields[name]
        kind = loose_type(field.annotation, templated=False)
        yield f"{name.rstrip('_')}: {f'Needed[{kind}]' if field.is_required() else kind}"


def _indented(entry: str) -> str:
    return textwrap.fill(
        entry,
        WIDTH,
        initial_indent="    ",
        subsequent_indent="        ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def main(arguments: list[str] | None = None) -> int:
    """Write or check the fields; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write no file, and fail if it is outdated")
    check = parser.parse_args(arguments).check
    try:
        fresh = text()
    except FieldsError as error:
        print(error, file=sys.stderr)
        return 1
    old = FIELDS.read_text(encoding="utf-8") if FIELDS.exists() else ""
    if fresh == old:
        return 0
    name = FIELDS.relative_to(ROOT)
    if check:
        print(f"{name} is outdated; run python -m tools.hook_fields\n{changes(old, fresh)}", file=sys.stderr)
        return 1
    FIELDS.write_text(fresh, encoding="utf-8")
    print(f"{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
