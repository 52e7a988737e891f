"""One MinIO server on a host: its credentials, its files, its command, its process. Everything but `Server` is pure."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.hosts import Daemon, Host
from testbed.network.addresses import AddressPlan
from testbed.topology.model import Topology

CREDENTIALS_FILE = "/etc/testbed/s3/credentials"
"""On every host that serves or uses the store."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The one user of a store. Its representation has neither part."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    @classmethod
    def generate(cls) -> "Credentials":
        """New ones."""
        return cls(secrets.token_hex(10), secrets.token_hex(20))

    @classmethod
    def parse(cls, text: str) -> "Credentials":
        """Return the inverse of `text`. Raise ValueError, which does not repeat what was found."""
        found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        if not (found.get("access_key") and found.get("secret_key")):
            raise ValueError("expected the lines access_key=… and secret_key=…")
        return cls(found["access_key"], found["secret_key"])

    def text(self) -> str:
        """Two lines, as they lie on hosts."""
        return f"access_key={self.access_key}\nsecret_key={self.secret_key}\n"


PORT = 9000
DATA_DIR = "/var/lib/minio"
BINARY = "/opt/testbed/minio/minio"
ENVIRONMENT = "/etc/testbed/s3/server.env"
LOG = "/var/log/minio/server.log"
PID_FILE = "/run/minio.pid"
DRIVES = 4
"""Of each server, where there are several: folders of its one disk. From three servers on, one may be down."""


def endpoints(topology: Topology, plan: AddressPlan) -> tuple[str, ...]:
    """Return where clients find the servers, in the topology's order: any of them serves everything."""
    return tuple(f"http://{plan.data_ip(host.name)}:{PORT}" for host in topology.objectstores)


def drives(topology: Topology, plan: AddressPlan) -> tuple[str, ...]:
    """Return the drives that every server is started with: one folder of one server, or the folders of all."""
    servers = endpoints(topology, plan)
    if len(servers) == 1:
        return (f"{DATA_DIR}/d1",)
    return tuple(f"{server}{DATA_DIR}/d{number + 1}" for server in servers for number in range(DRIVES))


def command(topology: Topology, plan: AddressPlan) -> tuple[str, ...]:
    """Starts a server. The credentials are in no argument, and in no variable of the process."""
    variables = [f"MINIO_CONFIG_ENV_FILE={ENVIRONMENT}"]
    if len(topology.objectstores) > 1:
        # Without this it refuses drives that are folders of one disk. It reads the variable before it reads the file.
        variables.append("MINIO_CI_CD=on")
    return ("env", *variables, BINARY, "server", "--anonymous", "--address", f":{PORT}", *drives(topology, plan))


def environment(credentials: Credentials) -> str:
    """Return the file of variables that the server reads by itself."""
    variables = {
        "MINIO_ROOT_USER": credentials.access_key,
        "MINIO_ROOT_PASSWORD": credentials.secret_key,
        # The agent on the host reads the metrics; there is nothing in them that would have to be hidden.
        "MINIO_PROMETHEUS_AUTH_TYPE": "public",
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
        # What it does by itself is not what is measured.
        "MINIO_SCANNER_SPEED": "slowest",
    }
    return "".join(f"{name}={value}\n" for name, value in variables.items())


def server_files(credentials: Credentials) -> dict[str, bytes]:
    """Path → content of what a server needs; private, all of it."""
    return {ENVIRONMENT: environment(credentials).encode(), **user_files(credentials)}


def user_files(credentials: Credentials) -> Mapping[str, bytes]:
    """Path → content of what a host needs that uses the store; private."""
    return {CREDENTIALS_FILE: credentials.text().encode()}


class Server(Daemon):
    """The MinIO process of one host."""

    def __init__(self, host: Host, topology: Topology, plan: AddressPlan) -> None:
        super().__init__(host, "MinIO", command(topology, plan), pid_file=PID_FILE, log=LOG)
