"""What Airflow reads about this package without importing the rest of it."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata import __version__

_INTEGRATION = "Web Data"


def get_provider_info() -> dict[str, Any]:
    """Return the provider metadata: modules, the connection form and the command line.

    The plugin is not listed under `plugins`: it is registered through the `airflow.plugins` entry point,
    which Airflow reads in every configuration. Where Airflow reads both, a plugin that comes twice makes it drop
    the plugins behind it.
    """
    return {
        "package-name": "airflow-provider-webdata",
        "name": _INTEGRATION,
        "description": "Search the web and keep monitors on its pages from DAGs, through a web data service.",
        "versions": [__version__],
        "integrations": [{"integration-name": _INTEGRATION, "tags": ["service"]}],
        "hooks": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": [
                    "airflow_provider_webdata.hooks.webdata",
                    "airflow_provider_webdata.hooks.webdata_async",
                ],
            }
        ],
        "operators": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": [
                    "airflow_provider_webdata.operators.search",
                    "airflow_provider_webdata.operators.monitor",
                ],
            }
        ],
        "connection-types": [
            {
                "connection-type": "webdata",
                "hook-class-name": "airflow_provider_webdata.hooks.webdata.WebDataHook",
                "hook-name": _INTEGRATION,
                "conn-fields": _connection_fields(),
                "ui-field-behaviour": {
                    # The port stays in sight: Airflow 3.3.1 and 3.3.2 refuse to test a connection that has none.
                    "hidden-fields": ["login", "schema"],
                    "relabeling": {"host": "Base URL", "password": "API Key"},
                    "placeholders": {"host": "https://api.example.com", "extra": "{}"},
                },
            }
        ],
        "cli": ["airflow_provider_webdata.cli.get_commands"],
    }


def _connection_fields() -> dict[str, dict[str, Any]]:
    """Return the form's extra fields.

    Numbers carry no default: the form would store it with the connection, and a later, better default of the
    provider would never reach it.
    """
    secret = {"type": ["string", "null"], "format": "password"}
    text = {"type": ["string", "null"]}
    return {
        "timeout": {
            "label": "Timeout (seconds)",
            "description": "For connecting, sending, and the least for reading. Reading always waits longer "
            "than the service's own timeout of the request. Default 30.",
            "schema": {"type": ["number", "null"], "exclusiveMinimum": 0},
        },
        "retry_budget": {
            "label": "Retry budget (seconds)",
            "description": "How long one call may spend on repetitions inside the task; a longer wait "
            "reschedules the task instead. 0 turns repetitions off. Default 30.",
            "schema": {"type": ["number", "null"], "minimum": 0},
        },
        "max_concurrency": {
            "label": "Max concurrency",
            "description": "Most requests in flight at once per hook. Empty: no limit of its own.",
            "schema": {"type": ["integer", "null"], "minimum": 1},
        },
        "max_response_mb": {
            "label": "Max response size (MB)",
            "description": "Larger answers are refused while they are read. Default 64.",
            "schema": {"type": ["number", "null"], "exclusiveMinimum": 0},
        },
        "verify": {
            "label": "Verify TLS certificate",
            "description": "Turn off for tests only: without it anybody on the way can read the API key.",
            "schema": {"type": ["boolean", "null"], "default": True},
        },
        "ca_file": {
            "label": "CA bundle",
            "description": "Path of a PEM file on the workers, used instead of the usual authorities.",
            "schema": text,
        },
        "proxy": {
            "label": "Proxy",
            "description": "URL of an HTTP proxy, with its login if it needs one.",
            "schema": secret,
        },
        # Airflow's API hides an extra by its key alone: "headers" would be shown to whoever may read connections.
        "secret_headers": {
            "label": "Extra headers (JSON object)",
            "description": 'Sent with every request, for example {"X-Tenant": "data"}.',
            "schema": secret,
        },
        "webhook_url": {
            "label": "Webhook URL",
            "description": "Public https address under which the service reaches this Airflow.",
            "schema": text,
        },
        "webhook_secret": {
            "label": "Webhook secret",
            "description": "Sent back by the service in a header, which proves that a delivery is ours.",
            "schema": secret,
        },
        "signing_secret": {
            "label": "Signing secret",
            "description": "Key with which the service signs its deliveries (HMAC), where it does.",
            "schema": secret,
        },
        "signature_header": {
            "label": "Signature header",
            "description": "Name of the header that holds the signature.",
            "schema": text,
        },
    }
