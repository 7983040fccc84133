# SPDX-License-Identifier: Apache-2.0
"""Rules for every operator, sensor, and method of the hooks that the provider's metadata names.

Each failure names the forgotten field, operator, or method, the file that lacks it, and what to do.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from airflow.sdk import DAG, BaseHook, BaseOperator, BaseSensorOperator

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.prices import INCLUDED
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from tests.support.request_fields import Limits, minimal, parts, request_endpoints
from tools.coverage_page import slug
from tools.docs_site.rules import rule_of_field
from tools.metadata import modules_of
from tools.operator_fields import FieldsError, descriptions

ROOT = Path(__file__).parents[2]
PACKAGE = "airflow_provider_webdata"
METADATA = f"{PACKAGE}/get_provider_info.py"
DESCRIPTION = re.compile(r"^:param (\w+):(.*(?:\n[ \t]+.*)*)", re.MULTILINE)


def require(wrong: Iterable[str]) -> None:
    """Fail with these lines, if any."""
    if lines := [*wrong]:
        pytest.fail("\n".join(lines), pytrace=False)


def file_of(item: type) -> str:
    """Return the path of a class, from the root of the repository."""
    return str(Path(inspect.getfile(item)).relative_to(ROOT))


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


TASKS = [task for module in modules_of("operators", "transfers", "sensors") for task in tasks_in(module)]
WITH_FIELDS = [task for task in TASKS if getattr(task, "_request_fields", ())]
REPLACED = {
    "WebDataBatchSearchOperator": {"query"},
    "WebDataIncrementalCrawlOperator": {"urls", "append_to_id"},
    "WebDataProviderOperator": {"calls"},
}
"""Fields that an operator omits: another argument replaces them, or they are meaningless there."""

LABELS = ("origin", "integration")
"""Fields that every operator omits; `extra_body` sends them."""

ARGUMENTS: dict[str, dict[str, Any]] = {
    "WebDataUpdateMonitorOperator": {"monitor_id": "m"},
    "WebDataDeleteMonitorOperator": {"monitor_id": "m"},
    "WebDataRunMonitorOperator": {"monitor_id": "m"},
    "WebDataJobSensor": {"kind": "crawl"},
    "WebDataIncrementalCrawlOperator": {"refresh_after": 60},
    "WebDataProviderOperator": {"provider": "p", "capability": "c"},
    "WebDataToTableOperator": {"path": "x.jsonl"},
    "WebDataBatchSearchOperator": {"save_to": "x.jsonl"},
}
"""Arguments that a task needs in addition to its required parameters."""


def parameters(task: type) -> dict[str, inspect.Parameter]:
    """Return the keyword-only parameters of a task and of its base classes in this package."""
    return {
        name: parameter
        for base in reversed(task.__mro__)
        if base.__module__.startswith(PACKAGE) and "__init__" in vars(base)
        for name, parameter in inspect.signature(base.__init__).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def required(task: type) -> dict[str, Any]:
    """Return the least arguments of a task."""

    def value(annotation: str) -> Any:
        return {} if annotation.startswith("Mapping") else ["x"] if annotation.startswith("Sequence") else "x"

    needed = {
        name: value(str(parameter.annotation))
        for name, parameter in parameters(task).items()
        if parameter.default is inspect.Parameter.empty
    }
    model = getattr(models, getattr(task, "_request_model", ""), None)
    body = {} if model is None else minimal(model)
    sent = {name: value for name, value in body.items() if name in needed}
    return {**needed, **sent, **ARGUMENTS.get(task.__name__, {})}


def test_every_module_is_in_the_metadata() -> None:
    """A package of operators for one resource counts as one module; private modules are exempt."""
    wrong = []
    for room in ("operators", "transfers", "sensors", "triggers"):
        folder = ROOT / PACKAGE / room
        found = {path.stem for path in folder.glob("*.py")} - {"__init__", "resume"}
        found |= {path.parent.name for path in folder.glob("*/__init__.py")} - {"base"}
        named = {name.removeprefix(f"{PACKAGE}.{room}.") for name in modules_of(room)}
        wrong += [f"{METADATA}: add {PACKAGE}.{room}.{name} to {room!r}" for name in sorted(found - named)]
        wrong += [f"{METADATA}: {PACKAGE}.{room}.{name} does not exist" for name in sorted(named - found)]
    require(wrong)


def test_every_task_has_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    require(
        f"docs: no page names `{task.__name__}`; describe it in docs/operators or docs/waiting.md"
        for task in TASKS
        if f"`{task.__name__}`" not in text
    )


def test_every_field_is_a_templated_parameter() -> None:
    """The request model is the list of fields; `schema_` stands for `schema`, a method of pydantic's models."""
    wrong = []
    for task in WITH_FIELDS:
        model = getattr(models, task._request_model)
        if model not in request_endpoints():
            wrong.append(f"{PACKAGE}/api/endpoints.py: no endpoint has the request {task._request_model}")
        fields = {name.rstrip("_") for name in model.model_fields} - {
            *REPLACED.get(task.__name__, ()),
            *LABELS,
        }
        signature = {*inspect.signature(task.__init__).parameters} - {"self"}
        wrong += [
            f"{file_of(task)}: {task.__name__} lacks the field {name!r}; run python -m tools.operator_fields"
            for name in sorted(fields - (signature & {*task._request_fields}))
        ]
        wrong += [
            f"{file_of(task)}: {task.__name__} has the field {name!r}, which {task._request_model} lacks"
            for name in sorted({*task._request_fields} - fields)
        ]
        templated = {*(fields & {*task._request_fields}), "extra_body", "webdata_conn_id"}
        wrong += [
            f"{file_of(task)}: {name!r} is missing in {task.__name__}.template_fields"
            for name in sorted(templated - {*task.template_fields})
        ]
    require(wrong)


