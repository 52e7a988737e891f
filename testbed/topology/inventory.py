"""Machines that exist already: how a host of `provision: inventory` is reached, and what may be used on it.

A topology with an inventory declares hosts that the testbed does not make. Each is reached over SSH.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema

from testbed.form import Form, check, optional, text_schema
from testbed.suggestions import show
from testbed.yaml_document import FieldPath, Violation

if TYPE_CHECKING:
    from testbed.topology.model import Topology

DEVICE = r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,14}$"
SSH_NAME = r"^[A-Za-z0-9][A-Za-z0-9.:-]{0,252}$"
USER = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$"
JUMP = r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,31}@)?[A-Za-z0-9][A-Za-z0-9.-]{0,252}(:[0-9]{1,5})?$"
HOST_KEY = r"^(SHA256:[A-Za-z0-9+/]{43}|(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/=]{60,1000})$"
FOLDER = r"^/[A-Za-z0-9_.+/-]{1,150}$"
DEFAULT_FOLDER = "/var/tmp"
KNOWN_HOSTS = "~/.ssh/known_hosts"
MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class SshAccess:
    """How one host is reached, and what the testbed may use there.

    `key` is the path of a private key; None: the user's SSH agent and usual keys. `jump` is `[user@]host[:port]`.
    `host_key` and `jump_host_key` are fingerprints or public keys; None: `known_hosts` has them. With `sudo` commands
    run as root by sudo. `folder` is the parent of the testbed's own folder, on the disk that holds Kafka's data.
    `java` is Java's home; None: it is found. With `keep_software` the copied software stays after `down`.
    """

    address: str
    user: str = "root"
    port: int = 22
    key: str | None = None
    jump: str | None = None
    sudo: bool = False
    host_key: str | None = None
    jump_host_key: str | None = None
    known_hosts: str = KNOWN_HOSTS
    folder: str = DEFAULT_FOLDER
    java: str | None = None
    keep_software: bool = False

    def to_document(self) -> dict[str, Any]:
        """Return the fields as a file has them; those without a value are omitted."""
        return {name: value for name in self.__dataclass_fields__ if (value := getattr(self, name)) is not None}


def _pattern(pattern: str, what: str, allowed: str) -> BeforeValidator:
    def problem(found: object) -> str | None:
        if isinstance(found, str) and re.fullmatch(pattern.strip("^$"), found, re.ASCII):
            return None
        return f"{show(found)} is no {what}; allowed: {allowed}"

    return check(problem)


def text_type(pattern: str, what: str, allowed: str, *examples: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Return the type of a text with this pattern; `what` and `allowed` are for its message."""
    return _pattern(pattern, what, allowed), text_schema(pattern, *examples)


def unknown_user(path: object) -> str | None:
    """Return why this path has no place (`~user` of a user that does not exist), or None."""
    try:
        Path(str(path)).expanduser()
    except RuntimeError:
        user = str(path).partition("/")[0].removeprefix("~")
        return f"{show(path)} is in the home folder of {show(user)}, and there is no such user; allowed: ~ for your own"
    return None


def _port_problem(found: object) -> str | None:
    if isinstance(found, int) and not isinstance(found, bool) and 1 <= found <= MAX_PORT:
        return None
    return f"{show(found)} is no port; allowed: 1 to {MAX_PORT}"


def _jump_problem(found: object) -> str | None:
    _, colon, port = str(found).rpartition(":")
    return _port_problem(int(port)) if colon and port.isdigit() else None


def _address_problem(found: object) -> str | None:
    try:
        if isinstance(found, str) and IPv4Address(found):
            return None
    except AddressValueError:
        pass
    return f"{show(found)} is no IPv4 address; allowed: such as 10.0.0.5"


UserFile = Annotated[
    str,
    _pattern(r"^[^\x00-\x1f]{1,400}$", "file", "a path, relative to this file or from ~"),
    check(unknown_user),
    WithJsonSchema({"type": "string", "minLength": 1, "examples": ["~/.ssh/id_ed25519"]}),
]
HostKey = Annotated[
    str,
    *text_type(
        HOST_KEY,
        "host key",
        "a fingerprint such as SHA256:… (43 characters) or a public key such as ssh-ed25519 AAAA…",
        "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
    ),
]
NicDevice = Annotated[
    str, *text_type(DEVICE, "network device", "a name of at most 15 characters, such as eth1", "eth1")
]
NicAddress = Annotated[
    str, check(_address_problem), WithJsonSchema({"type": "string", "format": "ipv4", "examples": ["10.0.0.5"]})
]
Port = Annotated[int, check(_port_problem), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_PORT})]
LinuxUser = Annotated[str, *text_type(USER, "user", "a Linux user such as admin", "admin")]
SshName = Annotated[str, *text_type(SSH_NAME, "address", "a host name or an IP address", "10.0.0.5")]
JumpHost = Annotated[str, *text_type(JUMP, "jump host", "[user@]host[:port]", "admin@bastion:22"), check(_jump_problem)]
Folder = Annotated[
    str,
    *text_type(FOLDER, "folder", "an absolute path of letters, digits and _ . + - /, such as /srv/kafka", "/srv/kafka"),
]


