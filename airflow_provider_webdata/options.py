# SPDX-License-Identifier: Apache-2.0
"""The two options of operators and sensors that are classes: `Changes` and `Quality`.

Where one value is enough, it is the short form:

    changes="s3://aws@lake/seen/prices"                           Changes("s3://aws@lake/seen/prices")
    quality=100                                                   Quality(min_items=100)

Paths are templated. Each task renders a copy, so one object can serve several tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from airflow_provider_webdata.common.arguments import whole_number
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.states.structs import nondefault_fields

if TYPE_CHECKING:
    from typing_extensions import Self

RATE_LIMIT_TIMEOUT_SECONDS = 6 * 3600.0
"""Maximum time for which an attempt is rescheduled, unless the task sets `rate_limit_timeout`."""

REPLICA_WAIT_SECONDS = 15.0
"""Longest wait, unless the task says otherwise, for what the service does not show yet."""


class Option(msgspec.Struct):
    """Base of the options. A DAG file creates a struct faster than a dataclass, whose methods Python must compile."""

    template_fields: ClassVar[Sequence[str]] = ()

    @classmethod
    def of(cls, given: Any) -> Self | None:
        """Return an argument as its own option type; None if it is not set.

        :param given: an option, or the value of its first field.
        """
        if given is None:
            return None
        if isinstance(given, cls):
            return given.copy()
        return cls(**{cls.__struct_fields__[0]: given})

    def copy(self) -> Self:
        """Return a copy, checked like a new one."""
        return msgspec.structs.replace(self)

    def serialize(self) -> dict[str, Any]:
        """Return the fields that are not at their defaults; Airflow shows them among the rendered fields."""
        fields = nondefault_fields(self)
        return {name: str(value) if isinstance(value, timedelta) else value for name, value in fields.items()}


class Changes(Option):
    """Detection of pages that are new, changed, or removed since earlier runs of the task.

    Each run compares with the state in `<folder>/<environment>/<dag_id>/<task_id>`, and with `/<instance>` for a mapped
    task, whose instances are known by `map_index_template`, else by their one `url`. The environment is the name of
    this Airflow (`[webdata] environment`). Each item gets first fields: `change` (`new`, `changed`, `same`, `removed`,
    or `failed`), `page` (the URL that the page has in all runs, without tracking parameters and fragment, except a
    route such as `#/prices`), `webdata_version`, and `webdata_source`. XCom `changes` has their counts.

    A page is emitted until each task downstream in the DAG run has succeeded or was skipped: a run whose tasks
    downstream failed is emitted again by the next one. A page is also emitted again after an edit of what the task
    requests, or of a load of its file.

    A page is removed once complete runs have missed it for `removed_after`, never after one miss. The last items
    represent removed pages: `page`, `url`, `lastSeen`, and `webdata_removed_at`. Scrapes, search results, and
    records of data providers are never removed. Batch scrape removes only URLs that it requests. Deleting the state
    emits all pages again.

    :param folder: path or URL of a folder, in any storage that Airflow knows (templated). Tasks can share it.
    :param emit: `changed`: new, changed, and removed pages; `all`: also unchanged and failed ones.
    :param compare: the part of an item whose difference counts as a change: `content` (all requested formats), `url`
        (never changed), or a list of paths in an item, such as `["json.price"]`. White space and tracking parameters of
        links never count. Default: pages and records by `content`, links and search results by `url`.
    :param ignore_query: treat URLs that differ only in their query as one page. Tracking parameters such as
        `utm_source` never count.
    :param removed_after: time for which complete runs miss a page before it counts as removed; at least 0. Default: 7
        days.
    :param on_unchanged: outcome if nothing is emitted: `empty` succeeds, `skip` skips the task and the tasks
        downstream. `skip` requires `emit="changed"`.
    :raises ArgumentError: a choice is unknown, or `removed_after` is no `timedelta` of at least 0.
    """

    folder: str
    emit: Literal["changed", "all"] = "changed"
    compare: str | Sequence[str] | None = None
    ignore_query: bool = False
    removed_after: timedelta = timedelta(days=7)
    on_unchanged: Literal["empty", "skip"] = "empty"

    template_fields = ("folder",)

    def __post_init__(self) -> None:
        one_of("Changes(emit=)", self.emit, ("changed", "all"))
        one_of("Changes(on_unchanged=)", self.on_unchanged, ("empty", "skip"))
        if not isinstance(self.removed_after, timedelta) or self.removed_after < timedelta():
            raise ArgumentError(
                "Changes(removed_after=) must be a timedelta of at least 0, such as timedelta(days=7) "
                f"(given: {self.removed_after!r})"
            )
        if self.on_unchanged == "skip" and self.emit == "all":
            raise ArgumentError(
                "Changes(on_unchanged='skip') has no effect with emit='all', because each run emits all pages; remove "
                "one of them"
            )
        if self.compare is not None:
            from airflow_provider_webdata.results.changes.content import compared_by

            compared_by(self.compare, "generic")


_PAGED = {"ScrapeRequest", "BatchScrapeRequest", "CrawlRequest", "ParseOptions", "SearchRequest"}
_SINGLE = {"ScrapeRequest", "ParseOptions"}


class Quality(Option):
    """Conditions that the results must meet before they replace those of earlier runs.

    All results of the run count, also those that `Changes` does not emit, and pages that an incremental crawl knows. A
    field is the path of a value in a result, such as `json.price`; `url` is the URL that a result has in all runs.
    Results that `credit_limit` cut short fail too (`unfinished`). If a condition fails, the task fails without a retry
    and without another request: the file of `save_to` is unchanged, the results are beside it in
    `_<name>.rejected`, and `Changes` emits these pages again. To accept them anyway, move that file to the
    path of `save_to`, mark the task as success, and clear the tasks downstream. Without `save_to`, they are in the XCom
    of the failed task.

    XCom `quality` has what was measured: `items`, `pages`, `blocked`, `coverage` (by field, 0 to 1),
    `credits_per_item`, `min_items`, the limit of `items` in this run, and `failed`, the conditions that failed. If the
    task fails, its name is `quality_rejected`.

    :param min_items: minimum number of results, at least 0.
    :param drop_vs_last: maximum drop of the number of results from the previous run to this one, as a share from 0 to
        1. The previous run is the last one that published results with `changes`, otherwise the latest completed one
        whose data interval or partition ends before this run's. Without one, the condition passes.
    :param coverage: minimum share of the results, 0 to 1, that have a value, by field. Null, blank text, and an empty
        list or object are not values.
    :param blocked: maximum share of the pages, 0 to 1, that may be something else: an error, a challenge, a consent or
        login page, a soft 404, an empty shell, or a part of a PDF; see `docs/quality.md`.
    :param on_fail: `fail`, or `warn`: log a warning and publish the results.
    :raises ArgumentError: a value is out of range, or a field is invalid.
    """

    min_items: int = 1
    drop_vs_last: float | None = None
    coverage: Mapping[str, float] | None = None
    blocked: float | None = None
    on_fail: Literal["fail", "warn"] = "fail"

    def __post_init__(self) -> None:
        whole_number("Quality(min_items=)", self.min_items, least=0)
        if not isinstance(self.coverage, (Mapping, type(None))):
            raise ArgumentError(
                "Quality(coverage=) must be a mapping: shares by field, such as {'json.price': 0.95} "
                f"(given: {self.coverage!r})"
            )
        shares = {f"coverage={{{field!r}: ...}}": share for field, share in (self.coverage or {}).items()}
        for name in ("drop_vs_last", "blocked"):
            if (optional := getattr(self, name)) is not None:
                shares[f"{name}="] = optional
        for name, share in shares.items():
            if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
                raise ArgumentError(f"Quality({name}) must be a number from 0 to 1 (given: {share!r})")
        for field in self.coverage or ():
            if not (isinstance(field, str) and all(field.split("."))):
                raise ArgumentError(
                    f"Quality: a field must be the path of a value in a result, such as 'json.price' (given: {field!r})"
                )
        one_of("Quality(on_fail=)", self.on_fail, ("fail", "warn"))

    def check_task(self, task: Any) -> None:
        """Fail if a condition can never pass, or has no effect, for a task.

        This is asked while the DAG file is parsed, and again before the task bills anything: only then are the
        arguments of a mapped task known.

        :param task: operator or sensor with this option.
        :raises ArgumentError: names the condition, the reason, and what to change.
        """
        model, kind = getattr(task, "_request_model", None), getattr(task, "kind", None)
        problem = None
        if self.min_items > 1 and model in _SINGLE:
            problem = f"min_items={self.min_items} can never pass: the task has one result; omit it"
        elif (
            # A template renders to text.
            model == "CrawlRequest" and str(task.limit).isdecimal() and self.min_items > int(task.limit)
        ):
            problem = f"min_items={self.min_items} can never pass with limit={task.limit}; raise limit"
        elif (
            self.drop_vs_last is not None and not task.do_xcom_push and getattr(task, "changes", None) is None
        ):
            problem = (
                "drop_vs_last needs XCom, or changes=, to find the previous run; omit do_xcom_push=False"
            )
        elif self.blocked is not None and (
            (model not in _PAGED if kind is None else kind == "agent")
            or (model == "SearchRequest" and not hasattr(task, "queries") and task.scrape_options is None)
        ):
            problem = "blocked applies to pages, and the task returns none; omit it"
            if model == "SearchRequest":
                problem += ", or request formats in scrape_options"
        if problem:
            raise ArgumentError(f"{type(task).__name__} {task.task_id!r}: Quality: {problem}")


def one_of(name: str, given: Any, choices: Collection[Any]) -> None:
    """Fail if an argument is not one of its choices.

    :raises ArgumentError: names the choices.
    """
    if given not in choices:
        known = ", ".join(choice for choice in choices if choice is not None)
        raise ArgumentError(f"{name} must be one of {known} (given: {given!r})")
