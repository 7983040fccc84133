# SPDX-License-Identifier: Apache-2.0
"""Modules that the provider's metadata names."""

from __future__ import annotations

from airflow_provider_webdata.get_provider_info import get_provider_info


def modules_of(*rooms: str) -> list[str]:
    """Return the modules of these rooms, in the order of the metadata.

    :param rooms: keys of the metadata, such as `operators`, `transfers`, or `retry-policies`.
    """
    entries = [entry for room in rooms for entry in get_provider_info()[room]]
    # A transfer has one module, between two integrations.
    return [name for entry in entries for name in entry.get("python-modules") or [entry["python-module"]]]
