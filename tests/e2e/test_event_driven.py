"""Event-driven DAGs on a real Airflow: one event for each completed check, also across the death of a triggerer."""

from __future__ import annotations

from tests.e2e.conftest import DATABASES, on
from tests.e2e.killed_triggerer import EVENT_DRIVEN, KilledTriggerer
from tests.support.stack import Stack


@on(*DATABASES)
def test_one_run_for_each_check_and_none_lost_or_repeated_by_a_killed_triggerer(
    stack: Stack, killed_triggerer: KilledTriggerer
) -> None:
    # Before the triggerer was killed, while it was dead, and afterwards.
    killed_triggerer.see_check()
    killed_triggerer.make_check()
    killed_triggerer.see_check()

    assert len(killed_triggerer.checks) == 3
    for dag_id in EVENT_DRIVEN:
        assert killed_triggerer.checks_of_events(dag_id) == killed_triggerer.checks
        runs = stack.api.runs(dag_id)
        assert (len(runs), {run["run_type"] for run in runs}) == (3, {"asset_triggered"})
