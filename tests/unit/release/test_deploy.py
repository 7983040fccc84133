# SPDX-License-Identifier: Apache-2.0
"""Deployment files: everything that they name exists, and no secret is in them.

Neither container images nor the Helm chart can be had here; what runs without them is in tests/integration/release, and
Celery in `make scale`.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.cli.cli_parser import get_parser
from airflow.configuration import conf
from airflow.models.connection import Connection
from cryptography.fernet import Fernet

from airflow_provider_webdata.get_provider_info import get_provider_info
from airflow_provider_webdata.hooks.connection import settings_of
from tests.support import compose
from tests.support.snippets import ROOT

DEPLOY = ROOT / "deploy"
GUIDE = "".join(
    (ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("managed.md", "production.md")
)
NGINX = ROOT / "docs" / "nginx" / "webdata-inbox.conf"
RAW: dict[str, Any] = yaml.safe_load(compose.PATH.read_text(encoding="utf-8"))
VALUES: dict[str, Any] = yaml.safe_load((DEPLOY / "values.yaml").read_text(encoding="utf-8"))
CELERY = set(
    re.findall(r'"(AIRFLOW__CELERY\w+)"', (ROOT / "demo" / "scale" / "stack.py").read_text(encoding="utf-8"))
)
"""Variables of Celery's provider, which is not installed here: those that `make scale` sets."""
SECRET = re.compile(r"PASSWORD|SECRET|_KEY|TOKEN|AIRFLOW_CONN_|SQL_ALCHEMY_CONN")


def shell(words: str) -> str:
    """The one shell block of the guide that has these words."""
    (found,) = [block for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL) if words in block]
    return str(found)


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The documented `deploy/.env`, made as documented; the last lines are filled in."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "deploy").mkdir()
    subprocess.run(["/bin/sh", "-eu", "-c", shell("deploy/.env")], cwd=folder, check=True)
    path = folder / "deploy" / ".env"
    assert path.stat().st_mode & 0o077 == 0
    made = dict(line.split("=", 1) for line in path.read_text().splitlines())
    asked = [name for name, value in made.items() if not value]
    assert asked == ["WEBDATA_API_KEY", "WEBHOOK_URL"]
    return {**made, "WEBDATA_API_KEY": "wd-key-0123456789"}


@pytest.fixture(scope="module")
def services(environ: dict[str, str]) -> dict[str, Any]:
    return compose.services(environ)


def options() -> set[str]:
    """Every option of Airflow and of this package, as an environment variable names it."""
    described = {**conf.configuration_description, **get_provider_info()["config"]}
    return {
        f"AIRFLOW__{section.upper()}__{option.upper()}"
        for section, about in described.items()
        for option in about["options"]
    }


def test_variables_are_known() -> None:
    other = {"POSTGRES_DB", "POSTGRES_USER", "POSTGRES_PASSWORD", "PGHOST", "PGUSER", "PGPASSWORD"}
    known = (
        options() | other | CELERY | {"DUMB_INIT_SETSID", "INBOX_PASSWORD", "AIRFLOW_CONN_WEBDATA_DEFAULT"}
    )
    for name, service in RAW["services"].items():
        assert set(service.get("environment", {})) <= known, name


def test_commands_are_known() -> None:
    parser = get_parser()
    built = {
        name: service for name, service in RAW["services"].items() if "build" in service and name != "worker"
    }
    assert len(built) > 4
    for name, service in built.items():
        assert parser.parse_args(service["command"]).func, name
        program, *argv = service.get("healthcheck", {"test": ["CMD", "curl"]})["test"][1:]
        assert program in {"airflow", "curl"}, name
        if program == "airflow":
            assert parser.parse_args(argv).func, name


def test_no_secret_is_in_a_file() -> None:
    assert "\\getenv" in (DEPLOY / "inbox-role.sql").read_text()
    for name, service in RAW["services"].items():
        for variable, value in service.get("environment", {}).items():
            if SECRET.search(variable):
                assert re.search(r"\$\{\w+:\?[^}]+\}", value), (name, variable)
    # Kubernetes' Secrets are named, none is made by these values.
    assert not {"fernetKey", "apiSecretKey", "jwtSecret", "extraSecrets", "webserverSecretKey"} & set(VALUES)
    assert set(VALUES["data"]) == {"metadataSecretName"}
    assert not [item for item in VALUES.get("env", []) if SECRET.search(item["name"])]


