# SPDX-License-Identifier: Apache-2.0
"""Write the skeleton of an operation that returns its result immediately.

    python -m tools.new_operation page_rank "the rank of pages on a subject"

The skeleton is complete: `POST /v2/page-rank` with a `query`, its hook methods, operator, sandbox, documentation, and
passing tests. Adapt it to the documented operation; docs/contributing/additions.md lists the places. In existing files,
the new operation follows map.
"""

from __future__ import annotations

import argparse
import keyword
import re
import subprocess
import sys
from pathlib import Path
from string import Template

from airflow_provider_webdata.hooks.webdata import WebDataHook

ROOT = Path(__file__).parents[1]
PACKAGE = "airflow_provider_webdata"
SANDBOX = "sandbox/webdata_sandbox"

FILES = {
    f"{PACKAGE}/api/models/$name.py": '''\
# SPDX-License-Identifier: Apache-2.0
"""$Title: its request and response."""

from __future__ import annotations

from airflow_provider_webdata.api.models.base import Answer, Entries, RequestModel, ResponseModel
from airflow_provider_webdata.api.models.fields import Integration, Text


class ${Class}Request(RequestModel):
    """Body of `POST $path`; only `query` is required. One credit.

    :param query: the subject.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    query: Text
    origin: Text | None = None
    integration: Integration | None = None


class ${Class}Result(ResponseModel):
    """One result."""

    url: str


class ${Class}Response(Answer):
    """Response of `POST $path`."""

    results: Entries[${Class}Result]
''',
    f"{PACKAGE}/runs/$name.py": '''\
# SPDX-License-Identifier: Apache-2.0
"""The run of a $title call."""

from __future__ import annotations

from airflow_provider_webdata.api.models import ${Class}Request, ${Class}Response
from airflow_provider_webdata.api.prices import $NAME
from airflow_provider_webdata.runs.call import CallResult, CallRun, summary_of
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.publishing.step import Results


class ${Class}Run(CallRun):
    """Calls $title and publishes its results."""

    operation = "$name"
    model = ${Class}Request
    answer_model = ${Class}Response

    def read(self, request: ${Class}Request, answer: ${Class}Response) -> CallResult:
        """Log the results."""
        summary = summary_of(answer)
        found = summary.pop("results")
        self.log.info("$Title returned %d results", len(found))
        results = Results(found, "generic", summary, [request.query])
        cost = Cost($NAME.cost(answer, request.to_wire()))
        return CallResult(results, cost, lambda items, summary: {**summary, "results": items}, pushed=summary)
''',
    f"{PACKAGE}/operators/$name.py": '''\
# SPDX-License-Identifier: Apache-2.0
"""The operator of $title."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator


class WebData${Class}Operator(
    WebDataOperator, fields=RequestFields("${Class}Request", options=("save_to", "credit_limit"))
):
    """Return $summary. One credit.

    All arguments are templated fields of POST $path. Omitted arguments are not sent; the
    defaults below are the service's.

    XCom: a mapping with the wire names `results` (each with `url`) and `count`.

    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    _run_path = "airflow_provider_webdata.runs.$name:${Class}Run"

    def __init__(
        self,
        *,
        # fields of ${Class}Request, written by tools/operator_fields.py
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of ${Class}Request, written by tools/operator_fields.py
        # end of fields
        self._check_arguments()
''',
    f"{SANDBOX}/operations/$name.py": '''\
# SPDX-License-Identifier: Apache-2.0
"""$Title."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .call import Reply
from .endpoint import Endpoint
from .validation import valid

if TYPE_CHECKING:
    from webdata_sandbox.engine.web import Web
    from webdata_sandbox.state.core import Core

    from .call import Call


class ${Class}:
    """Handles ``POST $path``."""

    def __init__(self, core: Core, web: Web) -> None:
        self._core, self._web = core, web

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [Endpoint("POST", "$path", self.$name, "search")]

    async def $name(self, call: Call) -> Reply:
        """Validate and bill the call, and return the results."""
        valid("$body", call.body)
        self._core.credits.require()
        self._core.credits.spend(1)
        return Reply(200, {"success": True, "results": [{"url": page.url} for page in self._web][:3]})
''',
    "docs/operators/$name.md": """\
# $Title

`WebData${Class}Operator` returns $summary.

```python
import pendulum
from airflow.sdk import DAG

from airflow_provider_webdata.operators.$name import WebData${Class}Operator

with DAG("$name", schedule="@weekly", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    WebData${Class}Operator(task_id="$name", query="river")
```

## What it returns

```json
{"count": 1, "results": [{"url": "https://river.example/"}]}
```

With `save_to=`, the results go to a [file](../results.md) (kind `generic`), and the return value has its path.

## Arguments

<!-- arguments of WebData${Class}Operator -->
<!-- end of arguments -->

## What it costs

1 credit.

## When it fails

As a [search](../search.md) does: see [Errors and retries](../errors.md#effect-on-the-task).
""",
    "tests/integration/operators/test_${name}_operator.py": '''\
# SPDX-License-Identifier: Apache-2.0
"""$Title."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.operators.$name import WebData${Class}Operator
from webdata_sandbox.server import SandboxServer
from tests.support import direct
from tests.support.direct import TaskInstance, context_of


@pytest.mark.rule("$slug-query", "$slug-answer")
def test_results_and_their_price(here: SandboxServer) -> None:
    outcome = direct.run(WebData${Class}Operator(task_id="t", query="{{ 'river' }}"))
    assert outcome.value["count"] == len(outcome.value["results"]) > 0
    assert outcome.xcom["credits"]["by_operation"] == {"$name": 1}
    (sent,) = here.control.requests("$path")
    assert sent["body"] == {"query": "river"}


def test_output(here: SandboxServer, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    outcome = direct.run(WebData${Class}Operator(task_id="t", query="river", save_to=str(path)))
    results = [json.loads(line) for line in path.read_text().splitlines()]
    assert outcome.value["count"] == len(results) > 0


def test_bad_input_fails_before_any_request(here: SandboxServer) -> None:
    with pytest.raises(AirflowFailException, match="query"):
        direct.execute(WebData${Class}Operator(task_id="t", query="{{ ' ' }}"), context_of(TaskInstance()))
    assert here.control.requests() == []
''',
}
"""New files."""