def test_no_field_is_an_argument_with_another_meaning() -> None:
    """An argument of a base class, such as how to wait, has no field's name."""
    require(
        f"{file_of(base)}: {base.__name__} has an argument {name!r}, which is a field of {task._request_model}"
        for task in WITH_FIELDS
        for base in task.__mro__[1:]
        if base.__module__.startswith(PACKAGE)
        for name in sorted({*parameters(base)} & {*task._request_fields})
    )


def test_every_parameter_is_documented() -> None:
    """In the docstring of the class whose constructor has it."""
    wrong = []
    for base in sorted({base for task in TASKS for base in task.__mro__}, key=lambda base: base.__qualname__):
        # Airflow wraps constructors, inherited ones too.
        if base.__module__.startswith(PACKAGE) and base.__init__.__qualname__ == f"{base.__name__}.__init__":
            text = inspect.getdoc(base) or ""
            wrong += [
                f"{file_of(base)}: the docstring of {base.__name__} has no line ':param {name}: ...'"
                for name in inspect.signature(base.__init__).parameters
                if name != "self" and f":param {name}:" not in text
            ]
    require(wrong)


def test_the_docstrings_say_what_is_templated() -> None:
    """All fields are; of the other arguments, those that the docstrings call templated."""
    wrong = []
    for task in TASKS:
        said = {
            name
            for base in task.__mro__
            if base.__module__.startswith(PACKAGE)
            for name, text in DESCRIPTION.findall(inspect.getdoc(base) or "")
            if "templated" in text
        }
        said -= {"extra_body"}
        templated = {*task.template_fields} - {*getattr(task, "_request_fields", ()), "extra_body"}
        wrong += [
            f"{file_of(task)}: {task.__name__} templates {name!r}; add 'templated' to its ':param' line"
            for name in sorted(templated - said)
        ]
        wrong += [
            f"{file_of(task)}: the docstring says that {name!r} is templated; add it to template_fields"
            for name in sorted(said - templated)
        ]
    require(wrong)


def test_templated_attributes_exist_and_are_shown_by_their_type() -> None:
    """Airflow renders these attributes, which the constructor sets, and shows lists and objects as JSON."""
    wrong = []
    for task in TASKS:
        made: Any = task(task_id="t", **required(task))
        templated, where = [*task.template_fields], f"{file_of(task)}: {task.__name__}.template_fields"
        wrong += [f"{where} has {name!r} twice" for name in {*templated} if templated.count(name) > 1]
        wrong += [f"{where}: no attribute {name!r}" for name in templated if not hasattr(made, name)]
        given = parameters(task)
        structured = {
            name
            for name in getattr(task, "_request_fields", ())
            if re.search(r"\b(Mapping|Sequence)\[", str(given[name].annotation))
        }
        renderers = {*task.template_fields_renderers}
        wrong += [f"{where}_renderers: add {name!r}" for name in sorted(structured - renderers)]
        wrong += [
            f"{where}_renderers: {name!r} is not templated"
            for name in sorted(renderers - {*templated, "extra_body"})
        ]
    require(wrong)


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


