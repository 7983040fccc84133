# SPDX-License-Identifier: Apache-2.0
"""Assets that start DAGs in Airflow's tables, and the registration of their events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.assets.manager import asset_manager
from airflow.models.asset import (
    AssetDagRunQueue,
    AssetModel,
    DagScheduleAssetAliasReference,
    DagScheduleAssetNameReference,
    DagScheduleAssetReference,
    DagScheduleAssetUriReference,
)
from airflow.models.dag import DagModel
from sqlalchemy import func, select

from airflow_provider_webdata.assets.uri import SCHEME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy.orm import Session

__all__ = ["ACTIVE", "QUEUEABLE", "SCHEDULED", "UNCONSUMED", "AssetModel", "register_event"]

_OURS = select(AssetModel).where(
    AssetModel.uri.startswith(f"{SCHEME}://", autoescape=True),
    ~AssetModel.watchers.any(),
)
_HAS_DAG = AssetModel.active.has() & AssetModel.scheduled_dags.any(
    DagScheduleAssetReference.dag.has(DagModel.is_stale.is_(False) & DagModel.is_paused.is_(False))
)
SCHEDULED = _OURS.where(_HAS_DAG)
"""This package's assets on which an active DAG is scheduled.

Excludes assets with a watcher, which handles them. Airflow keeps watchers only for assets with an active DAG, too.
"""

QUEUEABLE = _OURS.where(
    _HAS_DAG
    | AssetModel.scheduled_dags.any(
        DagScheduleAssetReference.dag.has(
            DagModel.has_import_errors.is_(True) & DagModel.is_paused.is_(False)
        )
    )
)
"""The assets in `SCHEDULED`, and those whose DAG is inactive while its file cannot be imported."""

ACTIVE = select(AssetModel).where(
    AssetModel.uri.startswith(f"{SCHEME}://", autoescape=True), AssetModel.active.has()
)
"""This package's assets that an active DAG refers to."""

# A DAG that also waits for other assets may never start its run.
_SCHEDULED_ON_ONE = (
    select(DagScheduleAssetReference.dag_id)
    .group_by(DagScheduleAssetReference.dag_id)
    .having(func.count() == 1)
)
_OTHER_REFERENCES = (
    DagScheduleAssetAliasReference,
    DagScheduleAssetNameReference,
    DagScheduleAssetUriReference,
)
UNCONSUMED = (
    select(AssetDagRunQueue.asset_id)
    .join(DagModel, DagModel.dag_id == AssetDagRunQueue.target_dag_id)
    .where(
        DagModel.is_stale.is_(False),
        DagModel.is_paused.is_(False),
        DagModel.dag_id.in_(_SCHEDULED_ON_ONE),
        *(DagModel.dag_id.not_in(select(reference.dag_id)) for reference in _OTHER_REFERENCES),
    )
)
"""Ids of the assets for whose last event a DAG that is scheduled on this asset alone has not started its run yet."""


def register_event(
    session: Session, assets: Iterable[AssetModel], extra: dict[str, Any]
) -> list[Callable[[], None]]:
    """Register an event of each asset in one savepoint; return the notifications to send after the commit.

    :raises Exception: Airflow or the database refuses an event; none is registered.
    """
    notifications: list[Callable[[], None]] = []
    with session.begin_nested():
        for asset in assets:
            # Until Airflow 3.3.1, the sink is ignored: docs/contributing/upstream/listeners_before_commit.md
            asset_manager.register_asset_change(
                asset=asset, extra=extra, session=session, callback_sink=notifications
            )
    return notifications
