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
    damaged = b"m2 ssh-ed25519 AAAAC\nm3 \xe9\xff\nhalf\n" + f"|1|AAA|x {OTHER}\n|1| {OTHER}\n".encode()
    file.write_bytes(damaged + f"m1 {ONE}\n".encode())
    assert known(str(file), "m1", 22) == (ONE,)


def test_the_folder_of_a_user_that_does_not_exist_is_named():
    with pytest.raises(TestbedError, match="~nobody-here/known_hosts"):
        known("~nobody-here/known_hosts", "m1", 22)


@pytest.mark.parametrize(
    ("names", "host", "port", "expected"),
    [
        ("lab-1.example", "Lab-1.Example", 22, True),
        ("*.example", "lab-1.example", 22, True),
        ("10.0.?.5", "10.0.3.5", 22, True),
        ("10.0.?.5", "10.0.33.5", 22, False),
        ("*.example,!lab-1.example", "lab-1.example", 22, False),
        ("[*.example]:2222", "lab-1.example", 2222, True),
        ("[*.example]:2222", "lab-1.example", 22, False),
        ("lab-1.example", "lab-1.example", 2222, True),
        ("lab-1.example  ", "lab-1.example", 22, True),
        ("@cert-authority *.example", "lab-1.example", 22, False),
    ],
)
def test_names_count_as_for_openssh(tmp_path, names, host, port, expected):
    file = tmp_path / "known_hosts"
    file.write_text(f"{names} {ONE} a comment\n")
    assert known(str(file), host, port) == ((ONE,) if expected else ())


def test_a_server_with_a_key_of_its_port_has_no_key_of_its_name_alone(tmp_path):
    file = tmp_path / "known_hosts"
    file.write_text(f"m1 {ONE}\n[m1]:2222 {OTHER}\n")
    assert known(str(file), "m1", 2222) == (OTHER,)


def test_a_key_that_is_revoked_for_its_port_is_not_known_by_its_name_alone(tmp_path):
    file = tmp_path / "known_hosts"
    file.write_text(f"m1 {ONE}\n@revoked [m1]:2222 {ONE}\n")
    assert known(str(file), "m1", 2222) == ()


@pytest.mark.parametrize("names", ["m1", "*"])
def test_a_revoked_key_is_not_known(tmp_path, names):
    file = tmp_path / "known_hosts"
    file.write_text(f"m1 {ONE}\nm1 {OTHER}\n@revoked {names} {ONE}\n")
    assert known(str(file), "m1", 22) == (OTHER,)