class InventoryForm(Form):
    """What all hosts of `provision: inventory` share; a host's ssh replaces single fields."""

    user: LinuxUser | None = optional("The user to log in as; root unless given.")
    port: Port | None = optional("The port of the SSH server; 22 unless given.")
    key: UserFile | None = optional("A private key. Left out: the SSH agent and your usual keys.")
    jump: JumpHost | None = optional("A host through which the connection goes: [user@]host[:port].")
    sudo: bool | None = optional("Run commands as root with sudo; true unless the user is root.")
    jump_host_key: HostKey | None = optional("The jump host's key or fingerprint.")
    known_hosts: UserFile | None = optional("The file of known hosts; ~/.ssh/known_hosts unless given.")
    folder: Folder | None = optional(
        f"Where the testbed makes its folder, on the disk to use; {DEFAULT_FOLDER} unless given."
    )
    java: Folder | None = optional("The home of Java 17 or newer; found unless given.")
    keep_software: bool | None = optional("`down` leaves the copied software for the next `up`; false unless given.")


class SshForm(InventoryForm):
    """How this host is reached. Fields left out come from inventory."""

    address: SshName | None = optional("The host's name or address for SSH; the data address of its NIC unless given.")
    host_key: HostKey | None = optional("The host's key or its fingerprint. Left out: known_hosts must have it.")


def given(absolute: Callable[[str], str], *forms: Form | None) -> dict[str, Any]:
    """Return the fields that these forms have, the last one first; `absolute` makes a file's path absolute."""
    fields: dict[str, Any] = {"known_hosts": KNOWN_HOSTS}
    for form in filter(None, forms):
        fields |= {name: value for name, value in form if value is not None}
    return fields | {name: absolute(fields[name]) for name in ("key", "known_hosts") if name in fields}


def access(fields: Mapping[str, Any], address: str) -> SshAccess:
    """Return a host's access from its own and the shared fields; `address` counts where they have none."""
    found = {"address": address, "sudo": fields.get("user", "root") != "root", **fields}
    if "folder" in found:
        found["folder"] = found["folder"].rstrip("/") or "/"
    return SshAccess(**found)


Provision = Literal["containers", "inventory"]


def provision_problems(topology: "Topology") -> Iterator[Violation]:
    """Yield each violation of how the hosts come to be: on machines that exist, what could not be held there."""
    if not topology.exists:
        for host in topology.hosts:
            if host.ssh is not None:
                message = "the testbed makes this host; allowed with ssh: provision: inventory"
                yield Violation(("hosts", host.name, "ssh"), message)
        return
    for rack in topology.uplinks:
        message = "there is no switch of the testbed between machines that exist; allowed: a rack without uplink"
        yield Violation(("racks", rack, "uplink"), message)
    if topology.automq is not None:
        yield Violation(("software", "automq"), "it is not supported with provision: inventory; allowed: kafka")
    first: dict[tuple[str, int], str] = {}
    for host in topology.hosts:
        at: FieldPath = ("hosts", host.name)
        if host.disk is not None:
            message = "a file system of a size cannot be made on a machine that exists; allowed: folder, under ssh"
            yield Violation((*at, "disk"), message)
        if host.cpus is not None:
            message = "processes of a machine that exists are not limited; allowed: no cpus"
            yield Violation((*at, "cpus"), message)
        if host.ssh is None:
            yield Violation(at, "it is in an inventory, and nothing says how it is reached; allowed: ssh")
            continue
        where = (host.ssh.address, host.ssh.port)
        if where in first:
            message = f"{where[0]}:{where[1]} is {first[where]} already; allowed: each machine once"
            yield Violation((*at, "ssh", "address"), message)
        first.setdefault(where, host.name)
        for nic in host.nics:
            here = (*at, "nic") if len(host.nics) == 1 else (*at, "nics", nic.name)
            if nic.name == "lo":
                yield Violation((*here, "device"), "lo is loopback; allowed: the device of a network, such as eth1")
