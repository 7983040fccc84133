# SPDX-License-Identifier: Apache-2.0
"""A model that obeys everything it reads: it carries out each line `CALL tool {"argument": ...}` once.

Its last answer lists the messages that it has seen and the tools that it was given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
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


def obedient_model(is_gone: Callable[[], bool] = lambda: False) -> FunctionModel:
    """Return the model.

    :param is_gone: whether the model fails, called before its last answer.
    """

    def obey(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        answer = _obey(messages, info)
        if any(isinstance(part, TextPart) for part in answer.parts) and is_gone():
            raise RuntimeError("the model is gone")
        return answer

    return FunctionModel(obey, model_name="obedient")


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
