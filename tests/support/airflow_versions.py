# SPDX-License-Identifier: Apache-2.0
"""What the tested Airflow has."""

from __future__ import annotations

import airflow.sdk.execution_time.context
import pytest

HAS_STORE = hasattr(airflow.sdk.execution_time.context, "TaskStateStoreAccessor")
"""Whether it has a task state store (3.3 and later)."""

NEEDS_MEMORY = pytest.mark.skipif(not HAS_STORE, reason="Airflow 3.2 keeps no state of a task")
