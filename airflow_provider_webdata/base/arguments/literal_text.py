# SPDX-License-Identifier: Apache-2.0
"""Rendering of the templates that a DAG's author wrote, and of nothing else."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from airflow.sdk import XComArg

from airflow_provider_webdata.common.literals import is_template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import jinja2
    from airflow.sdk import BaseOperator, Context
else:
    BaseOperator = object


class LiteralText(BaseOperator):
    """Operator mixin that leaves two kinds of text unchanged.

    Text without a template: a DAG with `render_template_as_native_obj` would turn text such as `"2026"` into a number.
    Values that `expand_kwargs` gets from another task: they may be text of a page, and Airflow would render it.
    """

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        if parent is self and (own := _own_arguments(self, context)) is not None:
            template_fields = [name for name in template_fields if _is_own(self, name, own)]
            if self.map_index_template is not None and not _is_own(self, "map_index_template", own):
                # `changes` names the instance by it.
                self.map_index_template = f"{{{{ {self.map_index_template!a} }}}}"
        super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)

    def render_template(
        self,
        content: Any,
        context: Context,
        jinja_env: jinja2.Environment | None = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """Render a value, at any depth. Text without a template is final."""
        if isinstance(content, str) and not is_template(content) and not _has_own_marks(jinja_env):
            return content
        return super().render_template(content, context, jinja_env, seen_oids)


def _own_arguments(task: BaseOperator, context: Context) -> Mapping[str, Any] | None:
    """Return what the DAG's author passed to a task that is expanded over dicts of another task, else None.

    The values of `expand` need no care: Airflow does not render them.
    """
    dag = task.get_dag()
    origin: Any = None if dag is None else dag.task_dict.get(task.task_id)
    source = getattr(getattr(origin, "expand_input", None), "value", None)
    if isinstance(source, (list, tuple)):
        source = source[context["ti"].map_index or 0]
    if not isinstance(source, XComArg):
        return None
    defaults = inspect.signature(type(task).__init__).parameters
    return {**{name: one.default for name, one in defaults.items()}, **origin.partial_kwargs}


def _is_own(task: BaseOperator, name: str, own: Mapping[str, Any]) -> bool:
    """Return whether an argument has the value that the DAG's author passed.

    With `strict=False`, a dict of another task replaces it.
    """
    return name in own and bool(own[name] == getattr(task, name, None))


def _has_own_marks(env: jinja2.Environment | None) -> bool:
    """Return whether a DAG writes its templates with other marks (`jinja_environment_kwargs`)."""
    return env is not None and (
        (env.block_start_string, env.variable_start_string, env.comment_start_string) != ("{%", "{{", "{#")
        or env.line_statement_prefix is not None
    )
