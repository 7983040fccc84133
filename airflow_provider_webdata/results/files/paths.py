# SPDX-License-Identifier: Apache-2.0
"""Rules for the paths that authors write, and the `*` that becomes the name of a task instance.

`save_to="s3://lake/shop/*.parquet"` gives each task instance a separate file, which a retry replaces.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from datetime import timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.formats import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import datetime

    from jinja2 import nodes

log = logger(__name__)

# Object stores know names such as `$web`, so only the spelling of environment variables counts.
_VARIABLE = re.compile(r"\$(?:\{|[A-Z_])")
# One slash after an empty host or a connection: fsspec reads a host, and a second slash, as a relative folder.
_FILE_URL = re.compile(r"(?:file|local)://(?:[^/@]*@)?/(?!/)", re.IGNORECASE)
_FILE = re.compile(r"(?:file|local):", re.IGNORECASE)

# The parts of an instance's name, with dashes and a digest of 12 characters: at most 116.
_RUN_LENGTH, _TASK_LENGTH, _INDEX_LENGTH = 40, 40, 10

SAME_IN_INSTANCES = frozenset(
    (
        *("conn", "dag", "dag_run", "params", "run_id", "var", "ti.dag_id", "ti.run_id", "ti.task_id"),
        *("data_interval_end", "data_interval_start", "logical_date", "partition_date", "partition_key"),
        *("ds", "ds_nodash", "ts", "ts_nodash", "ts_nodash_with_tz"),
    )
)
"""Template variables with one value for all instances of a mapped task in a run."""

SAME_IN_RUNS = frozenset(("conn", "dag", "var", "ti.dag_id", "ti.map_index", "ti.task_id"))
"""Template variables with one value for all runs of a task."""

_AIRFLOW_FILTERS = frozenset(("ds", "ds_nodash", "ts", "ts_nodash", "ts_nodash_with_tz"))


def path_problem(path: str) -> str | None:
    """Return why no storage may resolve a path, and what to write; None if there is no problem."""
    if path.startswith("~"):
        return "~ is not expanded: write the whole path, such as /home/airflow/pages.jsonl"
    if _VARIABLE.search(path):
        return (
            "environment variables are not expanded: use {{ var.value.name }}, or os.environ in the DAG file"
        )
    if _FILE.match(path) and not _FILE_URL.match(path):
        return (
            "the URL of a local file has three slashes and no host: write file:///folder/name or /folder/name"
        )
    return None


def check_path(argument: str, path: str, *, starred: bool = False) -> None:
    """Check a path after rendering, or a literal one.

    :param argument: name of the argument, for the message.
    :param starred: `*` is allowed once, in the last part of the path.
    :raises OutputError: names the argument, and what to write.
    """
    problem = path_problem(path)
    if problem is None and "*" in path:
        if not starred:
            of_file = ": pass the output of the task that writes the file" if argument == "path" else ""
            problem = f"* has a meaning only in save_to{of_file}"
        elif path.count("*") > 1 or "*" in path.rpartition("/")[0]:
            problem = "* may occur once, in the name of the file, as in s3://bucket/folder/*.jsonl"
    if problem:
        raise OutputError(f"{argument}: {problem} (given: {path!r})")


@functools.cache
def warn_if_relative(argument: str, path: str) -> None:
    """Log a warning if a path is relative, once in a process.

    :param argument: name of the argument.
    """
    if "://" not in path and not path.startswith("/"):
        log.warning(
            "%s: the path %s is relative, and each worker has a separate folder. Write an absolute path, or the URL "
            "of a storage that all workers reach",
            argument,
            path,
        )


def instance_path(path: str, instance: Sequence[str | int | None], moment: datetime | None) -> str:
    """Return a path with the name of a task instance in place of `*`; see `instance_name`."""
    return path.replace("*", instance_name(instance, moment)) if "*" in path else path


def instance_name(instance: Sequence[str | int | None], moment: datetime | None) -> str:
    """Return a name for the file of a task instance, the same in each of its attempts.

    It begins with the time of the run, so that names sort by run. No two instances share a name. It has at most 120
    characters, which are ASCII letters, digits, `-`, and `_`.

    :param instance: DAG id with the environment, run id, task id, map index, and parts that distinguish iterations; see
        `shared_identity`.
    :param moment: time of the run; None: its id is in the name.
    """
    dag_id, run_id, task_id, index, *region = instance
    index = -1 if index is None else index
    digest = hashlib.sha256(json.dumps([dag_id, run_id, task_id, index, *region]).encode()).hexdigest()[:12]
    run = f"{moment.astimezone(timezone.utc):%Y%m%dT%H%M%SZ}" if moment else str(run_id)
    parts = (
        *(_slug(run, _RUN_LENGTH), _slug(str(task_id), _TASK_LENGTH)),
        # The last part of a region is the number of the iteration.
        *(_slug(str(number), _INDEX_LENGTH) for number in (index, *region[-1:]) if number != -1),
    )
    return "-".join([*filter(None, parts), digest])


def _slug(text: str, length: int) -> str:
    # Readers of folders skip names that begin with an underscore.
    return re.sub(r"[^A-Za-z0-9_]+", "-", text)[:length].strip("-_")


def with_star(path: str) -> str:
    """Return a path as an author may write it to give each instance a file."""
    suffix = next((end for end in SUFFIXES if path.endswith(end)), None)
    # A template may be the whole path.
    return "s3://bucket/folder/*.jsonl" if suffix is None else f"{path.removesuffix(suffix)}-*{suffix}"


def shared_file(path: str) -> str:
    """Return the message about a file that the instances of a mapped task share."""
    return (
        "save_to: all instances of the mapped task would write the same file, and each would replace that of the "
        f"others. {_advice(path)}"
    )


def replaced_changes(path: str) -> str:
    """Return the message about a file of changes that each run replaces."""
    return (
        "save_to: each run would replace the file of the run before, whose changes no later run emits again "
        f"(Changes(emit='changed')). {_advice(path)}"
    )


def _advice(path: str) -> str:
    return f"Write *, which becomes a name of the task instance: save_to={with_star(path)!r}"


def is_same(template: str, parse: Callable[[str], nodes.Template], same: Collection[str]) -> bool:
    """Return whether a template certainly renders to the same text, because its variables have the same values.

    :param parse: parses a template, with the marks of its DAG.
    :param same: `SAME_IN_INSTANCES` or `SAME_IN_RUNS`.
    """
    from jinja2 import nodes
    from jinja2.filters import FILTERS

    tree = parse(template)
    filters = {found.name for found in tree.find_all(nodes.Filter)}
    # Also the DAG's own macros, which the template environment declares.
    return filters <= (FILTERS.keys() | _AIRFLOW_FILTERS) - {"random"} and {*_variables(tree)} <= {*same}


def _variables(tree: Any) -> Iterator[str]:
    """Yield the variables of a template; of a task instance, the attribute that is used."""
    from jinja2 import nodes

    used = [
        found
        for found in tree.find_all(nodes.Getattr)
        if isinstance(found.node, nodes.Name) and found.node.name in ("ti", "task_instance")
    ]
    instances = {id(found.node) for found in used}
    yield from (f"ti.{found.attr}" for found in used)
    yield from (found.name for found in tree.find_all(nodes.Name) if id(found) not in instances)
