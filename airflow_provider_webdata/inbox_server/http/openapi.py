"""The OpenAPI 3.1 description of the inbox.

Handwritten: FastAPI would derive it from routes and types, which `app` and `parameters` do not have.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata import __version__
from airflow_provider_webdata.inbox.wire import DELIVERIES_PATH, INBOX_PATH, LISTS, MAX_VALUES, SECRET_HEADER

from .parameters import DEFAULT_LIMIT, MAX_LIMIT, MAX_WAIT, TEXT_PATTERN

_Schema = dict[str, Any]

_CONN_ID = {
    "name": "conn_id",
    "in": "path",
    "required": True,
    "description": "Id of the Airflow connection.",
    "schema": {"type": "string", "minLength": 1},
}
_KEY = {
    "name": "key",
    "in": "path",
    "required": True,
    "description": "Correlation key of one monitor or job.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._~-]{1,200}$"},
}
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}

_TEXTS: _Schema = {"items": {"type": "string", "pattern": f"^{TEXT_PATTERN}$"}, "maxItems": MAX_VALUES}
_LIMIT = {"minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
_NULLABLE_TEXT = {"type": ["string", "null"]}

_QUERY: list[_Schema] = [
    {"name": name, "in": "query", "schema": schema}
    for name, schema in {
        **{name: {"type": "array", **_TEXTS} for name in LISTS},
        "after": {"type": "string", "pattern": "^([0-9]{1,18}|end)$"},
        "wait": {"type": "number", "minimum": 0, "maximum": MAX_WAIT, "description": "Seconds."},
        "limit": {"type": "integer", **_LIMIT},
        "received_after": {"type": "string", "format": "date-time"},
    }.items()
]

_SEARCH = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        **{name: {"type": ["array", "null"], **_TEXTS} for name in LISTS.values()},
        "after": {"type": ["string", "null"], "pattern": "^[0-9]{1,18}$"},
        "limit": {"type": ["integer", "null"], **_LIMIT},
        "received_after": {"type": ["string", "null"], "format": "date-time"},
    },
}


def _object(properties: _Schema, *optional: str) -> _Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


_SCHEMAS = {
    "Error": _object({"error": {"type": "string"}}),
    "Reset": _object({"error": {"type": "string"}, "cursor": {"type": "string"}}),
    "Stored": {
        "oneOf": [
            _object({"status": {"enum": ["stored", "duplicate"]}}),
            _object(
                {
                    "status": {"const": "probe"},
                    "version": {"type": "string"},
                    "proofs": {"type": "array", "items": {"type": "string"}},
                }
            ),
        ]
    },
    "Delivery": _object(
        {
            "id": {"type": "integer"},
            "position": {"type": ["integer", "null"]},
            "key": _NULLABLE_TEXT,
            "event": _NULLABLE_TEXT,
            "job_id": _NULLABLE_TEXT,
            "monitor_id": _NULLABLE_TEXT,
            "success": {"type": ["boolean", "null"]},
            "received_at": {"type": "string", "format": "date-time"},
            "size": {"type": "integer", "description": "Size of the body in bytes."},
            "replay_of": {"type": ["integer", "null"]},
            "body": {
                "description": "Verbatim, except that the escape of a lone surrogate (`\\ud83d`) becomes text. Large "
                "bodies are omitted from lists."
            },
        },
        "replay_of",
        "body",
    ),
    "Page": _object(
        {
            "deliveries": {"type": "array", "items": {"$ref": "#/components/schemas/Delivery"}},
            "cursor": {"type": "string"},
            "more": {"type": "boolean"},
        }
    ),
}

_MEANINGS = {
    "400": "The body or a parameter is invalid.",
    "401": "The secret, signature, or token is missing or wrong, or the connection does not exist.",
    "404": "Not found.",
    "408": "The body arrived too slowly.",
    "413": "The body is too large.",
    "429": "Too many rejected requests.",
    "503": "Temporarily unavailable; retry after `Retry-After`.",
}


def document() -> _Schema:
    """Return the description, with paths from the root of the server."""
    page = _response("Deliveries, ordered by position.", "Page")
    reset = _response("The cursor is beyond the end: the database was reset.", "Reset")
    read_page = {"200": page, **_errors("400", "401", "404", "503"), "410": reset}
    delivery = {"200": _response("The delivery.", "Delivery"), **_errors("401", "404", "503")}
    deliveries = f"{DELIVERIES_PATH}/{{conn_id}}"
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Webhook inbox of airflow-provider-webdata",
            "version": __version__,
            "description": "Receives the service's webhook deliveries, and serves them to triggers and sensors.",
        },
        "paths": {
            f"{INBOX_PATH}/{{conn_id}}": {"post": _receive("receive", [_CONN_ID])},
            f"{INBOX_PATH}/{{conn_id}}/{{key}}": {"post": _receive("receiveByKey", [_CONN_ID, _KEY])},
            deliveries: {
                "get": _read(
                    "readDeliveries",
                    "List deliveries after a cursor; optionally wait for the first one.",
                    *_QUERY,
                    responses=read_page,
                )
            },
            f"{deliveries}/search": {
                "post": _read(
                    "searchDeliveries",
                    "Search stored deliveries by many keys and ids.",
                    responses=read_page,
                    requestBody=_body(_SEARCH),
                )
            },
            f"{deliveries}/{{id}}": {
                "get": _read("readDelivery", "Get a delivery with its body.", _ID, responses=delivery)
            },
            "/webdata/inbox-health": {
                "get": {
                    "operationId": "health",
                    "summary": "Check whether deliveries can be stored.",
                    "responses": {"200": _response("The database responds."), **_errors("503")},
                }
            },
            "/webdata/inbox-openapi.json": {
                "get": {
                    "operationId": "describe",
                    "summary": "This description.",
                    "responses": {"200": _response("OpenAPI 3.1.")},
                }
            },
        },
        "components": {
            "securitySchemes": {
                "secret": {"type": "apiKey", "in": "header", "name": SECRET_HEADER},
                "token": {"type": "http", "scheme": "bearer"},
            },
            "schemas": _SCHEMAS,
        },
    }


def _read(operation: str, summary: str, *parameters: _Schema, **more: Any) -> _Schema:
    return {
        "operationId": operation,
        "summary": summary,
        "security": [{"token": []}],
        "parameters": [_CONN_ID, *parameters],
        **more,
    }


def _receive(operation: str, parameters: list[_Schema]) -> _Schema:
    return {
        "operationId": operation,
        "summary": "Store a delivery; acknowledged after the commit.",
        "description": "Requires the connection's webhook secret, a valid signature of the body, or both, as "
        "configured in the connection.",
        "security": [{"secret": []}],
        "parameters": parameters,
        "requestBody": _body({}),
        "responses": {
            "200": _response(
                "The delivery is stored, or was stored before. A probe is never stored.", "Stored"
            ),
            **_errors("400", "401", "404", "408", "413", "429", "503"),
        },
    }


def _errors(*statuses: str) -> _Schema:
    responses = {status: _response(_MEANINGS[status], "Error") for status in statuses}
    for status in {"429", "503"} & responses.keys():
        responses[status]["headers"] = {
            "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}
        }
    return responses


def _response(description: str, schema: str | None = None) -> _Schema:
    content = {"$ref": f"#/components/schemas/{schema}"} if schema else {"type": "object"}
    return {"description": description, "content": {"application/json": {"schema": content}}}


def _body(schema: _Schema) -> _Schema:
    return {"required": True, "content": {"application/json": {"schema": schema}}}
