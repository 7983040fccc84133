# SPDX-License-Identifier: Apache-2.0
"""The wire models, one file per resource; a model's file is loaded when the model is first used.

Requests take wire (camelCase) or Python (snake_case) names and forbid unknown fields. Responses keep unknown
fields, so that a newer service never breaks an older provider. Written by tools/model_exports.py.
"""

# ruff: noqa: F403

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_webdata.api.models.actions import *
    from airflow_provider_webdata.api.models.agent import *
    from airflow_provider_webdata.api.models.base import *
    from airflow_provider_webdata.api.models.batch import *
    from airflow_provider_webdata.api.models.crawl import *
    from airflow_provider_webdata.api.models.developer import *
    from airflow_provider_webdata.api.models.document import *
    from airflow_provider_webdata.api.models.formats import *
    from airflow_provider_webdata.api.models.interact import *
    from airflow_provider_webdata.api.models.jobs import *
    from airflow_provider_webdata.api.models.map import *
    from airflow_provider_webdata.api.models.monitor import *
    from airflow_provider_webdata.api.models.monitor_records import *
    from airflow_provider_webdata.api.models.page import *
    from airflow_provider_webdata.api.models.parse import *
    from airflow_provider_webdata.api.models.providers import *
    from airflow_provider_webdata.api.models.research import *
    from airflow_provider_webdata.api.models.schedule import *
    from airflow_provider_webdata.api.models.scrape import *
    from airflow_provider_webdata.api.models.search import *
    from airflow_provider_webdata.api.models.team import *
    from airflow_provider_webdata.api.models.threat import *
    from airflow_provider_webdata.api.models.webhook import *
else:
    _MODELS = {
        "actions": (
            "Action ClickAction ExecuteJavascriptAction PdfAction PressAction ScrapeAction"
            " ScreenshotAction ScrollAction WaitAction WriteAction"
        ),
        "agent": (
            "AgentApproval AgentExchange AgentLocation AgentRefusal AgentRequest AgentStatus"
            " AgentWebhookConfig"
        ),
        "base": "Answer RequestModel ResponseModel",
        "batch": "BatchScrapeRequest",
        "crawl": (
            "ActiveCrawl ActiveCrawls CrawlParams CrawlParamsRequest CrawlParamsResponse CrawlRequest"
            " CrawlScope"
        ),
        "developer": "DeveloperPassage DeveloperResult DeveloperSearchRequest DeveloperSearchResponse",
        "document": "ActionResults Document ScrapeResponse",
        "formats": (
            "AttributeSelector AttributesFormat ChangeTrackingFormat DeterministicJsonFormat Format"
            " HighlightsFormat JsonFormat MonitorFormat PlainFormat QueryFormat QuestionFormat"
            " ScreenshotFormat Viewport"
        ),
        "interact": (
            "ExecuteRequest ExecuteResult InteractRequest InteractSession InteractSessions Replay"
            " ReplayPage ReplayPlaylist ScrapeInteractRequest ScrapeInteractResult SessionClosed"
        ),
        "jobs": "CancelResponse JobDocuments JobError JobErrors JobProgress JobStarted JobStatus",
        "map": "MapLink MapRequest MapResponse",
        "monitor": (
            "CrawlOptions CrawlTarget EmailNotification MonitorCreateRequest MonitorNotification"
            " MonitorTarget MonitorUpdateRequest ScrapeTarget SearchTarget"
        ),
        "monitor_records": (
            "CheckSummary DeleteResponse Judgment Monitor MonitorCheck MonitorCheckDetail"
            " MonitorCheckListResponse MonitorCheckPage MonitorCheckResponse MonitorListResponse"
            " MonitorResponse MonitorRunResponse PageDiff StoredEmail StoredNotification"
            " StoredSchedule StoredTarget StoredWebhook"
        ),
        "page": "ChangeTracking PageContent PageMetadata",
        "parse": (
            "FileFormat FileFormats FileFormatsResponse ParseFormat ParseOptions ParsePlainFormat"
            " ParseReferenceRequest ParseUpload ParseUploadRequest ParseUploadResponse"
        ),
        "providers": (
            "CallError DataTool FindToolsRequest ProviderCall ProviderRequest ProviderResponse"
            " ProviderResult ProviderResults ToolPage"
        ),
        "research": (
            "Paper PaperPassage PaperRequest PaperResponse PaperResult PaperSearchRequest"
            " PaperSearchResponse SimilarPapersRequest SimilarPapersResponse"
        ),
        "schedule": "MonitorSchedule",
        "scrape": (
            "AuditMetadata ImageParser Location MonitorScrapeOptions PageRequest Parser PdfParser"
            " PIIOptions Profile ScrapeOptions ScrapeRequest"
        ),
        "search": (
            "Category CategoryFilter ImageResult NewsResult OtherSource SearchData SearchRequest"
            " SearchResponse SearchScrapeOptions Source WebResult WebSource"
        ),
        "team": (
            "Activity ActivityItem Concurrency CreditHistory CreditPeriod CreditUsage"
            " CreditUsageResponse QueueStatus TokenHistory TokenPeriod TokenUsage TokenUsageResponse"
        ),
        "threat": "ThreatPolicy ThreatPolicyRequest ThreatPolicyResponse ThreatProtection",
        "webhook": "MonitorWebhookConfig PageJobWebhookConfig WebhookConfig",
    }
    _FILES = {name: file for file, names in _MODELS.items() for name in names.split()}

    __all__ = [*_FILES]

    def __getattr__(name: str) -> Any:
        if name not in _FILES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
        globals()[name] = value
        return value
