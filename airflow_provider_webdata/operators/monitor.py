"""The operators for monitors: declare, change, delete, run and list them."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from airflow_provider_webdata.operators.base import WebDataOperator
from airflow_provider_webdata.operators.monitor_base import ExistingMonitorOperator, MonitorOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.errors import ConflictError, WebDataError
    from airflow_provider_webdata.api.models import Monitor, MonitorCheck, MonitorCreateRequest
    from airflow_provider_webdata.operators.intent import Intent

T = TypeVar("T")

_IF_EXISTS = ("update", "reuse", "error", "create")
_APPLIED_SCHEDULE = "applied_schedule"

_JSON_FIELDS = dict.fromkeys(("schedule", "targets", "notification", "webhook"), "json")


@dataclass(frozen=True)
class _Outcome:
    """What became of a declared monitor.

    :param monitor: as it is now.
    :param created: whether this task made it, in this try or an earlier one.
    :param restore: update that undoes what this try changed, if it changed anything.
    :param lost: fields that cannot be put back.
    """

    monitor: Monitor
    created: bool = False
    restore: Mapping[str, Any] | None = None
    lost: tuple[str, ...] = ()


class WebDataCreateMonitorOperator(MonitorOperator):
    """Declare a monitor: the task leaves exactly one behind, however often it runs.

    Identity is the monitor's name, which the service does not keep unique: two of the same name are an error that
    names both ids, unless `monitor_id` says which one is meant. Every argument up to `webhook` is a field of the
    reference's POST /v2/monitor, templated; what is left out is not sent, and not compared with what is stored.

    What exists is compared with what is declared, and only what differs is patched, with the ids of its targets,
    so that their history stays. What the service normalises or fills in is no difference; how a schedule in words
    is compared with the stored cron is said in `airflow_provider_webdata.api.monitor_diff.monitor_changes`.

    A retry after a crash, or after an answer that got lost, finds what the first try made: by its id where
    Airflow's task state store (3.3) still got it, else by its name, looked for a while since the service's list
    lags behind. With `if_exists="create"`, where a name alone says nothing, it is the monitor of that name that
    was not there before the first try (3.3), or that was created since the DAG run began with the declared
    content (3.2). Mapped tasks that create monitors at the same time should give them different names.

    XCom: the monitor, with wire names; header values are replaced by `***`. For a schedule in words, the key
    `applied_schedule` holds the cron that the service made of it.

    :param name: 1 to 256 characters.
    :param schedule: `cron` or `text`, and `timezone`.
    :param targets: 1 to 50, each with `type` `scrape`, `crawl` or `search`.
    :param goal: which changes matter, in words, at most 2000 characters; required for search targets.
    :param judge_enabled: whether changes are judged against the goal; on by default where there is a goal.
    :param notification: `email` with `enabled`, `includeDiffs`, `recipients`.
    :param retention_days: 1 to 365.
    :param webhook: `url`, `events`, `headers`, `metadata`.
    :param if_exists: `update` (default): patch what differs. `reuse`: return it as it is. `error`: fail.
        `create`: make another one per DAG run.
    :param monitor_id: UUID of the monitor that is meant, for `update` and `reuse` (templated).
    :param max_credits_per_month: fail if the service estimates more (templated). A monitor that was created for
        it is deleted again, one that was changed gets its former values back.
    :param allow_unlimited_crawl: accept a crawl target without `crawlOptions.limit`, for which the service
        reserves 10,000 credits a check.
    :param kwargs: arguments of `MonitorOperator`, `WebDataOperator` and `BaseOperator`.
    """

    request_fields: ClassVar[Sequence[str]] = (
        "name",
        "schedule",
        "targets",
        "goal",
        "judge_enabled",
        "notification",
        "retention_days",
        "webhook",
    )
    template_fields: Sequence[str] = (
        *WebDataOperator.template_fields,
        *request_fields,
        "monitor_id",
        "max_credits_per_month",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **WebDataOperator.template_fields_renderers,
        **_JSON_FIELDS,
    }

    def __init__(
        self,
        *,
        name: str,
        schedule: Mapping[str, Any],
        targets: Sequence[Mapping[str, Any]],
        goal: str | None = None,
        judge_enabled: bool | str | None = None,
        notification: Mapping[str, Any] | None = None,
        retention_days: int | str | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        if_exists: Literal["update", "reuse", "error", "create"] = "update",
        monitor_id: str | None = None,
        max_credits_per_month: float | str | None = None,
        allow_unlimited_crawl: bool = False,
        **kwargs: Any,
    ) -> None:
        if if_exists not in _IF_EXISTS:
            raise ValueError(f"if_exists must be one of {', '.join(_IF_EXISTS)} (given: {if_exists!r})")
        if monitor_id is not None and if_exists in {"error", "create"}:
            raise ValueError(
                f"monitor_id names an existing monitor, which if_exists={if_exists!r} has no use for"
            )
        super().__init__(**kwargs)
        self.name = name
        self.schedule = schedule
        self.targets = targets
        self.goal = goal
        self.judge_enabled = judge_enabled
        self.notification = notification
        self.retention_days = retention_days
        self.webhook = webhook
        self.if_exists = if_exists
        self.monitor_id = monitor_id
        self.max_credits_per_month = max_credits_per_month
        self.allow_unlimited_crawl = allow_unlimited_crawl

    def call_service(self, context: Context) -> dict[str, Any]:
        """Bring the monitor in step with the declaration and return it with wire names."""
        from airflow_provider_webdata.api.models import MonitorCreateRequest
        from airflow_provider_webdata.operators.intent import Intent

        request = self.checked_request(MonitorCreateRequest, "create monitor")
        limit = self._credit_limit()
        self._refuse_unlimited_crawls(request)
        declared = {**request.to_wire(), **(self.checked_extra_body("create monitor") or {})}
        intent = Intent(context, "webdata_monitor")

        name = str(declared["name"])
        outcome = self._existing(name, declared, intent, context) or self._create(request, name, intent)
        if limit is not None:
            self._hold_credit_limit(outcome, limit, intent)
        self._remember_schedule(declared, outcome.monitor, context)
        if outcome.monitor.status == "paused":
            self.log.warning("Monitor %s is paused and makes no checks", outcome.monitor.id)
        return outcome.monitor.to_wire(mask_headers=True)

    def _credit_limit(self) -> float | None:
        from airflow_provider_webdata.api.errors import InvalidRequestError

        given = self.max_credits_per_month
        if given is None or given == "":
            return None
        try:
            limit = float("nan") if isinstance(given, bool) else float(given)
        except (TypeError, ValueError):
            limit = float("nan")
        if not 0 <= limit < float("inf"):
            raise InvalidRequestError(
                "create monitor",
                [f"max_credits_per_month: must be a number of at least 0 (given: {given!r})"],
            )
        return limit

    def _refuse_unlimited_crawls(self, request: MonitorCreateRequest) -> None:
        from airflow_provider_webdata.api.errors import InvalidRequestError
        from airflow_provider_webdata.api.models import CrawlTarget

        if self.allow_unlimited_crawl:
            return
        problems = [
            f"targets[{index}].crawlOptions.limit: is not given, so that the service would reserve 10,000 credits "
            f"for every check of {target.url!r}; set a limit, or allow_unlimited_crawl=True"
            for index, target in enumerate(request.targets)
            if isinstance(target, CrawlTarget)
            and (target.crawl_options is None or target.crawl_options.limit is None)
        ]
        if problems:
            raise InvalidRequestError("create monitor", problems)

    def _existing(
        self, name: str, declared: Mapping[str, Any], intent: Intent, context: Context
    ) -> _Outcome | None:
        """Return what is there already, in step with the declaration, or None if it is to be created."""
        if self.monitor_id:
            monitor = self.visible_monitor(self.monitor_id)
            if monitor is None:
                self.refuse(f"monitor_id={self.monitor_id!r}: there is no such monitor")
            return self._in_step(monitor, declared, context)
        if self.if_exists == "create" and not intent.began:
            return None
        if intent.started_id and (monitor := self.visible_monitor(intent.started_id)):
            self.log.info("An earlier try created monitor %s", monitor.id)
            return self._in_step(monitor, declared, context, created=True)

        def look() -> list[Monitor]:
            return self._candidates(name, declared, intent)

        found = self.wait_for(look) if intent.began else look()
        monitor = self.only_one(name, found or [])
        if monitor is None:
            return None
        own = intent.is_own(monitor.id, monitor.created_at)
        if own:
            self.log.info("An earlier try created monitor %s", monitor.id)
        elif self.if_exists == "error":
            self.refuse(f"A monitor named {name!r} exists already: {monitor.id} (if_exists='error')")
        return self._in_step(monitor, declared, context, created=own)

    def _candidates(self, name: str, declared: Mapping[str, Any], intent: Intent) -> list[Monitor]:
        from airflow_provider_webdata.api.monitor_diff import monitor_changes

        named = self.monitors_named(name)
        if self.if_exists != "create":
            return named
        own = [monitor for monitor in named if intent.is_own(monitor.id, monitor.created_at)]
        if not intent.remembers:
            # A schedule in words may have been moved, so that it says nothing.
            content = {field: value for field, value in declared.items() if field != "schedule"}
            own = [monitor for monitor in own if not monitor_changes(content, monitor.to_wire())]
        return own[:1]

    def _in_step(
        self, monitor: Monitor, declared: Mapping[str, Any], context: Context, *, created: bool = False
    ) -> _Outcome:
        from airflow_provider_webdata.api.monitor_diff import monitor_changes, previous_values

        if self.if_exists == "reuse" and not created:
            self.log.info("Monitor %s exists and is used as it is", monitor.id)
            return _Outcome(monitor)
        stored = monitor.to_wire()
        changes = monitor_changes(declared, stored, self._applied_schedule(declared, context))
        if not changes:
            self.log.info("Monitor %s is as declared", monitor.id)
            return _Outcome(monitor, created)
        self.log.info("Monitor %s differs in %s; updating it", monitor.id, ", ".join(changes.fields))
        updated = self.hook.update_monitor(monitor.id, extra_body=changes.patch)
        schedule = {"text": declared["schedule"].get("text"), "cron": _cron(updated)}
        if left := monitor_changes(declared, updated.to_wire(), schedule):
            self.log.warning(
                "Monitor %s still differs in %s after the update: the service keeps values of its own there",
                monitor.id,
                ", ".join(left.fields),
            )
        restore, lost = previous_values(changes.patch, stored)
        return _Outcome(updated, created, restore, lost)

    def _create(self, request: MonitorCreateRequest, name: str, intent: Intent) -> _Outcome:
        from airflow_provider_webdata.api.errors import WebDataError

        known = {monitor.id for monitor in self.monitors_named(name)} if self.if_exists == "create" else set()
        intent.begin(known)
        try:
            monitor = self.hook.create_monitor(request, extra_body=self.checked_extra_body("create monitor"))
        except WebDataError as error:
            if not _may_have_acted(error):
                intent.forget()
                raise
            self.log.warning("%s. Looking for a monitor that was created all the same", error)
            found = self.wait_for(lambda: self._candidates_new(name, intent))
            if not found:
                raise
            monitor = found[0]
        intent.started(monitor.id)
        self.log.info("Created monitor %s, next run at %s", monitor.id, monitor.next_run_at)
        return _Outcome(monitor, created=True)

    def _candidates_new(self, name: str, intent: Intent) -> list[Monitor]:
        return [
            monitor for monitor in self.monitors_named(name) if intent.is_own(monitor.id, monitor.created_at)
        ]

    def _hold_credit_limit(self, outcome: _Outcome, limit: float, intent: Intent) -> None:
        monitor = outcome.monitor
        estimate = monitor.estimated_credits_per_month
        if estimate is None:
            self.log.warning(
                "Monitor %s has no estimate of its cost, so that max_credits_per_month was not checked",
                monitor.id,
            )
            return
        if estimate <= limit:
            return
        if outcome.created:
            self.hook.delete_monitor(monitor.id)
            intent.forget()
            done = "it was deleted again"
        elif outcome.restore is not None:
            if outcome.restore:
                self.hook.update_monitor(monitor.id, extra_body=outcome.restore)
            done = "its former values were put back"
            if outcome.lost:
                done += f", but for {', '.join(outcome.lost)}, which the service cannot remove"
        else:
            done = "it was left as it is"
        self.refuse(
            f"Monitor {monitor.name!r} ({monitor.id}) is estimated at {estimate:g} credits a month, over "
            f"max_credits_per_month={limit:g}; {done}. Check less often or fewer pages, or raise the limit"
        )

    def _applied_schedule(self, declared: Mapping[str, Any], context: Context) -> Mapping[str, Any] | None:
        """Return what the service made of the schedule in words when a former run applied it."""
        ti = context.get("ti")
        if ti is None or "text" not in declared["schedule"]:
            return None
        applied: object = ti.xcom_pull(
            key=_APPLIED_SCHEDULE, include_prior_dates=True, map_indexes=ti.map_index
        )
        return applied if isinstance(applied, dict) else None

    def _remember_schedule(self, declared: Mapping[str, Any], monitor: Monitor, context: Context) -> None:
        ti = context.get("ti")
        text = declared["schedule"].get("text")
        if ti is not None and self.do_xcom_push and text is not None and self.if_exists != "reuse":
            ti.xcom_push(_APPLIED_SCHEDULE, {"text": text, "cron": _cron(monitor)})


class WebDataUpdateMonitorOperator(ExistingMonitorOperator):
    """Change a monitor: pause it, resume it, or set any of its fields. Supplement 13.6.

    What is given is sent; what is left out stays. Targets replace the whole array and keep their ids, and so
    their history, where they continue a stored one; a goal goes along with `judgeEnabled`, a resume with the
    schedule.

    XCom: the monitor, with wire names; header values are replaced by `***`.

    :param status: `active` or `paused`.
    :param name: a new name.
    :param schedule: as in `WebDataCreateMonitorOperator`, like all that follow.
    :param targets: all targets that the monitor is to have.
    :param goal: which changes matter; an empty text clears it.
    :param judge_enabled: whether changes are judged against the goal.
    :param notification: whom to mail.
    :param retention_days: 1 to 365.
    :param webhook: where to report; it can be changed, not removed.
    :param kwargs: arguments of `ExistingMonitorOperator`: `monitor_id` or `monitor_name` say which monitor.
    """

    request_fields: ClassVar[Sequence[str]] = (
        "status",
        "name",
        "schedule",
        "targets",
        "goal",
        "judge_enabled",
        "notification",
        "retention_days",
        "webhook",
    )
    template_fields: Sequence[str] = (*ExistingMonitorOperator.template_fields, *request_fields)
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **WebDataOperator.template_fields_renderers,
        **_JSON_FIELDS,
    }

    def __init__(
        self,
        *,
        status: Literal["active", "paused"] | str | None = None,
        name: str | None = None,
        schedule: Mapping[str, Any] | None = None,
        targets: Sequence[Mapping[str, Any]] | None = None,
        goal: str | None = None,
        judge_enabled: bool | str | None = None,
        notification: Mapping[str, Any] | None = None,
        retention_days: int | str | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.status = status
        self.name = name
        self.schedule = schedule
        self.targets = targets
        self.goal = goal
        self.judge_enabled = judge_enabled
        self.notification = notification
        self.retention_days = retention_days
        self.webhook = webhook

    def call_service(self, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Send what is given and return the monitor with wire names."""
        from airflow_provider_webdata.api.models import MonitorUpdateRequest
        from airflow_provider_webdata.api.monitor_diff import complete_update
        from airflow_provider_webdata.hooks.calls import body_for

        extra_body = self.checked_extra_body("update monitor") or {}
        fields: dict[str, Any] = {}
        if not extra_body or self.given():
            # Its doubts (ids, judgeEnabled, schedule) are settled by what goes along, so none is logged.
            fields = body_for(MonitorUpdateRequest, self.given(), "update monitor").to_wire()
        monitor = self.found()
        patch = complete_update({**fields, **extra_body}, monitor.to_wire())
        self.log.info("Updating %s of monitor %s", ", ".join(patch), monitor.id)
        return self.hook.update_monitor(monitor.id, extra_body=patch).to_wire(mask_headers=True)


