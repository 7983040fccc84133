"""The commands `airflow webdata providers list` and `show`."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from airflow_provider_webdata.airflow_db.command_line import (
    AirflowConsole,
    providers_configuration_loaded,
    suppress_logs_and_warning,
    yaml,
)
from airflow_provider_webdata.airflow_db.connections import named_connection
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.api.prices import PROVIDER
from airflow_provider_webdata.common.numbers import known_credits
from airflow_provider_webdata.common.terminal import terminal_text
from airflow_provider_webdata.hooks.webdata import WebDataHook

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from airflow_provider_webdata.api.models import DataTool

_LONGEST = 100
_SAMPLES: dict[str, Any] = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}


@suppress_logs_and_warning
@providers_configuration_loaded
def list_tools(args: argparse.Namespace) -> None:
    """Print the capabilities of data providers with their prices. Nothing is billed.

    :param args: query; provider, a list; limit; conn_id; output.
    """
    given = {"query": args.query, "providers": args.provider}
    wanted: dict[str, Any] = {name: value for name, value in given.items() if value}
    found: list[DataTool] = []
    with _catalog(args.conn_id) as hook:
        for tool in hook.find_tools({**wanted, "level": "tools"}):
            found.append(tool)
            if len(found) == args.limit:
                break
    if args.output in {"json", "yaml"}:
        _write([tool.to_wire() for tool in found], args.output)
        return
    if not found:
        sys.stdout.write("No capability matches; use other words, or omit them\n")
        return
    AirflowConsole().print_as([_row(tool) for tool in found], args.output)


@suppress_logs_and_warning
@providers_configuration_loaded
def show_tool(args: argparse.Namespace) -> None:
    """Print the contract of a capability, and a call of the operator. Nothing is billed.

    :param args: tool, `provider/capability`; conn_id; output.
    """
    provider, _, capability = args.tool.partition("/")
    if not provider or not capability:
        raise SystemExit(
            f"Name a provider and a capability, such as market-prices/prices/history (given: {args.tool!r})"
        )
    with _catalog(args.conn_id) as hook:
        tool = hook.data_tool(provider, capability)
    if tool is None:
        raise SystemExit(
            f"The catalog has no {args.tool}: `airflow webdata providers list` shows its capabilities"
        )
    if args.output in {"json", "yaml"}:
        _write(tool.to_wire(), args.output)
        return
    for line in _lines(tool, provider, capability):
        sys.stdout.write(f"{line}\n")


@contextmanager
def _catalog(conn_id: str) -> Iterator[WebDataHook]:
    try:
        with WebDataHook.of(named_connection(conn_id)) as hook:
            yield hook
    except (StoreUnavailableError, WebDataError) as error:
        raise SystemExit(f"The catalog cannot be read: {terminal_text(str(error))}") from None


def _write(document: Any, output: str) -> None:
    sys.stdout.write(yaml.dump(document) if output == "yaml" else f"{json.dumps(document, indent=2)}\n")


def _row(tool: DataTool) -> dict[str, str]:
    row = {
        "tool": tool.address,
        "price": _price(tool),
        "does": tool.description or "",
    }
    return {name: escape(terminal_text(str(value))[:_LONGEST]) for name, value in row.items()}


def _price(tool: DataTool) -> str:
    if (price := known_credits(tool.credits_cost)) is None:
        return "known after the call"
    return f"{price:g} a {'record' if tool.per_record else 'call'}"


def _lines(tool: DataTool, provider: str, capability: str) -> Iterator[str]:
    yield terminal_text(f"{provider}/{capability}: {tool.name or ''}".rstrip(": "))
    if tool.description:
        yield terminal_text(tool.description)
    yield f"\nPrice in credits: {_price(tool)}"
    yield "\nOptions:"
    options = [option for option in tool.options or () if isinstance(option, dict) and option.get("name")]
    yield from _entries(options) if options else ("  none",)
    yield "\nColumns:"
    yield from _entries(tool.fields) if tool.fields else ("  not listed",)
    yield "\nA task:\n"
    yield from _task(tool, provider, capability, options)


def _entries(entries: list[dict[str, Any]]) -> Iterator[str]:
    width = max(len(terminal_text(str(entry["name"]))) for entry in entries)
    for entry in entries:
        name, kind = terminal_text(str(entry["name"])), str(entry.get("type", "any"))
        facts = [kind, *(("required",) if entry.get("required") else ())]
        facts += [f"{name} {entry[name]}" for name in ("default", "maximum") if name in entry]
        said = f"  {name:<{width}}  {', '.join(facts)}"
        yield terminal_text(f"{said}: {entry['description']}" if entry.get("description") else said)


def _task(tool: DataTool, provider: str, capability: str, options: list[dict[str, Any]]) -> Iterator[str]:
    given = {
        str(option["name"]): _SAMPLES.get(str(option.get("type")), "...")
        for option in options
        if option.get("required")
    }
    call = {"provider": provider, "capability": capability, "options": given}
    most = PROVIDER.most({"alexandria": [call], "tools": [tool.to_wire()]})
    arguments: dict[str, Any] = {"task_id": capability.replace("/", "_"), **call}
    if most.is_known:
        arguments["credit_limit"] = most.credits
    yield "from airflow_provider_webdata.operators.provider import WebDataProviderOperator\n"
    yield "WebDataProviderOperator("
    for name, value in arguments.items():
        yield terminal_text(f"    {name}={value!r},")
    yield ")"
