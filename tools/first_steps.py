# SPDX-License-Identifier: Apache-2.0
"""Follow the README, recipes, and the tutorial literally, in an empty directory and an empty home, and time it.

`python -m tools.first_steps` reads the commands from the pages and runs them in order. The code comes from this clone:
`git clone` of the repository's URL returns its last commit, and `pip install` of the packages installs wheels of it.
SQLite and DuckDB stand in for the databases of the recipes. The time includes the commands, and the time that a slow
reader takes to read the pages.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.snippets import snippets

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = "https://github.com/airflow-provider-webdata/airflow-provider-webdata"
WORDS_A_MINUTE = 150
# In minutes; enough for a slow machine.
PATIENCE = 30
NOT_FIRST_STEPS = ("make demo", "make test")
COOKBOOK = ROOT / "docs" / "cookbook"
# These recipes need neither a scheduler nor Airflow 3.4.
RECIPES = (
    "a_dag_for_each_check",
    "a_file_for_each_day",
    "a_folder_of_pdfs_into_vectors",
    "a_news_digest",
    *(("ask_an_agent",) if sys.version_info >= (3, 11) else ()),
    "price_watch",
)
RECIPES_NEED = "pytest 'airflow-provider-webdata[ai,parquet,sandbox]' apache-airflow-providers-sqlite"
FIRST_RECIPES = (
    "into_postgresql",
    "into_snowflake_or_bigquery",
    "alert_when_a_page_or_a_price_changes",
)
CONTROL = "http://127.0.0.1:8900/_sandbox"
UP_WHEN = "Stop both"
"""The text after which, during `make up`, the reader can continue in a second terminal."""


@dataclass
class Terminal:
    """A shell that keeps its directory and environment between commands."""

    home: Path
    environ: dict[str, str]
    _shell: subprocess.Popen[bytes] = field(init=False)
    _log: Path = field(init=False)

    def __post_init__(self) -> None:
        self._log = self.home / "terminal.log"
        # A previous terminal may still write to the log.
        with self._log.open("ab") as log:
            self._shell = subprocess.Popen(
                ["bash", "--norc"],
                env=self.environ,
                cwd=self.home,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def enter(self, command: str) -> str:
        """Run a command to its end and return its output. A failed command exits the program."""
        begin = self._log.stat().st_size
        if command == "make up":
            self._send("{ make up; echo make up ended with $?; } &")
            output = self._printed(begin, re.compile(rf"{UP_WHEN}|make up ended"))
            failed = UP_WHEN not in output
        else:
            self._send(command)
            self._send(r"printf '\nstatus %s\n' $?")
            output = self._printed(begin, re.compile(r"^status (\d+)\n", re.MULTILINE))
            failed = "\nstatus 0\n" not in output
        if failed:
            raise SystemExit(f"{output[-5000:]}\n\nfailed: {command}")
        return output

    def wait_for(self, text: str) -> None:
        """Return once a command in the background has printed a text."""
        self._printed(0, re.compile(re.escape(text)))

    def end(self) -> None:
        """End the shell and its background processes."""
        os.killpg(self._shell.pid, signal.SIGTERM)
        self._shell.wait()

    def _send(self, line: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{line}\n".encode())
        self._shell.stdin.flush()

    def _printed(self, begin: int, sign: re.Pattern[str]) -> str:
        deadline = time.monotonic() + 60 * PATIENCE
        while time.monotonic() < deadline:
            output = self._log.read_bytes()[begin:].decode(errors="replace")
            if sign.search(output):
                return output
            time.sleep(0.2)
        raise SystemExit(f"{output[-5000:]}\n\nno further output in {PATIENCE} minutes")


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """Yield each command of a page with its heading."""
    heading, block = "", ""
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            block = "" if block else line
        elif block == "```sh" and not line.startswith(NOT_FIRST_STEPS):
            yield heading, line
        elif not block and line.startswith("#"):
            heading = line.lstrip("# ")


def words(page: Path) -> int:
    """Count the words of a page, including code."""
    return len(page.read_text().split())


@dataclass
class Report:
    """Seconds by page and heading."""

    seconds: dict[tuple[str, str], float] = field(default_factory=dict)

    def follow(
        self,
        page: Path,
        terminal: Terminal,
        before: Mapping[str, Callable[[], None]] | None = None,
        stand_ins: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Run the commands of a page; return the output of each.

        :param before: functions that run before a command; their time is not counted.
        :param stand_ins: parts of commands, and their replacements.
        """
        printed: dict[str, str] = {}
        for heading, command in commands(page):
            for part, stand_in in (stand_ins or {}).items():
                command = command.replace(part, stand_in)
            if before and command in before:
                before[command]()
            began = time.monotonic()
            print(f"$ {command}", flush=True)
            printed[command] = printed.get(command, "") + terminal.enter(command)
            seconds = time.monotonic() - began
            print(f"  {seconds:.0f} s", flush=True)
            key = (page.name, heading)
            self.seconds[key] = self.seconds.get(key, 0.0) + seconds
        return printed

    def lines(self, pages: list[Path]) -> Iterator[str]:
        """Yield the report."""
        for page in pages:
            own = {heading: seconds for (name, heading), seconds in self.seconds.items() if name == page.name}
            reading = words(page) / WORDS_A_MINUTE
            running = sum(own.values()) / 60
            yield f"{page.name}: {reading + running:.1f} min"
            yield f"  reading {words(page)} words: {reading:.1f} min"
            yield f"  commands: {running:.1f} min"
            yield from (f"    {heading}: {seconds:.0f} s" for heading, seconds in own.items())


