"""README's commands and first DAG on a self-hosted server that requires no API key."""

from __future__ import annotations

from tests.support.warm import Warm
from webdata_sandbox.server import SandboxServer


def test_init_and_the_first_dag(environ: dict[str, str], warm: Warm) -> None:
    with SandboxServer(profile="self-hosted") as own:
        flags = ["--base-url", own.url]
        made = warm.run(["-m", "airflow", "webdata", "init", *flags], env=environ, input="\n")
        assert made.returncode == 0, made.stdout + made.stderr
        assert "The server responds. It does not report credits" in made.stdout
        done = warm.run(["-m", "airflow", "dags", "test", "river_news"], env=environ)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert "as from a self-hosted server without a search backend" in done.stdout + done.stderr
    assert "WD-" not in done.stdout + done.stderr
