# SPDX-License-Identifier: Apache-2.0
"""Cheap pre-check of literal arguments by simple rules; the models are imported only for suspects.

A rule is a list whose first item is its kind:

| Rule | Accepted values |
| --- | --- |
| `["text", longest, check]` | non-blank text; `check` names the model's validator |
| `["number", whole, least, most, above]` | a number, or its text |
| `["choice", values]` | one of the values |
| `["switch", model?]` | true or false, also as text; or a mapping for the model |
| `["mapping"]` | any mapping |
| `["list", rule, shortest, longest]` | a list of items that the rule accepts |
| `["required", *names]`, under the name "" | a mapping with these fields |
| `["object", model, check?]` | a mapping with the model's fields; or text, with a check |
| `["one_of", names, models by type, check?]` | a name, a mapping with a `type`; or text, with a check |

Accepted values may still violate a rule between fields, which the task checks before it sends a request. The models
have the final decision about rejected values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pendulum

from airflow_provider_webdata.common.literals import is_template
from airflow_provider_webdata.common.spelling import snake_case

Rule = Sequence[Any]

_RULES = msgspec.json.decode(
    Path(__file__).with_name("field_rules.json").read_bytes(), type=dict[str, msgspec.Raw]
)

_LITERALS = (str, int, float, list, tuple, Mapping)


@cache
def field_rules(model: str) -> Mapping[str, Rule]:
    """Return the rules of a request model by field, written by tools/operator_fields.py."""
    # An import parses none of them: a DAG file needs the rules of a few models.
    return msgspec.json.decode(_RULES[model], type=dict[str, list[Any]])


def may_be_wrong(rule: Rule, value: Any) -> bool:
    """Return whether a rule rejects a value. Values that are known only at run time are accepted."""
    if not rule or value is None or not isinstance(value, _LITERALS) or is_template(value):
        return False
    return _KINDS[rule[0]](rule, value)


def _text(rule: Rule, value: Any) -> bool:
    _, longest, check = rule
    if not isinstance(value, str) or not value.strip() or (longest and len(value) > longest):
        return True
    return check is not None and TEXT_CHECKS[check](value)


def _number(rule: Rule, value: Any) -> bool:
    _, whole, least, most, above = rule
    if isinstance(value, bool):
        return True
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return True
    if whole and not number.is_integer():
        return True
    is_in_reach = (least is None or number >= least) and (most is None or number <= most)
    return not is_in_reach or (above is not None and number <= above)


def _choice(rule: Rule, value: Any) -> bool:
    return value not in rule[1]


def _switch(rule: Rule, value: Any) -> bool:
    if isinstance(value, Mapping) and len(rule) > 1:
        return _fields_may_be_wrong(rule[1], value)
    return not isinstance(value, bool) and str(value).strip().lower() not in {"true", "false"}


def _mapping(rule: Rule, value: Any) -> bool:  # noqa: ARG001
    return not isinstance(value, Mapping)


def _list(rule: Rule, value: Any) -> bool:
    _, of_item, shortest, longest = rule
    if not isinstance(value, (list, tuple)) or len(value) < shortest or (longest and len(value) > longest):
        return True
    return any(may_be_wrong(of_item, item) for item in value)


def _object(rule: Rule, value: Any) -> bool:
    if isinstance(value, str) and len(rule) > 2:
        return TEXT_CHECKS[rule[2]](value)
    return not isinstance(value, Mapping) or not value or _fields_may_be_wrong(rule[1], value)


def _one_of(rule: Rule, value: Any) -> bool:
    _, names, models, *check = rule
    if isinstance(value, str) and check:
        return TEXT_CHECKS[check[0]](value)
    if not isinstance(value, Mapping):
        return value not in names
    kind = value.get("type")
    if is_template(kind):
        return False
    return kind not in models or _fields_may_be_wrong(models[kind], value)


def _fields_may_be_wrong(model: str, value: Mapping[Any, Any]) -> bool:
    rules = field_rules(model)
    fields = {name if name in rules else snake_case(str(name)): given for name, given in value.items()}
    if any(name not in fields for name in rules.get("", ())[1:]):
        return True
    return any(name not in rules or may_be_wrong(rules[name], given) for name, given in fields.items())


_KINDS: dict[str, Callable[[Rule, Any], bool]] = {
    "text": _text,
    "number": _number,
    "choice": _choice,
    "switch": _switch,
    "mapping": _mapping,
    "list": _list,
    "object": _object,
    "one_of": _one_of,
}


# The cheap parts of the models' text validation. Common texts avoid regular expressions, because compiling one costs
# more than all other checks.


def _no_address(value: str) -> bool:
    if value.split() != [value]:
        return True
    scheme, found, rest = value.partition("?")[0].partition("://")
    return bool(found) and (scheme.lower() not in {"http", "https"} or rest[:1] in {"", "/", "#"})


def _no_host(value: str) -> bool:
    return re.fullmatch(r"(\*\.)?[\w.-]+", value) is None


def _no_identifier(value: str) -> bool:
    return re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value) is None


def _is_below(value: str, limit: int) -> bool:
    return value.isdecimal() and len(value) <= 2 and int(value) < limit


def _no_cron(value: str) -> bool:
    fields = value.split()
    # Common case: once a day or once an hour, on all or some days of the week.
    if len(fields) == 5 and fields[2:4] == ["*", "*"]:
        minute, hour, _, _, weekday = fields
        first, dash, last = weekday.partition("-")
        is_weekday = weekday == "*" or (
            _is_below(first, 7) and (not dash or (_is_below(last, 7) and first <= last))
        )
        if _is_below(minute, 60) and (hour == "*" or _is_below(hour, 24)) and is_weekday:
            return False
    from airflow_provider_webdata.api.cron import CronError, read_cron

    return _fails(read_cron, value, CronError)


def _no_phrase(value: str) -> bool:
    from airflow_provider_webdata.api.phrases import PhraseError, read_phrase

    return _fails(read_phrase, value, PhraseError)


def _no_time_filter(value: str) -> bool:
    if value in {"qdr:h", "qdr:d", "qdr:w", "qdr:m", "qdr:y"}:
        return False
    from airflow_provider_webdata.api.query import QueryError, check_tbs

    return _fails(check_tbs, value, QueryError)


def _no_time_zone(value: str) -> bool:
    return value != "UTC" and _fails(pendulum.Timezone, value, (ValueError, OSError))


def _fails(
    read: Callable[[str], Any], value: str, errors: type[Exception] | tuple[type[Exception], ...]
) -> bool:
    try:
        read(value)
    except errors:
        return True
    return False


TEXT_CHECKS: dict[str, Callable[[str], bool]] = {
    "_web_address": _no_address,
    "_country": lambda value: not (len(value) == 2 and value.isascii() and value.isalpha()),
    "_watched_address": lambda value: _no_address(value) or not re.search("[./:]", value),
    "_droppable_address": _no_address,
    "_receiver": _no_address,
    "hostname": _no_host,
    "_domain_pattern": _no_host,
    "_identifier": _no_identifier,
    "integration": lambda value: value[:1] != "_",
    "_email": lambda value: "@" not in value,
    "_cron": _no_cron,
    "_phrase": _no_phrase,
    "_schedule": lambda value: (_no_phrase if value.strip()[:1].isalpha() else _no_cron)(value),
    "_tbs": _no_time_filter,
    "_time_zone": _no_time_zone,
}
