# SPDX-License-Identifier: Apache-2.0
"""Run the public clients against the sandbox, and validate the calls against the service's OpenAPI description.

python -m tools.conformance [DESCRIPTION]

Node packages are installed in `build/conformance`. Every step of the clients must succeed. With DESCRIPTION, the path
of the OpenAPI description of version 2, the Node client's calls and one provider call of each kind also go through the
proxy Prism. The command fails if Prism rejects a call for a reason that `KNOWN` does not explain.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.conformance import client
from tools.conformance.own_calls import failures
from webdata_sandbox.server import SandboxServer

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "build" / "conformance"
PATIENCE = 120

KNOWN = {
    r"request\.body\.(scrapeOptions\.)?(formats|sources|parsers)\.\d+ .* (must be object|match exactly one schema)": (
        "a string, where strings and objects are allowed; the proxy also validates it as each kind of object"
    ),
    r"post /v2/parse: request\.body\.options .* must be object": "it is JSON text in form data",
    r"/v2/monitor.*: response\.body\.data(\.\d+)?\.(webhook|lastCheckSummary) .* must be object": (
        "null for a monitor without the object; the description does not declare it as nullable"
    ),
    r"get /v2/crawl/active: response\.body .* required property 'data'": (
        "the reference and the public clients name the list `crawls`"
    ),
    r"get /v2/extract/.*: response\.body\.data .* must be object": (
        "an unfinished job has no data; the description does not declare it as nullable"
    ),
    r"Selected route not found": "the description lacks an endpoint of the public clients",
    r"/run: request No supported content types": "the client sends an empty JSON object; the description has no body",
}
"""Rejections by the proxy for which the sandbox is correct, with the reason."""


def main() -> int:
    """Run the clients, and the proxy if there is a description; return 0 on success."""
    if missing := _install():
        print(missing, file=sys.stderr)
        return 2
    with SandboxServer() as sandbox:
        problems = _failed("Python", client.steps(sandbox.url, sandbox.api_key))
    with SandboxServer() as sandbox:
        problems += _driven(sandbox.url, sandbox.api_key)
    if len(sys.argv) > 1:
        with SandboxServer() as sandbox, _proxy(Path(sys.argv[1]), sandbox.url) as (url, log):
            _driven(url, sandbox.api_key)
            failures(url, sandbox.api_key)
        problems += unexplained(refusals(log.read_text()))
    described = " and the description" if len(sys.argv) > 1 else ""
    print("\n".join(problems) or f"The sandbox conforms to the clients{described}")
    return 1 if problems else 0


def _install() -> str | None:
    """Install the Node client; return an error message, or None."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "The Node client cannot run: node or npm was not found. Install Node 20 or newer"
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "client.mjs"):
        shutil.copy(HERE / name, FOLDER)
    options = ["--no-audit", "--no-fund", "--no-package-lock", "--silent"]
    if subprocess.run(["npm", "install", *options], cwd=FOLDER).returncode:
        packages = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
        wanted = ", ".join(f"{name} {version}" for name, version in packages.items())
        return (
            f"The Node client cannot run: npm could not install {wanted}. Check its registry and the network"
        )
    return None


def _failed(client: str, steps: list[dict[str, Any]]) -> list[str]:
    """Print the number of successful steps of a client; return the failed ones."""
    print(f"{sum(step['ok'] for step in steps)} of {len(steps)} steps of the {client} client succeeded")
    return [f"{client}: {step['name']}: {step['why']}" for step in steps if not step["ok"]]


def _driven(url: str, key: str) -> list[str]:
    """Run the Node client, and return the failed steps."""
    environ = {**os.environ, "SERVICE_URL": url, "SERVICE_KEY": key}
    done = subprocess.run(
        ["node", "client.mjs"], cwd=FOLDER, env=environ, capture_output=True, text=True, timeout=10 * PATIENCE
    )
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    failed = _failed("Node", steps)
    return failed if steps and done.returncode in (0, 1) else [*failed, done.stderr[-1000:]]


@contextmanager
def _proxy(description: Path, upstream: str) -> Iterator[tuple[str, Path]]:
    """Run Prism in front of a server; yield its URL and its log."""
    document = json.loads(description.read_text(encoding="utf-8"))
    # Prism matches a request against the description's paths and ignores the paths of its servers.
    document["paths"] = {f"/v2{path}": operations for path, operations in document["paths"].items()}
    (FOLDER / "description.json").write_text(json.dumps(document))
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    log = FOLDER / "prism.log"
    argv = [
        "node_modules/.bin/prism",
        "proxy",
        "description.json",
        upstream,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with log.open("w") as output, subprocess.Popen(argv, cwd=FOLDER, stdout=output, stderr=output) as server:
        try:
            _wait_for(log, server)
            yield f"http://127.0.0.1:{port}", log
        finally:
            server.terminate()


def _wait_for(log: Path, server: subprocess.Popen[bytes]) -> None:
    from tests.support.waiting import wait_until

    if not wait_until(lambda: "is listening" in log.read_text() or server.poll() is not None, PATIENCE):
        raise SystemExit(f"Prism does not listen on its port after {PATIENCE} s")
    if server.poll() is not None:
        raise SystemExit(f"Prism ended:\n{log.read_text()[-2000:]}")


def refusals(log: str) -> Counter[str]:
    """Return the calls that the proxy rejected, with the reasons.

    :param log: the output of Prism.
    """
    found: Counter[str] = Counter()
    call = ""
    for line in re.sub(r"\x1b\[[0-9;]*m", "", log).splitlines():
        if begun := re.search(r"\[HTTP SERVER\] (\w+ \S+)", line):
            call = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", begun[1])
        if problem := line.partition("Violation: ")[2]:
            found[f"{call}: {problem}"] += 1
    return found


def unexplained(found: Counter[str]) -> list[str]:
    """Print the known rejections with their explanations; return the rest."""
    unknown = []
    for text, count in found.most_common():
        reason = next((why for pattern, why in KNOWN.items() if re.search(pattern, text)), None)
        print(f"{count:4} times: {text}: {reason or 'NOT EXPLAINED'}")
        if reason is None:
            unknown.append(f"The sandbox differs from the description: {text}")
    return unknown


if __name__ == "__main__":
    sys.exit(main())
