# SPDX-License-Identifier: Apache-2.0
"""The name of this Airflow."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.hooks.environment import environment


def test_the_environment_is_that_of_the_servers_url(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment() == "localhost"
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTION_API_SERVER_URL", "http://api.airflow:8080/execution/")
    assert environment() == "api.airflow"
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/team")
    assert environment() == "airflow.example"
    monkeypatch.setenv("AIRFLOW__WEBDATA__ENVIRONMENT", " production ")
    assert environment() == "production"
