"""`airflow webdata providers list | show`: the catalog of data providers. Nothing is billed."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.prices import PROVIDER
from airflow_provider_webdata.commands.command import command, named_connection, print_document
from airflow_provider_webdata.commands.table import Column, print_table
from airflow_provider_webdata.commands.terminal import terminal_text
from airflow_provider_webdata.common.numbers import credits_text, known_credits
from airflow_provider_webdata.hooks.webdata import WebDataHook

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from airflow_provider_webdata.api.models import DataTool

_UNREADABLE = "The catalog cannot be read: {}"
_COLUMNS = (Column("tool", 20), Column("price"), Column("does", 8))
_SAMPLES: dict[str, Any] = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}


@command(_UNREADABLE)
def list_tools(args: argparse.Namespace) -> Iterator[str]:
    """Print the capabilities of data providers with their prices.

    :param args: query; provider, a list; limit; conn_id; output.
    """
    given = {"query": args.query, "providers": args.provider}
    wanted: dict[str, Any] = {name: value for name, value in given.items() if value}
    with WebDataHook.of(named_connection(args.conn_id)) as hook:
        found = list(islice(hook.find_tools({**wanted, "level": "tools"}), args.limit))
    if args.output in {"json", "yaml"}:
        print_document([tool.to_wire() for tool in found], args.output)
    elif not found:
        yield "No capability matches; use other words, or omit them"
    else:
        print_table(_COLUMNS, [_row(tool) for tool in found], args.output)


@command(_UNREADABLE)
def show_tool(args: argparse.Namespace) -> Iterator[str]:
    """Print the contract of a capability, and a call of the operator.

    :param args: tool, `provider/capability`; conn_id; output.
    """
    provider, _, capability = args.tool.partition("/")
    if not provider or not capability:
        raise SystemExit(
            f"Name a provider and a capability, such as market-prices/prices/history (given: {args.tool!r})"
        )
    with WebDataHook.of(named_connection(args.conn_id)) as hook:
        tool = hook.data_tool(provider, capability)
    if tool is None:
        raise SystemExit(
            f"The catalog has no {args.tool}: `airflow webdata providers list` shows its capabilities"
        )
    if args.output in {"json", "yaml"}:
        print_document(tool.to_wire(), args.output)
    else:
        yield from _lines(tool, provider, capability)


def _row(tool: DataTool) -> dict[str, str]:
    return {"tool": tool.address, "price": _price(tool), "does": tool.description or ""}


def _price(tool: DataTool) -> str:
    if (price := known_credits(tool.credits_cost)) is None:
        return "known after the call"
    return f"{credits_text(price)} a {'record' if tool.per_record else 'call'}"


def _lines(tool: DataTool, provider: str, capability: str) -> Iterator[str]:
    yield f"{provider}/{capability}: {tool.name or ''}".rstrip(": ")
    if tool.description:
        yield tool.description
    options = [option for option in tool.options or () if isinstance(option, dict) and option.get("name")]
    yield from ("", f"Price in credits: {_price(tool)}", "", "Options:")
    yield from _entries(options) if options else ("  none",)
    yield from ("", "Columns:")
    yield from _entries(tool.fields) if tool.fields else ("  not listed",)
    yield from ("", "A task:", "")
    yield from _task(tool, provider, capability, options)


def _entries(entries: list[dict[str, Any]]) -> Iterator[str]:
    width = max(len(terminal_text(str(entry["name"]))) for entry in entries)
    for entry in entries:
        name, kind = terminal_text(str(entry["name"])), str(entry.get("type", "any"))
        facts = [kind, *(("required",) if entry.get("required") else ())]
        facts += [f"{name} {entry[name]}" for name in ("default", "maximum") if name in entry]
        said = f"  {name:<{width}}  {', '.join(facts)}"
        yield f"{said}: {entry['description']}" if entry.get("description") else said


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
    yield "from airflow_provider_webdata.operators.provider import WebDataProviderOperator"
    yield from ("", "WebDataProviderOperator(")
    for name, value in arguments.items():
        yield f"    {name}={value!r},"
    yield ")"
