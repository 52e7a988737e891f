"""Machines that exist already: how a host of `provision: inventory` is reached, and what may be used on it.

A topology with an inventory declares hosts that the testbed does not make. Each is reached over SSH.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from testbed.form import Form, check
from testbed.suggestions import show
from testbed.yaml_document import FieldPath, Violation

if TYPE_CHECKING:
    from testbed.topology.host import DeclaredHost

DEVICE = r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,14}$"
SSH_NAME = r"^[A-Za-z0-9][A-Za-z0-9.:-]{0,252}$"
USER = r"^[a-z_][a-z0-9_-]{0,31}$"
JUMP = r"^([a-z_][a-z0-9_-]{0,31}@)?[A-Za-z0-9][A-Za-z0-9.-]{0,252}(:[0-9]{1,5})?$"
HOST_KEY = r"^(SHA256:[A-Za-z0-9+/]{43}|(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/=]{60,1000})$"
FOLDER = r"^/[A-Za-z0-9_.+/-]{1,150}$"
DEFAULT_FOLDER = "/var/tmp"
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
    known_hosts: str = "~/.ssh/known_hosts"
    folder: str = DEFAULT_FOLDER
    java: str | None = None
    keep_software: bool = False

    def to_document(self) -> dict[str, Any]:
        """Return the fields as a file has them; those without a value are omitted."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in fields.items() if value is not None}


def _pattern(pattern: str, what: str, allowed: str) -> Any:
    def problem(found: object) -> str | None:
        if isinstance(found, str) and re.fullmatch(pattern.strip("^$"), found, re.ASCII):
            return None
        return f"{show(found)} is no {what}; allowed: {allowed}"

    return check(problem)


def _text(pattern: str, what: str, allowed: str, *examples: str) -> tuple[Any, WithJsonSchema]:
    schema = {"type": "string", "pattern": pattern, "examples": list(examples)}
    return _pattern(pattern, what, allowed), WithJsonSchema(schema)


def _port_problem(found: object) -> str | None:
    if isinstance(found, int) and not isinstance(found, bool) and 1 <= found <= MAX_PORT:
        return None
    return f"{show(found)} is no port; allowed: 1 to {MAX_PORT}"


_JUMP_ALLOWED = "[user@]host[:port]"


def _jump_problem(found: object) -> str | None:
    _, colon, port = str(found).rpartition(":")
    return _port_problem(int(port)) if colon and port.isdigit() else None


def address_problem(found: object) -> str | None:
    """Return why this is no IPv4 address, or None."""
    try:
        if isinstance(found, str) and IPv4Address(found):
            return None
    except AddressValueError:
        pass
    return f"{show(found)} is no IPv4 address; allowed: such as 10.0.0.5"


_FOLDER = _text(FOLDER, "folder", "an absolute path of letters, digits and _ . + - /, such as /srv/kafka", "/srv/kafka")
UserFile = Annotated[
    str,
    _pattern(r"^[^\x00-\x1f]{1,400}$", "file", "a path, relative to this file or from ~"),
    WithJsonSchema({"type": "string", "minLength": 1, "examples": ["~/.ssh/id_ed25519"]}),
]
HostKey = Annotated[
    str,
    *_text(
        HOST_KEY,
        "host key",
        "a fingerprint such as SHA256:… (43 characters) or a public key such as ssh-ed25519 AAAA…",
        "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
    ),
]
NicDevice = Annotated[str, *_text(DEVICE, "network device", "a name of at most 15 characters, such as eth1", "eth1")]
NicAddress = Annotated[
    str, check(address_problem), WithJsonSchema({"type": "string", "format": "ipv4", "examples": ["10.0.0.5"]})
]