def prepare(folder: Path) -> dict[str, str]:
    """Return the environment of a new user, in which the repository's public URL refers to this clone."""
    home, wheels = folder / "home", folder / "wheels"
    home.mkdir()
    git = ["git", "config", "--file", str(home / ".gitconfig"), f"url.file://{ROOT}.insteadOf", PUBLIC]
    subprocess.run(git, check=True)
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(wheels),
        str(clone),
        str(clone / "sandbox"),
    ]
    subprocess.run(build, check=True)
    shutil.rmtree(clone)
    links = f"{wheels} {os.environ.get('PIP_FIND_LINKS', '')}".strip()
    settings = {
        name: value for name, value in os.environ.items() if name.lower().startswith(("pip_", "http"))
    }
    return {
        **settings,
        "PIP_FIND_LINKS": links,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": os.pathsep.join([f"{sys.base_prefix}/bin", "/usr/local/bin", "/usr/bin", "/bin"]),
    }


def follow_readme(report: Report, environ: dict[str, str]) -> None:
    """Follow the README and the three first recipes."""
    terminal = Terminal(Path(environ["HOME"]), environ)
    try:
        printed = report.follow(ROOT / "README.md", terminal)
        found = re.findall(r"https?://\S+ \d+ words", printed["airflow dags test river_news"])
        if not found:
            raise SystemExit("the README's DAG found no pages")
        print(f"README: {len(found)} pages found")
        follow_first_recipes(report, terminal)
    finally:
        terminal.end()


def follow_first_recipes(report: Report, terminal: Terminal) -> None:
    """Follow the three first recipes on the README's Airflow, and run them again after pages have changed."""
    home = terminal.home
    warehouse, duckdb = home / "warehouse.db", home / "warehouse.duckdb"
    stand_ins = {
        "apache-airflow-providers-postgres": "apache-airflow-providers-sqlite",
        "--conn-uri postgresql://loader:PASSWORD@db.example:5432/web": "--conn-json "
        f"""'{json.dumps({"conn_type": "sqlite", "host": str(warehouse)})}'""",
        "dlt[snowflake]": "dlt[duckdb]",
    }
    for name in FIRST_RECIPES:
        code = snippets(COOKBOOK / f"{name}.md")[0].code.replace("/tmp/webdata", f"{home}/{name}")
        code = code.replace(
            'destination="snowflake"', f"destination=dlt.destinations.duckdb({str(duckdb)!r})"
        )
        (home / "airflow" / "dags" / f"{name}.py").write_text(code)
    postgresql, dlt, alert = (COOKBOOK / f"{name}.md" for name in FIRST_RECIPES)

    report.follow(postgresql, terminal, stand_ins=stand_ins)
    report.follow(dlt, terminal, stand_ins=stand_ins)
    page = {"url": "https://river.example/market", "html": "<p>The market moves again.</p>"}
    _control("PUT", "/pages", page)
    _control("DELETE", "/pages?url=https://river.example/salmon")
    # A page counts as removed after two runs.
    for dag_id in 2 * ("nightly_pages", "nightly_dlt"):
        terminal.enter(f"airflow dags test {dag_id}")
    with contextlib.closing(sqlite3.connect(warehouse)) as database:
        loaded = dict(database.execute("SELECT source_url, markdown FROM pages"))
    select = "SELECT source_url, markdown FROM web.pages"
    rows = f"duckdb.connect({str(duckdb)!r}).execute({select!r}).fetchall()"
    output = terminal.enter(f'python -c "import duckdb, json; print(json.dumps(dict({rows})))"')
    (merged,) = re.findall(r"^\{.*\}$", output, re.MULTILINE)
    for database_name, pages in (("SQLite", loaded), ("DuckDB", json.loads(merged))):
        market = pages["https://river.example/market"]
        if "The market moves again." not in market or "https://river.example/salmon" in pages:
            raise SystemExit(f"{database_name} lacks the changes of the site: {pages}")
    print(f"warehouses: {len(loaded)} rows")

    with _chat() as (url, messages):
        report.follow(alert, terminal, stand_ins={"https://chat.example/hooks/prices": url})
    print(f"alerts: {messages}")
    if messages != ["Gooseneck kettle: now 69.5 EUR"]:
        raise SystemExit("the alert of a changed price is missing")


