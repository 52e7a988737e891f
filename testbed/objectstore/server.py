"""One MinIO server on a host: its credentials, its files, its command, its process. Everything but `Server` is pure."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.hosts import Daemon, Host
from testbed.network.addresses import AddressPlan
from testbed.topology.model import Topology

CREDENTIALS_FILE = "/etc/testbed/s3/credentials"
"""A path on every host that serves or uses the store."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The one user of a store. Its representation has neither part."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    @classmethod
    def generate(cls) -> "Credentials":
        """Return new credentials."""
        return cls(secrets.token_hex(10), secrets.token_hex(20))

    @classmethod
    def parse(cls, text: str) -> "Credentials":
        """Return the inverse of `text`. Raise ValueError without the text found, which may be secret."""
        found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        if not (found.get("access_key") and found.get("secret_key")):
            raise ValueError("expected the lines access_key=… and secret_key=…")
        return cls(found["access_key"], found["secret_key"])

    def text(self) -> str:
        """Return the two lines of the credentials' file on hosts."""
        return f"access_key={self.access_key}\nsecret_key={self.secret_key}\n"


PORT = 9000
DATA_DIR = "/var/lib/minio"
BINARY = "/opt/testbed/minio/minio"
ENVIRONMENT = "/etc/testbed/s3/server.env"
LOG = "/var/log/minio/server.log"
PID_FILE = "/run/minio.pid"
DRIVES = 4
"""A server's drives, where there are several servers: folders of its one disk. With three or more, one may be down."""


def endpoints(topology: Topology, plan: AddressPlan) -> tuple[str, ...]:
    """Return the clients' endpoints, in the topology's order: each serves everything."""
    return tuple(f"http://{plan.data_ip(host.name)}:{PORT}" for host in topology.objectstores)


def drives(topology: Topology, plan: AddressPlan) -> tuple[str, ...]:
    """Return the drives in every server's command: one folder of one server, or the folders of all."""
    servers = endpoints(topology, plan)
    if len(servers) == 1:
        return (f"{DATA_DIR}/d1",)
    return tuple(f"{server}{DATA_DIR}/d{number + 1}" for server in servers for number in range(DRIVES))


def command(topology: Topology, plan: AddressPlan) -> tuple[str, ...]:
    """Return the command of a server. The credentials are in no argument and in no variable of the process."""
    variables = [f"MINIO_CONFIG_ENV_FILE={ENVIRONMENT}"]
    if len(topology.objectstores) > 1:
        # Without it MinIO refuses drives that are folders of one disk. MinIO reads the variable before the file.
        variables.append("MINIO_CI_CD=on")
    return ("env", *variables, BINARY, "server", "--anonymous", "--address", f":{PORT}", *drives(topology, plan))


def environment(credentials: Credentials) -> str:
    """Return the file of variables that the server reads by itself."""
    variables = {
        "MINIO_ROOT_USER": credentials.access_key,
        "MINIO_ROOT_PASSWORD": credentials.secret_key,
        # The agent on the host reads the metrics; they contain no secret.
        "MINIO_PROMETHEUS_AUTH_TYPE": "public",
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
        # The server's background work must not disturb a measurement.
        "MINIO_SCANNER_SPEED": "slowest",
    }
    return "".join(f"{name}={value}\n" for name, value in variables.items())


def server_files(credentials: Credentials) -> dict[str, bytes]:
    """Return path → content of a server's files; all private."""
    return {ENVIRONMENT: environment(credentials).encode(), **user_files(credentials)}


def user_files(credentials: Credentials) -> Mapping[str, bytes]:
    """Return path → content of the files of a host that uses the store; private."""
    return {CREDENTIALS_FILE: credentials.text().encode()}


class Server(Daemon):
    """The MinIO process of one host."""

    def __init__(self, host: Host, topology: Topology, plan: AddressPlan) -> None:
        super().__init__(host, "MinIO", command(topology, plan), pid_file=PID_FILE, log=LOG)
