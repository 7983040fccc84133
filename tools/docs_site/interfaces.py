# SPDX-License-Identifier: Apache-2.0
"""Reference pages of the hook, the toolset, errors, and templates."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from airflow.sdk import BaseHook

from airflow_provider_webdata.api import query
from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.plugin import WebDataPlugin
from airflow_provider_webdata.policies.retry import WebDataRetryPolicy
from tools.docs_site.docstrings import docstring_of
from tools.docs_site.rendering import argument, body, code, outcome, page, prose
from tools.docs_site.result_classes import methods_of_results, results_of
from tools.docs_site.subjects import (
    OPTIONS,
    PACKAGE,
    DescriptionError,
    annotation_text,
    arguments_of,
    literal,
    spelled,
)

ROOT = "../"
HAS_AGENTS = find_spec("pydantic_ai") is not None
"""False on Python 3.10, on which the site is not built."""
VERDICTS = {
    "never": "no later attempt can succeed, so the task fails immediately",
    "later": "a later attempt can succeed, so the task is rescheduled or waits for the time that the service requests",
    "unknown": "the outcome of a later attempt is unknown, so the task's `retries` apply",
}
"""The effect of an error's verdict on a task."""


def pages() -> dict[str, str]:
    """Return the text of these pages, by path from the root of the site."""
    return {
        "reference/hook.md": _hook(),
        **({"reference/toolset.md": _toolset()} if HAS_AGENTS else {}),
        "reference/errors.md": _errors(),
        "reference/templates.md": _templates(),
    }


def places() -> dict[str, tuple[str, str]]:
    """Return the page (without suffix) and anchor of each class on these pages, by import path."""
    found = {
        f"{cls.__module__}.{cls.__name__}": (f"reference/{page}", f"#{cls.__name__.lower()}")
        for page, classes in (
            ("errors", _tree(WebDataError)),
            ("options", OPTIONS),
            ("results", methods_of_results()),
        )
        for cls in classes
    }
    found[f"{PACKAGE}.hooks.webdata.WebDataHook"] = ("reference/hook", "")
    found[f"{PACKAGE}.hooks.webdata_async.WebDataAsyncHook"] = ("reference/hook", "")
    if HAS_AGENTS:
        found[f"{PACKAGE}.toolsets.webdata.WebDataToolset"] = ("reference/toolset", "")
    return found | {f"{PACKAGE}.policies.retry.WebDataRetryPolicy": ("reference/templates", "#retry-policy")}


def _hook() -> str:
    parts: list[str] = []
    for owner in WebDataHook.__mro__:
        methods = [name for name in vars(owner) if _is_public_method(owner, name)]
        if not methods:
            continue
        title = "The hook itself" if owner is WebDataHook else docstring_of(owner).summary.partition(",")[0]
        parts.append(f"## {title}")
        for name in methods:
            method = getattr(owner, name)
            parts += _function(name, method, f"{owner.__name__}.{name}", f"{name}-")
            if classes := results_of(method):
                parts.append(f"Result: {' or '.join(f'`{cls.__name__}`' for cls in classes)}.")
    return page(
        "Hook",
        code(
            "from airflow_provider_webdata.hooks.webdata import WebDataHook\n"
            "from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook"
        ),
        body(docstring_of(WebDataHook), ROOT),
        "`WebDataAsyncHook` has the same methods, except `test_connection` and `sibling`. They are awaitable, except "
        "`guarded` and `guarded_by`, which return a hook. Methods that iterate are asynchronous generators.",
        "In place of the fields of a request, each method also accepts one mapping with them, or a model of "
        "`airflow_provider_webdata.api.models`, as its first argument after ids: "
        '`hook.search(query="river", limit=5)` and `hook.search({"query": "river", "limit": 5})` send the same. '
        "Fields that are mappings are [objects](objects.md).",
        *_arguments(WebDataHook.__init__, docstring_of(WebDataHook).parameters, "WebDataHook", ""),
        *parts,
    )


