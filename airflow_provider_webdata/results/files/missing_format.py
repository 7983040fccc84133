# SPDX-License-Identifier: Apache-2.0
"""The error of a file format without its package, apart because it needs Airflow."""

from airflow_provider_webdata.common.supported_airflow import require_airflow
from airflow_provider_webdata.results.errors import OutputError

require_airflow()

from airflow.sdk.exceptions import AirflowOptionalProviderFeatureException  # noqa: E402


class MissingFormatError(OutputError, AirflowOptionalProviderFeatureException):
    """The package that a file format needs is not installed."""