def _control(method: str, path: str, body: object = None) -> None:
    """Send a request to the sandbox's control API."""
    request = urllib.request.Request(f"{CONTROL}{path}", json.dumps(body).encode(), method=method)
    urllib.request.urlopen(request).close()


@contextlib.contextmanager
def _chat() -> Iterator[tuple[str, list[str]]]:
    """Yield the URL of an incoming webhook, and the messages that it has received."""
    messages: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", messages
        server.shutdown()


def follow_cookbook(environ: dict[str, str]) -> None:
    """Run the recipes on the README's Airflow, with the tests of the recipe for CI."""
    home = Path(environ["HOME"])
    for folder in ("dags", "pdfs", "tests"):
        (home / folder).mkdir()
    for name, path in {
        **{name: f"dags/{name}.py" for name in RECIPES},
        "testing_in_ci": "tests/test_ci.py",
    }.items():
        code = snippets(COOKBOOK / f"{name}.md")[0].code
        (home / path).write_text(code.replace("/tmp/webdata", str(home)))
    (home / "pyproject.toml").write_text(snippets(ROOT / "docs" / "testing.md", "toml")[0].code)
    shutil.copy(ROOT / "sandbox" / "tests" / "files" / "chromium.pdf", home / "pdfs")
    connections = {
        "AIRFLOW_CONN_WAREHOUSE": json.dumps({"conn_type": "sqlite", "host": str(home / "warehouse.db")}),
        "AIRFLOW_CONN_PYDANTICAI_DEFAULT": json.dumps(
            {"conn_type": "pydanticai", "extra": {"model": "test"}}
        ),
    }
    terminal = Terminal(home, {**environ, **connections})
    try:
        terminal.enter(". airflow-venv/bin/activate")
        terminal.enter(f"pip install {RECIPES_NEED}")
        print(f"recipes: {terminal.enter('pytest -q').strip().splitlines()[-3]}")
    finally:
        terminal.end()


def follow_tutorial(report: Report, environ: dict[str, str]) -> None:
    """Follow the tutorial, and check the scheduler's runs of its DAG before the last command."""
    home = Path(environ["HOME"])
    terminal = Terminal(home, environ)

    def check_runs() -> None:
        # The tutorial's last step pauses the DAG, and running runs of a paused DAG do not end.
        terminal.enter("airflow dags unpause river_watch")
        states = _settled(terminal)
        print(f"runs of river_watch: {states}")
        tables = sorted(path.name for path in (home / "river_watch").glob("*.parquet"))
        print(f"tables: {tables}")
        if set(states.values()) != {"success"} or not tables:
            raise SystemExit("a run of river_watch failed, or wrote no table")
        terminal.wait_for("make up ended with 0")

    try:
        report.follow(ROOT / "docs" / "tutorial.md", terminal, {"make down": check_runs})
    except BaseException:
        clone = home / PUBLIC.rpartition("/")[2]
        subprocess.run(["make", "down"], cwd=clone, env=environ, check=False)
        raise
    finally:
        terminal.end()


def _settled(terminal: Terminal) -> dict[str, str]:
    """Wait until all runs have ended; return the state of each."""
    deadline = time.monotonic() + 60 * PATIENCE
    while True:
        output = terminal.enter("airflow dags list-runs river_watch --output json")
        # The output also includes Airflow's warnings.
        (listed,) = re.findall(r"^\[(?:\{.*\})?\]$", output, re.MULTILINE)
        runs = json.loads(listed)
        states = {run["run_id"]: run["state"] for run in runs}
        if not {"queued", "running"} & set(states.values()) or time.monotonic() > deadline:
            return states
        time.sleep(5)


def main() -> None:
    """Follow the pages, and print the report."""
    folder = Path(tempfile.mkdtemp(prefix="first-steps-"))
    report = Report()
    try:
        environ = prepare(folder)
        follow_readme(report, environ)
        follow_cookbook(environ)
        # Remove the files that the README's commands created.
        for left in (folder / "home").iterdir():
            if left.name != ".gitconfig":
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        follow_tutorial(report, environ)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    recipes = [COOKBOOK / f"{name}.md" for name in FIRST_RECIPES]
    print("\n".join(report.lines([ROOT / "README.md", *recipes, ROOT / "docs" / "tutorial.md"])))


if __name__ == "__main__":
    main()
