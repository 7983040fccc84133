"""What holds for every operator, sensor and method of the hooks that the provider's metadata names.

A field, an operator or a method that was forgotten somewhere is named by the test that fails.
"""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from airflow.sdk import DAG, BaseHook, BaseOperator

from airflow_provider_webdata.api import models
from airflow_provider_webdata.get_provider_info import get_provider_info
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import AsyncWebDataHook
from tests.support.request_fields import Limits, minimal, parts, request_endpoints

ROOT = Path(__file__).parents[2]
PACKAGE = "airflow_provider_webdata"
INFO = get_provider_info()


DESCRIPTION = re.compile(r"^:param (\w+):(.*(?:\n[ \t]+.*)*)", re.MULTILINE)


def modules(room: str) -> list[str]:
    return [name for entry in INFO[room] for name in entry["python-modules"]]


def tasks_in(module: str) -> list[type[BaseOperator]]:
    found = importlib.import_module(module)
    named = [getattr(found, name) for name in getattr(found, "__all__", vars(found))]
    return [
        item
        for item in named
        if inspect.isclass(item)
        and issubclass(item, BaseOperator)
        and item.__name__.startswith("WebData")
        and item.__module__.startswith(module)
    ]


TASKS = [task for room in ("operators", "sensors") for module in modules(room) for task in tasks_in(module)]
WITH_FIELDS = [task for task in TASKS if getattr(task, "request_fields", ())]
REPLACED = {
    "WebDataBatchSearchOperator": {"query"},
    "WebDataIncrementalCrawlOperator": {"urls", "append_to_id"},
}
"""Fields that an operator does not take: another argument is in their place, or they make no sense there."""

ARGUMENTS: dict[str, dict[str, Any]] = {
    "WebDataUpdateMonitorOperator": {"monitor_id": "m"},
    "WebDataDeleteMonitorOperator": {"monitor_id": "m"},
    "WebDataRunMonitorOperator": {"monitor_id": "m"},
    "WebDataJobSensor": {"kind": "crawl"},
    "WebDataIncrementalCrawlOperator": {"refresh_after": 60},
    "WebDataFeedbackOperator": {"job_id": "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"},
    "WebDataToTableOperator": {"path": "x.jsonl"},
}
"""What a task needs beside its required parameters."""


