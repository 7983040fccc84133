"""Requests about one check that many waits may make at once; each is sent to the service once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import AuthenticationError, NotFoundError, WebDataError
from airflow_provider_webdata.states.checks import MEANINGFUL_STATUSES, has_meaningful, is_over
from airflow_provider_webdata.waiting.backoff import Backoff
from airflow_provider_webdata.waiting.mailbox import WaitFailure
from airflow_provider_webdata.waiting.polling.check_answers import CheckJudgment, CheckSnapshot, Unconfirmed
from airflow_provider_webdata.waiting.shared_task import spawn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from airflow_provider_webdata.hooks.webdata_async import AsyncWebDataHook
    from airflow_provider_webdata.waiting.mailbox import Mailbox, Notice
    from airflow_provider_webdata.waiting.shared_connection import SharedConnection

REPLICA_PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Seconds between the reads of a check that should be over but is missing, or not over, on the replica yet."""

_MAX_CONCURRENT = 4


class Lookups:
    """Reads single checks.

    :param connection: whose checks they are.
    """

    def __init__(self, connection: SharedConnection) -> None:
        self._connection = connection
        self._waiting: dict[tuple[str, str, str], dict[Mailbox, None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)

    def confirm(self, monitor_id: str, check_id: str, mailbox: Mailbox) -> None:
        """Read a check that is said to be over, and post a `CheckSnapshot`, else `Unconfirmed`.

        :param monitor_id: the monitor's UUID.
        :param check_id: the check's UUID.
        :param mailbox: gets the answer.
        """
        self._look_up("confirm", monitor_id, check_id, mailbox, self._confirm)

    def judge(self, monitor_id: str, check_id: str, mailbox: Mailbox) -> None:
        """Read whether a change of a check was judged meaningful, and post a `CheckJudgment`.

        :param monitor_id: the monitor's UUID.
        :param check_id: the check's UUID.
        :param mailbox: gets the answer.
        """
        self._look_up("pages", monitor_id, check_id, mailbox, self._judge)

    async def stop(self) -> None:
        """Cancel the lookups that run."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def call(self, request: Callable[[AsyncWebDataHook], Awaitable[Any]]) -> Any:
        """Call the service. If it refuses the key, read the connection and call it again.

        :param request: calls the service with the hook that it receives.
        """
        hook = await self._connection.hook()
        try:
            return await request(hook)
        except AuthenticationError:
            return await request(await self._connection.renew(hook))

    def _look_up(
        self,
        kind: str,
        monitor_id: str,
        check_id: str,
        mailbox: Mailbox,
        answer: Callable[[str, str], Awaitable[Any]],
    ) -> None:
        key = (kind, monitor_id, check_id)
        if key in self._waiting:
            self._waiting[key][mailbox] = None
            return
        self._waiting[key] = {mailbox: None}
        task = spawn(self._run(key, answer), f"{kind} of check {check_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, key: tuple[str, str, str], answer: Callable[[str, str], Awaitable[Any]]) -> None:
        try:
            async with self._slots:
                item = await answer(key[1], key[2])
        except Exception as error:  # noqa: BLE001 - the waits must learn of it
            verdict = error.verdict if isinstance(error, WebDataError) else "unknown"
            item = WaitFailure(f"check {key[2]} of monitor {key[1]}: {error}", verdict)
        finally:
            mailboxes = self._waiting.pop(key)
        for mailbox in mailboxes:
            mailbox.post(item)

    async def _confirm(self, monitor_id: str, check_id: str) -> Any:
        answer: Any = None
        for pause in (0.0, *REPLICA_PAUSES):
            await asyncio.sleep(pause)
            answer = await self._read(monitor_id, check_id)
            if isinstance(answer, CheckSnapshot):
                break
        return answer

    async def _read(self, monitor_id: str, check_id: str) -> CheckSnapshot | Unconfirmed:
        try:
            # The list also shows what ended before, without a delivery: skipped checks have none.
            checks = await self.call(lambda hook: hook.list_monitor_checks(monitor_id, limit=25))
            check = next((check for check in checks if check.id == check_id), None)
            if check is None:
                # Pages come along with a check: one is the least.
                check = await self.call(lambda hook: hook.get_monitor_check(monitor_id, check_id, limit=1))
                checks = [*checks, check]
        except NotFoundError as error:
            return Unconfirmed(check_id, str(error), missing=True)
        except WebDataError as error:
            if error.verdict == "never":
                raise
            return Unconfirmed(check_id, str(error))
        if is_over(check):
            return CheckSnapshot(checks)
        return Unconfirmed(check_id, f"the service still shows it as {check.status}")

    async def _judge(self, monitor_id: str, check_id: str) -> Any:
        mailboxes = self._waiting["pages", monitor_id, check_id]

        def notify(notice: Notice) -> None:
            for mailbox in mailboxes:
                mailbox.post(notice)

        backoff = Backoff(f"pages of check {check_id}", notify)
        answer: CheckJudgment | None = None
        while answer is None and not all(mailbox.closed for mailbox in mailboxes):
            try:
                answer = CheckJudgment(check_id, await self.call(_is_meaningful(monitor_id, check_id)))
            except WebDataError as error:  # noqa: PERF203 - what is repeated is a request
                if error.verdict == "never":
                    raise
                await asyncio.sleep(backoff.failed(error))
        return answer


def _is_meaningful(monitor_id: str, check_id: str) -> Callable[[AsyncWebDataHook], Awaitable[bool]]:
    async def read(hook: AsyncWebDataHook) -> bool:
        for status in MEANINGFUL_STATUSES:
            async for part in hook.iter_monitor_check_pages(monitor_id, check_id, status=status):
                if has_meaningful(part):
                    return True
        return False

    return read
