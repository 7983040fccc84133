"""The operator that runs code in a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.common.arguments import as_list, checked_text
from airflow_provider_webdata.runs.failures import StepFailedError
from airflow_provider_webdata.tasks.operator import RequestFields, WebDataOperator, checked_limit
from airflow_provider_webdata.tasks.spending import SpendingTask

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import ExecuteResult, SessionClosed
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.tasks.browser import Browser

SHORTEST_TTL_SECONDS = 600
"""The ttl that is sent where none is given, unless the steps may take longer."""

_LONGEST_TTL_SECONDS = 3600
_STEP_SECONDS = 30
_GONE = 410
_MARGIN_SECONDS = 60
_SHOWN_CHARACTERS = 2000
_OF_OWN_SESSION = ("stream_web_view", "profile", "block_ads", "record_session", "integration")


class WebDataInteractOperator(
    SpendingTask,
    WebDataOperator,
    fields=RequestFields(
        "InteractRequest",
        own=("steps", "scrape_id", "language", "step_timeout", "check_exit_code"),
        options=("credit_limit",),
    ),
):
    """Open a browser, run steps of code in it, and close it. Bills by time.

    The browser is always closed: at the end, after a failure or a timeout, and when a user ends the task. A session
    whose opening was not answered is looked for among those opened meanwhile, and closed where there is just one; with
    several the log names them, and the session ends at its `ttl`. That is always sent: unless given, it is what the
    steps may take, at least 600 seconds. On Airflow 3.3 a retry closes what a worker that crashed left open.

    With `scrape_id` the steps run on the page of an earlier scrape (`metadata.scrapeId` of its document), and may be
    prompts; the profile is that of the scrape.

    Steps are never repeated by themselves after a lost answer; a retry of the task begins with the first step, in
    a new browser.

    XCom: a mapping with `sessionId` or `scrapeId`; `steps`, for each step that ran the wire names `stdout`, `stderr`,
    `exitCode`, `killed`, `error`, and `result`, `output` where they say more; `creditsBilled`; `sessionDurationMs`.
    Each is also under its own key, also where the task fails. The URLs that control the browser are neither in XCom
    nor in logs.

    :param steps: what to run, in this order: code as text, or mappings with `code` (at most 100000 characters; with
        `scrape_id` also `prompt`, at most 10000), and optionally `language`, `timeout` (seconds) and `name`
        (templated; JSON text of a list, too).
    :param scrape_id: UUID of an earlier scrape, to run the steps on its page (templated).
    :param language: `python`, `node` (the service's default) or `bash`, for steps that name none (templated).
    :param step_timeout: seconds that a step may take, 1 to 300, for steps that name none; the service's default is
        30 (templated).
    :param check_exit_code: whether a step that fails (an exit code other than 0, an exception, its time over) ends
        the run and fails the task (default). Else the next step is run.
    :param ttl: seconds that the browser lives at most, 30 to 3600. Default: 300 or 600, the sources differ.
    :param activity_ttl: seconds that it lives unused, 10 to 3600. Default: none or 300, the sources differ.
    :param stream_web_view: give a URL to watch the browser at. Default: true.
    :param profile: browser state to use: `name`, `saveChanges`; changes are saved when the browser is closed.
    :param block_ads: load no advertising. Default: true. Not documented publicly, as is the next.
    :param record_session: record the session.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
    :param credit_limit: most credits that all attempts may spend until the task is cleared; on Airflow 3.2, each
        attempt (templated). A call of a killed attempt counts with the most that it may cost. Nothing is sent that may
        cost more by the documented prices, or whose price has no documented bound; the task then fails with WD-034.
        Default: none.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`. `extra_body` goes into the request that opens the
        session, with `scrape_id` into that of each step.
    """

    template_fields: Sequence[str] = (
        *WebDataOperator.template_fields,
        "steps",
        "scrape_id",
        "language",
        "step_timeout",
    )

    def __init__(
        self,
        *,
        steps: Sequence[str | Mapping[str, Any]] | str,
        scrape_id: str | None = None,
        language: str | None = None,
        step_timeout: int | str | None = None,
        check_exit_code: bool = True,
        # fields of InteractRequest, written by tools/operator_fields.py
        ttl: int | str | None = None,
        activity_ttl: int | str | None = None,
        stream_web_view: bool | str | None = None,
        profile: Mapping[str, Any] | None = None,
        block_ads: bool | str | None = None,
        record_session: bool | str | None = None,
        origin: str | None = None,
        integration: str | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        **kwargs: Any,
    ) -> None:
        given = {
            "stream_web_view": stream_web_view,
            "profile": profile,
            "block_ads": block_ads,
            "record_session": record_session,
            "integration": integration,
        }
        without_effect = [name for name in _OF_OWN_SESSION if given[name] is not None]
        if scrape_id is not None and without_effect:
            raise ArgumentError(
                f"{', '.join(without_effect)}: without effect with scrape_id, whose scrape decides on its browser"
            )
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.steps = steps
        self.scrape_id = scrape_id
        self.language = language
        self.step_timeout = step_timeout
        self.check_exit_code = check_exit_code
        # fields of InteractRequest, written by tools/operator_fields.py
        self.ttl = ttl
        self.activity_ttl = activity_ttl
        self.stream_web_view = stream_web_view
        self.profile = profile
        self.block_ads = block_ads
        self.record_session = record_session
        self.origin = origin
        self.integration = integration
        self.credit_limit = checked_limit(credit_limit)
        # end of fields
        self._browser: Browser | None = None
        self._killed = False

    def call_service(self, context: Context) -> dict[str, Any]:
        """Open the browser, run the steps and close it; return what they brought."""
        from airflow_provider_webdata.hooks.call_guard import cost_of_failure
        from airflow_provider_webdata.results.xcom import warn_if_large

        self.billing(context, "interact").push_earlier()
        named = self._checked_steps()
        browser = self._browser = self._made_browser(context, [step for _, step in named])
        self._close_leftovers(browser, context)
        self._hold_limit([step for _, step in named], context)
        done: list[dict[str, Any]] = []
        failure: str | None = "The task was ended before it began"
        complete = False
        cost: float | None = 0
        try:
            if not self._killed:
                browser.open()
                failure = self._run(browser, named, done)
            complete = failure is None
        except BaseException as error:
            cost = cost_of_failure(error)
            raise
        finally:
            closed = browser.close(self.hook)
            self._browser = None
            outcome = _outcome(browser, done, closed)
            self._count(outcome, closed, cost, context)
            if not complete:
                # A billed result stays readable even if the task does not get to return it.
                self.push(context, **outcome)
        if failure is not None:
            raise StepFailedError(failure)
        warn_if_large(outcome, self.log)
        return outcome

    def on_kill(self) -> None:
        """Close the browser: a user has ended the task, or its time is over."""
        from airflow_provider_webdata.tasks.kill import run_outside_handler

        self._killed = True
        if self._browser is not None:
            run_outside_handler(partial(self._close_killed, self._browser))

    def _close_killed(self, browser: Browser) -> None:
        # The signal may have come in the middle of a call of the task's own hook.
        with self.hook.sibling() as hook:
            browser.close(hook, in_haste=True)

    def _run(
        self, browser: Browser, named: Sequence[tuple[str, RequestModel]], done: list[dict[str, Any]]
    ) -> str | None:
        """Run the steps; return what went wrong, if that ends the run."""
        for name, step in named:
            if self._killed:
                return f"{name} was not run: the task was ended"
            result = self._result(browser, name, step)
            done.append(_shown(result, browser.secrets))
            reason = result.failure()
            if reason is None:
                self.log.info("%s is done", name)
                continue
            reason = _without(reason, browser.secrets)
            stderr = str(done[-1].get("stderr") or "").strip()
            self.log.warning("%s failed: %s\n%s", name, reason, stderr[-_SHOWN_CHARACTERS:])
            if self.check_exit_code:
                return f"{name} failed: {reason}"
        return None

    def _result(self, browser: Browser, name: str, step: RequestModel) -> ExecuteResult:
        from airflow_provider_webdata.api.errors import ClientError

        try:
            return browser.run(step)
        except ClientError as error:
            if error.status != _GONE:
                raise
            # No repetition of this call can help, but a retry of the task opens another browser.
            raise StepFailedError(f"{name}: the browser was closed under it: {error.text()}") from error

    def _made_browser(self, context: Context, steps: Sequence[RequestModel]) -> Browser:
        from airflow_provider_webdata.api.models import InteractRequest
        from airflow_provider_webdata.tasks.browser import ScrapeBrowser, SessionBrowser
        from airflow_provider_webdata.tasks.intent import Intent

        extra_body = self.checked_extra_body("interact")
        if self.scrape_id is not None:
            if checked_text(self.scrape_id) is None:
                self.refuse("scrape_id is empty after rendering; it must name a scrape")
            return ScrapeBrowser(self.hook, self.scrape_id, extra_body)
        if self.ttl is None:
            self.ttl = _needed_ttl(steps)
        request = self.checked_request(InteractRequest, "interact")
        return SessionBrowser(self.hook, request, extra_body, Intent(context, "webdata_session"))

    def _hold_limit(self, steps: Sequence[RequestModel], context: Context) -> None:
        ttls = [getattr(step, "ttl", None) for step in steps] if self.scrape_id is not None else [self.ttl]
        body = {
            "ttl": max((int(ttl) for ttl in ttls if ttl is not None), default=None),
            "prompt": any(getattr(step, "prompt", None) is not None for step in steps),
        }
        self.billing(context).reserve("interact", body, self.checked_extra_body("interact"))

    def _close_leftovers(self, browser: Browser, context: Context) -> None:
        for session_id, leftover in browser.close_leftovers().items():
            self.billing(context).count(leftover.credits_billed, "interact", call=session_id)

    def _count(
        self, outcome: Mapping[str, Any], closed: SessionClosed | None, cost: float | None, context: Context
    ) -> None:
        if closed is not None or outcome["steps"] or outcome.get("sessionId"):
            self.billing(context).count(outcome["creditsBilled"], "interact", call=outcome.get("sessionId"))
        else:
            self.billing(context).budget.settle("interact", cost)

    def _checked_steps(self) -> list[tuple[str, RequestModel]]:
        """Return the steps with what names them in logs.

        :raises InvalidRequestError: there are none, or one breaks a documented rule.
        """
        from airflow_provider_webdata.api.errors import InvalidRequestError
        from airflow_provider_webdata.api.models import ExecuteRequest, ScrapeInteractRequest
        from airflow_provider_webdata.hooks.calls import body_for

        steps = as_list(self.steps)
        if not steps:
            raise InvalidRequestError("interact", ["steps: at least one is needed"])
        checked: list[tuple[str, RequestModel]] = []
        problems: list[str] = []
        bound = self.scrape_id is not None
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
        defaults: dict[str, Any] = {"language": self.language, "timeout": self.step_timeout}
        if self.scrape_id is not None:
            defaults |= {"ttl": self.ttl, "activity_ttl": self.activity_ttl, "origin": self.origin}
        filled = {key: value for key, value in defaults.items() if value is not None} | given
        return filled, name


def _needed_ttl(steps: Sequence[RequestModel]) -> int:
    seconds = sum(getattr(step, "timeout", None) or _STEP_SECONDS for step in steps) + _MARGIN_SECONDS
    return int(min(max(seconds, SHORTEST_TTL_SECONDS), _LONGEST_TTL_SECONDS))


def _shown(result: ExecuteResult, secrets: set[str]) -> dict[str, Any]:
    """Return what a step brought, as it may be stored."""
    names = ("stdout", "stderr", "exitCode", "killed", "error", "result", "output")
    wire = result.to_wire()
    shown = {name: wire[name] for name in names if name in wire}
    if shown.get("result") == shown.get("stdout"):
        shown.pop("result", None)
    clean: dict[str, Any] = _without(shown, secrets)
    return clean


def _without(value: Any, secrets: set[str]) -> Any:
    """Return a JSON value with the URLs that control the browser blotted out."""
    if isinstance(value, Mapping):
        return {name: _without(part, secrets) for name, part in value.items()}
    if isinstance(value, list):
        return [_without(part, secrets) for part in value]
    if isinstance(value, str):
        # The longer first: one may be the beginning of another.
        for secret in sorted(secrets, key=len, reverse=True):
            value = value.replace(secret, "***")
    return value


def _outcome(browser: Browser, done: list[dict[str, Any]], closed: SessionClosed | None) -> dict[str, Any]:
    return {
        **browser.facts,
        "steps": done,
        "creditsBilled": None if closed is None else closed.credits_billed,
        "sessionDurationMs": None if closed is None else closed.session_duration_ms,
    }
