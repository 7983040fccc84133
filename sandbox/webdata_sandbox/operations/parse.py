# SPDX-License-Identifier: Apache-2.0
"""Parse: converts an uploaded file to a document."""

from __future__ import annotations

import asyncio
import hashlib
import json
import mimetypes
import secrets
import uuid
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from webdata_sandbox.engine.abilities import lacking, within
from webdata_sandbox.engine.admission import refuse_unsupported
from webdata_sandbox.engine.canned import address_of_file
from webdata_sandbox.engine.documents import KINDS, convert, kind_of
from webdata_sandbox.engine.formats import PAGE_BREAK, produce
from webdata_sandbox.reference.errors import ServiceError, UnsupportedHereError
from webdata_sandbox.reference.prices import page_cost
from webdata_sandbox.reference.rules import check
from webdata_sandbox.reference.scrape_options import pdf_parser
from webdata_sandbox.reference.timestamps import iso
from webdata_sandbox.reference.unions import nest

from .call import Reply, Upload
from .endpoint import Endpoint
from .validation import details_of, refuse_unknown_keys, valid_in_brief

if TYPE_CHECKING:
    from webdata_sandbox.engine.canned import CannedAnswers
    from webdata_sandbox.engine.page import Page
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core
    from webdata_sandbox.state.processing import Processing

    from .call import Call

DEFAULT_TIMEOUT = 30_000
STORAGE = "/v2/parse/upload/{name}"
MAX_FILE = 50 * 2**20
LIFETIME = 600.0
MAX_UNPARSED, UNPARSED_WINDOW = 10, 86_400.0
_NO_UPLOAD_FORMATS = frozenset({"screenshot", "branding", "changeTracking"})


