# SPDX-License-Identifier: Apache-2.0
"""TLS contexts of HTTP clients: certificates from the connection or from the environment."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from airflow_provider_webdata.common.http_library import httpx
from airflow_provider_webdata.common.plain_errors import plain_reason

_HASHED_NAME = re.compile(r"[0-9a-f]{8}\.\d+")
"""The names by which OpenSSL finds certificates in a folder."""


class UnusableVariableError(ValueError):
    """A variable of the environment that HTTP clients read is invalid. The message names it, but no secret."""


class CertificateFileError(ValueError):
    """A file of the connection with certificates or a key cannot be loaded."""


@dataclass(frozen=True)
class ClientCertificate:
    """A certificate that a client presents.

    :param cert_file: path of a PEM file with the certificate, followed by those of its issuers.
    :param key_file: path of a PEM file with its private key. None: `cert_file` has it too.
    :param password: of the key; None: it has none.
    """

    cert_file: str
    key_file: str | None = None
    password: str | None = field(default=None, repr=False)


def tls_context(
    *, verify: bool = True, ca_file: str | None = None, certificate: ClientCertificate | None = None
) -> ssl.SSLContext:
    """Return a context for clients, which trusts the authorities that httpx trusts.

    :param verify: whether to verify certificates. If not, the environment is not read.
    :param ca_file: path of a CA bundle that replaces the others: `SSL_CERT_FILE`, `SSL_CERT_DIR`, and those of certifi.
    :param certificate: the certificate to present to servers that request one.
    :raises UnusableVariableError: one of these variables, or `SSLKEYLOGFILE`, cannot be used.
    :raises CertificateFileError: the CA bundle or the certificate cannot be loaded.
    """
    context = _trusting(ca_file) if verify else httpx.create_ssl_context(verify=False)
    if certificate is not None:
        _present(context, certificate)
    return context


def file_version(path: str | None) -> tuple[int, ...] | None:
    """Return what differs once a file was replaced or written; None: there is no file, or it cannot be read."""
    try:
        found = Path(path).stat() if path else None
    except (OSError, ValueError):
        return None
    return found and (found.st_ino, found.st_size, found.st_mtime_ns)


def _trusting(ca_file: str | None) -> ssl.SSLContext:
    _check_key_log()
    if not ca_file and (path := os.environ.get("SSL_CERT_FILE")):
        try:
            return ssl.create_default_context(cafile=path)
        except OSError as error:
            raise UnusableVariableError(
                f"The environment variable SSL_CERT_FILE must name a PEM file with certificates; correct or unset it "
                f"({path!r}: {plain_reason(error)})"
            ) from error
    if not ca_file and (folders := os.environ.get("SSL_CERT_DIR")):
        _check_folders(folders)
        return ssl.create_default_context(capath=folders)
    if not ca_file:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        raise CertificateFileError(f"ca_file {ca_file!r} cannot be loaded: {plain_reason(error)}") from error


def _check_key_log() -> None:
    if not (path := os.environ.get("SSLKEYLOGFILE")):
        return
    try:
        # As OpenSSL does.
        with Path(path).open("ab"):
            pass
    except OSError as error:
        raise UnusableVariableError(
            f"The environment variable SSLKEYLOGFILE must name a file that can be written; correct or unset it "
            f"({path!r}: {plain_reason(error)})"
        ) from error


def _check_folders(folders: str) -> None:
    """Check that OpenSSL may find a certificate; it reads the folders only during a handshake, and reports nothing."""
    names = (path for folder in folders.split(os.pathsep) for path in Path(folder).glob("*.*"))
    if not any(_HASHED_NAME.fullmatch(path.name) for path in names):
        raise UnusableVariableError(
            f"The environment variable SSL_CERT_DIR must name folders with certificates; correct or unset it "
            f"({folders!r}: no file has a hashed name such as 5ed36f99.0, as `openssl rehash` creates)"
        )


def _present(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    cert_file, key_file = certificate.cert_file, certificate.key_file
    for name, path in (("client_cert_file", cert_file), ("client_key_file", key_file)):
        if path is not None:
            _check_readable(name, path)
    try:
        # Without a password, OpenSSL would ask for it at the terminal.
        context.load_cert_chain(cert_file, key_file, certificate.password or "")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None)
        files = f"client_cert_file {cert_file!r}" + (f" and client_key_file {key_file!r}" if key_file else "")
        if reason == "KEY_VALUES_MISMATCH":
            raise CertificateFileError(f"{files} do not belong together") from None
        raise CertificateFileError(
            f"{files} cannot be loaded: {plain_reason(error)}. Both must be PEM files, and client_key_password the "
            "key's password if it has one"
        ) from None


def _check_readable(name: str, path: str) -> None:
    try:
        with Path(path).open("rb"):
            pass
    except (OSError, ValueError) as error:
        raise CertificateFileError(f"{name} {path!r} cannot be read: {plain_reason(error)}") from None
