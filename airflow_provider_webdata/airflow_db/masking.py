# SPDX-License-Identifier: Apache-2.0
"""Masking of secrets in the log of Airflow's core, whose masker is separate from the task SDK's."""

from airflow._shared.secrets_masker import mask_secret

__all__ = ["mask_secret"]
