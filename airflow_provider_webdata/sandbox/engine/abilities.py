"""Scrape options that a server without language model, browser, and proxies cannot fulfill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.sandbox.reference.scrape_options import type_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.sandbox.reference.profiles import OptionLack, Profile
    from airflow_provider_webdata.sandbox.reference.wire import Json


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
    """Return a warning that names the formats that the server omits, or None."""
    names = [type_of(item) for item in options.get("formats", []) if _is_omitted(item, profile)]
    return f"The server does not support: {', '.join(names)}." if names else None


def _is_omitted(item: Any, profile: Profile) -> bool:
    return type_of(item) in profile.ignored or (bool(profile.options) and _is_empty_json(item))


def _is_empty_json(item: Any) -> bool:
    """Return whether a format is `json` without a request: the server then calls no language model."""
    return type_of(item) == "json" and not (isinstance(item, dict) and item.keys() & {"schema", "prompt"})


def _named(options: Json) -> Iterator[str]:
    """Yield the names of the requested options, formats, and proxies."""
    yield from (type_of(item) for item in options.get("formats", []) if not _is_empty_json(item))
    yield from (name for name in ("onlyCleanContent", "actions", "mobile") if options.get(name))
    yield options.get("proxy", "basic")
    location = options.get("location", {})
    # A country in lower case has no effect, as recorded.
    if location.get("languages") or location.get("country", "").isupper():
        yield "location"