def test_each_variable_of_the_file_is_made_or_has_a_default(environ: dict[str, str]) -> None:
    text = compose.PATH.read_text(encoding="utf-8")
    required = set(re.findall(r"\$\{(\w+):\?", text))
    assert required <= set(environ)
    assert set(re.findall(r"\$\{(\w+)", text)) >= set(environ)
    for name in required:
        with pytest.raises(KeyError, match=name):
            compose.services({**environ, name: ""})
    assert Fernet(environ["FERNET_KEY"]).decrypt(Fernet(environ["FERNET_KEY"]).encrypt(b"x")) == b"x"


def test_the_file_holds_together(services: dict[str, Any]) -> None:
    assert set(RAW) == {"name", "x-airflow", "services", "networks", "volumes"}
    for name, service in services.items():
        assert ("image" in service) != ("build" in service), name
        for other, condition in service.get("depends_on", {}).items():
            assert set(services[other].get("profiles", [])) <= set(service.get("profiles", [])), (name, other)
            wanted = condition["condition"]
            assert wanted in {"service_healthy", "service_completed_successfully"}
            assert wanted != "service_healthy" or "healthcheck" in services[other]
            assert wanted != "service_completed_successfully" or services[other]["restart"] == "no"
        for network in service.get("networks", []):
            assert network in RAW["networks"]
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if not source.startswith("."):
                assert source in RAW["volumes"]
            elif source not in {"./dags", "./tls/certificate.pem", "./tls/key.pem"}:
                assert (DEPLOY / source).is_file()
    (build,) = [
        json.loads(text) for text in {json.dumps(one["build"]) for one in services.values() if "build" in one}
    ]
    assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Dockerfile")


def test_results_survive_the_containers(services: dict[str, Any]) -> None:
    folder = "/opt/airflow/results"
    writers = {
        name for name, service in services.items() if f"results:{folder}" in service.get("volumes", [])
    }
    assert {"scheduler", "triggerer", "worker", "api-server"} <= writers
    assert f"RUN mkdir --mode=775 {folder}\n" in (DEPLOY / "Dockerfile").read_text()
    assert f"`{folder}`" in GUIDE


