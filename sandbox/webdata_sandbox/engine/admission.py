# SPDX-License-Identifier: Apache-2.0
"""Checks before scraping: refuse options that the team may not use or the sandbox does not support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webdata_sandbox.reference.errors import UnsupportedHereError
from webdata_sandbox.reference.scrape_options import format_names, format_options

from . import html as markup
from .abilities import within
from .canned import needed
from .formats import FORMATS

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.settings import Settings

    from .canned import CannedAnswers


def admit(options: Json, settings: Settings, canned: CannedAnswers, url: str) -> None:
    """Refuse scrape options that the team may not use or the sandbox does not support.

    :param url: the URL of the page, or of the first one.
    :raises ServiceError: 403, or 400 ``UNSUPPORTED_IN_SANDBOX``.
    """
    if options.get("zeroDataRetention"):
        settings.require_entitlement("zeroDataRetention")
    if "threatProtection" in options:
        settings.require_entitlement("threatProtection")
    options = within(options, settings.profile)
    refuse_unsupported(options)
    canned.refuse_unknown(options, url)


def refuse_unsupported(options: Json) -> None:
    """Refuse options that the sandbox supports for no page.

    :raises UnsupportedHereError: an option is unsupported; the error names it.
    """
    for name in format_names(options):
        if name not in (*FORMATS, *needed(options)):
            raise UnsupportedHereError(
                f"generate the format {name!r}. Supported formats: {', '.join(FORMATS)}"
            )
    if options.get("onlyCleanContent"):
        raise UnsupportedHereError("clean content with a language model (onlyCleanContent)")
    if options.get("redactPII") not in (None, False):
        raise UnsupportedHereError("detect personal data (redactPII)")
    for name in ("includeTags", "excludeTags"):
        _refuse_selectors(name, options.get(name, []))
    attributes = (format_options(options, "attributes") or {}).get("selectors", [])
    _refuse_selectors("selectors", [wanted["selector"] for wanted in attributes])


def _refuse_selectors(name: str, selectors: list[str]) -> None:
    try:
        markup.selector(",".join(selectors) or "*")
    except ValueError as error:
        raise UnsupportedHereError(f"apply {name}: {error}") from None
