"""Delivery of results for the operators and sensors of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.tasks.spending import SpendingTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.options import Changes, Media, Output, Schema
    from airflow_provider_webdata.runs.delivery.delivery import Delivery


class ResultDelivery(SpendingTask):
    """Base of operators and sensors that deliver results; see `runs.delivery`.

    Airflow gives every operator an attribute `output`, which stands for its XCom. The argument `output` is therefore
    the attribute (and the rendered field) `output_to`.
    """

    output_to: Output | None = None
    media: Media | None = None
    changes: Changes | None = None
    result_schema: Schema | None = None
    _delivery: Delivery | None = None

    @property
    def output_path(self) -> str | None:
        """Path or URL of the file for the results; None: they go to XCom."""
        return None if self.output_to is None or self.output_to.path is None else str(self.output_to.path)

    def prepare_delivery(self, context: Context) -> Delivery:
        """Return the delivery of an attempt. Fail the task for good if an option cannot work."""
        from airflow_provider_webdata.results.errors import OutputError
        from airflow_provider_webdata.runs.delivery.delivery import Delivery

        self._delivery = delivery = Delivery(
            context,
            self.log,
            lambda: self.hook.get_settings(),
            output=self.output_to,
            media=self.media,
            changes=self.changes,
            schema=self.result_schema,
            request=self.request_body,
        )
        try:
            delivery.prepare()
        except OutputError as error:
            self.refuse(error)
        return delivery

    def delivery(self, context: Context) -> Delivery:
        """Return the delivery of this attempt."""
        if self._delivery is None or self._delivery.context is not context:
            return self.prepare_delivery(context)
        return self._delivery

    def deliver(
        self,
        items: Iterable[Any],
        kind: str,
        context: Context,
        summary: Mapping[str, Any],
        *,
        inputs: Sequence[str] = (),
        value: Callable[[list[Any], dict[str, Any]], Any] | None = None,
    ) -> Any:
        """Deliver results, and return the task's XCom; see `Delivery.deliver` and `Results`."""
        from airflow_provider_webdata.runs.delivery.step import Results

        delivery = self.delivery(context)
        known = self.known_pages(context) if self.changes is not None else ()
        results = Results(items, kind, summary, inputs, known, self.covers_all)
        result = delivery.deliver(results, value)
        self.push(context, **delivery.facts)
        return result

    def finished(self, result: Any, context: Context) -> Any:
        """Return the result of a task, unless its delivery fails or skips it."""
        if self._delivery is not None:
            from airflow_provider_webdata.runs.failures import InvalidResultsError

            try:
                self._delivery.verdict()
            except InvalidResultsError as error:
                # A task that fails returns nothing: what was billed goes where the return value would be.
                self.push(context, return_value=result)
                self.refuse(error)
        return result

    def rows_path(self) -> list[str]:
        """Return the path of the list of results in the data."""
        return [] if self.result_schema is None else self.result_schema.rows_path

    def covers_all(self, count: int) -> bool:  # noqa: ARG002
        """Return whether a call that returned so many results saw everything."""
        return True

    def known_pages(self, context: Context) -> Sequence[str]:  # noqa: ARG002
        """Return the keys of pages that exist and were not requested."""
        return ()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any | None:  # noqa: ARG002
        """Return what the task read and wrote; called by OpenLineage's listener where it is installed."""
        from airflow_provider_webdata.results.lineage import operator_lineage

        delivery = self._delivery
        return operator_lineage(
            () if delivery is None else delivery.inputs,
            None if delivery is None else delivery.written,
            self.webdata_conn_id,
            self.webdata_page,
        )