# Requests and endpoints.


def limits(model: type[models.RequestModel]) -> Iterator[tuple[str, set[str]]]:
    """Yield each field with the numbers and choices that its description must name."""
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


def test_descriptions_name_the_limits() -> None:
    wrong = []
    for model in request_endpoints():
        try:
            texts = descriptions(model)
        except FieldsError as error:
            wrong.append(str(error))
            continue
        for name, named in limits(model):
            text = re.sub(r"(?<=\d),(?=\d{3})", "", texts[name])
            wrong += [
                f"{file_of(model)}: the ':param {name}:' line of {model.__name__} does not name {value}"
                for value in sorted(named)
                if value not in text
            ]
    require(wrong)


WITHOUT_RULE = {
    "MapRequest": {"includePaths", "filterByPath", "excludePaths", "useIndex"},
    "ScrapeInteractRequest": {"prompt"},
}
"""Fields whose row in sandbox/docs/service.md has no anchor."""


def test_fields_have_a_rule() -> None:
    wrong = []
    for model in request_endpoints():
        exempt = WITHOUT_RULE.get(model.__name__, set())
        wires = {field.alias or name for name, field in model.model_fields.items()}
        without = {wire for wire in wires if rule_of_field(model.__name__, wire) is None}
        wrong += [
            f"sandbox/docs/service.md: no row with an anchor has the field `{wire}` of {model.__name__}; the sections "
            "of this model are in SECTIONS of tools/docs_site/rules.py"
            for wire in sorted(without - exempt)
        ]
        wrong += [
            f"tests/unit/test_contract.py: WITHOUT_RULE names `{wire}` of {model.__name__}, which has a rule"
            for wire in sorted(exempt - without)
        ]
    require(wrong)


@pytest.mark.rule("repeat-safe", "repeat-unsafe")
def test_every_endpoint_is_named_priced_and_documented() -> None:
    """What sandbox/docs/service.md#endpoints calls the effect of a call decides whether it has a price."""
    text = (ROOT / "sandbox/docs/service.md").read_text(encoding="utf-8")
    sections = {slug(title) for title in re.findall(r"^#+ (.*)", text, re.MULTILINE)}
    effects = {
        re.sub(r"{\w+}", "{}", call): effect
        for calls, effect in re.findall(r"^\| (.*/v2/.*?) \| ([a-z, ]+) \|", text, re.MULTILINE)
        for call in re.findall(r"`(.*?)`", calls)
    }
    where, wrong = f"{PACKAGE}/api/endpoints.py", []
    constants = {name for name, value in vars(endpoints).items() if isinstance(value, endpoints.Endpoint)}
    wrong += [
        f"{where}: {name} is not the name of its endpoint in upper case"
        for name in sorted(constants ^ {name.upper() for name in endpoints.ENDPOINTS})
    ]
    for endpoint in endpoints.ENDPOINTS.values():
        if endpoint.section not in sections:
            wrong.append(
                f"sandbox/docs/service.md: no section #{endpoint.section}, which {endpoint.name} names"
            )
        if endpoint is endpoints.FIND_TOOLS:
            continue  # one of the calls of data providers, and the one that is free
        effect = effects.get(re.sub(r"{\w+}", "{}", f"{endpoint.method} {endpoint.path}"))
        if effect is None:
            wrong.append(f"sandbox/docs/service.md#endpoints: no row for `{endpoint.method} {endpoint.path}`")
        elif endpoint.price != INCLUDED and (endpoint.price is None) is bool(
            re.search("bills|starts", effect)
        ):
            wrong.append(
                f"sandbox/docs/service.md#endpoints: {endpoint.name} {effect}; price: {endpoint.price}"
            )
    require(wrong)


def test_a_post_without_a_price_is_no_endpoint() -> None:
    with pytest.raises(TypeError, match="new_call: declare a price"):
        endpoints.Endpoint("new_call", "POST", "/v2/new", "search", lambda: models.SearchResponse)


# The hooks.

ONLY_BLOCKING = {"test_connection", "sibling", "optional"}
"""Airflow tests connections through the blocking hook, only blocking code is interrupted by signals,
and only tasks have reads that they can do without."""


