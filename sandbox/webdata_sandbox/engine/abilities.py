# SPDX-License-Identifier: Apache-2.0
"""Scrape options that a server without language model, browser, and proxies cannot fulfill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webdata_sandbox.reference.scrape_options import type_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.reference.profiles import OptionLack, Profile
    from webdata_sandbox.reference.wire import Json


def lacking(options: Json, profile: Profile) -> OptionLack | None:
    """Return why the server fails each page with these options, or None."""
    return next((profile.options[name] for name in _named(options) if name in profile.options), None)


def within(options: Json, profile: Profile) -> Json:
    """Return the options without those that have no effect on the server, because it lacks or ignores them."""
    if not profile.options:
        return options
    gone = profile.options.keys() | profile.ignored
    kept = {name: value for name, value in options.items() if name not in gone}
    if "formats" in kept:
        kept["formats"] = [item for item in kept["formats"] if type_of(item) not in gone]
    return kept


def omitted(options: Json, profile: Profile) -> str | None:
    """Return a warning about the formats and options that the server omits, or None."""
    names = [type_of(item) for item in options.get("formats", []) if type_of(item) in profile.ignored]
    names += [name for name in _unsupported(options) if name in profile.ignored]
    own = [profile.warnings[name] for name in names if name in profile.warnings]
    if lacks_json(options, profile):
        own.append(profile.warnings["json"])
    if others := [name for name in names if name not in profile.warnings]:
        features = ", ".join(others)
        own.append(
            f"The engine used does not support the following features: {features} -- your scrape may be partial."
        )
    return " ".join(own) or None


def lacks_json(options: Json, profile: Profile) -> bool:
    """Return whether the `json` of a page is null: with a schema, which needs a language model."""
    return bool(profile.options) and any(_has_schema(item) for item in options.get("formats", []))


def _has_schema(item: Any) -> bool:
    return type_of(item) == "json" and isinstance(item, dict) and "schema" in item


def _named(options: Json) -> Iterator[str]:
    """Yield the names of the requested options, formats, and proxies that fail a page."""
    for item in options.get("formats", []):
        # Without a schema and a prompt, the server calls no language model.
        if type_of(item) != "json" or (not _has_schema(item) and isinstance(item, dict) and "prompt" in item):
            yield type_of(item)
    yield from (name for name in ("onlyCleanContent", "actions") if options.get(name))
    yield options.get("proxy", "basic")


def _unsupported(options: Json) -> Iterator[str]:
    """Yield the names of the requested options that an engine may not support."""
    if options.get("mobile"):
        yield "mobile"
    location = options.get("location", {})
    # A country in lower case has no effect, as recorded.
    if location.get("languages") or location.get("country", "").isupper():
        yield "location"
