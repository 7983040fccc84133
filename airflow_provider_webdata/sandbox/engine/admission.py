"""Scrape options that are refused before scraping: those the team may not use, and those the sandbox cannot emulate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.sandbox.reference.errors import UnsupportedHereError
from airflow_provider_webdata.sandbox.reference.scrape_options import format_names, format_options

from . import html as markup
from .canned import needed
from .formats import FORMATS

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.reference.wire import Json
    from airflow_provider_webdata.sandbox.state.settings import Settings

    from .canned import CannedAnswers


def admit(options: Json, settings: Settings, canned: CannedAnswers, url: str) -> None:
    """Refuse scrape options that cannot be met.

    :param url: the page, or the first one.
    :raises ServiceError: 403, or 400 ``UNSUPPORTED_IN_SANDBOX``.
    """
    if options.get("zeroDataRetention"):
        settings.require_entitlement("zeroDataRetention")
    if "threatProtection" in options:
        settings.require_entitlement("threatProtection")
    refuse_unsupported(options)
    canned.refuse_unknown(options, url)


def refuse_unsupported(options: Json) -> None:
    """Refuse what the sandbox cannot do for any page.

    :raises UnsupportedHereError: naming it.
    """
    for name in format_names(options):
        if name not in (*FORMATS, *needed(options)):
            raise UnsupportedHereError(f"make the format {name!r}; it makes {', '.join(FORMATS)}")
    if options.get("onlyCleanContent"):
        raise UnsupportedHereError("clean content with a language model (onlyCleanContent)")
    if options.get("redactPII") not in (None, False):
        raise UnsupportedHereError("find personal data (redactPII)")
    for name in ("includeTags", "excludeTags"):
        _refuse_selectors(name, options.get(name, []))
    attributes = (format_options(options, "attributes") or {}).get("selectors", [])
    _refuse_selectors("selectors", [wanted["selector"] for wanted in attributes])


def _refuse_selectors(name: str, selectors: list[str]) -> None:
    try:
        markup.selector(",".join(selectors) or "*")
    except ValueError as error:
        raise UnsupportedHereError(f"{name}: {error}") from None
