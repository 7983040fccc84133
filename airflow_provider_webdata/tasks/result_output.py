"""Where the results of operators and sensors go: XCom or a file, with their media, asset events and lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.coded_errors import CodedError
from airflow_provider_webdata.options import Media, Output
from airflow_provider_webdata.run_span import run_span, time_zone_of
from airflow_provider_webdata.tasks.arguments import checked_text
from airflow_provider_webdata.tasks.literals import is_literal
from airflow_provider_webdata.tasks.service_task import ServiceTask
from airflow_provider_webdata.tasks.spending import BillingOperator, SpendingTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models.base import ResponseModel
    from airflow_provider_webdata.results.columns import Column
    from airflow_provider_webdata.results.lineage import WrittenFile
    from airflow_provider_webdata.results.media import MediaReport
    from airflow_provider_webdata.results.output import Output as OutputFile
    from airflow_provider_webdata.results.partitions import PartitionedOutput
    from airflow_provider_webdata.tasks.kept_answer import KeptAnswer


class ResultDelivery(SpendingTask):
    """Base of operators and sensors whose results may go to a file instead of XCom, and whose pages' media may be kept.

    Airflow gives every operator an attribute `output`, which stands for its XCom. The argument `output` is therefore
    the attribute (and the rendered field) `output_to`.

    :param output: path or URL of a file for the results, or `Output` (templated). Default: XCom.
    :param media: path or URL of a folder for screenshots and other media, or `Media` (templated). Default: they are not
        kept.
    :param kwargs: arguments of the other base classes.
    """

    template_fields: Sequence[str] = (*ServiceTask.template_fields, "output_to", "media")

    _lineage_inputs: Sequence[str] = ()
    _written: WrittenFile | None = None

    def __init__(
        self,
        *,
        output: Output | str | None = None,
        media: Media | str | None = None,
        **kwargs: Any,
    ) -> None:
        output_to = Output.of(output)
        if output_to is not None and isinstance(output_to.path, str) and is_literal(output_to.path):
            from airflow_provider_webdata.results.output import format_of

            format_of(output_to.path)
        super().__init__(**kwargs)
        self.output_to = output_to
        self.media = Media.of(media)

    @property
    def output_path(self) -> str | None:
        """Path or URL of the file for the results; None: they go to XCom."""
        return None if self.output_to is None or self.output_to.path is None else str(self.output_to.path)

    def check_result_arguments(self) -> None:
        """Fail the task for good where results or media could not be written, before anything is paid for."""
        from airflow_provider_webdata.results.errors import OutputError

        try:
            if self.output_path is not None:
                from airflow_provider_webdata.results.output import check_output

                check_output(self.output_path)
            if self.media is not None:
                from airflow_provider_webdata.results.storage import check_folder

                if checked_text(self.media.folder) is None:
                    self.refuse(f"media must name a folder (given after rendering: {self.media.folder!r})")
                check_folder(str(self.media.folder))
        except OutputError as error:
            self.refuse(error)

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
        """Deliver the results, and return what becomes the task's XCom.

        With `output`, the items are written as they come, and the XCom is the summary with `path`, `count` and
        `bytes`. Without, it is what `value` makes of the items, or the summary with `count` and the items under
        `data`; a warning names `output` where that is large, and it is pushed all the same.

        :param items: JSON objects as the service sent them; they may come page by page.
        :param kind: what they are, see `results.columns.columns_of`.
        :param summary: facts about the call with wire names (`id`, `creditsUsed`, ...); read after the last item, so
            that it may be filled meanwhile.
        :param inputs: the query or the URLs, for OpenLineage.
        :param value: makes the XCom of the items and the facts (the summary, `count`, `media`).
        """
        from airflow_provider_webdata.results.assets import annotate_outlets
        from airflow_provider_webdata.results.media import MediaReport
        from airflow_provider_webdata.results.xcom import warn_if_large

        report = MediaReport()
        self._lineage_inputs = tuple(inputs)
        items = self.with_media(items, report)
        documents = self.output_to is not None and self.output_to.documents
        if documents and kind == "generic":
            self.log.warning(
                "Output(documents=True) has no effect: the results are no pages, search results, or links"
            )
        elif documents:
            from airflow_provider_webdata.results.retrieval import KIND, flat_documents

            items, kind, value = flat_documents(items), KIND, None
        if self.output_path is not None:
            facts = self._facts(summary, self._write(items, kind, context), report)
            result: Any = facts
        else:
            data = [*items]
            facts = self._facts(summary, {"count": len(data)}, report)
            result = {**facts, "data": data} if value is None else value(data, facts)
            warn_if_large(result, self.log)
        annotate_outlets(context, facts)
        return result

    def finished(self, result: Any, context: Context) -> Any:  # noqa: ARG002
        """Return the result of a task that has delivered it."""
        return result

    def columns(self, kind: str) -> tuple[Column, ...]:
        """Return the columns of a table of the results."""
        from airflow_provider_webdata.results.columns import columns_of

        return columns_of(kind)

    def with_media(self, items: Iterable[Any], report: MediaReport) -> Iterator[Any]:
        """Yield the items, a few at a time, with their media kept and their links replaced if `media` is set."""
        media = self.media
        if media is None:
            yield from items
            return
        from airflow_provider_webdata.hosts import url_host
        from airflow_provider_webdata.results.media import keep_media
        from airflow_provider_webdata.results.media_fetch import MediaSettings

        connection = self.hook.get_settings()
        client = connection.client
        settings = MediaSettings(
            max_bytes=int(media.max_mb * 2**20),
            concurrency=media.concurrency,
            verify=client.verify,
            ca_file=client.ca_file,
            proxy=client.proxy,
            hosts=connection.media_hosts | {url_host(client.base_url) or ""},
            keep_svg=media.keep_svg,
        )
        yield from keep_media(items, str(media.folder), settings, report)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any | None:  # noqa: ARG002
        """Return what the task read and wrote; called by OpenLineage's listener where it is installed."""
        from airflow_provider_webdata.results.lineage import operator_lineage

        return operator_lineage(self._lineage_inputs, self._written, self.webdata_conn_id, self.webdata_page)

    def _write(self, items: Iterable[Any], kind: str, context: Context) -> dict[str, Any]:
        """Write the items, and return what XCom tells of the file or files."""
        from airflow_provider_webdata.results.partitions import PartitionedOutput

        with self._opened(kind, context) as file:
            file.write(items)
        self._keep_written(file)
        counts: dict[str, Any] = {"path": file.url, "count": file.count, "bytes": file.bytes}
        return {**counts, "files": file.files} if isinstance(file, PartitionedOutput) else counts

    def _opened(self, kind: str, context: Context) -> OutputFile | PartitionedOutput:
        from airflow_provider_webdata.results.output import open_output
        from airflow_provider_webdata.results.partitions import open_partitions

        partition_by = None if self.output_to is None else self.output_to.partition_by
        if partition_by is None:
            return open_output(str(self.output_path), self.columns(kind))
        start, _ = run_span(context["dag_run"], time_zone_of(context.get("dag")))
        day = start.date().isoformat()
        return open_partitions(str(self.output_path), self.columns(kind), partition_by, day)

    def _keep_written(self, file: OutputFile | PartitionedOutput) -> None:
        from airflow_provider_webdata.results.lineage import WrittenFile

        columns = file.columns if file.format == "parquet" else ()
        self._written = WrittenFile(file.url, file.count, file.bytes, columns)
        self.log.info("Wrote %d results, %d bytes, to %s", file.count, file.bytes, file.url)

    def _facts(
        self, summary: Mapping[str, Any], counts: Mapping[str, Any], report: MediaReport
    ) -> dict[str, Any]:
        if self.media is None:
            return {**summary, **counts}
        if report.failed:
            self.log.warning("%d media files could not be kept: %s", report.failed, "; ".join(report.errors))
        self.log.info("Kept %d media files, %d bytes, in %s", report.kept, report.bytes, self.media.folder)
        return {**summary, **counts, "media": report.to_wire()}


