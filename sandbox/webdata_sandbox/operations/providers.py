# SPDX-License-Identifier: Apache-2.0
"""Data provider calls, and the catalog of capabilities."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import TYPE_CHECKING, Any

from webdata_sandbox.engine.providers import (
    PROVIDERS,
    CallError,
    Capability,
    Provider,
    contract,
    matches,
    next_call,
    tools,
)
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.rules import check
from webdata_sandbox.reference.urls import canonical

from .call import Reply
from .validation import valid

if TYPE_CHECKING:
    from collections.abc import Callable

    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .call import Call

OWN = "firecrawl"
TERMS_URL = "https://service.example/app/data-providers"
PARTS = ("options", "response", "examples")
DEFAULT_PAGE = 20

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class Providers:
    """Handles ``POST /v2/scrape`` with ``alexandria`` in place of ``url``."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._own: dict[str, Callable[[Json], Json]] = {
            "find-tools": find_tools,
            "terms/show": self._show_terms,
            "terms/accept": self._accept_terms,
        }

    async def run(self, call: Call) -> Reply:
        """Validate, and return the response of a repeated request, or execute and bill a new one."""
        body = valid("scrape.alexandria", _as_list(call.body))
        request_id = call.headers.get("x-request-id")
        if request_id is not None and not _REQUEST_ID.fullmatch(request_id):
            raise ServiceError(400, "Invalid x-request-id", code="invalid_request_id")
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        earlier = self._core.store.get("provider_request", request_id) if request_id else None
        if earlier is not None:
            if earlier["digest"] != digest:
                text = "This x-request-id was used for another payload."
                raise ServiceError(409, text, code="duplicate_request")
            return Reply(200, earlier["answer"])
        self._admit(body["alexandria"])
        results = [self.result(item) for item in body["alexandria"]]
        cost = sum(result.get("creditsCost", 0) for result in results)
        self._core.credits.spend(cost)
        answer: Json = {
            "success": True,
            "scrape_id": str(uuid.uuid4()),
            "data": {"alexandria": results, "creditsCost": cost},
        }
        if request_id:
            self._core.store.put("provider_request", request_id, {"digest": digest, "answer": answer})
        return Reply(200, answer)

    def accept(self, provider: str) -> None:
        """Accept the terms of a provider as an administrator of the team.

        :raises ValueError: the provider is unknown or has no terms.
        """
        found = PROVIDERS.get(provider)
        if found is None or found.terms is None:
            raise ValueError(f"provider {provider!r} is unknown or has no terms")
        self._core.store.put("provider_terms", provider, {"version": found.terms})

    def _admit(self, calls: list[Json]) -> None:
        """Check the whole request before any of its calls is executed."""
        max_cost = 0
        for item in calls:
            if item["provider"] == OWN:
                continue
            provider = PROVIDERS.get(item["provider"])
            if provider is None:
                raise ServiceError(404, f"Unknown provider {item['provider']!r}", code="unknown_provider")
            self._require_terms(provider)
            capability = provider.capability(item["capability"])
            max_cost += capability.max_cost(item.get("options", {})) if capability else 0
        if max_cost:
            self._core.credits.require(max_cost)

    def accepts(self, provider: Provider) -> bool:
        """Return whether the team may call a provider: it has no terms, or they are accepted."""
        return provider.terms is None or self._core.store.get("provider_terms", provider.name) is not None

    def _require_terms(self, provider: Provider) -> None:
        if self.accepts(provider):
            return
        raise ServiceError(
            403,
            f"An organization admin must accept the {provider.name} provider's terms",
            code="THIRD_PARTY_DATA_TERMS_REQUIRED",
            extra={
                "requiresAction": {
                    "type": "accept_terms",
                    "terms": provider.name,
                    "version": provider.terms,
                    "url": terms_url(provider),
                }
            },
        )

    def result(self, item: Json) -> Json:
        """Execute one call and return its result, without billing it."""
        result: Json = {"provider": item["provider"], "capability": item["capability"]}
        try:
            return result | self._execute(item)
        except CallError as error:
            return result | {"error": error.to_wire()}

    def _execute(self, item: Json) -> Json:
        name, options = item["capability"], item.get("options", {})
        if item["provider"] == OWN:
            if name not in self._own:
                raise CallError("unknown_capability", f"Unknown capability {name!r}", 404)
            return {"creditsCost": 0, "data": self._own[name](options)}
        capability = PROVIDERS[item["provider"]].capability(name)
        if capability is None:
            raise CallError("unknown_capability", f"Unknown capability {name!r}", 404)
        if self._core.faults.consume_provider_failure(f"{item['provider']}/{name}"):
            raise CallError("provider_unavailable", "The provider does not respond", 503)
        data, records = capability.run(options)
        return {
            "creditsCost": capability.cost(records),
            "data": data,
            "records": records,
            "upstreamStatus": 200,
            "recordedAt": self._core.clock.iso(),
        }

    def _show_terms(self, options: Json) -> Json:
        provider = _with_terms(options)
        accepted = self._core.store.get("provider_terms", provider.name)
        return {
            "provider": provider.name,
            "version": provider.terms,
            "digest": terms_digest(provider),
            "text": f"Terms of {provider.title}.",
            "accepted": accepted is not None,
        }

    def _accept_terms(self, options: Json) -> Json:
        provider = _with_terms(options)
        wanted = {"version": provider.terms, "digest": terms_digest(provider), "confirmed": True}
        if any(options.get(name) != value for name, value in wanted.items()):
            raise CallError("invalid_options", "version, digest, and confirmed must match the terms", 400)
        self.accept(provider.name)
        return {"provider": provider.name, "version": provider.terms, "accepted": True}


