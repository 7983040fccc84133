"""The option arguments of operators: their types, values, and descriptions."""

from __future__ import annotations

from typing import NamedTuple


class OptionArgument(NamedTuple):
    """An argument that takes an option.

    :param type: of the parameter, as source text.
    :param value: what the attribute is set to, as source text.
    :param text: its description.
    """

    type: str
    value: str
    text: str


OPTIONS = {
    "output": OptionArgument(
        "Output | str | None",
        "Output.of(output)",
        "path or URL of a file for the results, or `Output` (templated). Default: XCom.",
    ),
    "media": OptionArgument(
        "Media | str | None",
        "Media.of(media)",
        "path or URL of a folder for screenshots and other media, or `Media` (templated). Default: they are not kept.",
    ),
    "changes": OptionArgument(
        "Changes | str | None",
        "Changes.of(changes)",
        "path or URL of a folder in which each run writes what it saw, or `Changes` (templated). Default: no "
        "comparison.",
    ),
    "result_schema": OptionArgument(
        "Schema | Mapping[str, Any] | type | str | None",
        "Schema.of(result_schema)",
        "JSON Schema as a mapping, pydantic model, the model's import path, or `Schema`. Default: the schema that the "
        "request contains, if any.",
    ),
    "checks": OptionArgument(
        "Checks | int | None",
        "Checks.of(checks)",
        "conditions that the results must meet before they replace those of earlier runs: the fewest results, or "
        "`Checks`. Default: none.",
    ),
    "credit_limit": OptionArgument(
        "float | str | None",
        "checked_limit(credit_limit)",
        "most credits that all attempts may spend until the task is cleared; on Airflow 3.2, each attempt (templated). "
        "A call of a killed attempt counts with the most that it may cost. Nothing is sent that may cost more by the "
        "documented prices, or whose price has no documented bound; the task then fails with WD-034. Default: none.",
    ),
}
"""What `RequestFields(options=...)` names."""
