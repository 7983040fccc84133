# SPDX-License-Identifier: Apache-2.0
"""The provider's metadata, which Airflow reads without importing the rest of the package."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata import __version__

_INTEGRATION = "Web Data"

HOSTED_URL = "https://api.firecrawl.dev"
"""Base URL of the hosted service."""


def get_provider_info() -> dict[str, Any]:
    """Return the provider metadata: modules, the connection form and the command line.

    The plugin is not listed under `plugins`: it is registered through the `airflow.plugins` entry point, which Airflow
    reads in every configuration. If Airflow reads both, a duplicate plugin makes it drop the plugins that follow.
    """
    return {
        "package-name": "airflow-provider-webdata",
        "name": _INTEGRATION,
        "description": "Search, scrape, and crawl the web, parse files, run browsers and agents, manage monitors, and "
        "wait for webhooks through a web data service.",
        "versions": [__version__],
        # Airflow reads none of `lifecycle`, `toolsets`, and `retry-policies`; they are for registries, in the form of
        # Airflow 3.4's `provider.yaml`.
        "lifecycle": "incubation",
        "integrations": [
            {
                "integration-name": _INTEGRATION,
                "external-doc-url": "https://docs.firecrawl.dev",
                "how-to-guide": [
                    "/docs/operators/README.md",
                    "/docs/monitors.md",
                    "/docs/waiting.md",
                    "/docs/event_driven.md",
                    "/docs/agents.md",
                ],
                "logo": "/docs/integration-logos/WebData.svg",
                "tags": ["service", "ai"],
            }
        ],
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
                    "airflow_provider_webdata.operators.batch_scrape",
                    "airflow_provider_webdata.operators.crawl",
                    "airflow_provider_webdata.operators.agent",
                    "airflow_provider_webdata.operators.provider",
                    "airflow_provider_webdata.operators.scrape",
                    "airflow_provider_webdata.operators.incremental_crawl",
                    "airflow_provider_webdata.operators.map",
                    "airflow_provider_webdata.operators.parse",
                    "airflow_provider_webdata.operators.interact",
                    "airflow_provider_webdata.operators.credit_usage",
                    "airflow_provider_webdata.operators.batch_search",
                ],
            }
        ],
        "transfers": [
            {
                "source-integration-name": _INTEGRATION,
                # The integration of `apache-airflow-providers-common-sql`.
                "target-integration-name": "Common SQL",
                "python-module": "airflow_provider_webdata.transfers.webdata_to_table",
                "how-to-guide": "/docs/operators/to_table.md",
            }
        ],
        "sensors": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": [
                    "airflow_provider_webdata.sensors.monitor",
                    "airflow_provider_webdata.sensors.webhook",
                    "airflow_provider_webdata.sensors.job",
                ],
            }
        ],
        "triggers": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": [
                    "airflow_provider_webdata.triggers.monitor",
                    "airflow_provider_webdata.triggers.webhook",
                    "airflow_provider_webdata.triggers.job",
                    "airflow_provider_webdata.triggers.events",
                ],
            }
        ],
        "toolsets": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": ["airflow_provider_webdata.toolsets.webdata"],
            }
        ],
        "retry-policies": [
            {"integration-name": _INTEGRATION, "python-modules": ["airflow_provider_webdata.policies.retry"]}
        ],
        "asset-uris": [
            {
                "schemes": ["webdata"],
                "handler": "airflow_provider_webdata.assets.uri.normalized",
                "factory": "airflow_provider_webdata.assets.monitor.monitor_asset",
                "to_openlineage_converter": "airflow_provider_webdata.assets.uri.to_openlineage",
            }
        ],
        "extra-links": [
            "airflow_provider_webdata.base.links.PageLink",
            "airflow_provider_webdata.base.links.DashboardLink",
        ],
        "connection-types": [
            {
                "connection-type": "webdata",
                "hook-class-name": "airflow_provider_webdata.hooks.webdata.WebDataHook",
                "hook-name": _INTEGRATION,
                "conn-fields": _connection_fields(),
                "ui-field-behaviour": {
                    # The port stays visible: docs/contributing/upstream/form_without_port.md
                    "hidden-fields": ["login", "schema"],
                    "relabeling": {"host": "Base URL", "password": "API Key"},
                    # The form shows no other help for these fields.
                    "placeholders": {
                        "host": f"{HOSTED_URL}, or with a port: http://localhost:3002",
                        "password": "Key of the service; empty for a server without keys",
                        "port": "That of Base URL, else 443 (http: 80). Test needs it",
                        "extra": "{}",
                    },
                },
            }
        ],
        "config": {
            "webdata": {
                "description": "The inbox for webhook deliveries, and results.",
                "options": _options(),
            }
        },
        "cli": ["airflow_provider_webdata.cli.get_commands"],
        "db-managers": ["airflow_provider_webdata.inbox_server.db_manager.InboxDBManager"],
    }


def _options() -> dict[str, dict[str, Any]]:
    """Return the options of the configuration's section `[webdata]`."""
    return {
        "inbox": {
            "description": "An inbox for webhook deliveries on the API server. Its tables are created by the next "
            "`airflow db migrate`. False: no route, thread, or table, and tasks wait by polling.",
            "version_added": "0.1.0",
            "type": "boolean",
            "example": None,
            "default": "False",
        },
        "pages": {
            "description": "Pages in Airflow's UI: a menu entry `Web Data`, a card on Home, and a tab on every task.",
            "version_added": "0.1.0",
            "type": "boolean",
            "example": None,
            "default": "True",
        },
        "environment": {
            "description": "Name of this Airflow, under which tasks store the state of `changes`, and mark the "
            "monitors that they declare; the same on all workers. Default: the host of `[api] base_url`, else of "
            "`[core] execution_api_server_url`, else `localhost`.",
            "version_added": "0.1.0",
            "type": "string",
            "example": "staging",
            "default": "",
        },
        "inbox_url": {
            "description": "Address of the server whose inbox triggers and sensors read. Default: the API server, from "
            "`[core] execution_api_server_url` or `[api] base_url`, else `http://localhost:` and `[api] port`.",
            "version_added": "0.1.0",
            "type": "string",
            "example": "http://airflow-api:8080",
            "default": "",
        },
        "inbox_create_tables": {
            "description": "Create or migrate the inbox's tables when the API server starts, under the lock of "
            "`airflow db migrate`. For deployments that do not run that command after installing this package.",
            "version_added": "0.1.0",
            "type": "boolean",
            "example": None,
            "default": "False",
        },
        "inbox_max_body_mb": {
            "description": "Maximum size of a delivery in megabytes.",
            "version_added": "0.1.0",
            "type": "float",
            "example": None,
            "default": "16",
        },
        "inbox_retention_days": {
            "description": "Days to keep deliveries. 0 keeps all.",
            "version_added": "0.1.0",
            "type": "float",
            "example": None,
            "default": "30",
        },
        "xcom_warning_kb": {
            "description": "A task warns if its result needs more than this many kilobytes in XCom, and pushes it "
            "anyway. 0: never.",
            "version_added": "0.1.0",
            "type": "float",
            "example": None,
            "default": "1024",
        },
    }


