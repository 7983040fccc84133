"""The parse operation: an uploaded file becomes a document."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from typing import TYPE_CHECKING

from airflow_provider_webdata.sandbox.engine.admission import refuse_unsupported
from airflow_provider_webdata.sandbox.engine.documents import convert, kind_of
from airflow_provider_webdata.sandbox.engine.formats import PAGE_BREAK, produce
from airflow_provider_webdata.sandbox.reference.errors import ServiceError, UnsupportedHereError
from airflow_provider_webdata.sandbox.reference.prices import page_cost
from airflow_provider_webdata.sandbox.reference.rules import check
from airflow_provider_webdata.sandbox.reference.scrape_options import pdf_parser

from .call import Reply
from .endpoint import Endpoint
from .validation import details_of, refuse_unknown_keys

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.engine.page import Page
    from airflow_provider_webdata.sandbox.reference.wire import Json
    from airflow_provider_webdata.sandbox.state.core import Core
    from airflow_provider_webdata.sandbox.state.processing import Processing

    from .call import Call, Upload

DEFAULT_TIMEOUT = 30_000
_NO_UPLOAD_FORMATS = frozenset({"screenshot", "branding", "changeTracking"})


class Parse:
    """Answers ``POST /v2/parse``."""

    def __init__(self, core: Core, processing: Processing) -> None:
        self._core, self._processing = core, processing

    def endpoints(self) -> list[Endpoint]:
        """Return the calls that are answered here."""
        return [
            Endpoint("POST", "/v2/parse", self.parse, "scrape", keyless=True, upload=True),
        ]

    async def parse(self, call: Call) -> Reply:
        """Validate, convert, bill."""
        upload: Upload = call.body
        if upload.error is not None or upload.content is None:
            raise ServiceError(400, upload.error or "No file was uploaded", code="BAD_REQUEST")
        kind = kind_of(upload.filename)
        options = _options(upload.options)
        settings = self._core.settings
        if options.get("zeroDataRetention"):
            settings.require_entitlement("zeroDataRetention")
        self._core.credits.require()
        _refuse_unsupported(kind, options)
        page = await asyncio.to_thread(convert, kind, upload.content)
        sections = (page.markdown or "").split(PAGE_BREAK) if page.is_pdf else []
        timeout = options.get("timeout", DEFAULT_TIMEOUT)
        self._processing.require_done(_key(upload), settings.parse_seconds, timeout, len(sections) or None)
        return self._answer(upload, options, page, sections)

    def _answer(self, upload: Upload, options: Json, page: Page, sections: list[str]) -> Reply:
        taken = sections[: pdf_parser(options).get("maxPages")]
        cost = page_cost(options, pdf_pages=len(taken))
        document = produce(page, options, taken, {})
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
        self._core.credits.spend(cost)
        return Reply(200, {"success": True, "data": document})


def _options(text: str) -> Json:
    try:
        options = json.loads(text)
    except ValueError:
        raise ServiceError(400, "Invalid JSON in options", code="BAD_REQUEST") from None
    if isinstance(options, dict):
        _refuse_what_no_upload_has(options)
    issues = check("parse", options)
    refuse_unknown_keys(issues)
    if issues:
        raise ServiceError(400, "Invalid parse options", code="BAD_REQUEST", details=details_of(issues))
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
    if kind == "pdf" and pdf_parser(options).get("mode") == "ocr":
        raise UnsupportedHereError("recognise letters in pictures (parser mode ocr)")
    if kind == "pdf" and pdf_parser(options).get("blocks"):
        raise UnsupportedHereError("find the layout of a file (parser option blocks); leave blocks out")
    about_pages = {name: value for name, value in options.items() if name != "parsers" or kind == "pdf"}
    refuse_unsupported(about_pages)


def _key(upload: Upload) -> str:
    """Return what makes a repetition the same request: the file, its name and the options as they were written."""
    options = json.dumps(json.loads(upload.options), sort_keys=True)
    return hashlib.sha256(f"{upload.sha256}\0{upload.filename}\0{options}".encode()).hexdigest()
