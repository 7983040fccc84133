"""Options of operators and sensors for results and waits.

Each is one argument of an operator. Where a string is enough, it is the short form:

    output="s3://aws@lake/prices.parquet"                         Output("s3://aws@lake/prices.parquet")
    media="s3://aws@lake/media"                                   Media("s3://aws@lake/media")
    changes="s3://aws@lake/seen/prices"                           Changes("s3://aws@lake/seen/prices")
    result_schema="shop.models.Product"                           Schema("shop.models.Product")
    quality=100                                                   Quality(min_items=100)

Paths are templated. Each operator works with a copy, so one object can serve several tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from airflow_provider_webdata.common.arguments import count_or_share, whole_number
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.states.structs import nondefault_fields

if TYPE_CHECKING:
    from typing_extensions import Self

    from airflow_provider_webdata.waiting.policy import PollingPolicy

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
        return {name: _shown(value) for name, value in nondefault_fields(self).items()}

    def check_task(self, task: Any) -> None:
        """Fail if the option cannot work for a task.

        This is called while the DAG file is parsed, and again before the task bills anything: only then are the
        arguments of a mapped task known.

        :param task: operator or sensor with this option.
        :raises ArgumentError: names the field, the reason, and what to change.
        """
        if not getattr(task, "wait_for_completion", True):
            name = next(name for name, value in vars(task).items() if value is self).removesuffix("_to")
            # The sensor does not compare with earlier runs.
            sensor = "" if name == "changes" else f", or omit {name}= and give it to WebDataJobSensor"
            raise ArgumentError(
                f"{type(task).__name__} {task.task_id!r}: {name}= has no effect with wait_for_completion=False, "
                f"because the task publishes no results; remove wait_for_completion=False{sensor}"
            )


class Output(Option):
    """Destination and form of the results.

    :param path: path or URL of a file, in any storage that Airflow knows (templated). Its suffix is the format,
        such as `.jsonl.gz` or `.parquet`; `docs/results.md` lists them. The file is written completely or not at all,
        and a retry replaces it. XCom then has `path`, `count`, and `bytes` instead of the results. None: the results go
        to XCom.
    :param documents: flat rows for retrieval instead of the items: `id` (the same for a page in all runs), `url`,
        `title`, `text`, `metadata`, and `digest`. For pages, search results, and links.
    :raises OutputError: the suffix is not that of a format.
    """

    path: str | None = None
    documents: bool = False

    template_fields = ("path",)

    def __post_init__(self) -> None:
        if isinstance(self.path, str) and is_literal(self.path):
            from airflow_provider_webdata.results.files.formats import format_of

            format_of(self.path)


class Media(Option):
    """Downloads of screenshots, audio, video, and PDFs, whose links expire.

    The links in the results then point to the downloaded files.

    :param folder: path or URL of a folder, in any storage that Airflow knows (templated).
    :param max_mb: maximum size of a file in MiB, more than 0; larger ones are not kept.
    :raises ArgumentError: `max_mb` is out of range.
    """

    folder: str
    max_mb: float = 500

    template_fields = ("folder",)

    def __post_init__(self) -> None:
        if not isinstance(self.max_mb, (int, float)) or not 0 < self.max_mb < float("inf"):
            raise ArgumentError(f"Media(max_mb=) must be a number above 0 (given: {self.max_mb!r})")


class Changes(Option):
    """Detection of results that are new or changed since earlier runs of the task.

    Each run writes the pages that it saw to `manifest`, and compares them with the newest file that is older than the
    end of its partition or data interval, or than the run's due time if it has neither. A cleared or backfilled run
    thus compares with the run before it. Each item gets a first field `change`: `new`, `changed`, `same`, or `failed`
    for a page with only an error. `page` is the URL that the page has in all runs (without tracking parameters and
    fragment, except a route such as `#/prices`), if the item's URL differs. XCom `changes` counts the items, and the
    pages that were `removed`.

    A page counts as removed if `removed_after` runs that covered the whole site did not see it, or with status 404 or
    410. Runs in which it failed otherwise do not count. With `emit="changed"` the last items represent these pages:
    `change` is `removed`, `page` and `url` are the URL that the page has in all runs, `lastSeen` is the last run that
    saw it. Scrape and batch scrape remove only URLs that the run requested. Search results and records of data
    providers are never removed.

    :param manifest: path or URL of a folder that belongs to this task, in any storage that Airflow knows (templated). A
        task fails before it bills if the folder belongs to another one.
    :param emit: `all` results, or only `changed` ones: new, changed, and removed items.
    :param compare: the part of an item whose difference counts as a change: `content` (its markdown; without it, all
        requested formats), `url` (never changed), `changeTracking` (the service's verdict; request that format), or a
        list of paths in an item, such as `["json.price"]`. White space and tracking parameters of links never count.
        Default: pages by `content`, links and search results by `url`.
    :param ignore_query: treat URLs that differ only in their query as one page. Tracking parameters such as
        `utm_source` never count.
    :param removed_after: number of runs without a page after which it counts as removed, at least 1.
    :param max_removed: most pages that a run may remove: a count, or a share of the known ones (0.0 to 1.0). If more
        seem to be gone, none is removed, the task warns, and XCom `changes` has their number as `heldBack`; each later
        run decides anew. Default: half of the known pages, if these are more than 20.
    :param keep: number of manifest files to keep, at least 1, beside those that the newest run compared with. A run
        older than these cannot be repeated.
    :param on_unchanged: outcome if no item is new, changed, or removed: `empty` succeeds, `skip` skips the task and
        the tasks downstream.
    :param shared: several tasks write to the folder; each must set this. Then no page counts as removed, since another
        task may still see it.
    :param commit: when later runs consider a run's pages known. `publication`: once published. `downstream`: once
        every task downstream in the DAG run has succeeded or was skipped; until then, later runs emit them again.
        Requires a downstream task.
    :raises ArgumentError: a choice is unknown, or a number is out of range.
    """

    manifest: str
    emit: Literal["all", "changed"] = "all"
    compare: str | Sequence[str] | None = None
    ignore_query: bool = False
    removed_after: int = 2
    max_removed: float | None = None
    keep: int = 30
    on_unchanged: Literal["empty", "skip"] = "empty"
    shared: bool = False
    commit: Literal["publication", "downstream"] = "publication"

    template_fields = ("manifest",)

    def __post_init__(self) -> None:
        one_of("Changes(emit=)", self.emit, ("all", "changed"))
        one_of("Changes(on_unchanged=)", self.on_unchanged, ("empty", "skip"))
        one_of("Changes(commit=)", self.commit, ("publication", "downstream"))
        whole_number("Changes(removed_after=)", self.removed_after)
        whole_number("Changes(keep=)", self.keep)
        count_or_share("Changes(max_removed=)", self.max_removed)
        if self.shared and (ineffective := {"removed_after", "max_removed"} & nondefault_fields(self).keys()):
            raise ArgumentError(
                f"Changes({min(ineffective)}=) has no effect with shared=True: no page counts as removed; omit it"
            )
        if self.compare is not None:
            from airflow_provider_webdata.results.manifest.content import compared

            compared(self.compare, "generic")


class Schema(Option):
    """The schema that structured results must match: the `json` of pages, or the data of an agent.

    An invalid result gets a first field `validationErrors`, a list of messages; the log warns, and XCom `validation`
    has `checked`, `invalid` (counts), and `items` (the first 100, each with `index`, `url`, and `errors`). The result
    is published like the others, and no retry requests it again. A page without `json` is invalid; a page whose site
    failed is not validated: its `validationErrors` say so, and `failed` counts it. Formats with columns then have
    columns for the schema's properties; see `docs/results.md`.

    :param schema: JSON Schema as a mapping, pydantic model, or the model's import path, such as `shop.models.Product`.
        None: the schema that the request contains, if any.
    :param rows: of an agent: path of the list in `data` whose elements are the results, such as `companies` or
        `answer.companies`. Each is then a separate item, and `schema` describes one item. The rest of `data` goes to
        XCom. Without such a list, `data` is the only item. Default: `data`, or its elements if it is a list.
    :param on_invalid: `keep`, or `fail`: fail the task, without a retry, after all results are published.
    :raises ArgumentError: a value is invalid.
    """

    schema: Mapping[str, Any] | type | str | None = None
    rows: str | None = None
    on_invalid: Literal["keep", "fail"] = "keep"

    def __post_init__(self) -> None:
        one_of("Schema(on_invalid=)", self.on_invalid, ("keep", "fail"))
        if self.rows is not None and not (isinstance(self.rows, str) and all(self.rows.split("."))):
            raise ArgumentError(f"Schema(rows=) must name a list in data (given: {self.rows!r})")
        if not (
            self.schema is None
            or isinstance(self.schema, (Mapping, str))
            or hasattr(self.schema, "model_validate_json")
        ):
            raise ArgumentError(
                "result_schema must be a JSON Schema, a pydantic model, or the import path of one "
                f"(given: {self.schema!r})"
            )

    @property
    def rows_path(self) -> list[str]:
        """Keys of the path to the list of results in the data."""
        return [] if self.rows is None else self.rows.split(".")


_PAGED = {"ScrapeRequest", "BatchScrapeRequest", "CrawlRequest", "ParseOptions", "SearchRequest"}
_SINGLE = {"ScrapeRequest", "ParseOptions"}


class Quality(Option):
    """Conditions that the results must meet before they replace those of earlier runs.

    All results of the run count, also those that `Changes` does not emit, and pages that an incremental crawl knows. A
    field is the path of a value in a result, such as `json.price`; `url` is the URL that a result has in all runs.
    Results that `credit_limit` cut short fail too (`unfinished`). If a condition fails, the task fails without a retry
    and without another request: `output` is unchanged, the results are beside it under `<output>.rejected`, the
    manifest of `Changes` does not advance, and `airflow webdata publish <output>` accepts them anyway. Without
    `output`, they are in the XCom of the failed task.

    XCom `quality` has what was measured: `items`, `pages`, `blocked`, `coverage` (by field, 0 to 1), `creditsPerItem`,
    `minItems`, the limit of `items` in this run, and `failed`, the conditions that failed. If the task fails, its name
    is `qualityRejected`.

    :param min_items: minimum number of results, at least 0.
    :param drop_vs_last: maximum drop of the number of results from the previous run to this one, as a share from 0 to
        1. The previous run is the latest completed one whose data interval or partition ends before this run's. Without
        one, the condition passes.
    :param coverage: minimum share of the results, 0 to 1, that have a value, by field. Null, blank text, and an empty
        list or object are not values.
    :param blocked: maximum share of the pages, 0 to 1, that may be something else: an error, a challenge, a consent or
        login page, a soft 404, or an empty shell; see `docs/quality.md`.
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
        """Fail if a condition can never pass, or has no effect, for a task; see `Option.check_task`.

        :param task: operator or sensor with this option.
        :raises ArgumentError: names the condition, the reason, and what to change.
        """
        super().check_task(task)
        model, kind = getattr(task, "request_model", None), getattr(task, "kind", None)
        problem = None
        if self.min_items > 1 and model in _SINGLE:
            problem = f"min_items={self.min_items} can never pass: the task has one result; omit it"
        elif (
            # A template renders to text.
            model == "CrawlRequest" and str(task.limit).isdecimal() and self.min_items > int(task.limit)
        ):
            problem = f"min_items={self.min_items} can never pass with limit={task.limit}; raise limit"
        elif (
            self.drop_vs_last is not None
            and not task.do_xcom_push
            and getattr(getattr(task, "changes", None), "shared", True)
        ):
            problem = (
                "drop_vs_last needs XCom, or changes= without shared=True, to find the previous run; omit "
                "do_xcom_push=False"
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


class Wait(Option):
    """How to wait for a job or a check.

    The operator or sensor defines the defaults of fields that are None. Sensors wait for Airflow's own `timeout`.

    :param by: `auto`, `webhook`, or `polling`. `webhook` waits for a delivery to the inbox, and polls every
        `safety_poll`. `polling` polls every `poll_interval`. `auto` is `webhook` if the connection can receive
        deliveries and the job or monitor reports to it, otherwise `polling`. A task that is not deferrable polls.
    :param poll_interval: seconds between polls, or a timedelta, at least 1.
    :param safety_poll: seconds between polls while a delivery is expected, or a timedelta, at least 1. A delivery may
        be lost, and the service sends none for a crawl or batch scrape that failed as a whole. A self-hosted server
        sends each delivery once: if the connection declares one, the default is at most 60 s.
    :param timeout: seconds to wait, or a timedelta, more than 0.
    :param cancel_on_timeout: cancel the job at the `timeout`. If the job ended just then, its result is used.
    :param cancel_on_kill: cancel the job when a user ends the task; in the triggerer this needs Airflow 3.3.
    :raises ArgumentError: a choice is unknown, or a time span is out of range.
    """

    by: Literal["auto", "webhook", "polling"] = "auto"
    poll_interval: float | timedelta | None = None
    safety_poll: float | timedelta | None = None
    timeout: float | timedelta | None = None
    cancel_on_timeout: bool = True
    cancel_on_kill: bool = True

    def __post_init__(self) -> None:
        one_of("Wait(by=)", self.by, ("auto", "webhook", "polling"))
        for name in ("poll_interval", "safety_poll", "timeout"):
            given = getattr(self, name)
            if given is None:
                continue
            span = given.total_seconds() if isinstance(given, timedelta) else given
            least = 0 if name == "timeout" else 1
            number = isinstance(span, (int, float)) and not isinstance(span, bool)
            if not number or not least <= span < float("inf") or span == 0:
                rule = "more than 0" if name == "timeout" else "at least 1"
                raise ArgumentError(
                    f"Wait({name}=) must be seconds or a timedelta, {rule} (given: {given!r})"
                )
            setattr(self, name, float(span))

    def check_task(self, task: Any) -> None:
        """Do nothing: a task that does not wait cancels its job at a kill."""

    def policy(self, poll_interval: float, safety_poll: float) -> PollingPolicy:
        """Return the serializable policy.

        :param poll_interval: default in seconds.
        :param safety_poll: default in seconds.
        """
        from airflow_provider_webdata.waiting.policy import PollingPolicy

        spans = (self.poll_interval or poll_interval, self.safety_poll or safety_poll)
        return PollingPolicy(self.by, *spans, self.safety_poll is not None)  # type: ignore[arg-type]

    def seconds(self, default: float) -> float:
        """Return the timeout in seconds.

        :param default: used if `timeout` is None.
        """
        return default if self.timeout is None else float(self.timeout)  # type: ignore[arg-type]

    @classmethod
    def of_check(cls, given: Wait | None) -> Wait:
        """Return the options of a wait for a check.

        :raises ArgumentError: a field has no effect.
        """
        return cls._without(given, "the service cannot cancel a check", "cancel_on_timeout", "cancel_on_kill")

    @classmethod
    def of_sensor(cls, given: Wait | None) -> Wait:
        """Return the options of a sensor's wait.

        :raises ArgumentError: a field has no effect.
        """
        why = "a sensor uses Airflow's own timeout=, and never cancels"
        return cls._without(given, why, "timeout", "cancel_on_timeout", "cancel_on_kill")

    @classmethod
    def _without(cls, given: Wait | None, why: str, *names: str) -> Wait:
        wait = cls.of(given) or cls()
        for name in nondefault_fields(wait):
            if name in names:
                raise ArgumentError(f"Wait({name}=) has no effect here: {why}")
        return wait


def writes_file(output: Output | str | None) -> bool:
    """Return whether an argument `output` names a file."""
    return output is not None and (not isinstance(output, Output) or output.path is not None)


def one_of(name: str, given: Any, choices: Collection[Any]) -> None:
    """Fail if an argument is not one of its choices.

    :raises ArgumentError: names the choices.
    """
    if given not in choices:
        known = ", ".join(choice for choice in choices if choice is not None)
        raise ArgumentError(f"{name} must be one of {known} (given: {given!r})")


def _shown(value: Any) -> Any:
    return f"{value.__module__}.{value.__qualname__}" if isinstance(value, type) else value