def _connection_fields() -> dict[str, dict[str, Any]]:
    """Return the form's extra fields.

    Numbers have no default: the form would store it with the connection, which would then never get a later, better
    default of the provider.
    """
    secret = {"type": ["string", "null"], "format": "password"}
    text = {"type": ["string", "null"]}
    return {
        "server": {
            "label": "Server",
            "description": "hosted: it bills calls, like the hosted service or your own server with database "
            "authentication. gateway: it passes calls on to a server that bills them. self-hosted: your own server, "
            "which bills nothing. Default: hosted for the hosted service; calls to any other address count as billed.",
            "schema": {"type": ["string", "null"], "enum": ["hosted", "gateway", "self-hosted"]},
        },
        "webhook_url": {
            "label": "Webhook URL",
            "description": "Public https address at which the service reaches this Airflow, without credentials. Plain "
            "http only for a loopback address or a self-hosted server. Default: none, tasks poll.",
            "schema": text,
        },
        "webhook_secret": {
            "label": "Webhook secret",
            "description": "The service returns it in a header of each delivery, which authenticates the delivery. At "
            "least 16 random characters.",
            "schema": secret,
        },
        "timeout": {
            "label": "Timeout (seconds)",
            "description": "For connecting and sending, and the minimum for reading. Reading always waits longer than "
            "the service's own timeout of the request. Default: 30.",
            "schema": {"type": ["number", "null"], "exclusiveMinimum": 0},
        },
        "retry_budget": {
            "label": "Retry budget (seconds)",
            "description": "How long one call may spend on retries inside the task; a longer wait reschedules the task "
            "instead. 0 disables these retries. Default: 30.",
            "schema": {"type": ["number", "null"], "minimum": 0},
        },
        "max_concurrency": {
            "label": "Max concurrency",
            "description": "Maximum number of concurrent requests per hook. Default: no limit.",
            "schema": {"type": ["integer", "null"], "minimum": 1},
        },
        "max_response_mb": {
            "label": "Max response size (MB)",
            "description": "Larger responses are refused while they are read. Default: 64.",
            "schema": {"type": ["number", "null"], "exclusiveMinimum": 0},
        },
        "verify": {
            "label": "Verify TLS certificate",
            "description": "Disable for tests only: otherwise, anyone on the network path can read the API key.",
            "schema": {"type": ["boolean", "null"], "default": True},
        },
        "ca_file": {
            "label": "CA bundle",
            "description": "Path of a PEM file on the workers. Default: the default certificate authorities.",
            "schema": text,
        },
        "client_cert_file": {
            "label": "Client certificate",
            "description": "Path of a PEM file on the workers and triggerers with the certificate that is presented "
            "to the service's host. Default: none.",
            "schema": text,
        },
        "client_key_file": {
            "label": "Client key",
            "description": "Path of a PEM file with the private key of the client certificate. Default: the file of "
            "the client certificate.",
            "schema": text,
        },
        # The key's name makes Airflow's API mask it.
        "client_key_password": {
            "label": "Client key password",
            "description": "Password of the private key, if it has one.",
            "schema": secret,
        },
        "proxy": {
            "label": "Proxy",
            "description": "URL of an HTTP proxy, with login if required. Percent-encode #, /, ?, @, and [ in it. "
            "Default: none.",
            "schema": secret,
        },
        # Airflow's API masks an extra by its key alone: "headers" would be visible to every user who may read
        # connections.
        "secret_headers": {
            "label": "Extra headers (JSON object)",
            "description": 'Sent with every request, for example {"X-Tenant": "data"}.',
            "schema": secret,
        },
        "media_hosts": {
            "label": "Media hosts",
            "description": "Non-public hosts from which media may be downloaded, separated by commas. Default: the "
            "service's own host only.",
            "schema": text,
        },
        "previous_webhook_secret": {
            "label": "Previous webhook secret",
            "description": "Also accepted, while deliveries with the former secret may arrive.",
            "schema": secret,
        },
        "signing_secret": {
            "label": "Signing secret",
            "description": "Key with which the service signs deliveries (HMAC), if it does. If a webhook secret is "
            "set, too, a delivery needs both.",
            "schema": secret,
        },
        "previous_signing_secret": {
            "label": "Previous signing secret",
            "description": "Also accepted, while the service may sign with it.",
            "schema": secret,
        },
        "signature_header": {
            "label": "Signature header",
            "description": "Name of the header with the signature. Default: X-Firecrawl-Signature.",
            "schema": text,
        },
        "inbox_url": {
            "label": "Inbox URL",
            "description": "Address at which this Airflow's processes read deliveries, without credentials. Default: "
            "inbox_url of section [webdata] in airflow.cfg, else the API server.",
            "schema": text,
        },
        "dashboard_url": {
            "label": "Dashboard URL",
            "description": "Address of the service's dashboard, without credentials, query, or fragment; tasks then "
            "link to it. Default: none.",
            "schema": text,
        },
    }
