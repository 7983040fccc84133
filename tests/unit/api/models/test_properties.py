"""What must hold for any input: valid requests survive the wire, and nothing but a ValidationError is raised."""

from __future__ import annotations

import json
import uuid
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from airflow_provider_webdata.api import models as m

MODELS = [
    getattr(m, name)
    for name in m.__all__
    if isinstance(getattr(m, name), type) and name not in {"RequestModel", "ResponseModel"}
]
BROAD = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def some(
    required: dict[str, Any] | None = None, **optional: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    """Draw an object with all of the required and any of the optional fields."""
    return st.fixed_dictionaries(required or {}, optional=optional)


plain = st.characters(codec="utf-8", exclude_categories=["Cc"])
text = st.text(plain, min_size=1, max_size=30).filter(str.strip)
switch = st.booleans()
label = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
host = st.builds("{}.{}".format, label, label)
url = st.builds("https://{}/{}".format, host, label)
headers = st.dictionaries(st.from_regex(r"[A-Za-z0-9-]{1,10}", fullmatch=True), st.text(plain, max_size=20))
viewport = some({"width": st.integers(1, 9999), "height": st.integers(1, 9999)})
schema = st.sampled_from(
    [{}, {"type": "object", "properties": {"a": {"type": "string"}}}, {"type": ["null"]}]
)


def typed(kind: str, required: dict[str, Any] | None = None, **optional: st.SearchStrategy[Any]) -> Any:
    return some({"type": st.just(kind), **(required or {})}, **optional)


plain_formats = [
    "summary",
    "html",
    "rawHtml",
    "links",
    "images",
    "branding",
    "product",
    "menu",
    "audio",
    "video",
]
formats = st.lists(
    st.sampled_from([*plain_formats, "json", "changeTracking"])
    | typed("json", schema=schema, prompt=text)
    | typed(
        "changeTracking",
        modes=st.lists(st.sampled_from(["git-diff", "json"])),
        schema=schema,
        prompt=text,
        tag=st.none() | text,
    )
    | typed("question", {"question": text})
    | typed("highlights", {"query": text})
    | typed("attributes", {"selectors": st.lists(some({"selector": text, "attribute": text}), max_size=2)})
    | st.sampled_from([{"type": kind} for kind in plain_formats]),
    max_size=4,
).flatmap(
    lambda found: st.sampled_from(
        [
            ["markdown", *found],
            [*found, {"type": "markdown"}],
            ["markdown", {"type": "screenshot", "quality": 5}, *found],
        ]
    )
)
actions = st.lists(
    typed("wait", {"milliseconds": st.integers(1, 9999)})
    | typed("wait", {"selector": text})
    | typed("screenshot", fullPage=switch, quality=st.integers(1, 100), viewport=viewport)
    | typed("click", {"selector": text}, all=switch)
    | typed("write", {"text": st.text(plain)})
    | typed("press", {"key": text})
    | typed("scroll", direction=st.sampled_from(["up", "down"]), selector=text)
    | typed("scrape")
    | typed("executeJavascript", {"script": text})
    | typed("pdf", format=st.sampled_from(["A4", "Letter"]), landscape=switch, scale=st.floats(0.1, 2)),
    max_size=4,
)
threat = some(
    mode=st.sampled_from(["off", "normal"]),
    riskScoreThreshold=st.integers(0, 100),
    blacklist=st.lists(host | st.builds("*.{}".format, host), max_size=3),
    whitelist=st.lists(host, max_size=3),
    blockedTlds=st.lists(st.sampled_from(["zip", "xyz", "xn--p1ai"]), max_size=3),
    failurePolicy=st.sampled_from(["open", "closed"]),
)
scrape_options = some(
    formats=formats,
    onlyMainContent=switch,
    onlyCleanContent=switch,
    includeTags=st.lists(text, max_size=2),
    excludeTags=st.lists(text, max_size=2),
    maxAge=st.integers(0, 10**12),
    minAge=st.integers(0, 10**12),
    headers=headers,
    waitFor=st.integers(0, 60_000),
    mobile=switch,
    skipTlsVerification=switch,
    timeout=st.integers(1000, 300_000),
    parsers=st.lists(
        st.sampled_from(["pdf", "image"])
        | typed(
            "pdf",
            mode=st.sampled_from(["fast", "auto", "ocr"]),
            maxPages=st.integers(1, 10_000),
            pages=switch,
        ),
        max_size=2,
    ),
    actions=actions,
    location=some(country=st.from_regex(r"[A-Z]{2}", fullmatch=True), languages=st.lists(text, max_size=2)),
    removeBase64Images=switch,
    blockAds=switch,
    proxy=st.sampled_from(["basic", "enhanced", "auto", "stealth"]),
    storeInCache=switch,
    lockdown=switch,
    redactPII=switch
    | some(
        mode=st.sampled_from(["accurate", "aggressive", "fast"]),
        entities=st.lists(st.sampled_from(["EMAIL", "SECRET"]), max_size=2),
        replaceStyle=st.sampled_from(["tag", "mask", "remove"]),
    ),
    profile=some({"name": st.text(plain, min_size=1, max_size=128)}, saveChanges=switch),
    threatProtection=threat,
    auditMetadata=some({"username": st.text(plain, max_size=1024)}),
)
day = st.dates(date(1990, 1, 1), date(2030, 1, 1))
tbs = st.sampled_from(["qdr:h", "qdr:y", "sbd:1", "sbd:1,qdr:w"]) | st.builds(
    lambda one, other: f"cdr:1,cd_min:{min(one, other):%m/%d/%Y},cd_max:{max(one, other):%m/%d/%Y}", day, day
)
hosts = st.lists(host, max_size=3)
search = st.one_of(
    *(
        some(
            {"query": text},
            limit=st.integers(1, 100),
            sources=st.lists(st.sampled_from(["web", "images", "news"]), max_size=3)
            | st.lists(typed("web", tbs=tbs, location=text) | typed("news") | typed("images"), max_size=3),
            categories=st.lists(st.sampled_from(["codehost", "research", "pdf", "github"]), max_size=2)
            | st.lists(typed("codehost") | typed("pdf"), max_size=2),
            tbs=tbs,
            location=text,
            country=st.from_regex(r"[A-Z]{2}", fullmatch=True),
            safe=switch,
            timeout=st.integers(1, 10**6),
            ignoreInvalidURLs=switch,
            highlights=switch,
            scrapeOptions=scrape_options,
            threatProtection=threat,
            integration=st.none() | text,
            **{filter_name: hosts},
        )
        for filter_name in ("includeDomains", "excludeDomains")
    )
)
identifier = st.uuids().map(str)
schedule = st.one_of(
    some({form: st.sampled_from(values)}, timezone=st.sampled_from(["UTC", "Europe/Berlin"]))
    for form, values in (
        ("cron", ["*/5 * * * *", "0 9 * * 1-5", "0 0 29 2 *"]),
        ("text", ["hourly", "daily at 9:00 pm", "every 30 minutes starting at :05"]),
    )
)
target = st.one_of(
    typed(
        "scrape", {"urls": st.lists(url, min_size=1, max_size=3)}, id=identifier, scrapeOptions=scrape_options
    ),
    typed(
        "crawl",
        {"url": url},
        id=identifier,
        scrapeOptions=scrape_options,
        crawlOptions=some(
            limit=st.integers(1, 10**5),
            includePaths=st.lists(text, max_size=2),
            regexOnFullURL=switch,
            sitemap=st.sampled_from(["skip", "include", "only"]),
            delay=st.integers(0, 60) | st.floats(0, 60),
        ),
    ),
    typed(
        "search",
        {"queries": st.lists(text, min_size=1, max_size=12)},
        id=identifier,
        searchWindow=st.sampled_from(["5m", "7d"]),
        maxResults=st.integers(1, 50),
        includeDomains=hosts,
    ),
)
monitor_fields = {
    "name": st.text(plain, min_size=1, max_size=256).filter(str.strip),
    "schedule": schedule,
    "targets": st.lists(target, min_size=1, max_size=3),
    "goal": text,
    "judgeEnabled": switch,
    "notification": some(
        email=some(
            enabled=switch, includeDiffs=switch, recipients=st.lists(st.just("a@example.com"), max_size=25)
        )
    ),
    "retentionDays": st.integers(1, 365),
    "webhook": some(
        {"url": url},
        headers=headers,
        metadata=st.dictionaries(text, st.text(plain)),
        events=st.lists(st.sampled_from(["monitor.page", "monitor.check.completed"])),
    ),
}
create = some(
    {name: monitor_fields[name] for name in ("name", "schedule", "targets", "goal")},
    **{name: monitor_fields[name] for name in ("judgeEnabled", "notification", "retentionDays", "webhook")},
)
update = some({}, **monitor_fields, status=st.sampled_from(["active", "paused"])).filter(bool)

REQUESTS = {m.SearchRequest: search, m.ScrapeOptions: scrape_options, m.MonitorCreateRequest: create}
REQUESTS[m.MonitorUpdateRequest] = update


def snake_case(model: type[BaseModel], body: dict[str, Any]) -> dict[str, Any]:
    names = {field.alias: name for name, field in model.model_fields.items()}
    return {names[key]: value for key, value in body.items()}


@pytest.mark.parametrize("model", REQUESTS)
@BROAD
@given(data=st.data())
def test_a_valid_request_survives_the_wire(model: type[m.RequestModel], data: st.DataObject) -> None:
    body = data.draw(REQUESTS[model])
    request = model.model_validate(body)
    wire = request.to_wire()
    assert wire == body
    assert json.loads(json.dumps(wire)) == body
    again = model.model_validate(wire)
    assert again == request
    assert again.to_wire() == wire
    assert model.model_validate_json(json.dumps(wire)) == request
    assert model.model_validate(request) == request
    assert model.model_validate(snake_case(model, body)) == request


class Hostile:
    """Fails at whatever it is asked."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __bool__(self) -> bool:
        raise RuntimeError("no")

    def __str__(self) -> str:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")

    def __iter__(self) -> Any:
        raise RuntimeError("no")

    __hash__ = object.__hash__


class Text(str):
    """A string of someone else's making."""


oddities = st.one_of(
    st.builds(object),
    st.builds(Hostile),
    st.binary(max_size=5),
    st.complex_numbers(),
    st.decimals(),
    st.datetimes(),
    st.timedeltas(),
    st.just(uuid.uuid4()),
    st.builds(Text, st.text(max_size=5)),
    st.sets(st.integers(), max_size=2),
    st.sampled_from(
        [len, int, Decimal("NaN"), ..., NotImplemented, Exception("x"), datetime.min, timedelta.max]
    ),
)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(), max_size=20), oddities
)
known = st.sampled_from(sorted({name for model in MODELS for name in model.model_fields} | {"type"}))
aliases = st.sampled_from(
    sorted({field.alias or name for model in MODELS for name, field in model.model_fields.items()})
)
types = st.sampled_from(
    ["web", "json", "pdf", "wait", "search", "scrape", "crawl", "screenshot", "changeTracking"]
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw a container, under names that mean something as a rule."""
    return st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(known | aliases | st.text(max_size=5), inner, max_size=5),
        st.fixed_dictionaries(
            {"type": types}, optional={"formats": inner, "viewport": inner, "schema": inner}
        ),
        st.dictionaries(st.integers() | st.none() | st.booleans(), inner, max_size=2),
    )


anything = st.recursive(scalars | types, containers, max_leaves=12)


@pytest.mark.parametrize("model", MODELS)
@BROAD
@given(data=st.data())
def test_no_input_raises_anything_but_a_validation_error(model: type[BaseModel], data: st.DataObject) -> None:
    names = st.sampled_from([field.alias or name for name, field in model.model_fields.items()] or ["x"])
    body = data.draw(anything | st.dictionaries(names, anything, max_size=6))
    try:
        found = model.model_validate(body)
    except ValidationError as error:
        told = f"{error}", error.errors()
        assert all(told)
        return
    if isinstance(found, m.RequestModel):
        json.dumps(found.to_wire(), allow_nan=False, ensure_ascii=False).encode()
        found.warnings()
    else:
        found.to_wire()