def test_the_celery_profile_runs_a_worker(environ: dict[str, str]) -> None:
    local = compose.services(environ)
    assert local["scheduler"]["environment"]["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    services = compose.services({**environ, "EXECUTOR": "CeleryExecutor"})
    assert "`EXECUTOR=CeleryExecutor`" in GUIDE
    assert {name for name, service in services.items() if "celery" in service.get("profiles", [])} == {
        "redis",
        "worker",
    }
    scheduler, worker = services["scheduler"], services["worker"]
    assert worker["environment"].items() >= scheduler["environment"].items()
    assert worker["environment"]["AIRFLOW__CORE__EXECUTOR"] == "CeleryExecutor"
    assert worker["environment"]["AIRFLOW__CELERY__BROKER_URL"].startswith("redis://redis:")
    backend = worker["environment"]["AIRFLOW__CELERY__RESULT_BACKEND"]
    assert environ["POSTGRES_PASSWORD"] in backend
    assert "redis" in worker["depends_on"]
    assert worker["command"] == ["celery", "worker"]


def test_airflow_is_for_this_machine_alone(services: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"api-server": ["127.0.0.1:8080:8080"], "proxy": ["443:443"]}


def test_the_inbox_is_alone_behind_the_documented_nginx(services: dict[str, Any]) -> None:
    inbox, proxy = services["inbox"], services["proxy"]
    assert set(inbox["environment"]) == {
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
        "AIRFLOW__WEBDATA__INBOX",
        "AIRFLOW_CONN_WEBDATA_DEFAULT",
    }
    for name in ("inbox", "migrate", "api-server"):
        assert services[name]["environment"]["AIRFLOW__WEBDATA__INBOX"] == "True"
    reached = {
        name: {
            other for other, found in services.items() if set(found["networks"]) & set(service["networks"])
        }
        for name, service in services.items()
    }
    assert reached["proxy"] == {"proxy", "inbox"}
    assert reached["inbox"] == {"proxy", "inbox", "inbox-role", "postgres"}

    serve = get_parser().parse_args(inbox["command"])
    assert serve.host == "0.0.0.0"
    assert inbox["healthcheck"]["test"][-1] == f"http://localhost:{serve.port}/webdata/inbox-health"

    mounted = dict(volume.split(":")[:2] for volume in proxy["volumes"])
    ((source, target),) = [found for found in mounted.items() if found[0].endswith(".conf")]
    assert (DEPLOY / source).resolve() == NGINX
    replace, _, then = proxy["command"][-1].partition(f" {target} > /etc/nginx/conf.d/default.conf && ")
    assert then == "exec nginx -g 'daemon off;'"
    changed = subprocess.run(
        shlex.split(replace), input=NGINX.read_text(), capture_output=True, text=True, check=True
    ).stdout
    assert f"    server inbox:{serve.port} max_conns=500;" in changed
    assert len(set(changed.splitlines()) - set(NGINX.read_text().splitlines())) == 1
    assert "listen 443 ssl;" in changed
    for directive in ("ssl_certificate", "ssl_certificate_key"):
        found = re.search(rf"^\s*{directive} (\S+);", changed, re.MULTILINE)
        assert found
        assert found[1] in mounted.values()


@pytest.mark.parametrize("url", ["", "https://airflow.example.com"])
def test_the_connection_works_with_webhooks_and_without(environ: dict[str, str], url: str) -> None:
    services = compose.services({**environ, "WEBHOOK_URL": url})
    for name in ("scheduler", "triggerer", "api-server"):
        text = services[name]["environment"]["AIRFLOW_CONN_WEBDATA_DEFAULT"]
        settings = settings_of(Connection.from_json(text, conn_id="webdata_default"))
        assert settings.webhook.url == (url or None)
        assert settings.webhook.secrets == (environ["WEBHOOK_SECRET"],)
        assert settings.client.base_url == environ["WEBDATA_BASE_URL"]
    alone = json.loads(services["inbox"]["environment"]["AIRFLOW_CONN_WEBDATA_DEFAULT"])
    assert alone == {"conn_type": "webdata", "extra": {"webhook_secret": environ["WEBHOOK_SECRET"]}}


def test_grants_are_those_of_the_guide() -> None:
    guide = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8")
    granted = [
        re.findall(r"^GRANT .*;$", text, re.MULTILINE)
        for text in (guide, (DEPLOY / "inbox-role.sql").read_text(encoding="utf-8"))
    ]
    assert granted[0]
    assert granted[0] == granted[1]


def test_the_image_is_of_the_airflow_that_is_tested() -> None:
    (version,) = re.findall(r"^apache-airflow==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert f"ARG AIRFLOW_VERSION={version}\n" in (DEPLOY / "Dockerfile").read_text()
    assert VALUES["airflowVersion"] == version


# The values of chart 1.22 that are used, by their path, with their types.
CHART = {
    "airflowVersion": str,
    "apiSecretKeySecretName": str,
    "config.webdata.inbox": str,
    "config.webdata.inbox_retention_days": int,
    "data.metadataSecretName": str,
    "fernetKeySecretName": str,
    "images.airflow.repository": str,
    "images.airflow.tag": str,
    "images.useDefaultImageForMigration": bool,
    "ingress.apiServer.enabled": bool,
    "ingress.apiServer.hosts": list,
    "ingress.apiServer.ingressClassName": str,
    "ingress.apiServer.path": str,
    "ingress.apiServer.pathType": str,
    "jwtSecretName": str,
    "postgresql.enabled": bool,
    "secret": list,
}


def flat(values: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{before}{name}.") if isinstance(value, dict) else {before + name: value}
    return found


def test_values_are_those_of_the_chart() -> None:
    assert {path: type(value) for path, value in flat(VALUES).items()} == CHART
    assert VALUES["images"]["useDefaultImageForMigration"] is False
    assert {f"AIRFLOW__WEBDATA__{name.upper()}" for name in VALUES["config"]["webdata"]} <= options()
    for item in VALUES["secret"]:
        assert set(item) == {"envName", "secretName", "secretKey"}
    assert [item["envName"] for item in VALUES["secret"]] == ["AIRFLOW_CONN_WEBDATA_DEFAULT"]


def test_the_ingress_forwards_the_inbox_and_nothing_else() -> None:
    ingress = VALUES["ingress"]["apiServer"]
    assert (ingress["path"], ingress["pathType"]) == ("/webdata/inbox/", "Prefix")
    assert [host["tls"]["enabled"] for host in ingress["hosts"]] == [True]


def test_the_guide_makes_the_secrets_that_the_values_name() -> None:
    made = set(re.findall(r"create secret generic (\S+)", shell("kubectl create namespace")))
    named = {value for path, value in flat(VALUES).items() if path.endswith("SecretName")}
    assert made == named | {item["secretName"] for item in VALUES["secret"]}


def test_options_that_the_guide_names_are_known() -> None:
    named = set(re.findall(r"AIRFLOW__WEBDATA__\w+", GUIDE))
    named |= {
        f"AIRFLOW__WEBDATA__{option.upper()}" for option in re.findall(r"\bwebdata[.-](inbox_\w+)", GUIDE)
    }
    assert named
    assert named <= options()


def test_paths_that_the_guide_names_exist() -> None:
    for path in set(re.findall(r"`(deploy/[\w./-]+)`", GUIDE)) - {"deploy/.env", "deploy/dags", "deploy/tls"}:
        assert Path(ROOT / path).exists(), path
