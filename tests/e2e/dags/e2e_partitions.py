"""The example DAGs of partitions, unchanged; they need an Airflow whose tasks can emit partitions."""

from __future__ import annotations

import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from airflow_provider_webdata.common.supported_airflow import PARTITION_EVENTS, airflow_release

if airflow_release() >= PARTITION_EVENTS:
    for file in Path(os.environ["E2E_EXAMPLES"], "partitions").glob("*.py"):
        spec = spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        vars().update(
            {f"{file.stem}_{name}": value for name, value in vars(module).items() if "webdata_" in name}
        )
