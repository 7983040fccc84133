# SPDX-License-Identifier: Apache-2.0
"""Whatever is sent to parse, extract, agent and interact, the sandbox answers as a service does and never breaks."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from webdata_sandbox.engine.browser import STATEMENTS, CodeRun, Tab
from webdata_sandbox.reference.schema import BODIES

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-10, 4000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
GOOD: dict[str, Any] = {
    "urls": st.sampled_from(
        [["https://river.example/*"], ["river.example", "x"], ["https://no-host.example/"], []]
    ),
    "prompt": st.sampled_from(["river level", " ", "x"]),
    "code": st.sampled_from(["exit 0", "console.log(page.url())", "\n;;\n"]),
    "schema": st.sampled_from(
        [
            {"type": "object", "properties": {"title": {"type": "string"}, "x": True}},
            {"type": "array", "items": {"$ref": "#/$defs/nowhere"}},
            {"type": "object", "properties": {"title": {"$ref": "#/nowhere"}}},
            {"properties": {"a": {"type": "array", "items": False}}},
        ]
    ),
    "formats": st.sampled_from([["markdown"], ["html", "json"], [{"type": "links"}]]),
    "maxCredits": st.integers(1, 30),
}


def bodies(operation: str) -> st.SearchStrategy[Any]:
    """Return bodies that hold the operation's fields, good ones and any others, or are no objects at all."""
    names = sorted(BODIES[operation]["properties"])
    fields = st.dictionaries(st.sampled_from([*names, "nonsense"]), JSON, max_size=3)
    known = st.fixed_dictionaries({}, optional={name: GOOD[name] for name in names if name in GOOD})
    return st.builds(lambda odd, good: {**odd, **good}, fields, known) | JSON


def fuzzed(operation: str) -> Any:
    return given(body=bodies(operation))


def answered(sandbox: Any, response: Any) -> None:
    body = response.json()
    assert response.status_code in (200, 400, 402, 403, 429), body
    assert response.status_code == 200 or (body["success"] is False and body["error"])
    sandbox.control.settle()


@fuzzed("extract")
def test_extract(sandbox, api, body: Any) -> None:
    response = api.http.post("/v2/extract", json=body)
    answered(sandbox, response)
    if response.status_code == 200:
        found = api.http.get(f"/v2/extract/{response.json()['id']}").json()
        assert found["status"] in ("completed", "failed")


@fuzzed("agent")
def test_agent(sandbox, api, body: Any) -> None:
    response = api.http.post("/v2/agent", json=body)
    answered(sandbox, response)
    if response.status_code == 200:
        found = api.http.get(f"/v2/agent/{response.json()['id']}").json()
        assert found["status"] in ("completed", "failed")


@fuzzed("interact")
def test_session(sandbox, api, body: Any) -> None:
    answered(sandbox, api.http.post("/v2/interact", json=body))


@fuzzed("interact.execute")
def test_code(sandbox, api, body: Any) -> None:
    session = api.http.post("/v2/interact", json={}).json()
    url = f"/v2/interact/{session.get('id', uuid.uuid4())}/execute"
    answered(sandbox, api.http.post(url, json=body))
    sandbox.control.reset()


@fuzzed("parse")
def test_options(sandbox, api, body: Any) -> None:
    form = {"file": ("a.html", b"<p>x</p>"), "options": (None, json.dumps(body))}
    answered(sandbox, api.http.post("/v2/parse", files=form))


class _NoWeb:
    """A web without pages."""

    def get(self, _: str) -> None:
        return None

    def knows_host(self, _: str) -> bool:
        return False


@pytest.mark.parametrize("language", STATEMENTS)
@examples(2)
@given(code=st.text(max_size=60) | st.text(alphabet="page.goto(\"')`;\n #/sleep0123echo$", max_size=60))
def test_any_code_ends_with_an_exit_code(language: str, code: str) -> None:
    run = CodeRun(_NoWeb(), Tab())
    for seconds in run.run(code, language):
        assert seconds >= 0
    assert run.exit_code is not None
    assert (run.error is None) or run.exit_code == 1
