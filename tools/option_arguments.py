# SPDX-License-Identifier: Apache-2.0
"""The option arguments of operators: their types, defaults, and descriptions."""

from __future__ import annotations

from typing import NamedTuple


class OptionArgument(NamedTuple):
    """An argument that says where results go, what they must be, or what they may cost.

    :param type: type of the parameter, as source text.
    :param text: description of the argument.
    :param default: default of the parameter, as source text.
    """

    type: str
    text: str
    default: str = "None"


OPTIONS = {
    "save_to": OptionArgument(
        "str | None",
        "path or URL of a file for the results, in any storage that Airflow knows (templated). `*` in its name becomes "
        "a name of the task instance, so that each run and each mapped instance has its own file. Its suffix is the "
        "format, such as `.jsonl.gz` or `.parquet`; `docs/results.md` lists them. The file is written completely or "
        "not at all, and a retry replaces it. XCom then has `path`, `count`, and `bytes` instead of the results. "
        "Default: XCom.",
    ),
    "documents": OptionArgument(
        "bool",
        "flat rows for retrieval instead of the items: `id` (the same for a page in all runs), `url`, `title`, `text`, "
        "`metadata`, and `digest`. For pages, search results, and links. Default: false.",
        "False",
    ),
    "media_to": OptionArgument(
        "str | None",
        "path or URL of a folder for screenshots, audio, video, and PDFs, whose links expire (templated). The links in "
        "the results then point to the downloaded files. Default: media is not kept.",
    ),
    "max_media_mb": OptionArgument(
        "float",
        "maximum size of such a file in MiB, more than 0; larger ones are not kept. Default: 500.",
        "500",
    ),
    "changes": OptionArgument(
        "Changes | str | None",
        "path or URL of a folder for what earlier runs saw, or `Changes` (templated). Default: no comparison.",
    ),
    "result_schema": OptionArgument(
        "Mapping[str, Any] | type | str | None",
        "schema that structured results must match, the `json` of pages or the data of an agent: JSON Schema as a "
        "mapping, pydantic model, or the model's import path, such as `shop.models.Product`. An invalid result gets a "
        "first field `validationErrors`, and XCom `validation` counts them; see `docs/results.md`. Default: the schema "
        "that the request contains, if any.",
    ),
    "on_invalid_result": OptionArgument(
        'Literal["keep", "fail"]',
        "`keep`, or `fail`: fail the task, without a retry, after all results are published. Default: `keep`.",
        '"keep"',
    ),
    "result_rows": OptionArgument(
        "str | None",
        "path of the list in `data` whose elements are the results, such as `companies` or `answer.companies`. Each is "
        "then a separate item, and `result_schema` describes one item. The rest of `data` goes to XCom. Without such a "
        "list, `data` is the only item. Default: `data`, or its elements if it is a list.",
    ),
    "quality": OptionArgument(
        "Quality | int | None",
        "conditions that the results must meet before they replace those of earlier runs: minimum number of results, "
        "or `Quality`. Default: no conditions.",
    ),
    "credit_limit": OptionArgument(
        "float | str | None",
        "maximum credits for all attempts until the task is cleared (templated). A "
        "call of a killed attempt counts with its maximum cost. A call whose documented price may exceed the limit or "
        "is unbounded is not sent, and the task fails with WD-034. Default: no limit.",
    ),
}
"""Options by their names; `base.operator.OPTION_ARGUMENTS` groups them."""
