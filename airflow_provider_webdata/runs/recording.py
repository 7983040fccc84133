"""The recording of a task's browser session, saved in the folder of its `media` option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import NotFoundError
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.results.recording import folder_of, keep_playlist
from airflow_provider_webdata.runs.replica import until_found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.api.models import ReplayPage
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.runs.delivery.keep_media import KeepMedia

_PROCESSING_SECONDS = 10.0
"""Maximum search time for a recording, which may appear shortly after the session ends."""


def keep_recording(hook: WebDataHook, media: KeepMedia, session_id: str, log: Any) -> Mapping[str, str]:
    """Save the recording of a closed session, on a best-effort basis: only the steps decide on the task's state.

    :param media: the step that saves files.
    :return: the folder as `recording`; empty if no recording was saved.
    """

    def lookup() -> list[ReplayPage]:
        try:
            return hook.replay(session_id)
        except NotFoundError:
            return []

    try:
        folder = folder_of(media.folder, session_id)
        base_url = hook.get_settings().client.base_url
        pages = until_found(lookup, _PROCESSING_SECONDS) or []
        for page in pages:
            playlist = hook.replay_page(session_id, page.page_id)
            address = f"{base_url}/v2/interact/{session_id}/replay/{page.page_id}"
            path = keep_playlist(playlist, address, folder, page.page_id, media.settings())
            log.info("Saved the recording of session %s: %s", session_id, path)
    except Exception as error:  # noqa: BLE001 - a storage error must not lose the steps' results
        log.warning(
            "Failed to save the recording of session %s: %s. WebDataHook(...).replay(%r) returns it until it expires",
            session_id,
            brief(error),
            session_id,
        )
        return {}
    if not pages:
        log.warning("Session %s has no recording", session_id)
        return {}
    return {"recording": folder}
