# SPDX-License-Identifier: Apache-2.0
"""Descriptions of the values that a request field accepts, from the rules of `tools.field_rules`."""

from __future__ import annotations

from typing import Any

Rule = tuple[Any, ...]


def words(rule: Rule, objects: str) -> str:
    """Return a Markdown description of the values that a rule accepts; empty if it has no limits.

    :param rule: a rule of `tools.field_rules`.
    :param objects: path of the page that describes the objects, relative to the page with this text.
    """
    kind, *rest = rule or ("",)
    if kind == "number":
        whole, least, most, above = rest
        return _joined("`int`" if whole else "`float`", _range(least, most, above))
    if kind == "switch":
        return " or ".join(["`bool`", *(_object(name, objects) for name in rest)])
    if kind == "mapping":
        return "mapping"
    if kind == "choice":
        return _choice(rest[0])
    if kind == "one_of":
        names, by_type, *short = rest
        return " or ".join(
            [
                *([_choice(names)] if names else []),
                *(_object(name, objects) for name in dict.fromkeys(by_type.values())),
                *(["a URL as text"] if short else []),
            ]
        )
    if kind == "list":
        item, least, most = rest
        return _joined(
            f"list of {words(item, objects) or 'values'}", _range(least or None, most, None, "items")
        )
    if kind == "text":
        longest, _check = rest
        return _joined("`str`", f"at most {longest:,} characters" if longest else "")
    if kind == "object":
        name, *short = rest
        text = "a cron expression or a phrase" if short == ["_schedule"] else "its URL as text"
        return _object(name, objects) + (f", or {text}" if short else "")
    return ""


def _object(name: str, objects: str) -> str:
    return f"[{name}]({objects}#{name.lower()})"


def _choice(choices: tuple[Any, ...]) -> str:
    shown = [f'`"{choice}"`' for choice in choices]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _range(least: float | None, most: float | None, above: float | None, what: str = "") -> str:
    if least is not None and most is not None:
        limits = f"{least:,} to {most:,}"
    elif least is not None:
        limits = f"at least {least:,}"
    elif above is not None:
        limits = f"more than {above:,}" + (f", at most {most:,}" if most is not None else "")
    elif most is not None:
        limits = f"at most {most:,}"
    else:
        return ""
    return f"{limits} {what}".strip()


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
