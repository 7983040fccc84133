# SPDX-License-Identifier: Apache-2.0
"""The provider's part of Airflow's command line, which every `airflow` command builds."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from airflow_provider_webdata.cli import _SANDBOX, _SERVE, get_commands
from airflow_provider_webdata.commands.command import command, print_document
from airflow_provider_webdata.commands.table import Column, print_table


def commands(group: Any) -> dict[str, Any]:
    """Return the commands of a group by name, those of groups within it too."""
    found: dict[str, Any] = {}
    for entry in group.subcommands:
        found |= commands(entry) if hasattr(entry, "subcommands") else {entry.name: entry}
    return found


(GROUP,) = get_commands()
COMMANDS = commands(GROUP)


class Broken(ModuleType):
    """A module that fails when it is used, as one does whose import fails."""

    def __getattr__(self, name: str) -> Any:
        raise ImportError("no such library")


class NotInstalled:
    """An import finder that hides a package."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("name", "module", "flags"),
    [
        ("sandbox", _SANDBOX, []),
        ("sandbox", _SANDBOX, ["--port", "8080"]),
        # The module declares the flags, so they are unknown without it.
        ("sandbox", _SANDBOX, ["-v", "--unknown=1"]),
        ("serve", _SERVE, []),
        ("serve", _SERVE, ["--port", "8080"]),
        ("serve", _SERVE, ["--host", "::1", "--ssl-certfile", "a.pem", "--ssl-keyfile", "b.pem"]),
    ],
)
def test_a_module_that_cannot_be_imported_breaks_its_own_command_alone(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, flags: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, Broken(module))
    parser = argparse.ArgumentParser()
    for arg in COMMANDS[name].args:
        arg.add_to_parser(parser)
    args = parser.parse_args(flags)
    with pytest.raises(ImportError, match="no such library"):
        COMMANDS[name].func(args)


@pytest.mark.parametrize("flags", [[], ["--port", "8080"]])
def test_a_missing_sandbox_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "webdata_sandbox"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NotInstalled("webdata_sandbox"), *sys.meta_path])
    parser = argparse.ArgumentParser()
    for arg in COMMANDS["sandbox"].args:
        arg.add_to_parser(parser)
    with pytest.raises(SystemExit) as end:
        COMMANDS["sandbox"].func(parser.parse_args(flags))
    assert end.value.code == (
        "The sandbox is not installed; run: pip install ./sandbox, in a clone of the repository of "
        "airflow-provider-webdata (the extra sandbox)"
    )


@pytest.mark.parametrize("flag", ["--base-url", "--webhook-url"])
@pytest.mark.parametrize(
    "url", ["https://me:hunter2@api.example", "me:hunter2@api.example", "https://me:hunt/er2@api.example"]
)
def test_a_login_in_an_address_fails_before_the_audit_log(
    capsys: pytest.CaptureFixture[str], flag: str, url: str
) -> None:
    """Airflow writes the flags of a command to its log once they are parsed."""
    parser = argparse.ArgumentParser()
    for arg in COMMANDS["init"].args:
        arg.add_to_parser(parser)
    with pytest.raises(SystemExit):
        parser.parse_args([flag, url])
    said = capsys.readouterr().err
    assert f"argument {flag}: an address must not contain a user name" in said
    assert "hunt" not in said
    assert parser.parse_args([flag, "https://api.example/v2"])


@pytest.mark.parametrize("output", ["lines", "json", "yaml", "table", "plain"])
def test_a_command_ends_quietly_when_its_reader_has_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    """As in `airflow webdata inbox list | head`."""

    @command()
    def lists(args: argparse.Namespace) -> Iterator[str]:
        if args.output in ("table", "plain"):
            print_table([Column("name")], [{"name": "x"}], args.output)
        elif args.output != "lines":
            print_document({"name": "x"}, args.output)
        yield from ("first", "second")

    reader, writer = os.pipe()
    os.close(reader)
    out = os.fdopen(writer, "w")
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit) as end:
        lists(argparse.Namespace(output=output, verbose=False))
    # As Python does at exit.
    out.close()
    assert (end.value.code, capsys.readouterr().err) == (1, "")