class Parse:
    """Handles ``POST /v2/parse``, and uploads of files to parse by reference."""

    def __init__(self, core: Core, canned: CannedAnswers, processing: Processing) -> None:
        self._core, self._canned, self._processing = core, canned, processing
        self._files: dict[str, Upload] = {}

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint("POST", "/v2/parse", self.parse, "scrape", keyless=True, upload=True),
            Endpoint("GET", "/v2/parse/formats", self.formats, "scrape"),
            Endpoint("POST", "/v2/parse/upload-url", self.destination, "scrape", keyless=True),
            Endpoint("PUT", STORAGE, self.receive, "scrape", raw=True),
            Endpoint("POST", STORAGE, self.receive, "scrape", raw=True),
        ]

    async def formats(self, _: Call) -> Reply:
        """List the supported file formats."""
        formats = [
            {
                "format": kind,
                "kind": "document",
                "extensions": [f".{kind}"],
                "mimeTypes": [mimetypes.guess_type(f"a.{kind}")[0] or "application/octet-stream"],
                "available": True,
            }
            for kind in KINDS
        ]
        return Reply(200, {"success": True, "data": {"formats": formats}})

    async def destination(self, call: Call) -> Reply:
        """Return the upload URL of a file: for PUT, or for a form in the style of cloud storage."""
        body = valid_in_brief("parse.upload-url", call.body)
        kind_of(body["filename"])
        core, now = self._core, self._core.clock.now()
        max_bytes = core.quirks.number("large-uploads") * 2**20 or MAX_FILE
        if body.get("declaredSizeBytes", 1) > max_bytes:
            raise ServiceError(400, f"Number must be less than or equal to {max_bytes}", code="BAD_REQUEST")
        unparsed = [item for item in core.store.list("upload") if item["since"] > now - UNPARSED_WINDOW]
        if len(unparsed) >= MAX_UNPARSED:
            text = (
                "Too many unparsed uploads. Parse or wait for existing upload references before minting more."
            )
            raise ServiceError(429, text, code="PARSE_UPLOAD_UNPARSED_LIMIT_REACHED")
        name, ref = str(uuid.uuid4()), secrets.token_urlsafe(24)
        core.store.put(
            "upload", ref, {"name": name, "filename": body["filename"], "since": now, "max_bytes": max_bytes}
        )
        is_form = core.quirks.on("upload-form")
        data: Json = {
            "uploadUrl": f"{call.origin}/v2/parse/upload/{name}" + ("" if is_form else f"?uploadRef={ref}"),
            "uploadRef": ref,
            "method": "POST" if is_form else "PUT",
            "headers": {}
            if is_form
            else {"Content-Type": body.get("contentType", "application/octet-stream")},
            "expiresAt": iso(core.clock.datetime() + timedelta(seconds=LIFETIME)),
            "maxSizeBytes": max_bytes,
        }
        if is_form:
            data["fields"] = {"key": f"parse-uploads/{name}", "policy": ref}
        return Reply(200, {"success": True, "data": data})

    async def receive(self, call: Call) -> Reply:
        """Accept a file. The URL is the credential: only its requester knows it."""
        expected = [item for item in self._core.store.list("upload") if item["name"] == call.params["name"]]
        upload: Upload = call.body
        if not expected or self._core.clock.now() > expected[0]["since"] + LIFETIME:
            raise ServiceError(404, "Upload URL not found or expired.", code="NOT_FOUND")
        if (
            upload.error is not None
            or upload.content is None
            or not 0 < upload.size <= expected[0]["max_bytes"]
        ):
            raise ServiceError(400, upload.error or "Uploaded file exceeds maximum size.", code="BAD_REQUEST")
        self._files[expected[0]["name"]] = replace(upload, filename=expected[0]["filename"])
        upload.content = None  # the stored upload now owns the file
        return Reply(200, {"success": True})

    def _uploaded(self, body: Any) -> Upload:
        """Return the file that a body refers to, with the options of the body. A reference works once."""
        ref = str(body.get("uploadRef")) if isinstance(body, dict) else ""
        expected = self._core.store.get("upload", ref)
        file = self._files.pop(expected["name"], None) if expected else None
        if expected is None or file is None or self._core.clock.now() > expected["since"] + LIFETIME:
            text = "Uploaded file is not available. Upload the file before parsing."
            raise ServiceError(400, text, code="BAD_REQUEST")
        self._core.store.delete("upload", ref)
        options = {name: value for name, value in body.items() if name != "uploadRef"}
        return replace(file, options=json.dumps(options))

    async def parse(self, call: Call) -> Reply:
        """Validate, convert, and bill."""
        upload = call.body if isinstance(call.body, Upload) else self._uploaded(call.body)
        try:
            return await self._parsed(upload)
        finally:
            upload.close()

    async def _parsed(self, upload: Upload) -> Reply:
        if upload.error is not None or upload.content is None:
            raise ServiceError(400, upload.error or "No file was uploaded", code="BAD_REQUEST")
        kind = kind_of(upload.filename)
        options = _options(upload.options)
        settings = self._core.settings
        if options.get("zeroDataRetention"):
            settings.require_entitlement("zeroDataRetention")
        self._core.credits.require()
        lack = lacking(options, settings.profile)
        if lack is not None:
            raise ServiceError(500, lack.text, code=lack.code)
        options = within(options, settings.profile)
        _refuse_unsupported(kind, options)
        page = await asyncio.to_thread(convert, kind, upload.content)
        sections = (page.markdown or "").split(PAGE_BREAK) if page.is_pdf else []
        timeout = options.get("timeout", DEFAULT_TIMEOUT)
        self._processing.require_done(_key(upload), settings.parse_seconds, timeout, len(sections) or None)
        return self._answer(upload, options, page, sections)

    def _answer(self, upload: Upload, options: Json, page: Page, sections: list[str]) -> Reply:
        parsed_pages = sections[: pdf_parser(options).get("maxPages")]
        cost = page_cost(options, pdf_pages=len(parsed_pages))
        address = address_of_file(upload.filename)
        required = self._canned.meet(options, page, address)
        document = {**produce(page, options, parsed_pages, self._canned.get(address)), **required}
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
            metadata.update(numPages=len(parsed_pages), totalPages=len(sections))
        document["metadata"] = {name: value for name, value in metadata.items() if value is not None}
        self._core.credits.spend(cost)
        self._core.store.put("parse", metadata["scrapeId"], {"created_at": self._core.clock.iso()})
        return Reply(200, {"success": True, "data": document})


def _options(text: str) -> Json:
    try:
        options = json.loads(text)
    except ValueError:
        raise ServiceError(400, "Invalid JSON in options", code="BAD_REQUEST") from None
    if isinstance(options, dict):
        _refuse_page_options(options)
    issues = nest(check("parse", options))
    refuse_unknown_keys(issues)
    if issues:
        raise ServiceError(400, "Invalid parse options", code="BAD_REQUEST", details=details_of(issues))
    return {"formats": ["markdown"], **options}


def _refuse_page_options(options: Json) -> None:
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
        raise UnsupportedHereError("recognize text in images (parser mode ocr)")
    about_pages = {name: value for name, value in options.items() if name != "parsers" or kind == "pdf"}
    refuse_unsupported(about_pages)


def _key(upload: Upload) -> str:
    """Return a key to deduplicate requests: a hash of the file, its name, and the options."""
    options = json.dumps(json.loads(upload.options), sort_keys=True)
    return hashlib.sha256(f"{upload.sha256}\0{upload.filename}\0{options}".encode()).hexdigest()
