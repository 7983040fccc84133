# SPDX-License-Identifier: Apache-2.0
"""Which packages get their lower bounds."""

from __future__ import annotations

from tools.lowest import direct


def test_those_that_a_project_names() -> None:
    resolution = """\
ada-url==1.27.0    # via airflow-provider-webdata (pyproject.toml)
aiosqlite==0.21.0  # via apache-airflow-core
httpx==0.27.0      # via airflow-provider-webdata-sandbox (sandbox/pyproject.toml), apache-airflow-core
lxml==5.2.0        # via airflow-provider-webdata-sandbox (sandbox/pyproject.toml)
"""
    assert direct(resolution) == "ada-url==1.27.0\nhttpx==0.27.0\nlxml==5.2.0\n"