def surface(hook: type) -> dict[str, str]:
    """Return the public methods that the hook adds to Airflow's, with their parameters."""
    return {
        name: str(inspect.signature(member).replace(return_annotation=inspect.Signature.empty))
        for name, member in inspect.getmembers(hook, inspect.isfunction)
        if not name.startswith("_") and member is not getattr(BaseHook, name, None)
    }


def where_defined(hook: type, name: str) -> str:
    member = inspect.unwrap(getattr(hook, name))
    return f"{Path(inspect.getfile(member)).relative_to(ROOT)}: {member.__qualname__}"


GIVES_A_HOOK = {"guarded", "guarded_by"}
"""Methods that send no request."""


def test_the_hooks_have_the_same_methods() -> None:
    """Same names and parameters; each is a coroutine, or an asynchronous generator where the twin is a generator."""
    blocking, other = surface(WebDataHook), surface(WebDataAsyncHook)
    wrong = [
        f"{where_defined(WebDataHook, name)}{parameters} has no asynchronous twin"
        for name, parameters in blocking.items()
        if name not in {*other, *ONLY_BLOCKING}
    ]
    for name, parameters in other.items():
        where = where_defined(WebDataAsyncHook, name)
        if name in ONLY_BLOCKING or name not in blocking:
            wrong.append(f"{where}{parameters} has no blocking twin")
            continue
        if parameters != blocking[name]:
            wrong.append(f"{where}{parameters} differs from the blocking {name}{blocking[name]}")
        twin, method = getattr(WebDataHook, name), getattr(WebDataAsyncHook, name)
        kind = (
            inspect.isasyncgenfunction if inspect.isgeneratorfunction(twin) else inspect.iscoroutinefunction
        )
        if name not in GIVES_A_HOOK and not kind(method):
            wrong.append(f"{where} is not asynchronous as its twin requires ({kind.__name__})")
    require(wrong)
    assert len(other) > 12


OUR_NAMES = {"hook", "execute_complete", "get_openlineage_facets_on_complete"}
"""Public attributes of tasks that are neither arguments nor inherited from Airflow: the hook, as every provider has it,
and the methods that Airflow and OpenLineage call by these names."""


def test_what_is_no_argument_begins_with_an_underscore() -> None:
    wrong = []
    for task in TASKS:
        airflows = {
            name for base in task.__mro__ if not base.__module__.startswith(PACKAGE) for name in vars(base)
        }
        own = {name for base in task.__mro__ if base.__module__.startswith(PACKAGE) for name in vars(base)}
        made = {*vars(task(task_id="t", **required(task)))} - {*vars(BaseSensorOperator(task_id="t"))}
        known = airflows | OUR_NAMES | {*parameters(task)}
        wrong += [
            f"{file_of(task)}: {task.__name__}.{name} is no argument; begin its name with an underscore"
            for name in sorted((own | made) - known)
            if not name.startswith("_")
        ]
    require(wrong)


def test_constructors_assign_their_arguments_and_check_them_last() -> None:
    wrong = []
    for task in TASKS:
        for base in task.__mro__:
            if not base.__module__.startswith(PACKAGE) or "__init__" not in vars(base):
                continue
            function = ast.parse(textwrap.dedent(inspect.getsource(base.__init__))).body[0]
            assert isinstance(function, ast.FunctionDef)
            lines = [ast.unparse(statement) for statement in function.body]
            taken = {argument.arg for argument in function.args.kwonlyargs}
            assigned = [line for line in lines if line.startswith("self.") and " = " in line]
            wrong += [
                f"{file_of(base)}: {base.__name__}.__init__ changes an argument: {line}"
                for line in assigned
                if line.removeprefix("self.").split(" = ")[0] != line.split(" = ")[1]
            ]
            passed_on = {
                name for line in lines if "super().__init__(" in line for name in re.findall(r"(\w+)=", line)
            }
            forgotten = taken - {line.split(" = ")[1] for line in assigned} - passed_on
            wrong += [
                f"{file_of(base)}: {base.__name__}.__init__ forgets {name}" for name in sorted(forgotten)
            ]
            if base is task and not any("self._check_arguments()" in line for line in lines[-3:]):
                wrong.append(
                    f"{file_of(base)}: {base.__name__}.__init__ must end with self._check_arguments()"
                )
    require(wrong)
