"""Options of mongod from its command line and configuration file, and validation of its TLS material."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.mongodb.journal import Journal
from srearena.cluster.embedded.programs.serving import Flags

PORT = 27017
SWITCHES = frozenset(("auth", "noauth", "quiet", "bind_ip_all", "fork", "logappend", "journal", "nojournal", "repair"))


class OptionsError(Exception):
    """Said on standard error before anything is logged; mongod exits with 1 (or 2 for a bad command line)."""


@dataclass(slots=True)
class Options:
    port: int = PORT
    folder: str = "/data/db"
    address: str = "0.0.0.0"
    auth: bool = False
    repair: bool = False
    tls: str = "disabled"
    key_file: str = ""
    ca_file: str = ""


def read_options(process: Process, words: list[str]) -> Options:
    flags = Flags([word for word in words if word != "mongod"], SWITCHES)
    path = flags.get("config", flags.get("f"))
    config_document: dict[str, Any] = {}
    if path:
        try:
            parsed = yaml.safe_load(process.files.read_text(path))
        except OSError as error:
            raise OptionsError(f"Error opening config file: {error.strerror}\n") from None
        except yaml.YAMLError as error:
            raise OptionsError(f"Error parsing YAML config file: {str(error).splitlines()[0]}\n") from None
        config_document = parsed if isinstance(parsed, dict) else {}
    net, tls = _section(config_document, "net"), _section(_section(config_document, "net"), "tls")
    options = Options(
        port=flags.port("port", int(net.get("port", PORT))),
        folder=flags.get("dbpath", str(_section(config_document, "storage").get("dbPath", "/data/db"))),
        address="127.0.0.1"
        if flags.get("bind_ip", str(net.get("bindIp", "*"))) in ("127.0.0.1", "localhost")
        else "0.0.0.0",
        auth="auth" in flags.values or _section(config_document, "security").get("authorization") == "enabled",
        repair="repair" in flags.values,
        tls=flags.get("tlsMode", str(tls.get("mode", "disabled"))),
        key_file=flags.get("tlsCertificateKeyFile", str(tls.get("certificateKeyFile", ""))),
        ca_file=flags.get("tlsCAFile", str(tls.get("CAFile", ""))),
    )
    if options.tls in ("requireTLS", "preferTLS", "allowTLS") and not options.key_file:
        raise OptionsError(
            "BadValue: need tlsCertificateKeyFile or certificateSelector when TLS is enabled\n"
            "try 'mongod --help' for more information\n"
        )
    return options


def _section(config_document: dict[str, Any], name: str) -> dict[str, Any]:
    found = config_document.get(name)
    return found if isinstance(found, dict) else {}


def tls_usable(process: Process, options: Options) -> bool:
    """Load the certificate and the authorities as mongod does at its start; what is wrong is logged."""
    if options.tls == "disabled":
        return True
    journal = Journal(process)
    for path, needs_key, text in (
        (options.key_file, True, "Can not set up PEM key file."),
        (options.ca_file, False, "Can not set up CA file."),
    ):
        if not path:
            continue
        try:
            content = process.files.read_text(path)
            reason = ""
            if "-----BEGIN CERTIFICATE-----" not in content or (needs_key and "PRIVATE KEY-----" not in content):
                reason = "error:0909006C:PEM routines:get_name:no start line"
        except OSError as error:
            reason = f"error:02001002:system library:fopen:{error.strerror}"
        if reason:
            number, message = (
                (23248, "Cannot read certificate file") if needs_key else (23257, "Failed to read CA file")
            )
            journal.line(number, "NETWORK", message, "main", severity="E", keyFile=path, error=reason)
            error_facts = {"code": 140, "codeName": "InvalidSSLConfiguration", "errmsg": text}
            journal.line(
                20574, "CONTROL", "Error during global initialization", "main", severity="F", error=error_facts
            )
            return False
    return True
