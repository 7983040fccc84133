"""Rendering that leaves text without a template unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.literals import is_template

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import BaseOperator, Context
else:
    BaseOperator = object


class LiteralText(BaseOperator):
    """Operator mixin. A DAG with `render_template_as_native_obj` would turn text such as `"2026"` into a number."""

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


def _has_own_marks(env: jinja2.Environment | None) -> bool:
    """Return whether a DAG writes its templates with other marks (`jinja_environment_kwargs`)."""
    return env is not None and (
        (env.block_start_string, env.variable_start_string, env.comment_start_string) != ("{%", "{{", "{#")
        or env.line_statement_prefix is not None
    )
