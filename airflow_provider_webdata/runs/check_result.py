"""The check that an operator or sensor returns, with the requested pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import NotFoundError
from airflow_provider_webdata.options import REPLICA_WAIT_SECONDS
from airflow_provider_webdata.runs.replica import until_found
from airflow_provider_webdata.states.checks import CHANGED_STATUSES, is_over

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal, TypeAlias

    from airflow_provider_webdata.hooks.webdata import WebDataHook

    PagesWanted: TypeAlias = bool | Literal["changed"] | tuple[str, ...]


def check_with_pages(
    hook: WebDataHook,
    event: Mapping[str, Any],
    pages: PagesWanted,
    log: Any,
    replica_wait: float = REPLICA_WAIT_SECONDS,
) -> dict[str, Any]:
    """Return a check that is over, with wire names, and on request its pages with diffs and judgments.

    All result pages are followed. Header values are replaced by `***`.

    :param hook: of the monitor's connection.
    :param event: what ended the wait.
    :param pages: which pages to put under `pages`; False: leave the key out.
    :param log: of the task.
    :param replica_wait: most seconds to wait until the service shows the check as over.
    """
    monitor_id, check_id = event["monitor_id"], event["check_id"]
    log.info(
        "Check %s of monitor %s is over: %s (learned by %s)",
        check_id,
        monitor_id,
        event.get("check_status"),
        event.get("via"),
    )
    seen: list[Mapping[str, Any]] = []
    missing: list[NotFoundError] = []

    def read() -> bool:
        try:
            check = hook.get_monitor_check(monitor_id, check_id, limit=1)
        except NotFoundError as error:
            missing.append(error)
            return False
        seen.append(check.to_wire(mask_headers=True))
        return is_over(check)

    # The wait may be ahead of the replica that answers here.
    until_found(read, replica_wait)
    if not seen:
        raise missing[-1]
    found = {name: value for name, value in seen[-1].items() if name not in {"pages", "next"}}
    if pages is not False:
        found["pages"] = _pages(hook, monitor_id, check_id, pages)
    return found


def _pages(
    hook: WebDataHook, monitor_id: str, check_id: str, pages: bool | str | tuple[str, ...]
) -> list[dict[str, Any]]:
    statuses: Sequence[str | None] = CHANGED_STATUSES if pages == "changed" else (None,)
    if isinstance(pages, tuple):
        statuses = pages
    return [
        page.to_wire(mask_headers=True)
        for status in statuses
        for page in hook.iter_monitor_check_pages(monitor_id, check_id, status=status)
    ]
