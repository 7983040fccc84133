# SPDX-License-Identifier: Apache-2.0
"""Output formats of a scraped page, as strings or as objects with options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from airflow_provider_webdata.api.models.base import RequestModel, problem
from airflow_provider_webdata.api.models.fields import (
    Integer,
    JsonSchema,
    Listed,
    String,
    Switch,
    Text,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

PlainFormatName = Literal[
    "markdown",
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
    "rawBase64",
]
"""Formats without options. `rawBase64` cannot be combined with others."""

MonitorFormatName = Literal[PlainFormatName, "screenshot", "changeTracking"]
"""Formats of a monitor that can be given as text."""

FormatName = Literal[MonitorFormatName, "json", "deterministicJson"]
"""Formats that can be given as text; the others have a required option."""


# Undocumented limits; the service decides.
_WIDEST, _HIGHEST = 7680, 4320


class Viewport(RequestModel):
    """Size of the browser window for a screenshot; both sides are required.

    :param width: pixels, at least 1.
    :param height: pixels, at least 1.
    """

    width: Annotated[Integer, Field(ge=1)]
    height: Annotated[Integer, Field(ge=1)]

    def _own_warnings(self) -> list[str]:
        if self.width > _WIDEST or self.height > _HIGHEST:
            return [f"viewport: larger than {_WIDEST} x {_HIGHEST}, which the service may reject"]
        return []


class PlainFormat(RequestModel):
    """A format without options, in object form."""

    type: PlainFormatName


class ScreenshotFormat(RequestModel):
    """A screenshot of the page; the returned URL expires after 24 hours.

    :param full_page: capture the whole page instead of the viewport. Service default: false.
    :param quality: 1 to 100; 100 is best.
    :param viewport: window size.
    """

    type: Literal["screenshot"] = "screenshot"
    full_page: Switch | None = None
    quality: Annotated[Integer, Field(ge=1, le=100)] | None = None
    viewport: Viewport | None = None


class JsonFormat(RequestModel):
    """Data extracted from the page by a language model.

    :param schema_: JSON Schema of the data to extract; on the wire `schema`.
    :param prompt: description of the data to extract.
    :param check_prompt_injection: check for prompt injections, for 4 more credits; a detected one is an error (403).
    """

    type: Literal["json"] = "json"
    schema_: JsonSchema | None = Field(None, alias="schema")
    prompt: String | None = None
    check_prompt_injection: Switch | None = None


class DeterministicJsonFormat(RequestModel):
    """JSON extraction by a generated and reused extractor.

    :param schema_: JSON Schema of the data to extract; on the wire `schema`.
    :param prompt: description of the data to extract.
    """

    type: Literal["deterministicJson"] = "deterministicJson"
    schema_: JsonSchema | None = Field(None, alias="schema")
    prompt: String | None = None


class ChangeTrackingFormat(RequestModel):
    """Comparison with the previous scrape of the same page.

    :param modes: `git-diff` for a detailed diff, `json` to compare extracted data.
    :param schema_: JSON Schema for json mode; on the wire `schema`.
    :param prompt: description of the data to extract in json mode; the service has a default.
    :param tag: name of a separate history: a scrape is compared only with earlier ones of the same tag. May be null.
    """

    nullable = frozenset({"tag"})

    type: Literal["changeTracking"] = "changeTracking"
    modes: Listed[Literal["git-diff", "json"]] | None = None
    schema_: JsonSchema | None = Field(None, alias="schema")
    prompt: String | None = None
    tag: String | None = None


class QuestionFormat(RequestModel):
    """A question about the page, answered in the response's `answer`.

    :param question: required, at most 10,000 characters.
    """

    type: Literal["question"] = "question"
    question: Annotated[Text, Field(max_length=10_000)]


class HighlightsFormat(RequestModel):
    """Passages of the page that answer a query, in the response's `highlights`.

    :param query: required, at most 10,000 characters.
    """

    type: Literal["highlights"] = "highlights"
    query: Annotated[Text, Field(max_length=10_000)]


class AttributeSelector(RequestModel):
    """An attribute to read from all elements that a CSS selector matches.

    :param selector: CSS selector.
    :param attribute: name of the attribute, such as `href`.
    """

    selector: Text
    attribute: Text


class AttributesFormat(RequestModel):
    """Attribute values of selected elements.

    :param selectors: elements and attributes to read.
    """

    type: Literal["attributes"] = "attributes"
    selectors: Listed[AttributeSelector]


class QueryFormat(RequestModel):
    """The predecessor of `question` and `highlights`; use these in new DAGs.

    :param prompt: at most 10,000 characters.
    :param mode: `freeform` or `directQuote`.
    """

    type: Literal["query"] = "query"
    prompt: Annotated[Text, Field(max_length=10_000)]
    mode: Literal["freeform", "directQuote"] | None = None


Format = Annotated[
    FormatName
    | PlainFormat
    | ScreenshotFormat
    | JsonFormat
    | DeterministicJsonFormat
    | ChangeTrackingFormat
    | QuestionFormat
    | HighlightsFormat
    | AttributesFormat
    | QueryFormat,
    one_of("a format"),
]
"""A format as text or as an object; a list may mix both."""


def _tracked(given: Any) -> Any:
    """Refuse a format whose JSON the checks of a monitor do not return. See sandbox/docs/service.md#target-json."""
    wanted = given if isinstance(given, str) else _type_of(given)
    if wanted in ("json", "deterministicJson"):
        raise problem(
            "json_of_monitor",
            f"a check of a monitor returns no {wanted}, but bills it; use "
            "{'type': 'changeTracking', 'modes': ['json'], 'schema': ...}, whose data is in `snapshot` and `diff` of "
            "the check's pages",
        )
    return given


def _type_of(given: Any) -> Any:
    return given.get("type") if isinstance(given, Mapping) else getattr(given, "type", None)


MonitorFormat = Annotated[
    MonitorFormatName
    | PlainFormat
    | ScreenshotFormat
    | ChangeTrackingFormat
    | QuestionFormat
    | HighlightsFormat
    | AttributesFormat
    | QueryFormat,
    one_of("a format"),
    BeforeValidator(_tracked),
]
"""A format of a monitor's pages."""

RETURNED_BY_CHECKS = frozenset({"markdown", "changeTracking"})
"""Formats whose content a monitor's checks compare and return."""


def format_types(formats: Sequence[Format | MonitorFormat] | None) -> list[str]:
    """Return the types of formats, in order."""
    return [item if isinstance(item, str) else item.type for item in formats or ()]
