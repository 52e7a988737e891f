"""Keys of SSH servers: the key that a server presents, and whether the user knows it.

A key is known by the file of known hosts, or by a fingerprint or a public key in the topology. An unknown key is an
error that shows its fingerprint. Nothing is ever added to the file of known hosts.
"""

import base64
import hashlib
import re
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import paramiko

from testbed.errors import TestbedError

KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "rsa-sha2-512")
SSH_PORT = 22
REVOKED = "@revoked"
_CONNECT_S = 10.0


def fingerprint(key: str) -> str:
    """Return `SHA256:…` of a public key (`ssh-ed25519 AAAA…`), as `ssh-keygen -l` prints it."""
    digest = hashlib.sha256(base64.b64decode(key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


Tunnel = Callable[[str, int], paramiko.Channel]
"""Opens a channel from a jump host to a server."""


def known(file: str, host: str, port: int) -> tuple[str, ...]:
    """Return the public keys of a server in a file of known hosts, also several of one kind; empty without the file.

    The lines count as for OpenSSH: names in lower case, hashed, or with `*`, `?` and `!`; a revoked key is not known; a
    server on another port than 22 may be there by its name alone. Raise `TestbedError` when the file cannot be read.
    """
    try:
        path = Path(file).expanduser()
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except (OSError, RuntimeError) as error:  # RuntimeError: ~USER of a user that does not exist
        raise TestbedError(f"{file}: the known hosts cannot be read: {error}") from error
    lines = [words for line in text.splitlines() if (words := line.split()) and not words[0].startswith("#")]
    alone = host.lower()
    found = _keys_of(lines, alone if port == SSH_PORT else f"[{alone}]:{port}") or _keys_of(lines, alone)
    return tuple(key for key, revoked in found.items() if not revoked)


def _keys_of(lines: Sequence[Sequence[str]], name: str) -> dict[str, bool]:
    """Return key → whether a line revokes it, for each key that the lines have of a name. Pure."""
    found: dict[str, bool] = {}
    for line in lines:
        marker, words = (line[0], line[1:]) if line[0].startswith("@") else ("", line)
        if marker not in ("", REVOKED):
            continue  # a key that signs hosts' certificates is no host's key
        try:
            entry = paramiko.hostkeys.HostKeyEntry.from_line(" ".join(words[:3]))
        except (paramiko.SSHException, paramiko.hostkeys.InvalidHostKey):
            continue  # as OpenSSH does: a damaged line names no host
        if entry is not None and entry.key is not None and _names(entry.hostnames or (), name):
            key = f"{entry.key.get_name()} {entry.key.get_base64()}"
            found[key] = found.get(key, False) or marker == REVOKED
    return found


def _names(patterns: Sequence[str], name: str) -> bool:
    """Return whether the names of a line are of this server. Pure."""
    named = False
    for each in patterns:
        if each.startswith("|1|"):
            matches = _is_hash_of(name, each)
        else:
            pattern = re.escape(each.removeprefix("!").lower()).replace(r"\*", ".*").replace(r"\?", ".")
            matches = re.fullmatch(pattern, name) is not None
        if matches and each.startswith("!"):
            return False
        named = named or matches
    return named


def _is_hash_of(name: str, text: str) -> bool:
    try:
        return paramiko.HostKeys.hash_host(name, text) == text
    except (AssertionError, IndexError, ValueError):
        return False  # damaged


def _connection(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), timeout=_CONNECT_S)


def presented(host: str, port: int, kind: str, through: Tunnel | None = None) -> str | None:
    """Return the key of this kind that a server presents; None when it has no such key. Raise `TestbedError`.

    `through` opens the connection by way of a jump host.
    """
    try:
        stream: socket.socket | paramiko.Channel = (through or _connection)(host, port)
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise TestbedError(f"no SSH server answers at {host}:{port}: {error}") from error
    transport = paramiko.Transport(stream)
    try:
        transport.get_security_options().key_types = (kind,)
        transport.start_client(timeout=_CONNECT_S)
        key = transport.get_remote_server_key()
        return f"{key.get_name()} {key.get_base64()}"
    except paramiko.ssh_exception.IncompatiblePeer:
        return None
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise TestbedError(f"{host}:{port} answers, but not as an SSH server: {error}") from error
    finally:
        transport.close()


def verified(
    host: str,
    port: int,
    declared: str | None,
    known_hosts: str,
    through: Tunnel | None = None,
    *,
    field: str = "host_key",
) -> str:
    """Return the server's public key when the user knows it. Raise `TestbedError`, with the fingerprint, otherwise.

    `declared` is a fingerprint or a public key from the topology's `field`; None: `known_hosts` must have the key.
    """
    accepted: Sequence[str] = (declared,) if declared else known(known_hosts, host, port)
    seen: list[str] = []
    for kind in KINDS:
        key = presented(host, port, kind, through)
        if key is None:
            continue
        if any(each in (key, fingerprint(key)) for each in accepted):
            return key
        seen.append(key)
    if not seen:
        raise TestbedError(f"{host}:{port} presents no key of these kinds: {', '.join(KINDS)}")
    raise TestbedError(refusal_text(f"{host}:{port}", seen, declared, accepted, known_hosts, field))


def refusal_text(
    server: str, seen: Sequence[str], declared: str | None, accepted: Sequence[str], known_hosts: str, field: str
) -> str:
    """Return why none of the keys that a server presents is accepted, and what to do. Pure."""
    shown = ", ".join(f"{fingerprint(key)} ({key.split()[0]})" for key in seen)
    if declared:
        return f"the SSH server {server} presents {shown}; declared is {field}: {declared}"
    if accepted:
        expected = ", ".join(map(fingerprint, accepted))
        return (
            f"the SSH server {server} presents {shown}; {known_hosts} has another key for it, {expected}: "
            "either the machine was installed again, or another machine answers"
        )
    return (
        f"the SSH server {server} presents an unknown key, {shown}. Compare it with `ssh-keygen -lf "
        f"/etc/ssh/ssh_host_ed25519_key.pub` on that machine; then write {field}: {fingerprint(seen[0])}, "
        f"or add the key to {known_hosts}"
    )
