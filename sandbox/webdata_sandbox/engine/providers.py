# SPDX-License-Identifier: Apache-2.0
"""The sandbox's data providers: capabilities, contracts, and records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webdata_sandbox.reference.wire import Json

TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


class CallError(Exception):
    """One call of a request failed. The other calls are not affected.

    :param code: the machine-readable reason.
    :param message: the reason as text.
    :param status: the provider's HTTP status.
    """

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status

    def to_wire(self) -> Json:
        """Return the ``error`` of the call's result."""
        return {"code": self.code, "message": self.message, "status": self.status}


@dataclass(frozen=True)
class Option:
    """An option of a capability."""

    name: str
    type: str
    description: str
    required: bool = False
    default: Any = None
    maximum: int | None = None

    def to_wire(self) -> Json:
        """Return the option's entry in a contract."""
        entry: Json = {"name": self.name, "type": self.type, "description": self.description}
        entry["required"] = self.required
        limits = {"default": self.default, "maximum": self.maximum}
        return entry | {name: value for name, value in limits.items() if value is not None}


@dataclass(frozen=True)
class Capability:
    """A capability of a provider.

    :param credits: price of a call, or of a record if ``per_record``; None: only the response states it.
    :param key: name of the list of records in the response; None: the response is one record.
    :param fields: name, type, and description of each field of a record.
    :param answer: returns the records for validated options.
    """

    name: str
    title: str
    description: str
    credits: int | None
    options: tuple[Option, ...]
    fields: tuple[tuple[str, str, str], ...]
    answer: Callable[[Json], list[Json]]
    per_record: bool = False
    key: str | None = None
    unlisted_credits: int = 3

    def checked(self, options: Json) -> Json:
        """Validate options and add the defaults.

        :raises CallError: an option is missing, unknown, of the wrong type, or out of range.
        """
        known = {option.name: option for option in self.options}
        for name, value in options.items():
            if name not in known:
                raise CallError("invalid_options", f"Unknown option {name!r}", 400)
            option = known[name]
            wrong = isinstance(value, bool) and option.type != "boolean"
            if wrong or not isinstance(value, TYPES[option.type]):
                raise CallError("invalid_options", f"Option {name!r} must be a {option.type}", 400)
            if isinstance(value, int) and option.maximum and not 1 <= value <= option.maximum:
                raise CallError("invalid_options", f"Option {name!r} must be 1 to {option.maximum}", 400)
        for option in self.options:
            if option.required and option.name not in options:
                raise CallError("invalid_options", f"Option {option.name!r} is required", 400)
        defaults = {o.name: o.default for o in self.options if o.default is not None}
        return {**defaults, **options}

    def run(self, options: Json) -> tuple[Any, int]:
        """Return the data of a call and the number of its records.

        :raises CallError: the options are invalid, or no record matches them.
        """
        options = self.checked(options)
        records = self.answer(options)
        if "limit" in options:
            records = records[: options["limit"]]
        return (records[0] if self.key is None else {self.key: records}), len(records)

    def sample(self, query: str = "river") -> Json:
        """Return example options for the capability.

        :param query: the query of a search capability.
        """
        samples = {"query": query, "number": "SC-1001", "symbol": "URM"}
        return {option.name: samples[option.name] for option in self.options if option.required}

    def cost(self, records: int) -> int:
        """Return the credits of a call."""
        rate = self.unlisted_credits if self.credits is None else self.credits
        return rate * records if self.per_record else rate

    def max_cost(self, options: Json) -> int:
        """Return the maximum credits of a call, which the balance must cover."""
        limit = options.get("limit")
        return self.cost(limit if isinstance(limit, int) else 1)


@dataclass(frozen=True)
class Provider:
    """A provider of data.

    :param category: id of the category.
    :param hosts: sites for which the provider has data.
    :param terms: version of the terms that must be accepted before the first call; None: no terms.
    """

    name: str
    title: str
    description: str
    category: str
    hosts: tuple[str, ...]
    capabilities: tuple[Capability, ...]
    terms: str | None = None

    def capability(self, name: str) -> Capability | None:
        """Return the capability with this name, or None."""
        return next((item for item in self.capabilities if item.name == name), None)