INSERTIONS = (
    (
        f"{PACKAGE}/api/prices.py",
        r'MAP = Price\("map", .*\n',
        '$NAME = Price("$name", lambda _: PriceBound(1, "1 a call"), fixed=1)\n',
    ),
    (
        f"{PACKAGE}/api/endpoints.py",
        r"MAP = Endpoint\((?:.*\n)*?\)  # fmt: skip\n",
        """$NAME = Endpoint(
    "$name", "POST", "$path", "$slug", lambda: models.${Class}Response, lambda: models.${Class}Request,
    prices.$NAME,
)  # fmt: skip
""",
    ),
    (
        f"{PACKAGE}/hooks/operations/pages.py",
        r"    async def map\((?:.*\n)+",
        '''
    async def $name(
        self, request: models.${Class}Request | Body, *, extra_body: Body | None = None
    ) -> models.${Class}Response:
        """Return $summary. Bills credits; never retried after a lost response.

        See sandbox/docs/service.md#$slug.

        :param request: only `query` is required.
        :param extra_body: merged into the body unchecked.
        """
        return await self._execute(Call.of(endpoints.$NAME, request, extra_body=extra_body))
''',
    ),
    (
        f"{PACKAGE}/hooks/webdata.py",
        r"    map = blocking\(.*\n",
        "    $name = blocking(PageOperations.$name)\n",
    ),
    (
        f"{PACKAGE}/get_provider_info.py",
        r' +"airflow_provider_webdata\.operators\.map",\n',
        f'                    "{PACKAGE}.operators.$name",\n',
    ),
    (
        f"{SANDBOX}/reference/schema.py",
        r"\n(?=BODIES: )",
        '$NAME = _object({"query": WORDS, **LABELS}, "query")\n\n',
    ),
    (f"{SANDBOX}/reference/schema.py", '    "map": MAP,\n', '    "$body": $NAME,\n'),
    (
        f"{SANDBOX}/service.py",
        r"from .*operations\.map import Map\n",
        "from webdata_sandbox.operations.$name import $Class\n",
    ),
    (f"{SANDBOX}/service.py", r" +Map\(core, .*\n", "            $Class(core, self.web),\n"),
    (
        "sandbox/docs/service.md",
        r"\| `POST /v2/map` .*\n",
        "| `POST $path` | bills | search | [$Title](#$slug) |\n",
    ),
    (
        "sandbox/docs/service.md",
        r"\n(?=## Parse\n)",
        """## $Title

`POST $path` returns $summary, for 1 credit.

| Field | Type | Default | Rules |
|---|---|---|---|
| <a id="$slug-query"></a>`query*` | string | | |

- <a id="$slug-answer"></a>**Response:** `results`, each `{url}`.

""",
    ),
    (
        "docs/operators/README.md",
        r"\| \[`WebDataMapOperator`\].*\n",
        "| [`WebData${Class}Operator`]($name.md) | $summary | `$name` |\n",
    ),
    (
        "docs/costs.md",
        r"\| \[map\]\(operators/map\.md\).*\n",
        "| [$title](operators/$name.md) | [1 a call](../sandbox/docs/service.md#$slug) |\n",
    ),
    (
        "CHANGELOG.md",
        r"## 0.*\n(?:(?!## ).*\n)*",
        "- `WebData${Class}Operator` and `WebDataHook.$name`: $summary.\n",
    ),
)
"""Existing files, the pattern that the new lines follow, and the new lines."""

