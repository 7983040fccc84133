# SPDX-License-Identifier: Apache-2.0
"""Code steps in a browser session that the task always closes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import ClientError, InvalidRequestError
from airflow_provider_webdata.api.models import ExecuteRequest, InteractRequest, ScrapeInteractRequest
from airflow_provider_webdata.common.arguments import as_list, checked_text
from airflow_provider_webdata.common.clean_text import own_lines
from airflow_provider_webdata.common.secret_text import without_secrets
from airflow_provider_webdata.common.spelling import snake_case
from airflow_provider_webdata.hooks.calls import body_for
from airflow_provider_webdata.results.xcom import warn_if_large
from airflow_provider_webdata.runs.failures import StepFailedError
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.outside_handler import run_outside_handler
from airflow_provider_webdata.runs.pages.browser import ScrapeBrowser, SessionBrowser
from airflow_provider_webdata.runs.request import checked_extra_body, checked_request
from airflow_provider_webdata.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import ExecuteResult, SessionClosed
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.operators.interact import WebDataInteractOperator
    from airflow_provider_webdata.runs.pages.browser import Browser

_MIN_TTL_SECONDS = 600
"""The default ttl, unless the steps may take longer."""

_MAX_TTL_SECONDS = 3600
_STEP_SECONDS = 30
_GONE = 410
_MARGIN_SECONDS = 60
_SHOWN_CHARACTERS = 2000


class InteractRun(Run):
    """One attempt of a task that runs code in a browser."""

    task: WebDataInteractOperator

    operation = "interact"

    def __init__(self, task: WebDataInteractOperator, context: Context) -> None:
        super().__init__(task, context)
        self._browser: Browser | None = None
        self._killed = False

    def call(self) -> dict[str, Any]:
        """Open the browser, run the steps, and close it; return the steps' results.

        :raises StepFailedError: a step failed.
        """
        self.ledger.push_earlier()
        named = self._checked_steps()
        browser = self._browser = self._new_browser([step for _, step in named])
        self._close_leftovers(browser)
        self._hold_limit([step for _, step in named])
        done: list[dict[str, Any]] = []
        failure: str | None = "The task was terminated before the first step"
        complete = False
        error: BaseException | None = None
        try:
            if not self._killed:
                browser.open()
                failure = self._run(browser, named, done)
            complete = failure is None
        except BaseException as raised:
            error = raised
            raise
        finally:
            closed = browser.close(self.hook)
            self._browser = None
            outcome = _outcome(browser, done, closed)
            self._settle(outcome, closed, error)
            if not complete:
                # Keeps a billed result readable even if the task does not return.
                self.push(**outcome)
        if failure is not None:
            self.push(**outcome)
            raise StepFailedError(failure)
        warn_if_large(outcome, self.log)
        return outcome

    def on_kill(self) -> None:
        """Close the browser: the task was terminated or timed out."""
        self._killed = True
        if self._browser is not None:
            run_outside_handler(partial(self._close_killed, self._browser))

    def _close_killed(self, browser: Browser) -> None:
        # The signal may interrupt a call of the task's own hook.
        with self.hook.sibling() as hook:
            browser.close(hook, best_effort=True)

    def _run(
        self, browser: Browser, named: Sequence[tuple[str, RequestModel]], done: list[dict[str, Any]]
    ) -> str | None:
        """Run the steps; return the failure that ended the run, if any."""
        for name, step in named:
            if self._killed:
                return f"{name} was not run: the task was terminated"
            result = self._result(browser, name, step)
            done.append(_shown(result, browser.secrets))
            reason = result.failure()
            if reason is None:
                self.log.info("%s is done", name)
                continue
            reason = without_secrets(reason, browser.secrets)
            stderr = str(done[-1].get("stderr") or "").strip()[-_SHOWN_CHARACTERS:]
            self.log.warning("%s failed: %s%s", name, reason, own_lines(stderr.splitlines()))
            if self.task.check_exit_code:
                return f"{name} failed: {reason}"
        return None

    def _result(self, browser: Browser, name: str, step: RequestModel) -> ExecuteResult:
        try:
            return browser.run(step)
        except ClientError as error:
            if error.status != _GONE:
                raise
            # Repeating this call cannot succeed, but a retry of the task opens another browser.
            raise StepFailedError(
                f"{name}: the browser was closed during the step: {error.text()}"
            ) from error

    def _new_browser(self, steps: Sequence[RequestModel]) -> Browser:
        extra_body = checked_extra_body(self.task, "interact")
        if self.task.scrape_id is not None:
            if checked_text(self.task.scrape_id) is None:
                self.refuse("scrape_id is empty after rendering; it must name a scrape")
            return ScrapeBrowser(self.hook, self.task.scrape_id, extra_body)
        if self.task.ttl is None:
            self.task.ttl = _needed_ttl(steps)
        request = checked_request(self.task, InteractRequest, "interact", map_index=self.attempt.map_index)
        return SessionBrowser(self.hook, request, extra_body, self.memory)

    def _hold_limit(self, steps: Sequence[RequestModel]) -> None:
        ttls = (
            [getattr(step, "ttl", None) for step in steps]
            if self.task.scrape_id is not None
            else [self.task.ttl]
        )
        body = {
            "ttl": max((int(ttl) for ttl in ttls if ttl is not None), default=None),
            "prompt": any(getattr(step, "prompt", None) is not None for step in steps),
        }
        self.ledger.reserve("interact", body, checked_extra_body(self.task, "interact"))

    def _close_leftovers(self, browser: Browser) -> None:
        for session_id, leftover in browser.close_leftovers().items():
            self.ledger.settle(Cost(leftover.credits_billed), "interact", call=session_id)

    def _settle(
        self, outcome: Mapping[str, Any], closed: SessionClosed | None, error: BaseException | None
    ) -> None:
        if closed is not None or outcome["steps"] or outcome.get("sessionId"):
            self.ledger.settle(Cost(outcome["creditsBilled"]), "interact", call=outcome.get("sessionId"))
        elif error is not None:
            self.ledger.settle_failed(error, "interact")
        else:
            self.ledger.credits.settle("interact", 0)

    def _checked_steps(self) -> list[tuple[str, RequestModel]]:
        """Return the steps with their names for logs.

        :raises InvalidRequestError: `steps` is empty, or a step breaks a documented rule.
        """
        steps = as_list("steps", self.task.steps, is_code=True)
        if not steps:
            raise InvalidRequestError("interact", ["steps: at least one is required"])
        checked: list[tuple[str, RequestModel]] = []
        problems: list[str] = []
        bound = self.task.scrape_id is not None
        for number, step in enumerate(steps, 1):
            body, name = self._body(step)
            label = f"step {number} of {len(steps)}" + (f" ({name})" if name else "")
            try:
                request = body_for(ScrapeInteractRequest if bound else ExecuteRequest, body, "interact")
            except InvalidRequestError as error:
                problems += [f"{label}: {problem}" for problem in error.problems]
            else:
                checked.append((label, request))
        if problems:
            raise InvalidRequestError("interact", problems)
        return checked

    def _body(self, step: Any) -> tuple[dict[str, Any], str | None]:
        given = dict(step) if isinstance(step, Mapping) else {"code": step}
        name = given.pop("name", None)
        defaults: dict[str, Any] = {"language": self.task.language, "timeout": self.task.step_timeout}
        if self.task.scrape_id is not None:
            defaults |= {"ttl": self.task.ttl, "activity_ttl": self.task.activity_ttl}
        spelled = {*given, *(snake_case(str(key)) for key in given)}
        filled = {
            key: value for key, value in defaults.items() if value is not None and key not in spelled
        } | given
        return filled, name


def _needed_ttl(steps: Sequence[RequestModel]) -> int:
    seconds = sum(getattr(step, "timeout", None) or _STEP_SECONDS for step in steps) + _MARGIN_SECONDS
    return int(min(max(seconds, _MIN_TTL_SECONDS), _MAX_TTL_SECONDS))


def _shown(result: ExecuteResult, secrets: set[str]) -> dict[str, Any]:
    """Return a step's result without secrets."""
    names = ("stdout", "stderr", "exitCode", "killed", "error", "result", "output")
    wire = result.to_wire()
    shown = {name: wire[name] for name in names if name in wire}
    if shown.get("result") == shown.get("stdout"):
        shown.pop("result", None)
    # The URLs that control the browser.
    return without_secrets(shown, secrets)


def _outcome(browser: Browser, done: list[dict[str, Any]], closed: SessionClosed | None) -> dict[str, Any]:
    return {
        **browser.ids,
        "steps": done,
        "creditsBilled": None if closed is None else closed.credits_billed,
        "sessionDurationMs": None if closed is None else closed.session_duration_ms,
    }
