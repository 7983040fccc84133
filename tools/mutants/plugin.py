# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin that runs collected tests against mutants, each in a forked child.

A first child runs all tests without a mutant, measures them, and records the functions that each test reaches. The
parent process runs no test itself, so a mutant starts with empty caches.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.utils.format_utils import mangled_name_from_mutant_name

from tools.mutants.recorder import FOLDER, SIZE

# The time limit of a mutant's tests: their time without a mutant times TIMES, plus SECONDS.
TIMES, SECONDS = 5, 30
# Seconds after which orphaned processes of tests are killed.
ORPHAN_SECONDS = 10
# The time limit of the tests without a mutant.
HOUR = 3600
_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Child:
    """A forked process that runs tests."""

    name: str
    pid: int
    deadline: float
    late: bool = False


class Mutants:
    """Runs a session's tests against mutants."""

    def __init__(self, session: pytest.Session, order: dict[str, Any]) -> None:
        self._session = session
        self._order = order
        self._folder = Path(order["answer"]).parent
        self._failed: list[str] = []
        self._ends_with_failure = False
        self._orphans: dict[int, float] = {}
        self._kept: set[int] = set()
        # Created here, because the first use of the folder empties it.
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record failures."""
        if report.failed and report.nodeid not in self._failed:
            self._failed.append(report.nodeid)
            if self._ends_with_failure:
                # pytest then tears down all fixtures after this test.
                self._session.shouldfail = "The mutant is dead."

    def run(self) -> dict[str, Any]:
        """Run the tests against all mutants; return the results."""
        # Orphaned descendants become children of this process, so that it can kill them.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        with self._warm():
            self._kept = {process.pid for process in psutil.Process().children()}
            begin = _cpu()
            seconds, failing, covering = self._measure()
            results: dict[str, dict[str, Any]] = {}
            waiting = list(reversed(self._order["mutants"]))
            running: dict[int, Child] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < self._order["children"]:
                        name = waiting.pop()
                        tests = self._chosen(covering[mangled_name_from_mutant_name(name)] - failing, seconds)
                        if tests:
                            child = self._start(name, tests, self._limit(tests, seconds))
                            running[child.pid] = child
                        else:
                            results[name] = {"outcome": "no tests", "tests": 0, "cpu": 0}
                    if running and (ended := self._wait(running)):
                        results[ended[0].name] = ended[1]
            finally:
                for pid in running:
                    _kill(pid)
                self._wait_for_orphans()
        items = self._session.items
        return {
            "tests": len(items),
            "failing": sorted({items[number].nodeid for number in failing}),
            "cpu": round(_cpu() - begin, 1),
            "cpu without mutants": self._measured_cpu,
            "results": results,
        }

    @contextlib.contextmanager
    def _warm(self) -> Iterator[None]:
        """Keep the process that forks programs for tests running, if these tests use it."""
        if not any("warm" in item.fixturenames for item in self._session.items):
            yield
            return
        from tests.support.warm import Warm

        warm = Warm(self._folder / "tests" / "warm")
        warm.run(["-c", ""], env=warm.environ)
        yield
        warm.close()

    def _measure(self) -> tuple[list[float], set[int], dict[str, set[int]]]:
        """Return the seconds of each test, the failing tests, and the tests of each function; tests by number."""
        items = self._session.items
        folder = self._folder / "hits"
        folder.mkdir(exist_ok=True)
        (folder / "test").write_bytes(bytes(SIZE))
        (folder / "hits").write_bytes(b"")
        measured = folder / "measured"
        measured.unlink(missing_ok=True)

        def measure() -> None:
            seconds = []
            with (folder / "test").open("r+b", buffering=0) as current:
                for number, item in enumerate(items):
                    current.seek(0)
                    current.write((number + 1).to_bytes(SIZE, "big"))
                    begin = time.monotonic()
                    following = items[number + 1] if number + 1 < len(items) else None
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    seconds.append(time.monotonic() - begin)
            failing = [number for number, item in enumerate(items) if item.nodeid in self._failed]
            measured.write_text(json.dumps([seconds, failing]))

        os.environ[FOLDER] = str(folder)
        child = self._fork("stats", measure, HOUR)
        del os.environ[FOLDER]
        running = {child.pid: child}
        ended = None
        while ended is None:
            ended = self._wait(running)
        self._measured_cpu = ended[1]["cpu"]
        assert measured.exists(), "The tests could not be measured; see above."
        seconds, failing = json.loads(measured.read_text())
        covering: dict[str, set[int]] = defaultdict(set)
        for line in (folder / "hits").read_text().splitlines():
            number, _, function = line.partition(" ")
            if int(number):
                covering[function].add(int(number) - 1)
        return seconds, {*failing}, covering

    def _chosen(self, numbers: set[int], seconds: list[float]) -> list[int]:
        """Return tests in the order of their execution: file by file, the fastest file first."""
        files: dict[str, list[int]] = defaultdict(list)
        for number in sorted(numbers):
            files[self._file(number)].append(number)
        by_time = sorted(files.values(), key=lambda tests: sum(seconds[number] for number in tests))
        return [number for tests in by_time for number in tests]

    def _limit(self, tests: list[int], seconds: list[float]) -> float:
        """Return the time limit of tests in seconds. It allows for each file's fixtures: its slowest test."""
        files = {self._file(number) for number in tests}
        fixtures: dict[str, float] = defaultdict(float)
        for number, taken in enumerate(seconds):
            if (file := self._file(number)) in files:
                fixtures[file] = max(fixtures[file], taken)
        return SECONDS + TIMES * (sum(seconds[number] for number in tests) + sum(fixtures.values()))

    def _file(self, number: int) -> str:
        return self._session.items[number].nodeid.split("::")[0]

    def _start(self, name: str, tests: list[int], limit: float) -> Child:
        items = [self._session.items[number] for number in tests]
        killer = self._folder / f"killer-{name}"

        def run() -> None:
            self._ends_with_failure = True
            cpu = int(limit) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
            for number, item in enumerate(items):
                following = items[number + 1] if number + 1 < len(items) else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failed:
                    killer.write_text(f"{number + 1} {self._failed[0]}")
                    os._exit(1)

        return self._fork(name, run, limit)

    def _fork(self, name: str, run: Callable[[], None], limit: float) -> Child:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            return Child(name, pid, time.monotonic() + limit)
        status = 3
        try:
            os.setsid()
            if name != "stats":
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.dup2(null, 2)
            set_mutant_under_test(name)
            run()
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)

    def _wait(self, running: dict[int, Child]) -> tuple[Child, dict[str, Any]] | None:
        """Wait briefly; if a child has ended, return it and its result."""
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        if child := running.pop(pid, None):
            self._sweep(running)
            return child, self._result(child, os.waitstatus_to_exitcode(status), usage)
        if not pid:
            time.sleep(0.02)
            for child in running.values():
                if time.monotonic() > child.deadline and not child.late:
                    child.late = True
                    _kill(child.pid)
        return None

    def _result(self, child: Child, status: int, usage: resource.struct_rusage) -> dict[str, Any]:
        killer = self._folder / f"killer-{child.name}"
        result: dict[str, Any] = {"cpu": round(usage.ru_utime + usage.ru_stime, 1)}
        if child.late or status in (-signal.SIGXCPU, -signal.SIGKILL):
            return {"outcome": "timeout", **result}
        if status == 0:
            return {"outcome": "survived", **result}
        if killer.exists():
            number, _, test = killer.read_text().partition(" ")
            killer.unlink()
            return {"outcome": "killed", "test": test, "number": int(number), **result}
        return {"outcome": "killed", "status": status, **result}

    def _sweep(self, running: dict[int, Child]) -> None:
        """Kill orphaned processes of tests that have not ended in time."""
        now = time.monotonic()
        found = {process.pid for process in psutil.Process().children()} - {*running} - self._kept
        self._orphans = {pid: self._orphans.get(pid, now) for pid in found}
        for pid, since in self._orphans.items():
            if now - since > ORPHAN_SECONDS:
                _kill(pid)

    def _wait_for_orphans(self) -> None:
        end = time.monotonic() + 2 * ORPHAN_SECONDS
        while time.monotonic() < end:
            self._sweep({})
            if not self._orphans:
                return
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
            time.sleep(0.1)


def _kill(pid: int) -> None:
    """Kill a process and its descendants."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for one in [*process.children(recursive=True), process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()


def _cpu() -> float:
    """Return the CPU seconds of this process and its reaped children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run the tests against mutants instead of once."""
    order = json.loads(Path(os.environ.pop("MUTANTS_ORDER")).read_text())
    mutants = Mutants(session, order)
    session.config.pluginmanager.register(mutants)
    Path(order["answer"]).write_text(json.dumps(mutants.run()))
    return True
