# SPDX-License-Identifier: Apache-2.0
"""Addresses of the project."""

from __future__ import annotations

REPOSITORY = "https://github.com/airflow-provider-webdata/airflow-provider-webdata"
"""The repository, whose addresses `[project.urls]` of pyproject.toml lists."""

SITE = "https://airflow-provider-webdata.github.io/airflow-provider-webdata/"
"""The published documentation, to which `.github/workflows/docs.yml` writes."""


def docs_link(page: str) -> str:
    """Return the address of a page of the documentation.

    :param page: path below `docs`, with an anchor if needed, such as `errors.md#wd-001`.
    """
    path, _, anchor = page.partition(".md")
    return f"{SITE}{path}.html{anchor}"


def error_link(code: str) -> str:
    """Return the address of the section about an error code."""
    return docs_link(f"errors.md#{code.lower()}")