_COMPANIES: list[Json] = [
    {
        "number": "SC-1001",
        "name": "Upper River Mills Ltd",
        "country": "SX",
        "founded": "1924-03-01",
        "employees": 310,
        "active": True,
        "officers": ["M. Weir", "A. Sluice"],
    },
    {
        "number": "SC-1002",
        "name": "River Gauge Instruments plc",
        "country": "SX",
        "founded": "1998-11-17",
        "employees": 45,
        "active": True,
        "officers": ["P. Level"],
    },
    {
        "number": "SC-1003",
        "name": "Old Harbour Trading Co",
        "country": "SY",
        "founded": "1871-06-30",
        "employees": None,
        "active": False,
        "officers": [],
    },
    {
        "number": "SC-1004",
        "name": "Pipeline Tools GmbH",
        "country": "SZ",
        "founded": "2015-02-02",
        "employees": 120,
        "active": True,
        "officers": ["D. Agg"],
    },
]
_EPISODES: list[Json] = [
    {"id": "ep-1", "title": "The river in flood", "show": "Waterways", "seconds": 1830, "explicit": False},
    {"id": "ep-2", "title": "Salmon come back", "show": "Waterways", "seconds": 2210, "explicit": False},
    {"id": "ep-3", "title": "Scheduling a pipeline", "show": "Data Night", "seconds": 3600, "explicit": True},
]
_FIRST_PRICES = {"URM": 41.5, "RGI": 12.25, "PTG": 88.0}


def _companies(options: Json) -> list[Json]:
    wanted = set(words(options["query"]))
    return [
        company
        for company in _COMPANIES
        if wanted & set(words(company["name"])) and options.get("country") in (None, company["country"])
    ]


def _company(options: Json) -> list[Json]:
    found = [company for company in _COMPANIES if company["number"] == options["number"]]
    if not found:
        raise CallError("not_found", f"There is no company {options['number']!r}", 404)
    return found


def _prices(options: Json) -> list[Json]:
    first = _price(options)
    return [
        {"date": f"2026-01-{day:02}", "close": round(first + day * 0.25, 2), "volume": 1000 + 10 * day}
        for day in range(1, options["days"] + 1)
    ]


def _live(options: Json) -> list[Json]:
    return [{"symbol": options["symbol"], "price": _price(options)}]


def _price(options: Json) -> float:
    try:
        return _FIRST_PRICES[options["symbol"]]
    except KeyError:
        raise CallError("not_found", f"There is no symbol {options['symbol']!r}", 404) from None


def _episodes(options: Json) -> list[Json]:
    wanted = set(words(options["query"]))
    return [item for item in _EPISODES if wanted & set(words(f"{item['title']} {item['show']}"))]


_COMPANY_FIELDS = (
    ("number", "string", "Number in the register"),
    ("name", "string", "Registered name"),
    ("country", "string", "Country code"),
    ("founded", "date", "Date of registration"),
    ("employees", "integer", "Last reported number of employees"),
    ("active", "boolean", "True while the company trades"),
    ("officers", "array", "Names of the officers"),
)
_SYMBOL = Option("symbol", "string", "Symbol, such as URM", required=True)

PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            "company-register",
            "Company register",
            "Registered companies of the sandbox's world",
            "companies",
            ("code.example",),
            (
                Capability(
                    "companies/search",
                    "Company search",
                    "Find companies by words in their name",
                    1,
                    (
                        Option("query", "string", "Words in the name", required=True),
                        Option("country", "string", "Country code"),
                        Option("limit", "integer", "Maximum number of companies", default=10, maximum=50),
                    ),
                    _COMPANY_FIELDS,
                    _companies,
                    per_record=True,
                    key="companies",
                ),
                Capability(
                    "companies/get",
                    "Company",
                    "One company by its number",
                    2,
                    (Option("number", "string", "Number in the register", required=True),),
                    _COMPANY_FIELDS,
                    _company,
                ),
            ),
        ),
        Provider(
            "market-prices",
            "Market prices",
            "Prices of the sandbox's exchange",
            "finance",
            ("weather.example",),
            (
                Capability(
                    "prices/history",
                    "Price history",
                    "Closing prices by day",
                    5,
                    (_SYMBOL, Option("days", "integer", "Number of days", default=5, maximum=28)),
                    (
                        ("date", "date", "Day"),
                        ("close", "number", "Closing price"),
                        ("volume", "integer", "Number of traded shares"),
                    ),
                    _prices,
                    key="prices",
                ),
                Capability(
                    "prices/live",
                    "Live price",
                    "The current price; only the response states the cost",
                    None,
                    (_SYMBOL,),
                    (("symbol", "string", "Symbol"), ("price", "number", "Price")),
                    _live,
                ),
            ),
        ),
        Provider(
            "episode-index",
            "Episode index",
            "Episodes of podcasts; its terms must be accepted first",
            "media",
            ("river.example",),
            (
                Capability(
                    "episodes/search",
                    "Episode search",
                    "Find episodes by words in their title and show",
                    15,
                    (
                        Option("query", "string", "Words", required=True),
                        Option("limit", "integer", "Maximum number of episodes", default=10, maximum=50),
                    ),
                    (
                        ("id", "string", "Episode id"),
                        ("title", "string", "Title"),
                        ("show", "string", "Name of the podcast"),
                        ("seconds", "integer", "Length in seconds"),
                        ("explicit", "boolean", "True for explicit content"),
                    ),
                    _episodes,
                    key="episodes",
                ),
            ),
            terms="1.0.0",
        ),
    )
}


def tools() -> list[tuple[Provider, Capability]]:
    """Return all capabilities with their providers."""
    return [(provider, item) for provider in PROVIDERS.values() for item in provider.capabilities]


def next_call(**options: Any) -> Json:
    """Return a complete call of ``find-tools``."""
    return {"provider": "firecrawl", "capability": "find-tools", "options": options}


def contract(provider: Provider, item: Capability, parts: Iterable[str]) -> Json:
    """Return a tool's entry in the catalog.

    :param parts: the included parts of ``options``, ``response``, and ``examples``. Without any, the entry has
        ``next``, the call that returns all of them.
    """
    tool: Json = {
        "id": f"{provider.name}/{item.name}",
        "provider": provider.name,
        "capability": item.name,
        "name": item.title,
        "label": item.title,
        "description": item.description,
        "whenToUse": f"{item.description}.",
        "creditsCost": item.credits,
        "perRecord": item.per_record,
        "attribution": {"required": False},
    }
    fields = [{"name": name, "type": kind, "description": text} for name, kind, text in item.fields]
    request = {"provider": provider.name, "capability": item.name, "options": item.sample()}
    details: Json = {
        "options": [option.to_wire() for option in item.options],
        "response": {"fields": fields} | ({} if item.key is None else {"key": item.key}),
        "examples": {"python": f"client.scrape(alexandria={request!r})"},
    }
    chosen = [name for name in details if name in parts]
    if not chosen:
        return tool | {"next": next_call(providers=[provider.name], capabilities=[item.name], level="tools")}
    return tool | {name: details[name] for name in chosen}


def matches(provider: Provider, item: Capability, query: str) -> bool:
    """Return whether a tool's description and a query share a word."""
    text = f"{provider.title} {provider.description} {item.title} {item.description}"
    return bool(set(words(query)) & set(words(text)))


def found_tools(urls: Iterable[str], query: str | None, detail: str | None) -> list[Json]:
    """Return the tools that have data about the pages' sites or match a query.

    :param urls: the URLs of the pages.
    :param detail: ``compact``, ``summary``, or ``full``.
    """
    parts = ("options", "response", "examples") if detail == "full" else ()
    found = []
    for provider, item in tools():
        matched = [url for url in urls if urlsplit(url).hostname in provider.hosts]
        fits = query is not None and matches(provider, item, query)
        if not (fits or matched):
            continue
        tool = contract(provider, item, parts)
        if detail == "compact":
            tool = {name: tool[name] for name in ("provider", "capability", "description")}
        else:
            tool["matchedBy"] = [name for name, is_so in (("semantic", fits), ("domain", matched)) if is_so]
            tool["matchedUrls"] = matched
        found.append(tool)
    return found
