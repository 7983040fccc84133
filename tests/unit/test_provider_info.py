# SPDX-License-Identifier: Apache-2.0
"""The provider's metadata is valid, and everything that it names exists."""

from __future__ import annotations

import argparse
import importlib
import json
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import airflow
import jsonschema
import pytest
from airflow.models.connection import Connection
from airflow.providers_manager import ProvidersManager
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

from airflow_provider_webdata.get_provider_info import get_provider_info
from airflow_provider_webdata.hooks.connection import settings_of
from tools.metadata import modules_of
from webdata_sandbox.cli import add_arguments as sandbox_flags

INFO = get_provider_info()
(CONNECTION,) = INFO["connection-types"]
FIELDS = CONNECTION["conn-fields"]
HAS_AGENTS = find_spec("pydantic_ai") is not None
"""Not on Python 3.10."""
ROOMS = ("hooks", "operators", "transfers", "sensors", "triggers", "retry-policies")
ROOT = Path(__file__).parents[2]


def test_schema():
    """The installed Airflow's own schema: the oldest supported version and the newest prerelease run this test too."""
    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    jsonschema.validate(INFO, schema)


def test_guides_and_logo_exist():
    (integration,) = INFO["integrations"]
    guides = [*integration["how-to-guide"], *(transfer["how-to-guide"] for transfer in INFO["transfers"])]
    for place in [*guides, integration["logo"]]:
        assert (ROOT / place.removeprefix("/")).is_file(), place


def test_everything_named_exists():
    modules = modules_of(*ROOMS, *(["toolsets"] if HAS_AGENTS else []))
    assert [name for name in modules if not importlib.import_module(name).__doc__] == []
    paths = [
        CONNECTION["hook-class-name"],
        *INFO["cli"],
        *INFO["extra-links"],
        *(path for found in INFO["asset-uris"] for name, path in found.items() if name != "schemes"),
    ]
    for path in paths:
        module, _, name = path.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name)), path


def test_hook_knows_its_connection_type():
    from airflow_provider_webdata.hooks.webdata import WebDataHook

    assert WebDataHook.conn_type == CONNECTION["connection-type"]
    assert WebDataHook.hook_name == CONNECTION["hook-name"]
    assert WebDataHook.default_conn_name == "webdata_default"


def test_form_has_every_extra(caplog):
    """The connection reads exactly the fields of the form, which its warning of another one lists."""
    extra = json.dumps({"an unknown one": 1})
    settings_of(
        Connection(conn_id="c", conn_type="webdata", host="https://a.example", password="k", extra=extra)
    )
    [warning] = [message for message in caplog.messages if "is unknown" in message]
    assert set(warning.rpartition("known extras: ")[2].split(", ")) == set(FIELDS)


def test_secrets_are_masked_in_the_form():
    """A field is masked with `format: password`."""
    masked = {name for name, field in FIELDS.items() if field["schema"].get("format") == "password"}
    assert masked == {
        "proxy",
        "client_key_password",
        "secret_headers",
        "webhook_secret",
        "previous_webhook_secret",
        "signing_secret",
        "previous_signing_secret",
    }


def test_airflow_builds_the_form():
    """Airflow's providers manager takes the fields, their labels and the relabelled standard fields."""
    manager = ProvidersManager()
    widgets = {
        name.removeprefix("extra__webdata__"): widget
        for name, widget in manager.connection_form_widgets.items()
        if name.startswith("extra__webdata__")
    }
    assert set(widgets) == set(FIELDS)
    assert widgets["webhook_secret"].is_sensitive
    assert not widgets["timeout"].is_sensitive
    assert widgets["verify"].field["value"] is True
    behaviour = manager.field_behaviours["webdata"]
    assert behaviour["relabeling"] == {"host": "Base URL", "password": "API Key"}
    assert set(behaviour["hidden_fields"]) == {"login", "schema"}
    hook = ProvidersManagerTaskRuntime().hooks["webdata"]
    assert hook.hook_class_name == CONNECTION["hook-class-name"]


def test_plugin_is_registered_once():
    """Through the entry point, and so not in the metadata: twice makes Airflow drop other plugins."""
    (entry,) = entry_points(group="airflow.plugins", name="webdata")
    assert entry.value == "airflow_provider_webdata.plugin:WebDataPlugin"
    assert "plugins" not in INFO


def test_command_line():
    """`airflow webdata sandbox` is part of Airflow's own parser, with the sandbox's flags."""
    from airflow.cli.cli_parser import get_parser

    given = get_parser().parse_args(
        ["webdata", "sandbox", "--port", "0", "--quirk", "list", "--credits", "7"]
    )
    assert (given.port, given.quirk, given.credits) == (0, ["list"], 7)
    alone = argparse.ArgumentParser()
    sandbox_flags(alone)
    assert vars(alone.parse_args([])).keys() <= vars(given).keys()


def test_command_line_runs(capsys):
    from airflow.cli.cli_parser import get_parser

    given = get_parser().parse_args(["webdata", "sandbox", "--quirk", "list"])
    with pytest.raises(SystemExit) as ended:
        given.func(given)
    assert ended.value.code == 0
    assert "late-replica" in capsys.readouterr().out
