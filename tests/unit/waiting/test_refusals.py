# SPDX-License-Identifier: Apache-2.0
"""Waits of one connection, whose polls fail in every combination: each judges its own answers."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_webdata.api.errors import AuthenticationError, EntitlementError, ServerError
from airflow_provider_webdata.states.answers import OUTAGE_SECONDS, is_refusal
from airflow_provider_webdata.states.jobs import JobView
from airflow_provider_webdata.waiting import target as targets
from airflow_provider_webdata.waiting.job_target import JobTarget
from airflow_provider_webdata.waiting.mailbox import Mailbox, Notice, WaitFailedError
from airflow_provider_webdata.waiting.poll_source import _BATCH, PollSource
from airflow_provider_webdata.waiting.subjects import JobSubject

STEP = OUTAGE_SECONDS / 2
ANSWERS = {
    "ok": None,
    "401": AuthenticationError("crawl status", 401, "no"),
    "403": EntitlementError("crawl status", 403, "no"),
    "503": ServerError("crawl status", 503, "down"),
}


class ScriptedSubject(JobSubject):
    __slots__ = ("script",)

    async def poll(self, call: Any) -> list[tuple[Any, Any]]:
        if (error := self.script.pop(0)) is not None:
            raise error
        return [(target, JobView("crawl", "j", "scraping")) for target in self.targets]


class ScriptedTarget(JobTarget):
    __slots__ = ()
    subject_class = ScriptedSubject


def seen(mailbox: Mailbox) -> list[str]:
    """Return what a wait learns of refusals."""
    found = []
    while True:
        try:
            item = mailbox.pop()
        except WaitFailedError as error:
            found.append(f"end {error.verdict}")
            continue
        if item is None:
            return found
        if isinstance(item, Notice) and "HTTP 40" in item.text:
            found.append("warn")
        if isinstance(item, Notice) and "accepts" in item.text:
            found.append("accepted")


def expected(history: tuple[str, ...]) -> list[list[str]]:
    found, since = [], None
    for number, name in enumerate(history):
        said = []
        if name == "ok":
            said = ["accepted"] if since is not None else []
            since = None
        elif is_refusal(ANSWERS[name]):
            if since is None:
                since, said = number, ["warn"]
            elif (number - since) * STEP >= OUTAGE_SECONDS:
                said = ["end later"]
        found.append(said)
    return found


async def play(histories: Sequence[tuple[str, ...]], clock: SimpleNamespace) -> list[list[list[str]]]:
    """Return what each wait learns, by round."""
    polls = PollSource(SimpleNamespace(conn_id="c", count_poll=lambda _: None, call=None))  # type: ignore[arg-type]
    waits = []
    for number, history in enumerate(histories):
        target = ScriptedTarget("crawl", f"j{number}", 1.0, logging.getLogger())
        target.mailbox = Mailbox()
        subject: Any = polls.add(target)
        subject.script = [ANSWERS[name] for name in history]
        waits.append((target, subject))
    said: list[list[list[str]]] = [[] for _ in waits]
    for _ in histories[0]:
        for _, subject in waits:
            subject.due = 0.0
        await polls._round()
        clock.now += STEP
        for lines, (target, _) in zip(said, waits, strict=True):
            lines.append(seen(target.mailbox))
    return said


def test_a_refused_poll_says_nothing_of_later_ones() -> None:
    """Of more waits than are polled together, only the first is refused."""
    histories = [("401",), *[("ok",)] * 2 * _BATCH]
    found = asyncio.run(play(histories, SimpleNamespace(now=0.0)))
    assert found == [[["warn"]], *[[[]]] * 2 * _BATCH]


@pytest.mark.slow
@pytest.mark.rule("status-401", "status-403")
@pytest.mark.parametrize(("kinds", "length"), [(("ok", "401", "403"), 4), (("ok", "401", "503"), 3)])
def test_all_short_histories_of_two_waits(
    monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...], length: int
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(targets, "time", SimpleNamespace(monotonic=lambda: clock.now))

    async def play_all() -> int:
        count = 0
        each = [*itertools.product(kinds, repeat=length)]
        wanted = {history: expected(history) for history in each}
        for histories in itertools.product(each, repeat=2):
            found = await play(histories, clock)
            assert found == [wanted[history] for history in histories], histories
            count += 1
        return count

    assert asyncio.run(play_all()) == 3 ** (2 * length)
