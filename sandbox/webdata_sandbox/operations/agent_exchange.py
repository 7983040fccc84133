# SPDX-License-Identifier: Apache-2.0
"""Data provider calls and approvals of agent runs."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from webdata_sandbox.engine.providers import PROVIDERS, Capability, Provider, matches, tools
from webdata_sandbox.reference.errors import ServiceError

from .providers import OWN, terms_digest, terms_url

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json

    from .providers import Providers

ANSWERS = ("approve", "decline")
SUMMARY_FIELDS = ("toolkits", "requireApproval", "onTermsRequired")


class AgentExchange:
    """Plans the data provider calls of a run from the words of its prompt.

    A plan has the ``calls`` to make, the calls that terms have ``gated``, the ``pending`` approval that ends the run,
    and the number of ``paid`` calls.
    """

    def __init__(self, providers: Providers) -> None:
        self._providers = providers

    def begin(self, body: Json, last: Json | None) -> Json:
        """Return the plan of a run.

        :param body: the request with its inherited options.
        :param last: the last run of the thread.
        :raises ServiceError: 404: the approval does not exist or already has an answer.
        """
        options = body.get("exchange", {})
        earlier: Json = last["exchange"] if last else {"pending": None, "always": False}
        plan: Json = {"calls": [], "gated": [], "pending": None, "paid": 0, "credits": 0}
        plan["always"] = earlier["always"]
        answer: Json | None = next((options[name] for name in ANSWERS if name in options), None)
        pending = earlier["pending"]
        if answer is not None and (
            pending is None or pending["id"] != answer["approvalId"] or pending["resolution"] is not None
        ):
            raise ServiceError(404, "This thread has no such pending approval", code="approval_not_found")
        if "exchange" not in body or not options.get("enabled", True) or "decline" in options:
            return plan
        if answer is None:
            return self._plan_calls(plan, options, _matching_calls(body))
        if pending["kind"] == "terms":
            return self._plan_calls(plan, options, earlier["gated"])
        wanted = set(answer.get("callIds", [item["id"] for item in pending["calls"]]))
        plan["calls"] = [item for item in pending["calls"] if item["id"] in wanted]
        plan["gated"] = earlier["gated"]
        plan["always"] |= answer.get("always", False)
        return _request_terms(plan, options)

    def resolve(self, last: Json, run: Json) -> bool:
        """Record this run's answer to the last run's approval; return whether the run has one."""
        options = run["request"].get("exchange", {})
        if not options.keys() & set(ANSWERS):
            return False
        approval, pending = options.get("approve", {}), last["exchange"]["pending"]
        pending["resolution"] = {
            "approved": "approve" in options,
            "callIds": [item["id"] for item in run["exchange"]["calls"]] if pending["calls"] else [],
            "always": bool(pending["calls"]) and approval.get("always", False),
            "byRunId": run["id"],
        }
        return True

    def call(self, run: Json, item: Json) -> None:
        """Call a provider and add its data to the run.

        :raises ServiceError: the provider rejects the call.
        """
        provider, capability = _tool(item)
        result = self._providers.result(
            {"provider": provider.name, "capability": capability.name, "options": item["input"]}
        )
        if "error" in result:
            error = result["error"]
            raise ServiceError(error["status"], error["message"], code=error["code"])
        run["spent"] += result["creditsCost"]
        run["exchange"]["paid"] += 1
        run["exchange"]["credits"] += result["creditsCost"]
        about = {
            "url": f"{provider.name}/{capability.name}",
            "title": capability.title,
            "description": capability.description,
        }
        run["known"].append({**about, **result["data"]})

    def _plan_calls(self, plan: Json, options: Json, wanted: list[Json]) -> Json:
        """Add calls to a plan: terms gate some of them, and the others may need approval."""
        for item in wanted:
            is_open = self._providers.accepts(_tool(item)[0])
            plan["calls" if is_open else "gated"].append(item)
        plan["calls"] = plan["calls"][: options.get("maxCalls")]
        if plan["calls"] and options.get("requireApproval") and not plan["always"]:
            reason = f"{len(plan['calls'])} paid calls require approval."
            plan["pending"] = _approval("calls", reason, calls=plan["calls"])
            plan["calls"] = []
            return plan
        return _request_terms(plan, options)

    def status(self, run: Json) -> Json:
        """Return the data provider fields of a status."""
        if "exchange" not in run["request"]:
            return {}
        options, plan = run["request"]["exchange"], run["exchange"]
        summary: Json = {"enabled": options.get("enabled", True)}
        summary |= {name: options[name] for name in SUMMARY_FIELDS if name in options}
        summary |= {"paidCalls": plan["paid"], "creditsUsed": plan["credits"] if plan["paid"] else None}
        gates = [_gate(item) for item in plan["gated"]]
        if gates:
            summary["skippedProviders"] = [_skipped(gate) for gate in gates]
        pending = plan["pending"] if run["finishedAt"] else None
        if pending is None:
            return {"exchange": summary}
        if pending["kind"] == "terms":
            providers = [{**gate, **_terms_calls(gate)} for gate in gates]
            action = {"type": "accept_terms", "approvalId": pending["id"], "providers": providers}
            summary["requiresAction"] = action
        return {"exchange": summary, "pendingApproval": pending}


def max_cost(item: Json) -> int:
    """Return the maximum credits of a planned call."""
    return _tool(item)[1].max_cost(item["input"])


def _tool(item: Json) -> tuple[Provider, Capability]:
    provider = PROVIDERS[item["provider"]]
    return provider, next(known for known in provider.capabilities if known.name == item["capability"])


def _matching_calls(body: Json) -> list[Json]:
    """Return one call per capability that shares a word with the prompt."""
    toolkits = body["exchange"].get("toolkits")
    return [
        {
            "id": str(uuid.uuid4()),
            "provider": provider.name,
            "capability": item.name,
            "input": item.sample(body["prompt"]),
            "creditsEstimate": None if item.credits is None else item.max_cost(item.sample(body["prompt"])),
        }
        for provider, item in tools()
        if matches(provider, item, body["prompt"]) and (toolkits is None or provider.name in toolkits)
    ]


def _request_terms(plan: Json, options: Json) -> Json:
    if plan["gated"] and options.get("onTermsRequired") == "ask":
        terms = [_gate(item) for item in plan["gated"]]
        reason = f"{', '.join(item['name'] for item in terms)} may have more data."
        plan["pending"] = _approval("terms", reason, calls=[], terms=terms)
    return plan


def _approval(kind: str, reason: str, **fields: Any) -> Json:
    return {"id": str(uuid.uuid4()), "kind": kind, "reason": reason, "resolution": None, **fields}


def _gate(item: Json) -> Json:
    provider, capability = _tool(item)
    return {
        "provider": provider.name,
        "name": provider.title,
        "capability": capability.name,
        "adds": capability.description,
        "version": provider.terms,
        "digest": terms_digest(provider),
        "url": terms_url(provider),
    }


def _skipped(gate: Json) -> Json:
    kept = {name: gate[name] for name in ("provider", "name", "capability", "adds", "version")}
    return {**kept, "reason": "terms_required", "termsUrl": gate["url"]}


def _terms_calls(gate: Json) -> Json:
    options = {"provider": gate["provider"]}
    accepted = {**options, "version": gate["version"], "digest": gate["digest"], "confirmed": True}
    return {
        "show": {"provider": OWN, "capability": "terms/show", "options": options},
        "accept": {"provider": OWN, "capability": "terms/accept", "options": accepted},
    }
