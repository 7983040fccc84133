"""The parse operation: an uploaded file becomes a document (supplement 8)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from typing import TYPE_CHECKING

from airflow_provider_webdata.sandbox.engine.documents import convert, kind_of
from airflow_provider_webdata.sandbox.engine.scraper import SUMMARY_WARNING, produce, refuse_unsupported
from airflow_provider_webdata.sandbox.reference.rules import check, format_names
from airflow_provider_webdata.sandbox.reference.wire import Json, Reply, ServiceError, UnsupportedHereError
from airflow_provider_webdata.sandbox.state.credits import page_cost

from .search import unknown_keys

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.engine.page import Page
    from airflow_provider_webdata.sandbox.http.uploads import Upload
    from airflow_provider_webdata.sandbox.reference.wire import Call
    from airflow_provider_webdata.sandbox.service import Sandbox

DEFAULT_TIMEOUT = 30_000
NO_RETENTION = "Zero data retention is not enabled for your team."
_NO_UPLOAD_FORMATS = frozenset({"screenshot", "branding", "changeTracking"})


class Parsing:
    """Answers ``POST /v2/parse``."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def parse(self, call: Call) -> Reply:
        """Validate, convert, bill."""
        upload: Upload = call.body
        if upload.error is not None or upload.content is None:
            raise ServiceError(400, upload.error or "No file was uploaded", code="BAD_REQUEST")
        kind = kind_of(upload.filename)
        options = _options(upload.options)
        sandbox = self._sandbox
        if options.get("zeroDataRetention") and "zeroDataRetention" not in sandbox.entitlements:
            raise ServiceError(403, NO_RETENTION)
        sandbox.credits.require()
        _refuse_unsupported(kind, options)
        page = await asyncio.to_thread(convert, kind, upload.content)
        sections = (page.markdown or "").split("\f") if page.is_pdf else []
        timeout = options.get("timeout", DEFAULT_TIMEOUT)
        sandbox.still_working.wait(_key(upload), sandbox.parse_seconds, timeout, len(sections) or None)
        return self._answer(upload, options, page, sections)

    def _answer(self, upload: Upload, options: Json, page: Page, sections: list[str]) -> Reply:
        taken = sections[: _pdf_parser(options).get("maxPages")]
        cost = page_cost(options, pdf_pages=len(taken))
        document = produce(page, options, taken)
        metadata: Json = {
            "title": page.title,
            "language": page.language,
            "sourceFile": upload.filename,
            "contentType": page.content_type if page.is_pdf else upload.content_type,
            "statusCode": 200,
            "scrapeId": str(uuid.uuid4()),
            "creditsUsed": cost,
        }
        if page.is_pdf:
            metadata.update(numPages=len(taken), totalPages=len(sections))
        document["metadata"] = metadata
        if "summary" in format_names(options):
            document["warning"] = SUMMARY_WARNING
        self._sandbox.credits.spend(cost)
        return Reply(200, {"success": True, "data": document})


def _options(text: str) -> Json:
    try:
        options = json.loads(text)
    except ValueError:
        raise ServiceError(400, "Invalid JSON in options", code="BAD_REQUEST") from None
    if isinstance(options, dict):
        _refuse_what_no_upload_has(options)
    issues = check("parse", options)
    unknown = unknown_keys(issues)
    if unknown:
        raise unknown
    if issues:
        details = [issue.to_wire() for issue in issues]
        raise ServiceError(400, "Invalid parse options", code="BAD_REQUEST", details=details)
    given: Json = options
    return {"formats": ["markdown"], **given}


def _refuse_what_no_upload_has(options: Json) -> None:
    refused = [name for name in ("actions", "location", "mobile") if options.get(name)]
    if isinstance(options.get("waitFor"), (int, float)) and options["waitFor"] > 0:
        refused.append("waitFor")
    if options.get("proxy") not in (None, "basic", "auto"):
        refused.append(f"proxy {options['proxy']}")
    formats = options.get("formats")
    for item in formats if isinstance(formats, list) else []:
        name = item.get("type") if isinstance(item, dict) else item
        if isinstance(name, str) and name in _NO_UPLOAD_FORMATS:
            refused.append(f"format {name}")
    if refused:
        text = f"Parse uploads do not support: {', '.join(refused)}"
        raise ServiceError(400, text, code="PARSE_UNSUPPORTED_OPTIONS")


def _refuse_unsupported(kind: str, options: Json) -> None:
    if kind == "pdf" and _pdf_parser(options).get("mode") == "ocr":
        raise UnsupportedHereError("recognise letters in pictures (parser mode ocr)")
    about_pages = {name: value for name, value in options.items() if name != "parsers" or kind == "pdf"}
    refuse_unsupported(about_pages)


def _pdf_parser(options: Json) -> Json:
    """Return the options of the PDF parser; empty when it is asked for by its name alone."""
    return next(
        (item for item in options.get("parsers", []) if isinstance(item, dict) and item["type"] == "pdf"), {}
    )


def _key(upload: Upload) -> str:
    """Return what makes a repetition the same request: the file, its name and the options as they were written."""
    options = json.dumps(json.loads(upload.options), sort_keys=True)
    return hashlib.sha256(f"{upload.sha256}\0{upload.filename}\0{options}".encode()).hexdigest()