GENERATORS = ("model_exports", "operator_fields", "reference_pages")


def write(name: str, summary: str, path: str | None = None, folder: Path = ROOT) -> list[str]:
    """Write the skeleton of an operation, and return the paths of the changed files.

    :param name: the operation in snake case.
    :param summary: a noun phrase for the result of the operation.
    :param path: the path of the endpoint. Default: the name below `/v2/`.
    :param folder: root of the source tree.
    :raises ValueError: the name is invalid or in use, or a file has no place for the operation.
    """
    if not re.fullmatch("[a-z]+(_[a-z]+)*", name) or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is not a name in snake case")
    if hasattr(WebDataHook, name) or (folder / PACKAGE / "api/models" / f"{name}.py").exists():
        raise ValueError(f"{name!r} is in use; choose another name")
    words = name.split("_")
    path = path or f"/v2/{'-'.join(words)}"
    names = {
        "name": name,
        "summary": summary,
        "path": path,
        "body": path.removeprefix("/v2/").replace("/", "."),
        "NAME": name.upper(),
        "Class": "".join(word.title() for word in words),
        "slug": "-".join(words),
        "title": " ".join(words),
        "Title": " ".join(words).capitalize(),
    }

    def filled(text: str) -> str:
        return Template(text).substitute(names)

    written = {filled(file): filled(text) for file, text in FILES.items()}
    for file, place, text in INSERTIONS:
        source = written.get(file) or (folder / file).read_text(encoding="utf-8")
        found = re.search(place, source)
        if found is None:
            raise ValueError(f"{file}: no text matches {place!r}, which the new lines should follow")
        written[file] = source[: found.end()] + filled(text) + source[found.end() :]
    for file, text in written.items():
        (folder / file).write_text(text, encoding="utf-8")
    for generator in GENERATORS:
        subprocess.run([sys.executable, "-m", f"tools.{generator}"], cwd=folder, check=True)
    ruff = str(Path(sys.executable).parent / "ruff")
    sources = [file for file in written if file.endswith(".py")]
    subprocess.run([ruff, "check", "--quiet", "--select", "I", "--fix", *sources], cwd=folder, check=True)
    subprocess.run([ruff, "format", "--quiet", *sources], cwd=folder, check=True)
    return [*written]


def main() -> None:
    """Write the skeleton, and print the paths of its files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="the operation in snake case")
    parser.add_argument("summary", help="a noun phrase for its result")
    parser.add_argument("--path", help="path of the endpoint; default: the name below /v2/")
    try:
        written = write(**vars(parser.parse_args()))
    except ValueError as error:
        sys.exit(str(error))
    print("Complete these files as docs/contributing/additions.md describes:", *written, sep="\n  ")


if __name__ == "__main__":
    main()
