# SPDX-License-Identifier: Apache-2.0
"""Media of items, downloaded before their links expire."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.http_clients import configured
from airflow_provider_webdata.common.arguments import checked_text
from airflow_provider_webdata.common.hosts import url_host
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.paths import check_path, warn_if_relative
from airflow_provider_webdata.results.files.storage import check_folder
from airflow_provider_webdata.results.media.copies import KEPT_MEDIA, REPORTED_ERRORS, MediaReport, keep_media
from airflow_provider_webdata.results.media.fetch import MediaSettings
from airflow_provider_webdata.runs.publishing.step import Step
from airflow_provider_webdata.states.shortfalls import Shortfall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.runs.publishing.step import Results


class KeepMedia(Step):
    """Downloads media to a folder and replaces their links.

    :param folder: path or URL of the folder.
    :param max_mb: maximum size of a file in MiB; larger ones are not kept.
    """

    pushes_summary = False

    def __init__(
        self, folder: str, max_mb: float, connection: Callable[[], ConnectionSettings], log: Any
    ) -> None:
        self.folder = folder
        self._max_bytes = int(max_mb * 2**20)
        self._connection = connection
        self._log = log
        self._report = MediaReport()
        self._names: dict[str, str] = {}

    def prepare(self) -> None:
        """Check the folder."""
        if checked_text(self.folder) is None:
            raise OutputError(f"media_to must name a folder (given after rendering: {self.folder!r})")
        check_path("media_to", self.folder)
        warn_if_relative("media_to", self.folder)
        check_folder(self.folder)

    def transform(self, results: Results) -> Results:
        """Return the items with their media links replaced, a few at a time."""
        return replace(results, items=self.keep(self._counted(results.items), self._report))

    def keep(self, items: Iterable[Any], report: MediaReport | None = None) -> Iterator[Any]:
        """Yield items with their media links replaced; those of an earlier call are unchanged.

        :param items: a part of the results.
        :param report: counts of kept and failed files, updated.
        """
        with configured():
            yield from keep_media(items, self.folder, self.settings(), report, self._names)

    def settings(self) -> MediaSettings:
        """Return the settings for fetching media."""
        connection = self._connection()
        client = connection.client
        return MediaSettings(
            max_bytes=self._max_bytes,
            verify=client.verify,
            ca_file=client.ca_file,
            proxy=client.proxy,
            hosts=connection.media_hosts | {url_host(client.base_url) or ""},
            certificate=client.certificate,
            own_host=url_host(client.base_url),
        )

    def summary(self) -> Mapping[str, Any]:
        """Return the counts."""
        return {"media": self._report.to_wire()}

    def shortfalls(self) -> Sequence[Shortfall]:
        """Return the files that were not kept."""
        return [Shortfall("media_not_kept", self._report.failed, self._report.failed + self._report.kept)]

    def written(self) -> None:
        """Log the counts."""
        report = self._report
        if report.failed:
            self._log.warning("%d media files were not kept: %s", report.failed, "; ".join(report.errors))
        self._log.info("Kept %d media files, %d bytes, in %s", report.kept, report.bytes, self.folder)

    def _counted(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield items unchanged, and count the media that an earlier call kept."""
        report = self._report
        for item in items:
            for kept in item.get(KEPT_MEDIA) or ():
                if "error" in kept:
                    report.failed += 1
                    report.errors = [*report.errors, str(kept["error"])][:REPORTED_ERRORS]
                else:
                    report.kept += 1
                    report.bytes += kept.get("bytes") or 0
            yield item