class AccessForm(Form):
    """How hosts are reached over SSH, and what the testbed may use on them."""

    user: Annotated[
        Annotated[str, *_text(USER, "user", "a Linux user such as admin", "admin")] | None,
        Field(description="The user to log in as; root unless given."),
    ] = None
    port: Annotated[
        int | None,
        check(_port_problem),
        WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_PORT, "default": 22}),
        Field(description="The port of the SSH server; 22 unless given."),
    ] = None
    key: Annotated[
        UserFile | None, Field(description="A private key. Left out: the SSH agent and your usual keys.")
    ] = None
    jump: Annotated[
        Annotated[str, *_text(JUMP, "jump host", _JUMP_ALLOWED, "admin@bastion:22"), check(_jump_problem)] | None,
        Field(description="A host through which the connection goes: [user@]host[:port]."),
    ] = None
    sudo: Annotated[bool | None, Field(description="Run commands as root with sudo; true unless the user is root.")] = (
        None
    )
    jump_host_key: Annotated[HostKey | None, Field(description="The jump host's key or fingerprint.")] = None
    known_hosts: Annotated[
        UserFile | None, Field(description="The file of known hosts; ~/.ssh/known_hosts unless given.")
    ] = None
    folder: Annotated[
        Annotated[str, *_FOLDER] | None,
        Field(description=f"Where the testbed makes its folder, on the disk to use; {DEFAULT_FOLDER} unless given."),
    ] = None
    java: Annotated[
        Annotated[str, *_FOLDER] | None, Field(description="The home of Java 17 or newer; found unless given.")
    ] = None
    keep_software: Annotated[
        bool | None,
        Field(description="`down` leaves the copied software for the next `up`; false unless given."),
    ] = None


class InventoryForm(AccessForm):
    """What all hosts of `provision: inventory` share; a host's ssh replaces single fields."""


class SshForm(AccessForm):
    """How this host is reached. Fields left out come from inventory."""

    address: Annotated[
        Annotated[str, *_text(SSH_NAME, "address", "a host name or an IP address", "10.0.0.5")] | None,
        Field(description="The host's name or address for SSH; the data address of its NIC unless given."),
    ] = None
    host_key: Annotated[
        HostKey | None, Field(description="The host's key or its fingerprint. Left out: known_hosts must have it.")
    ] = None


def access(shared: InventoryForm | None, own: SshForm | None, address: str, path: Callable[[str], str]) -> SshAccess:
    """Return a host's access: its own fields, then the shared ones. `path` makes a file's path absolute."""

    def given(name: str, otherwise: Any = None) -> Any:
        for form in (own, shared):
            if form is not None and (value := getattr(form, name)) is not None:
                return value
        return otherwise

    user = given("user", "root")
    key = given("key")
    return SshAccess(
        address=(own.address if own is not None else None) or address,
        user=user,
        port=given("port", 22),
        key=None if key is None else path(key),
        jump=given("jump"),
        sudo=given("sudo", user != "root"),
        host_key=own.host_key if own is not None else None,
        jump_host_key=given("jump_host_key"),
        known_hosts=path(given("known_hosts", "~/.ssh/known_hosts")),
        folder=given("folder", DEFAULT_FOLDER).rstrip("/") or "/",
        java=given("java"),
        keep_software=given("keep_software", False),
    )


Provision = Literal["containers", "inventory"]


def provision_problems(
    hosts: "Sequence[DeclaredHost]", uplinks: Iterable[str], provision: Provision, *, automq: bool
) -> list[Violation]:
    """Return every violation of how the hosts come to be."""
    if provision == "inventory":
        return list(_inventory_problems(hosts, uplinks, automq=automq))
    return [
        Violation(("hosts", host.name, "ssh"), "the testbed makes this host; allowed with ssh: provision: inventory")
        for host in hosts
        if host.ssh is not None
    ]


def _inventory_problems(
    hosts: "Iterable[DeclaredHost]", uplinks: Iterable[str], *, automq: bool
) -> Iterator[Violation]:
    """Yield each violation of a topology of machines that exist: what could not be held there, and double use."""
    for rack in uplinks:
        message = "there is no switch of the testbed between machines that exist; allowed: a rack without uplink"
        yield Violation(("racks", rack, "uplink"), message)
    if automq:
        yield Violation(("software", "automq"), "it is not supported with provision: inventory; allowed: kafka")
    first: dict[tuple[str, int], str] = {}
    for host in hosts:
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
