# SPDX-License-Identifier: Apache-2.0
"""The commands of the README, as they stand, in an empty Airflow home."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import airflow_provider_webdata.commands
from tests.support.snippets import ROOT, snippets
from tests.support.waiting import PATIENCE
from tests.support.warm import Warm

README = ROOT / "README.md"
RUN_ELSEWHERE = {
    "git clone": "tools/first_steps.py",
    "python3 -m venv": "tools/first_steps.py",
    "pip install": "tools/first_steps.py",
    "make demo": "tests/e2e/test_demo.py",
    "make test": ".ci/run",
}


def test_its_dag_is_the_example_of_init() -> None:
    [dag] = snippets(README)
    assert sum(bool(line.strip()) for line in dag.code.splitlines()) == 12
    assert dag.code == (Path(airflow_provider_webdata.commands.__file__).parent / "river_news.py").read_text()


# The installed command, whose start without Airflow imported is part of `make first-steps`.
AIRFLOW = f"""#!{sys.executable}
import os, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from tests.support.warm import Warm
streams = {{"stdin": 0, "stdout": 1, "stderr": 2}}
warm = Warm(Path(os.environ["WARM"]))
sys.exit(warm.start(["-m", "airflow", *sys.argv[1:]], env=os.environ, **streams).wait())
"""


@pytest.mark.timeout(600)
def test_its_commands_run(environ: dict[str, str], home: Path, warm: Warm) -> None:
    commands = [line for block in snippets(README, "sh") for line in block.code.splitlines()]
    elsewhere = {name: [line for line in commands if line.startswith(name)] for name in RUN_ELSEWHERE}
    assert all(elsewhere.values()), "what is said to be run elsewhere is not in the README"
    assert all((ROOT / test).exists() for test in RUN_ELSEWHERE.values())
    here = [line for line in commands if not line.startswith(tuple(RUN_ELSEWHERE))]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    script = "\n".join(["set -e", *here]).replace("8900", port)

    airflow = home / "bin" / "airflow"
    airflow.parent.mkdir()
    airflow.write_text(AIRFLOW)
    airflow.chmod(0o755)
    environ = {**environ, "PATH": f"{airflow.parent}{os.pathsep}{environ['PATH']}", "WARM": str(warm.open())}

    output = home / "output"
    with output.open("w") as file:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            env=environ,
            cwd=home,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        status = shell.wait(PATIENCE)
    finally:
        # The sandbox, which the script leaves in the background.
        os.killpg(shell.pid, signal.SIGTERM)
    shown = output.read_text()
    assert status == 0, shown[-3000:]
    assert f"Connection 'webdata_default' was created: http://127.0.0.1:{port}." in shown
    [printed] = snippets(README, "text")
    lines = printed.code.splitlines()
    assert len(lines) == 6
    # A line of a log has its time in front, and its place in the code behind.
    assert re.search(".*\n(?:.*\n)*?.*".join(map(re.escape, lines)), shown), shown[-3000:]
