"""A page in a manifest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from airflow_provider_webdata.results.encoding import json_text


@dataclass(slots=True)
class Entry:
    """What is known of a page after a run.

    :param key: see `urls.canonical_url`.
    :param url: as the service named it last; see `item_urls.url_of`.
    :param digest: of its content.
    :param status: the site's HTTP status, where the service says it.
    :param first_seen: the moment of the first run that saw it, ISO 8601.
    :param last_seen: that of the last one.
    :param changed: that of the last run in which it was new or changed.
    :param missing: runs since then that could have seen it, and did not.
    """

    key: str
    url: str
    digest: str
    status: int | None
    first_seen: str
    last_seen: str
    changed: str
    missing: int = 0

    def line(self) -> str:
        """Return its line in a manifest."""
        values: dict[str, Any] = {
            "url": self.url,
            "key": None if self.key == self.url else self.key,
            "digest": self.digest,
            "status": self.status,
            "firstSeen": self.first_seen,
            "lastSeen": self.last_seen,
            "lastChange": self.changed,
            "missing": self.missing or None,
        }
        return json_text({name: value for name, value in values.items() if value is not None})

    @classmethod
    def of(cls, line: str) -> Entry:
        """Return the page of a line.

        :raises TypeError: a value has the wrong type.
        """
        values = json.loads(line)
        entry = cls(
            values.get("key") or values["url"],
            values["url"],
            values["digest"],
            values.get("status"),
            values["firstSeen"],
            values["lastSeen"],
            values["lastChange"],
            values.get("missing", 0),
        )
        texts = (entry.key, entry.url, entry.digest, entry.first_seen, entry.last_seen, entry.changed)
        if (
            {*map(type, texts)} != {str}
            or not isinstance(entry.missing, int)
            or not (entry.status is None or isinstance(entry.status, int))
        ):
            raise TypeError("a value has the wrong type")
        return entry