def parameters(task: type) -> dict[str, inspect.Parameter]:
    """Return the keyword-only parameters of a task and of its base classes of this package."""
    return {
        name: parameter
        for base in reversed(task.__mro__)
        if base.__module__.startswith(PACKAGE) and "__init__" in vars(base)
        for name, parameter in inspect.signature(base.__init__).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def required(task: type) -> dict[str, Any]:
    """Return arguments that a task can be made with."""

    def value(annotation: str) -> Any:
        return {} if annotation.startswith("Mapping") else ["x"] if annotation.startswith("Sequence") else "x"

    needed = {
        name: value(str(parameter.annotation))
        for name, parameter in parameters(task).items()
        if parameter.default is inspect.Parameter.empty
    }
    model = getattr(models, getattr(task, "request_model", ""), None)
    body = {} if model is None else minimal(model)
    sent = {name: value for name, value in body.items() if name in needed}
    return {**needed, **sent, **ARGUMENTS.get(task.__name__, {})}


@pytest.mark.parametrize("room", ["operators", "sensors", "triggers"])
def test_every_module_is_in_the_metadata(room: str) -> None:
    """Operators of one resource may share a package; what is in private modules is named nowhere."""
    folder = ROOT / PACKAGE / room
    others = {"__init__", "retry", "resume"}
    found = {path.stem for path in folder.glob("*.py")} - others
    found |= {path.parent.name for path in folder.glob("*/__init__.py")}
    assert found == {module.rpartition(".")[2] for module in modules(room)}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_page(task: type) -> None:
    pages = [*(ROOT / "docs").rglob("*.md")]
    assert any(f"`{task.__name__}`" in page.read_text(encoding="utf-8") for page in pages)


@pytest.mark.parametrize("task", WITH_FIELDS)
def test_every_field_is_a_templated_parameter(task: Any) -> None:
    """The request model is the list of fields; `schema_` stands for `schema`, a method of pydantic's models."""
    model = getattr(models, task.request_model)
    assert model in request_endpoints()
    fields = {name.rstrip("_") for name in model.model_fields} - REPLACED.get(task.__name__, set())
    assert set(task.request_fields) == fields
    assert fields <= set(inspect.signature(task.__init__).parameters)
    assert {*fields, "extra_body", "webdata_conn_id"} <= set(task.template_fields)


@pytest.mark.parametrize("task", WITH_FIELDS)
def test_no_field_is_an_argument_of_another_meaning(task: Any) -> None:
    """What a base class takes, such as how to wait, has no field's name."""
    bases = {
        name for base in task.__mro__[1:] if base.__module__.startswith(PACKAGE) for name in parameters(base)
    }
    assert not bases & set(task.request_fields)


@pytest.mark.parametrize("task", TASKS)
def test_every_parameter_is_documented(task: type) -> None:
    """In the docstring of the class whose constructor takes it."""
    for base in task.__mro__:
        # Airflow wraps constructors, inherited ones too.
        if base.__module__.startswith(PACKAGE) and base.__init__.__qualname__ == f"{base.__name__}.__init__":
            text = inspect.getdoc(base) or ""
            named = {name for name in inspect.signature(base.__init__).parameters if name != "self"}
            assert {name for name in named if f":param {name}:" not in text} == set(), base


@pytest.mark.parametrize("task", TASKS)
def test_what_is_templated_is_said_to_be(task: Any) -> None:
    """All fields are; of the other arguments, those that the docstrings call templated."""
    said = {
        name
        for base in task.__mro__
        if base.__module__.startswith(PACKAGE)
        for name, text in DESCRIPTION.findall(inspect.getdoc(base) or "")
        if "templated" in text
    }
    # Airflow's operators have an attribute `output` already.
    said = {"output_url" if name == "output" else name for name in said}
    assert {*task.template_fields} - {*getattr(task, "request_fields", ()), "extra_body"} == said - {
        "extra_body"
    }


@pytest.mark.parametrize("task", TASKS)
def test_what_is_templated_exists_and_is_shown_as_what_it_is(task: Any) -> None:
    """Airflow renders these attributes, which the constructor sets; it shows lists and objects as JSON."""
    made = task(task_id="t", **required(task))
    assert len(set(task.template_fields)) == len(task.template_fields)
    assert [name for name in task.template_fields if not hasattr(made, name)] == []
    given = parameters(task)
    structured = {
        name
        for name in getattr(task, "request_fields", ())
        if re.search(r"\b(Mapping|Sequence)\[", str(given[name].annotation))
    }
    assert structured <= set(task.template_fields_renderers) <= {*task.template_fields, "extra_body"}


def test_tasks_survive_serialization() -> None:
    """Airflow stores DAGs serialized; a mapped task knows its parameters by the real signature."""
    from airflow.serialization.serialized_objects import DagSerialization

    with DAG("d", schedule=None, default_args={"webdata_conn_id": "other"}) as dag:
        for task in TASKS:
            made = task(task_id=f"one_{task.__name__}", **required(task))
            assert getattr(made, "webdata_conn_id", "other") == "other"
            task.partial(task_id=f"many_{task.__name__}").expand(
                **{name: [value, value] for name, value in required(task).items()}
                or {"webdata_conn_id": ["a", "b"]}
            )
            with pytest.raises(TypeError, match="no_such_argument"):
                task.partial(task_id=f"wrong_{task.__name__}", no_such_argument=1)
    restored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    assert set(restored.task_dict) == set(dag.task_dict)
    assert len(restored.task_dict) == 2 * len(TASKS)


HEAVY = ["anyio", "fsspec", "httpx", "msgspec", "pyarrow", "pydantic", "sqlalchemy", "starlette", "tenacity"]
HEAVY += [f"{PACKAGE}.{room}" for room in ("api", "hooks", "inbox", "results", "sandbox", "triggers")]


def test_a_dag_file_pays_for_nothing_heavy() -> None:
    """Importing a task's module brings in none of the packages that only its run needs."""
    files = sorted({task.__module__ for task in TASKS})
    code = (
        "import sys, importlib\n"
        "from airflow.sdk import DAG, BaseOperator, BaseSensorOperator\n"
        "from airflow.sdk.exceptions import AirflowException\n"
        "from airflow.sdk.configuration import conf\n"
        "before = set(sys.modules)\n"
        f"for name in {files!r}:\n"
        "    importlib.import_module(name)\n"
        f"    heavy = [m for m in set(sys.modules) - before if m.startswith(tuple({HEAVY!r}))]\n"
        "    assert not heavy, (name, heavy)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


# What a request's model says of its fields.


def limits(model: type[models.RequestModel]) -> Iterator[tuple[str, set[str]]]:
    """Yield each field with the numbers and the few choices that its description has to name."""
    for name, field in model.model_fields.items():
        named: set[str] = set()
        found = [*parts(field.annotation, Limits().read(field.metadata))]
        for annotation, limit in found:
            for value in (limit.ge, limit.gt, limit.le, limit.min_length, limit.max_length):
                named |= {str(int(value))} if value is not None else set()
            items = [*parts(get_args(annotation)[0], Limits())] if get_origin(annotation) is list else []
            for kind, _ in [(annotation, limit), *items]:
                choices = get_args(kind) if get_origin(kind) is Literal else ()
                named |= {f"`{choice}`" for choice in choices} if len(choices) <= 8 else set()
        yield name, named


@pytest.mark.parametrize("model", request_endpoints())
def test_descriptions_name_the_limits(model: type[models.RequestModel]) -> None:
    from tools.operator_fields import descriptions

    texts = descriptions(model)
    missing = {
        name: rest
        for name, named in limits(model)
        if (rest := {text for text in named if text not in re.sub(r"(?<=\d),(?=\d{3})", "", texts[name])})
    }
    assert missing == {}


# The hooks.

ONLY_BLOCKING = {"test_connection", "sibling"}
"""Airflow tests connections through the blocking hook, and only blocking code is interrupted by signals."""


def surface(hook: type) -> dict[str, str]:
    """Return the public methods that the hook adds to Airflow's, with their parameters."""
    return {
        name: str(inspect.signature(member).replace(return_annotation=inspect.Signature.empty))
        for name, member in inspect.getmembers(hook, inspect.isfunction)
        if not name.startswith("_") and member is not getattr(BaseHook, name, None)
    }


def test_the_hooks_have_the_same_methods() -> None:
    """Same names, same parameters."""
    blocking, other = surface(WebDataHook), surface(AsyncWebDataHook)
    assert blocking.keys() - other.keys() == ONLY_BLOCKING
    assert other == {name: parameters for name, parameters in blocking.items() if name not in ONLY_BLOCKING}
    assert len(other) > 12


GIVES_A_HOOK = {"guarded", "guarded_by"}
"""Methods that call nobody."""


def test_asynchronous_methods_are_awaited() -> None:
    """Each is a coroutine, or an asynchronous generator where the twin is a generator."""
    for name in surface(AsyncWebDataHook).keys() - GIVES_A_HOOK:
        blocking, other = getattr(WebDataHook, name), getattr(AsyncWebDataHook, name)
        if inspect.isgeneratorfunction(blocking):
            assert inspect.isasyncgenfunction(other), name
        else:
            assert inspect.iscoroutinefunction(other), name