def find_tools(options: Json) -> Json:
    """Return one page of the catalog.

    :raises CallError: the options are invalid.
    """
    if issues := check("alexandria.find-tools", options):
        raise CallError("invalid_options", issues[0].message, 400)
    level = options.get("level") or _level(options)
    limit, offset = options.get("limit", DEFAULT_PAGE), options.get("offset", 0)
    parts = options.get("expand", PARTS if options.get("capabilities") else ())
    found = [(provider, item) for provider, item in tools() if _fits(provider, item, options)]
    items = _ITEMS[level](found, parts)
    page: Json = {"level": level, "items": items[offset : offset + limit], "total": len(items), "next": None}
    if offset + limit < len(items):
        page["next"] = next_call(**{**options, "level": level, "limit": limit, "offset": offset + limit})
    return page


def _level(options: Json) -> str:
    if any(options.get(name) for name in ("query", "capabilities", "providers", "groups", "urls")):
        return "tools"
    return "providers"


def _fits(provider: Provider, item: Capability, options: Json) -> bool:
    hosts = {canonical(url).split("/")[2] for url in options.get("urls", ())}
    return (
        (not options.get("query") or matches(provider, item, options["query"]))
        and (not hosts or bool(hosts & set(provider.hosts)))
        and _admits(options, "providers", provider.name)
        and _admits(options, "categories", provider.category)
        and _admits(options, "groups", _group(provider, item))
        and _admits(options, "capabilities", item.name, f"{provider.name}/{item.name}")
    )


def _admits(options: Json, name: str, *values: str) -> bool:
    return not options.get(name) or any(value in options[name] for value in values)


def _group(provider: Provider, item: Capability) -> str:
    return f"{provider.name}/{item.name.partition('/')[0]}"


def _tools(found: list[tuple[Provider, Capability]], parts: Any) -> list[Json]:
    return [contract(provider, item, parts) for provider, item in found]


def _groups(found: list[tuple[Provider, Capability]], _: Any) -> list[Json]:
    names = dict.fromkeys(_group(provider, item) for provider, item in found)
    return [{"id": name, "next": next_call(groups=[name], level="tools")} for name in names]


def _providers(found: list[tuple[Provider, Capability]], _: Any) -> list[Json]:
    providers = {provider.name: provider for provider, _ in found}
    return [
        {
            "id": provider.name,
            "name": provider.title,
            "description": provider.description,
            "categories": [provider.category],
            "next": next_call(providers=[provider.name], level="tools"),
        }
        for provider in providers.values()
    ]


def _categories(found: list[tuple[Provider, Capability]], _: Any) -> list[Json]:
    names = dict.fromkeys(provider.category for provider, _ in found)
    return [{"id": name, "next": next_call(categories=[name], level="providers")} for name in names]


_ITEMS = {"tools": _tools, "groups": _groups, "providers": _providers, "categories": _categories}


def _as_list(body: Any) -> Any:
    # Other clients send a single call without a list.
    calls = body.get("alexandria")
    return {**body, "alexandria": [calls]} if isinstance(calls, dict) else body


def _with_terms(options: Json) -> Provider:
    provider = PROVIDERS.get(options.get("provider", ""))
    if provider is None or provider.terms is None:
        raise CallError("not_found", "The provider is unknown or has no terms", 404)
    return provider


def terms_url(provider: Provider) -> str:
    """Return the URL at which an administrator accepts a provider's terms."""
    return f"{TERMS_URL}/{provider.name}"


def terms_digest(provider: Provider) -> str:
    """Return the digest of a provider's terms; an acceptance must include it."""
    return hashlib.sha256(f"{provider.name} {provider.terms}".encode()).hexdigest()
