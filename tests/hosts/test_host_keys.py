"""Known hosts are read as OpenSSH reads them: several keys of one kind count, a damaged line names no host."""

import base64

import paramiko
import pytest

from testbed.errors import TestbedError
from testbed.hosts.host_keys import known


def key(letter):
    """A public key of ed25519 in the form of a file of known hosts."""
    blob = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20" + letter * 32
    return f"ssh-ed25519 {base64.b64encode(blob).decode()}"


ONE, OTHER = key(b"a"), key(b"b")


def test_several_keys_of_one_kind_are_all_known(tmp_path):
    file = tmp_path / "known_hosts"
    hashed = paramiko.HostKeys.hash_host("[m1]:2222")
    file.write_text(f"# a comment\nm1 {ONE}\nm1,m2 {OTHER}\n{hashed} {ONE}\n")
    assert known(str(file), "m1", 22) == (ONE, OTHER)
    assert known(str(file), "m2", 22) == (OTHER,)
    assert known(str(file), "m1", 2222) == (ONE,)
    assert known(str(file), "m3", 22) == ()
    assert known(str(tmp_path / "none"), "m1", 22) == ()


def test_a_damaged_line_of_another_host_blocks_no_machine(tmp_path):
    file = tmp_path / "known_hosts"
    file.write_bytes(b"m2 ssh-ed25519 AAAAC\nm3 \xe9\xff\nhalf\n" + f"m1 {ONE}\n".encode())
    assert known(str(file), "m1", 22) == (ONE,)


def test_the_folder_of_a_user_that_does_not_exist_is_named():
    with pytest.raises(TestbedError, match="~nobody-here/known_hosts"):
        known("~nobody-here/known_hosts", "m1", 22)
