# SPDX-License-Identifier: Apache-2.0
"""Signatures of methods that accept the fields of a request as keyword arguments."""

from __future__ import annotations

import inspect
import typing
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_webdata.hooks import fields as declared

if TYPE_CHECKING:
    from collections.abc import Callable

MethodT = TypeVar("MethodT", bound="Callable[..., Any]")


def with_fields(method: MethodT) -> MethodT:
    """Show the fields of a request in the signature and the docstring of a method, for tools that read these.

    Type checkers and editors read the annotation of `**fields`. Common AI's `HookToolset`, `help()`, and the reference
    read `inspect.signature`: there, each field is a parameter, and the mapping in place of the fields is none, because
    an agent that fills in arguments must have one way.

    :param method: method with the parameters `request` (or `options`) and `**fields`, annotated with
        `Unpack[...]` of a class in `hooks.fields`.
    """
    annotation = method.__annotations__["fields"]
    fields = getattr(declared, annotation.removeprefix("Unpack[").removesuffix("]"))
    signature = inspect.signature(method)
    own = [one for one in signature.parameters.values() if one.name not in {"request", "options", "fields"}]
    keywords = [one for one in own if one.kind is one.KEYWORD_ONLY]
    signature = signature.replace(
        parameters=[*(one for one in own if one not in keywords), *_parameters(fields), *keywords]
    )
    method.__signature__ = signature  # type: ignore[attr-defined]
    # Neither has a docstring under `python -OO`.
    prose, mark, described = inspect.cleandoc(method.__doc__ or "").partition("\n:param")
    _, _, entries = inspect.cleandoc(fields.__doc__ or "").partition("\n:param")
    method.__doc__ = f"{prose}{mark}{entries}{mark}{described}"
    return method


def _parameters(fields: type) -> list[inspect.Parameter]:
    found = []
    for name, kind in fields.__annotations__.items():
        is_required = hasattr(kind, "__metadata__")
        found.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if is_required else None,
                annotation=typing.get_args(kind)[0] if is_required else kind | None,
            )
        )
    return found