class ResultOutput(ResultDelivery, BillingOperator):
    """Base of operators that deliver what one call brings; see `ResultDelivery`.

    An answer that was paid for and could not be delivered is kept for the next attempt, which delivers it and makes no
    call, provided that it would make the same: in Airflow's task state store (3.3), up to 16 MiB, else beside the
    output. Where neither takes it, the task fails without a retry, and the answer is in its XCom `undelivered`.

    :param kwargs: arguments of `ResultDelivery`, `BillingOperator`, `WebDataOperator` and `BaseOperator`.
    """

    template_fields: Sequence[str] = (*BillingOperator.template_fields, "output_to", "media")

    _paid: KeptAnswer | None = None

    def execute(self, context: Context) -> Any:
        """Check where the results are to go, then call the service."""
        self.check_result_arguments()
        try:
            result = super().execute(context)
        # A task whose time is over is ended by an exception of this kind.
        except BaseException as error:
            self._keep_answer(error, context)
            raise
        if self._paid is not None:
            self._paid.delivered()
        return self.finished(result, context)

    def paid_answer(
        self,
        operation: str,
        body: Mapping[str, Any],
        context: Context,
        call: Callable[[], ResponseModel],
        *,
        extra_body: Mapping[str, Any] | None = None,
        filename: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Return the answer of a call that bills, in wire form: one that an earlier attempt kept, or a new one.

        :param operation: as `api.prices.price_bound` calls it.
        :param body: the request in wire form.
        :param call: makes the call.
        :param extra_body: what is sent with it unchecked.
        :param filename: of an upload, which says whether it is a PDF.
        :param more: what else the call depends on, as JSON.
        :raises CreditLimitError: the call may exceed `credit_limit`.
        """
        from airflow_provider_webdata.tasks.kept_answer import KeptAnswer

        request = {operation: body, "extra": extra_body, **more}
        account = self.hook.get_settings().client.account
        self._paid = KeptAnswer(request, account, self.output_path, context, self.log)

        def sent() -> dict[str, Any]:
            priced = body if filename is None else {**body, "filename": filename}
            with self.within_credit_limit(operation, priced, context, extra_body):
                return call().to_wire()

        return self._paid.or_call(sent)

    def count_answer(
        self, used: Any, context: Context, operation: str, answer_id: str | None, **parts: Any
    ) -> None:
        """Count what the answer cost, once for all attempts.

        :param used: credits, as the service says; None where it does not.
        :param operation: its name.
        :param answer_id: the answer's, where it has one.
        :param parts: `formats` and `scraping` of `count_credits`.
        """
        paid = self._paid
        is_earlier = paid is not None and paid.is_earlier
        self.count_credits(
            used,
            context,
            operation,
            call=answer_id or (paid.name if paid is not None else None),
            saved=used or 0 if is_earlier else 0,
            is_earlier=is_earlier,
            **parts,
        )

    def _keep_answer(self, error: BaseException, context: Context) -> None:
        """Keep an answer that was not delivered; fail the task for good where that is not possible."""
        if self._paid is None or self._paid.answer is None or self._paid.keep():
            return
        from airflow_provider_webdata.tasks.failures import UndeliveredAnswerError

        way_out = "clear the task to make the call again"
        try:
            context["ti"].xcom_push("undelivered", self._paid.answer)
            way_out = f"the answer is in this attempt's XCom 'undelivered': take it from there, or {way_out}"
        except Exception as failure:  # noqa: BLE001 - whatever happens here, no retry may pay again
            self.log.warning("The answer cannot be pushed to XCom either: %s", failure)
        undelivered = UndeliveredAnswerError(
            f"The answer was paid for and could not be delivered: {str(error) or type(error).__name__}. Nor could it "
            f"be kept for a retry, which would pay for it again: none is made; {way_out}"
        )
        raise self.explained(undelivered) from (None if isinstance(error, CodedError) else error)
