"""A model that obeys whatever it reads: each line `CALL tool {"argument": ...}`, from whomever, is carried out once.

In the end it tells all that it has seen, and what tools it was given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

_ORDER = re.compile(r"^CALL (\w+) (\{.*\})$", re.MULTILINE)


def obedient_model() -> FunctionModel:
    return FunctionModel(_obey, model_name="obedient")


def _obey(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    orders = list(dict.fromkeys(order for text in _texts(messages) for order in _ORDER.findall(text)))
    called = {
        (part.tool_name, json.dumps(part.args_as_dict()))
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }
    for name, arguments in orders:
        try:
            given = json.loads(arguments)
        except ValueError:
            # An excerpt that has lost its line breaks.
            continue
        if (name, json.dumps(given)) not in called:
            return ModelResponse(parts=[ToolCallPart(name, given)])
    tools = [tool.name for tool in info.function_tools]
    seen = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    return ModelResponse(parts=[TextPart(json.dumps({"tools": tools, "seen": seen}))])


def _texts(messages: list[ModelMessage]) -> Iterator[str]:
    for message in messages:
        for part in message.parts:
            if not isinstance(part, ToolCallPart):
                yield from _strings(getattr(part, "content", None))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)