class WebDataDeleteMonitorOperator(ExistingMonitorOperator):
    """Delete a monitor.

    XCom: `id` of the monitor (None if no such name was found) and `deleted`, whether it was there.

    :param ignore_missing: whether a monitor that is not there is fine (default) or an error.
    :param kwargs: arguments of `ExistingMonitorOperator`: `monitor_id` or `monitor_name` say which monitor.
    """

    def __init__(self, *, ignore_missing: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ignore_missing = ignore_missing

    def call_service(self, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Delete the monitor and say whether it was there."""
        from airflow.sdk.exceptions import AirflowNotFoundException

        from airflow_provider_webdata.api.errors import NotFoundError

        monitor_id = self.monitor_id
        if not monitor_id:
            monitor = self.find()
            monitor_id = monitor.id if monitor is not None else None
        if monitor_id:
            try:
                self.hook.delete_monitor(monitor_id)
            except NotFoundError:
                self.log.info("There is no monitor %s, perhaps no longer", monitor_id)
            else:
                self.log.info("Deleted monitor %s", monitor_id)
                return {"id": monitor_id, "deleted": True}
        if not self.ignore_missing:
            raise AirflowNotFoundException(f"There is no monitor {self.described} (ignore_missing=False)")
        return {"id": monitor_id or None, "deleted": False}


class WebDataRunMonitorOperator(ExistingMonitorOperator):
    """Start a check of a monitor now. Bills credits. Supplement 13.7.

    A retry after a crash or a lost answer finds the check that the first try started instead of starting another.

    XCom: the check, with wire names; its `id` is what to wait for.

    :param if_running: what to do when a check is running already: `return` it (default) or `error`.
    :param kwargs: arguments of `ExistingMonitorOperator`: `monitor_id` or `monitor_name` say which monitor.
    """

    def __init__(self, *, if_running: Literal["return", "error"] = "return", **kwargs: Any) -> None:
        if if_running not in {"return", "error"}:
            raise ValueError(f"if_running must be 'return' or 'error' (given: {if_running!r})")
        super().__init__(**kwargs)
        self.if_running = if_running

    def call_service(self, context: Context) -> dict[str, Any]:
        """Start a check, or find the one that runs, and return it with wire names."""
        from airflow_provider_webdata.operators.intent import Intent

        monitor_id = self.monitor_id or self.found().id
        intent = Intent(context, "webdata_check")
        check = self._started_before(monitor_id, intent) or self._start(monitor_id, intent)
        return check.to_wire(mask_headers=True)

    def _started_before(self, monitor_id: str, intent: Intent) -> MonitorCheck | None:
        if not intent.began:
            return None
        check = self.wait_for(lambda: self._own_check(monitor_id, intent))
        if check is not None:
            self.log.info("An earlier try started check %s", check.id)
        return check

    def _own_check(self, monitor_id: str, intent: Intent) -> MonitorCheck | None:
        checks = self._once_visible(self._checks, monitor_id)
        own = (
            check
            for check in checks
            if check.trigger == "manual" and intent.is_own(check.id, check.created_at)
        )
        return next(own, None)

    def _start(self, monitor_id: str, intent: Intent) -> MonitorCheck:
        from airflow_provider_webdata.api.errors import ConflictError, WebDataError

        intent.begin(check.id for check in self._once_visible(self._checks, monitor_id))
        try:
            check = self._once_visible(self.hook.run_monitor, monitor_id)
        except ConflictError as error:
            intent.forget()
            return self._running(monitor_id, error)
        except WebDataError as error:
            if not _may_have_acted(error):
                intent.forget()
                raise
            self.log.warning("%s. Looking for a check that was started all the same", error)
            found = self.wait_for(lambda: self._own_check(monitor_id, intent))
            if found is None:
                raise
            check = found
        intent.started(check.id)
        self.log.info("Started check %s of monitor %s", check.id, monitor_id)
        return check

    def _checks(self, monitor_id: str) -> list[MonitorCheck]:
        return self.hook.list_monitor_checks(monitor_id, limit=100)

    def _once_visible(self, call: Callable[[str], T], monitor_id: str) -> T:
        """Call until the service knows the monitor: a 404 started nothing, and may be that of a late replica."""
        from airflow_provider_webdata.api.errors import NotFoundError

        missing: list[NotFoundError] = []

        def attempt() -> tuple[T] | None:
            try:
                return (call(monitor_id),)
            except NotFoundError as error:
                missing.append(error)
                return None

        done = self.wait_for(attempt)
        if done is None:
            raise missing[-1]
        return done[0]

    def _running(self, monitor_id: str, error: ConflictError) -> MonitorCheck:
        check_id = error.body.get("checkId")
        if not isinstance(check_id, str) or not check_id:
            self.refuse(f"{error}. Monitor {monitor_id} may be paused: resume it before running it")
        if self.if_running == "error":
            self.refuse(f"Check {check_id} of monitor {monitor_id} is running already (if_running='error')")
        self.log.info("Check %s of monitor %s is running already", check_id, monitor_id)
        return self._check(monitor_id, check_id)

    def _check(self, monitor_id: str, check_id: str) -> MonitorCheck:
        from airflow_provider_webdata.api.errors import NotFoundError
        from airflow_provider_webdata.api.models import MonitorCheck

        def look() -> MonitorCheck | None:
            try:
                detail = self.hook.get_monitor_check(monitor_id, check_id, limit=1).to_wire()
            except NotFoundError:
                return None
            return MonitorCheck.model_validate(
                {k: v for k, v in detail.items() if k not in {"pages", "next"}}
            )

        return self.wait_for(look) or MonitorCheck(id=check_id, monitor_id=monitor_id)


class WebDataListMonitorsOperator(WebDataOperator):
    """List the team's monitors, newest first.

    The service filters by nothing; `status` and `name_pattern` are applied here, to all monitors.

    XCom: a list of monitors, with wire names; header values are replaced by `***`.

    :param status: only monitors in this state, such as `active` or `paused` (templated).
    :param name_pattern: only names that match, with `*`, `?` and `[...]` as in a shell, case counts (templated).
    :param limit: most monitors to return, at least 1 (templated); all by default.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    template_fields: Sequence[str] = ("webdata_conn_id", "status", "name_pattern", "limit")
    template_fields_renderers: ClassVar[dict[str, str]] = {}

    def __init__(
        self,
        *,
        status: str | None = None,
        name_pattern: str | None = None,
        limit: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.status = status
        self.name_pattern = name_pattern
        self.limit = limit

    def call_service(self, context: Context) -> list[dict[str, Any]]:  # noqa: ARG002
        """List what matches."""
        limit = self._checked_limit()
        found = []
        for monitor in self.hook.iter_monitors():
            if self.status and monitor.status != self.status:
                continue
            if self.name_pattern and not fnmatch.fnmatchcase(monitor.name or "", self.name_pattern):
                continue
            found.append(monitor.to_wire(mask_headers=True))
            if limit is not None and len(found) >= limit:
                break
        self.log.info("%d monitors match", len(found))
        return found

    def _checked_limit(self) -> int | None:
        from airflow_provider_webdata.api.errors import InvalidRequestError

        given = self.limit
        if given is None or given == "":
            return None
        text = "" if isinstance(given, bool) else str(given).strip()
        if not text.isdecimal() or int(text) < 1:
            raise InvalidRequestError(
                "list monitors", [f"limit: must be a whole number of at least 1 (given: {given!r})"]
            )
        return int(text)


def _may_have_acted(error: WebDataError) -> bool:
    """Return whether the service may have done what was asked, though it did not say so."""
    from airflow_provider_webdata.api.errors import (
        InvalidResponseError,
        RequestTimeoutError,
        ServerError,
        TransportError,
    )

    if isinstance(error, TransportError):
        return error.sent
    return isinstance(error, (InvalidResponseError, RequestTimeoutError, ServerError))


def _cron(monitor: Monitor) -> str | None:
    return monitor.schedule.cron if monitor.schedule is not None else None
