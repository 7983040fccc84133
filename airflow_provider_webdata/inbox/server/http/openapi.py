"""The description of the inbox's routes, in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata import __version__
from airflow_provider_webdata.inbox.wire import DELIVERIES_PATH, INBOX_PATH, SECRET_HEADER

from . import deliveries

_JSON = "application/json"


def document() -> dict[str, Any]:
    """Return the description, with paths from the root of the server."""
    conn_id = {
        "name": "conn_id",
        "in": "path",
        "required": True,
        "description": "Id of the Airflow connection.",
        "schema": {"type": "string", "minLength": 1},
    }
    key = {
        "name": "key",
        "in": "path",
        "required": True,
        "description": "Correlation key of one monitor or job.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._~-]{1,200}$"},
    }
    delivery_id = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}
    reading = {"parameters": [conn_id], "security": [{"token": []}]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Webhook inbox of airflow-provider-webdata",
            "version": __version__,
            "description": "Receives the service's webhook deliveries, and gives them to triggers and sensors.",
        },
        "paths": {
            f"{INBOX_PATH}/{{conn_id}}": {"post": _receive("receive", [conn_id])},
            f"{INBOX_PATH}/{{conn_id}}/{{key}}": {"post": _receive("receiveByKey", [conn_id, key])},
            f"{DELIVERIES_PATH}/{{conn_id}}": {
                "get": {
                    "operationId": "readDeliveries",
                    "summary": "Deliveries after a cursor; waits for the first one if asked to.",
                    **reading,
                    "parameters": [conn_id, *_query()],
                    "responses": {
                        "200": _page(),
                        **_errors("400", "401", "404", "503"),
                        "410": _ahead(),
                    },
                }
            },
            f"{DELIVERIES_PATH}/{{conn_id}}/search": {
                "post": {
                    "operationId": "searchDeliveries",
                    "summary": "Deliveries that are there already, by many keys and ids at once.",
                    **reading,
                    "requestBody": {"required": True, "content": {_JSON: {"schema": _search()}}},
                    "responses": {
                        "200": _page(),
                        **_errors("400", "401", "404", "503"),
                        "410": _ahead(),
                    },
                }
            },
            f"{DELIVERIES_PATH}/{{conn_id}}/{{id}}": {
                "get": {
                    "operationId": "readDelivery",
                    "summary": "One delivery with its body.",
                    **reading,
                    "parameters": [conn_id, delivery_id],
                    "responses": {
                        "200": _answer("The delivery.", {"$ref": "#/components/schemas/Delivery"}),
                        **_errors("401", "404", "503"),
                    },
                }
            },
            "/webdata/inbox-health": {
                "get": {
                    "operationId": "health",
                    "summary": "Whether deliveries can be stored.",
                    "responses": {
                        "200": _answer("The database answers.", {"type": "object"}),
                        **_errors("503"),
                    },
                }
            },
            "/webdata/inbox-openapi.json": {
                "get": {
                    "operationId": "describe",
                    "summary": "This description.",
                    "responses": {"200": _answer("OpenAPI 3.1.", {"type": "object"})},
                }
            },
        },
        "components": {
            "securitySchemes": {
                "secret": {"type": "apiKey", "in": "header", "name": SECRET_HEADER},
                "token": {"type": "http", "scheme": "bearer"},
            },
            "schemas": {"Error": _error(), "Delivery": _delivery()},
        },
    }


def _receive(operation: str, parameters: list[Any]) -> dict[str, Any]:
    stored = {
        "type": "object",
        "properties": {"status": {"enum": ["stored", "duplicate"]}},
        "required": ["status"],
    }
    return {
        "operationId": operation,
        "summary": "Store one delivery; acknowledged after the commit.",
        "description": "Needs the connection's webhook secret, a valid signature of the body, or both, as the "
        "connection says.",
        "security": [{"secret": []}],
        "parameters": parameters,
        "requestBody": {"required": True, "content": {_JSON: {"schema": {}}}},
        "responses": {
            "200": _answer("It is stored, now or before.", stored),
            **_errors("400", "401", "404", "408", "413", "429", "503"),
        },
    }


def _query() -> list[dict[str, Any]]:
    texts = {"type": "array", "items": _text(), "maxItems": deliveries.MOST_VALUES}
    parameters = [
        {"name": name, "in": "query", "schema": texts} for name in ("key", "job_id", "monitor_id", "event")
    ]
    parameters += [
        {"name": "after", "in": "query", "schema": {"type": "string", "pattern": "^([0-9]{1,18}|end)$"}},
        {
            "name": "wait",
            "in": "query",
            "description": "Seconds.",
            "schema": {"type": "number", "minimum": 0, "maximum": deliveries.LONGEST_WAIT},
        },
        {"name": "limit", "in": "query", "schema": _limit()},
        {"name": "received_after", "in": "query", "schema": {"type": "string", "format": "date-time"}},
    ]
    return parameters


def _search() -> dict[str, Any]:
    texts = {"type": ["array", "null"], "items": _text(), "maxItems": deliveries.MOST_VALUES}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **dict.fromkeys(("keys", "job_ids", "monitor_ids", "events"), texts),
            "after": {"type": ["string", "null"], "pattern": "^[0-9]{1,18}$"},
            "limit": {**_limit(), "type": ["integer", "null"]},
            "received_after": {"type": ["string", "null"], "format": "date-time"},
        },
    }


def _text() -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{deliveries.TEXT_PATTERN}$"}


def _limit() -> dict[str, Any]:
    return {
        "type": "integer",
        "minimum": 1,
        "maximum": deliveries.LARGEST_LIMIT,
        "default": deliveries.DEFAULT_LIMIT,
    }


def _delivery() -> dict[str, Any]:
    text = {"type": ["string", "null"]}
    return {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "position": {"type": ["integer", "null"]},
            "key": text,
            "event": text,
            "job_id": text,
            "monitor_id": text,
            "success": {"type": ["boolean", "null"]},
            "received_at": {"type": "string", "format": "date-time"},
            "size": {"type": "integer", "description": "Of the body, in bytes."},
            "replay_of": {"type": ["integer", "null"]},
            "body": {"description": "As it came; left out of lists where it is large."},
        },
        "required": [
            "id",
            "position",
            "key",
            "event",
            "job_id",
            "monitor_id",
            "success",
            "received_at",
            "size",
        ],
    }


def _page() -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "deliveries": {"type": "array", "items": {"$ref": "#/components/schemas/Delivery"}},
            "cursor": {"type": "string"},
            "more": {"type": "boolean"},
        },
        "required": ["deliveries", "cursor", "more"],
    }
    return _answer("Deliveries, in the order in which they were announced.", schema)


def _ahead() -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"error": {"type": "string"}, "cursor": {"type": "string"}},
        "required": ["error", "cursor"],
    }
    return _answer("The cursor is beyond the end: the database was reset.", schema)


def _error() -> dict[str, Any]:
    return {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


_MEANINGS = {
    "400": "The body or a parameter cannot be used.",
    "401": "Secret, signature or token are missing or wrong, or there is no such connection.",
    "404": "There is nothing here.",
    "408": "The body came too slowly.",
    "413": "The body is too large.",
    "429": "Too many requests were refused.",
    "503": "Not now; come again after `Retry-After`.",
}


def _errors(*statuses: str) -> dict[str, Any]:
    error = {"$ref": "#/components/schemas/Error"}
    answers = {status: _answer(_MEANINGS[status], error) for status in statuses}
    for status in {"429", "503"} & answers.keys():
        answers[status]["headers"] = {
            "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}
        }
    return answers


def _answer(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {_JSON: {"schema": schema}}}