def _toolset() -> str:
    from airflow_provider_webdata.toolsets.webdata import WebDataToolset

    doc = docstring_of(WebDataToolset)
    return page(
        "Toolset",
        code("from airflow_provider_webdata.toolsets.webdata import WebDataToolset"),
        *body(doc, ROOT),
        f"The guide describes [the tools]({ROOT}agents.md#the-tools).",
        *_arguments(WebDataToolset.__init__, doc.parameters, "WebDataToolset", ""),
    )


def _is_public_method(owner: type, name: str) -> bool:
    member = vars(owner)[name]
    own = owner.__module__.startswith(PACKAGE) and inspect.isfunction(member)
    return own and not name.startswith("_") and member is not getattr(BaseHook, name, None)


def _function(title: str, function: Any, where: str, prefix: str) -> list[str]:
    doc = docstring_of(function)
    if not doc.summary:
        raise DescriptionError(f"{where}: no docstring")
    return [
        f"### `{title}`",
        code(_signature(title, function)),
        *body(doc, ROOT),
        *_arguments(function, doc.parameters, where, prefix),
        *outcome(doc, ROOT),
    ]


def _signature(title: str, function: Any) -> str:
    signature = inspect.signature(function)
    parts: list[str] = []
    for name, parameter in signature.parameters.items():
        if name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        kind = (
            ""
            if parameter.annotation is parameter.empty
            else f": {spelled(annotation_text(parameter.annotation), function)}"
        )
        default = "" if parameter.default is parameter.empty else f" = {literal(parameter.default)}"
        parts.append(f"{star}{name}{kind}{default}")
    inside = ", ".join(parts)
    if len(title) + len(inside) > 70:
        inside = "\n" + "".join(f"    {part},\n" for part in parts)
    return f"{title}({inside}) -> {spelled(str(signature.return_annotation), function)}"


def _arguments(function: Any, texts: dict[str, str], where: str, prefix: str) -> list[str]:
    arguments = arguments_of(function, texts, where)
    return ["\n".join(argument(one, "", None, ROOT, prefix) for one in arguments)] if arguments else []


def _errors() -> str:
    parts: list[str] = []
    for error in _tree(WebDataError):
        doc = docstring_of(error)
        if not doc.summary:
            raise DescriptionError(f"{error.__module__}.{error.__name__}: no docstring")
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        code_of = getattr(error, "help_code", "")
        known = f"[{code_of}]({ROOT}errors.md#{code_of.lower()}) · " if code_of else ""
        facts = [f"{known}{bases} · {VERDICTS[error.verdict]}"]
        fields = [f"- `{name}`: {prose(text, ROOT)}" for name, text in doc.parameters.items()]
        parts += [f"## `{error.__name__}`", *facts, *body(doc, ROOT), "\n".join(fields)]
    return page(
        "Errors",
        "All errors of the hooks are subclasses of `WebDataError` in `airflow_provider_webdata.api.errors`. "
        f"[Errors and retries]({ROOT}errors.md) documents how tasks handle them.",
        *parts,
    )


def _tree(error: type[WebDataError]) -> Iterator[type[WebDataError]]:
    """Yield an error and its subclasses; the inbox's errors are defined with its reader."""
    importlib.import_module(f"{PACKAGE}.inbox.reader")
    yield error
    for below in error.__subclasses__():
        if below.__module__.startswith(PACKAGE):
            yield from _tree(below)


def _templates() -> str:
    macros = WebDataPlugin.macros or []
    return page(
        "Macros, queries, retry policy",
        "## Macros",
        "Available in all templates without an import.",
        *(
            part
            for macro in macros
            for part in _function(f"macros.webdata.{macro.__name__}", macro, macro.__name__, "")
        ),
        "## Queries",
        code(f"from {PACKAGE}.api.query import phrase, recent, tbs, words"),
        *(
            part
            for function in (query.words, query.phrase, query.recent, query.tbs)
            for part in _function(function.__name__, function, function.__name__, f"{function.__name__}-")
        ),
        "## Retry policy",
        code("from airflow_provider_webdata.policies.retry import WebDataRetryPolicy"),
        *body(docstring_of(WebDataRetryPolicy), ROOT),
    )
