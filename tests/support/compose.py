# SPDX-License-Identifier: Apache-2.0
"""`deploy/compose.yaml` with the variables of an environment in it, as Docker Compose fills them in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests.support.snippets import ROOT

PATH = ROOT / "deploy" / "compose.yaml"
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def services(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the services.

    :param environ: the contents of `deploy/.env`.
    :raises KeyError: a variable is missing that has no default.
    """
    found = filled_in(yaml.safe_load(PATH.read_text(encoding="utf-8")), environ)["services"]
    assert isinstance(found, dict)
    return found


def filled_in(value: Any, environ: Mapping[str, str]) -> Any:
    """Return a part of the file with its variables filled in."""
    if isinstance(value, dict):
        return {name: filled_in(part, environ) for name, part in value.items()}
    if isinstance(value, list):
        return [filled_in(part, environ) for part in value]
    return _VARIABLE.sub(lambda found: _variable(found, environ), value) if isinstance(value, str) else value


def _variable(found: re.Match[str], environ: Mapping[str, str]) -> str:
    name, kind, rest = found.groups()
    if environ.get(name):
        return environ[name]
    if kind == "-":
        return str(rest)
    raise KeyError(name)
