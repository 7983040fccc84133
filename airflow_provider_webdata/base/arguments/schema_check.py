# SPDX-License-Identifier: Apache-2.0
"""Check, while the DAG file is parsed, that a request returns data that `result_schema` can validate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_webdata.base.arguments.literal_check import field_rules
from airflow_provider_webdata.common.literals import is_literal

_FORMAT = '{"type": "json", "schema": ...}'
_WITH_DATA = ("json", "deterministicJson")


def schema_problems(
    model: str, fields: Mapping[str, Any], result_schema: object, has_other_fields: object
) -> list[str]:
    """Return a problem if no page of the results can have `json`.

    Agents and data providers return data in any case. Formats that are known only at run time are not checked.

    :param model: name of the request model.
    :param fields: fields of the request, by their Python names.
    :param result_schema: the operator's argument. None: no problem.
    :param has_other_fields: whether formats may also be elsewhere, such as in `extra_body`.
    """
    rules = field_rules(model)
    # The prompt of a crawl may set formats, too.
    if (
        result_schema is None
        or has_other_fields
        or fields.get("prompt")
        or not {"formats", "scrape_options"} & rules.keys()
    ):
        return []
    advice = f"formats=[{_FORMAT}]"
    options: Any = fields
    if "formats" not in rules:
        advice = f'scrape_options={{"formats": [{_FORMAT}]}}'
        options = fields.get("scrape_options") or {}
    if not isinstance(options, Mapping):
        return []
    formats = options.get("formats") or []
    if isinstance(formats, str) or not is_literal(formats):
        return []
    if any((one.get("type") if isinstance(one, Mapping) else one) in _WITH_DATA for one in formats):
        return []
    return [
        "result_schema: no format of the request returns data that it could validate; "
        f"write {advice}, beside other formats"
    ]
