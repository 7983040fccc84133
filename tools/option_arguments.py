"""The option arguments of operators: their types, values, and descriptions."""

from __future__ import annotations

from typing import NamedTuple


class OptionArgument(NamedTuple):
    """An argument that accepts an option.

    :param type: type of the parameter, as source text.
    :param value: value of the attribute, as source text.
    :param text: description of the argument.
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
        "path or URL of a folder for screenshots and other media, or `Media` (templated). Default: media is not kept.",
    ),
    "changes": OptionArgument(
        "Changes | str | None",
        "Changes.of(changes)",
        "path or URL of a folder for the runs' manifests, or `Changes` (templated). Default: no comparison.",
    ),
    "result_schema": OptionArgument(
        "Schema | Mapping[str, Any] | type | str | None",
        "Schema.of(result_schema)",
        "JSON Schema as a mapping, pydantic model, the model's import path, or `Schema`. Default: the schema that the "
        "request contains, if any.",
    ),
    "quality": OptionArgument(
        "Quality | int | None",
        "Quality.of(quality)",
        "conditions that the results must meet before they replace those of earlier runs: minimum number of results, "
        "or `Quality`. Default: no conditions.",
    ),
    "credit_limit": OptionArgument(
        "float | str | None",
        "checked_limit(credit_limit)",
        "maximum credits for all attempts until the task is cleared. On Airflow 3.2, for each attempt (templated). A "
        "call of a killed attempt counts with its maximum cost. A call whose documented price may exceed the limit or "
        "is unbounded is not sent, and the task fails with WD-034. Default: no limit.",
    ),
}
"""Options by their names in `RequestFields(options=...)`."""
