# SPDX-License-Identifier: Apache-2.0
"""Base of all runs: the task, the translation of errors for Airflow, and the publication of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from airflow.sdk import conf
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, AirflowSkipException

from airflow_provider_webdata.api.endpoints import label_of
from airflow_provider_webdata.api.errors import (
    InvalidRequestError,
    ProcessingContinuesError,
    TransportError,
    UnknownHostError,
    UnsupportedError,
    WebDataError,
)
from airflow_provider_webdata.api.retry import MAX_PROCESSING_SECONDS, is_unreachable, reschedule_delay
from airflow_provider_webdata.common.arguments import seconds
from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.coded_errors import ArgumentError, CodedError, brief
from airflow_provider_webdata.common.logs import task_logger
from airflow_provider_webdata.common.remedies import advice_for
from airflow_provider_webdata.common.spelling import snake_case
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.common.worker_exit import seconds_until_resumable
from airflow_provider_webdata.common.xcom_keys import INCOMPLETE, PREVIEW, SCALARS
from airflow_provider_webdata.hooks.task_memory import DamagedRecordError, memory_of
from airflow_provider_webdata.options import RATE_LIMIT_TIMEOUT_SECONDS
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.items import urls_of_file
from airflow_provider_webdata.runs.failures import InvalidResultsError, RejectedResultsError
from airflow_provider_webdata.runs.money.task_ledger import Cost, TaskLedger
from airflow_provider_webdata.runs.publishing.downstream_loads import check_downstream_loads
from airflow_provider_webdata.runs.publishing.publication import Publication
from airflow_provider_webdata.runs.request import checked_number
from airflow_provider_webdata.states.shortfalls import Shortfall, xcom_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow.sdk import Context

    from airflow_provider_webdata.base.service_task import ServiceTask
    from airflow_provider_webdata.hooks.task_memory import TaskMemory
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.runs.publishing.publication import Value
    from airflow_provider_webdata.runs.publishing.step import Results
    from airflow_provider_webdata.states.shortfalls import ShortfallKind

ErrorT = TypeVar("ErrorT", bound=CodedError)

UNREACHABLE_TIMEOUT_SECONDS = 3600.0
"""Maximum time for which an attempt is rescheduled while the service cannot be reached, unless the task sets
`rate_limit_timeout`."""

MAX_RESCHEDULES = 5
"""Maximum reschedules of a task while the service processes a document, or without a task state store."""


class Run:
    """One attempt of a task."""

    operation: str = "credit_limit"
    """The billed operation, by its name in `Price`."""

    is_resumed = False
    """Whether the task resumes after it was deferred."""

    explained_error: CodedError | None = None
    """The error that `explained` returned last."""

    def __init__(self, task: ServiceTask, context: Context) -> None:
        self.task = task
        self.context = context
        self.attempt = Attempt(context)
        self.log = task_logger(task)
        self.hook: WebDataHook = task.hook
        self._is_changed = False
        self._pushed: dict[str, Any] = {}
        self.shortfalls: dict[str, Shortfall] = {}
        """What the results lack, by kind; see `lacks`."""
        self.leftovers: list[Callable[[], None]] = []
        """Deletions of what a retry reuses; see `forget`."""

    @cached_property
    def memory(self) -> TaskMemory:
        """What the task remembers of earlier attempts.

        :raises DamagedRecordError: the stored record is damaged.
        """
        try:
            return memory_of(self.context)
        except DamagedRecordError as damage:
            raise self.explained(damage) from None

    def read_urls(self, otherwise: str = "") -> None:
        """Replace `url` and `urls` by the URLs in another task's results file.

        :param otherwise: text to append to the errors.
        """
        for name in ("url", "urls"):
            value = getattr(self.task, name, None)
            given: list[Any] = value if isinstance(value, list) and value else [value]
            if not all(isinstance(one, Mapping) and isinstance(one.get("path"), str) for one in given):
                continue
            try:
                found = [url for one in given for url in urls_of_file(one["path"])]
            except (OutputError, TableError) as error:
                self.refuse(f"{name}: {error.text()}{otherwise}")
            if name == "url" and not found:
                self.refuse(f"url: the result has no URLs; skip this task if there are none{otherwise}")
            if name == "url" and len(found) > 1:
                self.refuse(
                    f"url: must be one URL, but the result has {len(found)}; pass them to urls= of "
                    f"WebDataBatchScrapeOperator{otherwise}"
                )
            setattr(self.task, name, found[0] if name == "url" else found)

    def call(self) -> Any:
        """Call the service, and return the task's XCom."""
        raise NotImplementedError

    def execute(self) -> Any:
        """Execute the task; see `calling`.

        :raises AirflowSkipException: nothing changed.
        """
        with self.calling():
            self.prepare_publication()
            result = self.call()
        return self.finished(result)

    @contextmanager
    def calling(self, *, limited_since: datetime | None = None) -> Iterator[None]:
        """Call the service within this block, which translates errors for Airflow and closes the hook.

        :param limited_since: when the attempt was first asked to wait. Default: the record's time, or now.
        :raises AirflowFailException: no retry can help.
        :raises AirflowRescheduleException: the service asks to wait.
        :raises WebDataError: a retry may help, or the task's retry policy decides.
        """
        try:
            try:
                yield
            finally:
                # A wait replaces the hook if the connection changes.
                self.hook.close()
        except WebDataError as error:
            if isinstance(error, UnknownHostError) and (self.is_resumed or self.memory.record.postponed_at):
                # The attempt reached the host before, so its name exists, and the name server is down.
                error = TransportError(error.operation, error.reason, sent=False)
            if error.verdict == "later" or is_unreachable(error):
                self.postpone(error, limited_since)
            self.fail(error)
        except CodedError as error:
            raise self.explained(error) from None

    def explained(self, error: ErrorT) -> ErrorT:
        """Add the connection and the next step to an error's message; return the error.

        :param error: any error with a code. Raise it `from None`: its message includes the cause, and the log has the
            traceback at level debug.
        """
        if error.__cause__ is not None:
            self.log.debug("Cause of the error", exc_info=error)
        error.advice = advice_for(error.help_code, error.remedy, self.task.webdata_conn_id, self._bills)
        self.explained_error = error
        return error

    def _bills(self) -> bool:
        try:
            return self.hook.get_settings().client.server.bills
        except Exception:  # noqa: BLE001 - no problem of the connection may hide the task's error
            return True

    def fail(self, error: WebDataError) -> NoReturn:
        """Fail the attempt with an error of the service."""
        asks_policy = getattr(self.task, "retry_policy", None) is not None
        # A retry would send the same input, even if a policy that does not know our errors allows it.
        if isinstance(error, InvalidRequestError) or (error.verdict == "never" and not asks_policy):
            self.refuse(error)
        # Airflow shows the traceback of an error and of all its causes.
        raise self.explained(error).with_traceback(None) from None

    def refuse(self, problem: str | CodedError) -> NoReturn:
        """Fail the task without a retry.

        :param problem: an error that a retry cannot fix, or a message about an invalid argument and its fix.
        """
        error = ArgumentError(problem) if isinstance(problem, str) else problem
        raise AirflowFailException(str(self.explained(error))) from None

    def postpone(self, error: WebDataError, limited_since: datetime | None) -> None:
        """Reschedule the task; return if `rate_limit_timeout`, or a limit for documents, does not allow it.

        :param limited_since: when the attempt was first asked to wait. Default: the record's time, or now.
        """
        attempt, most = self.attempt, self.patience
        if attempt.ti is None or (most <= 0 and not isinstance(error, ProcessingContinuesError)):
            return
        if is_unreachable(error) and most == RATE_LIMIT_TIMEOUT_SECONDS:
            most = UNREACHABLE_TIMEOUT_SECONDS
        now = datetime.now(timezone.utc)
        since = limited_since or self.memory.record.postponed_at or now
        delay = reschedule_delay(error, (now - since).total_seconds())
        when = now + max(delay, timedelta(seconds=seconds_until_resumable()))
        begin, end = (moment.isoformat(timespec="seconds") for moment in (since, when))
        if isinstance(error, ProcessingContinuesError):
            waited = (when - since).total_seconds()
            is_over = attempt.reschedules >= MAX_RESCHEDULES or waited > MAX_PROCESSING_SECONDS
            problem = (
                f"The service has been processing the document since {begin}. "
                f"The task fails after {attempt.reschedules} reschedules"
            )
            pages = "unknown number of" if error.pages is None else error.pages
            limit = "; processing may exceed the service's time limit" if error.may_exceed else ""
            reason = f"The service is still processing the document ({pages} pages{limit})"
        else:
            is_over = (when - since).total_seconds() > most
            limit = f"rate_limit_timeout={most:g} s"
            if is_unreachable(error):
                limit = f"{most:g} s, the limit for a service that cannot be reached"
            problem = f"Waiting since {begin}; waiting until {end} would exceed {limit}"
            reason = error.brief()
        has_memory = self.memory.is_lasting or self.is_resumed
        if not has_memory and (
            self.memory.record.started is not None or attempt.reschedules >= MAX_RESCHEDULES
        ):
            # The task would start its job again, and does not know for how long it has waited.
            is_over = True
            problem = f"{reason}. Without a task state store, the attempt fails instead of waiting"
        last = self.execution_deadline
        if last is not None and when.timestamp() > last:
            is_over = True
            problem = f"Waiting until {end} would exceed execution_timeout={self.task.execution_timeout}"
        if is_over:
            self.log.error("%s", problem)
            if isinstance(error, ProcessingContinuesError) and self.ledger.credits.cost(None) is None:
                error.billed = "The document may be billed"
                self.ledger.settle(Cost(None), self.operation)
            return
        if not limited_since:
            self.memory.note(postponed_at=since)
        self.log.info("%s. Rescheduling the task to %s", reason, end)
        raise AirflowRescheduleException(when) from error  # type: ignore[no-untyped-call]

    @property
    def patience(self) -> float:
        """Seconds for which the attempt may be rescheduled while the service limits the rate."""
        return seconds("rate_limit_timeout", self.task.rate_limit_timeout, least=0)

    @property
    def execution_deadline(self) -> float | None:
        """End of the attempt by `execution_timeout`, in seconds since the epoch, counted with its waits; or None."""
        limit = self.task.execution_timeout
        # Airflow counts each worker anew: docs/contributing/upstream/timeout_starts_anew.md
        start = self.memory.record.postponed_at or getattr(self.attempt.ti, "start_date", None)
        return None if limit is None or start is None else (start + limit).timestamp()

    def push(self, /, **values: Any) -> None:
        """Push XComs beside the return value, each value once.

        :param values: the values by their keys, which are converted to snake_case.
        """
        if self.task.do_xcom_push and (ti := self.context.get("ti")) is not None:
            for key, value in values.items():
                name, stored = snake_case(key), self.storable(value)
                if name not in self._pushed or self._pushed[name] != stored:
                    ti.xcom_push(name, stored)
                    self._pushed[name] = stored

    def push_scalars(self, result: Any) -> None:
        """Push the values of a result that downstream tasks index, as in `crawl.output["path"]`."""
        if isinstance(result, Mapping):
            self.push(**{name: result[name] for name in SCALARS if name in result})

    def lacks(self, kind: ShortfallKind, number: int, of: int | None = None) -> None:
        """Push that the results lack something, if `number` is not 0.

        :param of: number of all, with those that the results have. Default: `number`.
        """
        if number:
            self.shortfalls[kind] = Shortfall(kind, number, number if of is None else of)
            self.push(**{INCOMPLETE: xcom_of(self.shortfalls.values())})

    def storable(self, value: Any) -> Any:
        """Return a value for XCom as Airflow's database can store it; log a change once."""
        kept = storable(value)
        if kept is not value and not self._is_changed:
            self._is_changed = True
            self.log.warning(
                "The results contain NUL, half characters, NaN, infinities, or integers above 64 bits, which Airflow's "
                "database cannot store"
            )
            self.log.warning(
                "In XCom, they are U+FFFD, null, or rounded numbers; set save_to= to keep the values unchanged"
            )
        return kept

    def refuse_unmappable(self, result: Any) -> None:
        """Fail the task without a retry if Airflow would refuse to map a task over its result, and push the result."""
        task, ti = self.task, self.context.get("ti")
        # Airflow checks a mapped task's results together, when it expands the next task.
        if ti is None or getattr(ti, "is_mapped", False) or task.get_dag() is None:
            return
        if (mapped := next(task.iter_mapped_dependants(), None)) is None:
            return
        most = conf.getint("core", "max_map_length", fallback=1024)
        if result is None or not task.do_xcom_push:
            problem = "the task has no result in XCom"
        elif not isinstance(result, (Sequence, Mapping)) or isinstance(result, str):
            problem = f"its result is {type(result).__name__}, not a list or a mapping"
        elif len(result) > most:
            problem = (
                f"its result has {len(result)} items, more than the {most} of [core] max_map_length. Raise the option, "
                "request fewer results, or map over parts of the list"
            )
        else:
            return
        self.push(unmapped=result)
        self.refuse(
            f"Airflow cannot map {mapped.node_id!r} over this task: {problem}. The result is in the XCom 'unmapped'. "
            "The task is not retried, because a retry would have the same result"
        )

    @cached_property
    def ledger(self) -> TaskLedger:
        """The credits of the task.

        :raises InvalidRequestError: `credit_limit` is not a number of at least 0.
        """
        given = getattr(self.task, "credit_limit", None)
        limit = checked_number(label_of(self.operation), "credit_limit", given)
        return TaskLedger(
            *(self.context, self.log, self.push, self.task.webdata_conn_id, limit),
            bills=lambda: self.hook.get_settings().client.server.bills,
        )

    def on_kill(self) -> None:
        """Stop the work at the service: the task was terminated."""

    @cached_property
    def body(self) -> Mapping[str, Any]:
        """The request whose schema the results must match, in wire form; empty if there is none."""
        return {}

    @cached_property
    def publication(self) -> Publication:
        """The publication of results, as configured by the task's options."""
        return Publication(
            self.task,
            self.context,
            lambda: self.hook.get_settings(),
            lambda: self.body,
            label_of(self.operation),
        )

    def prepare_publication(self) -> None:
        """Fail the task without a retry if an option is invalid."""
        self.check_arguments()
        try:
            self.publication.prepare()
            if self.publication.path is not None:
                check_downstream_loads(self.task, self.publication.path)
        except (ArgumentError, OutputError) as error:
            # Airflow deleted the XComs of earlier attempts.
            self.ledger.push_earlier()
            self.refuse(error)

    def check_arguments(self) -> None:
        """Fail the task without a retry if an argument is invalid, now that its value is known."""
        try:
            self.task._check_values()
        except (ArgumentError, OutputError) as error:
            self.ledger.push_earlier()
            self.refuse(error)

    def publish(self, results: Results, value: Value | None = None) -> Any:
        """Publish results, and return the task's XCom; see `Publication.publish`."""
        result = self.publication.publish(results, value)
        # Push the summary even if the task then fails or is skipped.
        self.push(**self.publication.summary)
        for one in self.publication.shortfalls:
            self.lacks(*one)
        if self.publication.preview:
            self.push(**{PREVIEW: self.publication.preview})
        return result

    def finished(self, result: Any) -> Any:
        """Return the task's XCom, unless the publication fails or skips the task."""
        try:
            self.publication.verdict()
        except (InvalidResultsError, RejectedResultsError, UnsupportedError) as error:
            self.refuse_published(error, result)
        except AirflowSkipException:
            self.forget()
            raise
        self._forget_once_stored()
        return result

    def _forget_once_stored(self) -> None:
        """Make Airflow call `forget` once it has stored the result.

        Until then, the attempt may still fail: Airflow stores the XCom after `execute`, renders `map_index_template`,
        and calls the author's `post_execute`.
        """
        if (ti := self.attempt.ti) is None:
            self.forget()
        elif self.leftovers:
            # First: after all callbacks, Airflow ends the worker within 20 seconds.
            ti.task.on_success_callback = [self.forget, *ti.task.on_success_callback]

    def forget(self, *_: Any) -> None:
        """Delete what a retry would need, because none follows."""
        leftovers, self.leftovers = self.leftovers, []
        try:
            for delete in leftovers:
                delete()
        except Exception as error:  # noqa: BLE001 - the result is published despite any storage error
            self.log.warning("Failed to delete what was stored for a retry: %s", brief(error))

    def refuse_published(self, error: CodedError, result: Any) -> NoReturn:
        """Fail the task without a retry, and push its result anyway; a rejection of the results takes precedence.

        :param error: an error that a retry cannot fix.
        """
        # A failed task has no return value: push the billed result under the key of the return value.
        self.push(return_value=result)
        self.push_scalars(result)
        self.forget()
        self.refuse(self.publication.rejection or error)
