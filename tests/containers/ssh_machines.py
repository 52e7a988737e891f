"""Machines that exist, for tests: containers with an SSH server that the testbed did not make and does not know.

Plain calls of docker make them, with a label of their own. Each is a small Debian with a user who may use sudo. They
get the capability to configure their network, and no other: as little as a testbed on them needs.
"""

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from testbed.provision.state import KeyPair
from testbed.software.image import node_image

LABEL = "existing-machine"
SUDO_PACKAGE = "sudo"
_START = """
set -e
id ops >/dev/null 2>&1 || useradd -m -s /bin/sh -p '*' ops
for home in /root /home/ops; do
  mkdir -p $home/.ssh; printf '%s\\n' "$KEY" > $home/.ssh/authorized_keys
done
chown -R ops: /home/ops/.ssh
if [ -d /etc/sudoers.d ]; then echo 'ops ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/ops; fi
mkdir -p /run/sshd /var/lib/kafka /srv/data
echo 'of somebody else' > /var/lib/kafka/meta.properties
printf 'Port %s\\nUsePAM no\\nPermitRootLogin prohibit-password\\nAllowUsers %s\\n' "$PORT" "$USERS" \
  > /etc/ssh/sshd_config.d/test.conf
ssh-keygen -A >/dev/null
sleep 86400 &
exec /usr/sbin/sshd -D -e
"""
# Sizes and times of all files, without what a login itself leaves (its records), and without folders' times.
_FILES = r"find / -xdev \( -path /proc -o -path /sys -o -path /dev \) -prune -o -type f -printf '%p %s %T@\n'"
_FOLDERS = r"find / -xdev \( -path /proc -o -path /sys -o -path /dev \) -prune -o -type d -print"
_LOOKS = {
    "qdiscs": "tc -j qdisc show",
    "filters": "for d in $(ls /sys/class/net); do tc filter show dev $d; done",
    "links": "ip -j -d addr show",
    "offloads": "ethtool -k eth0",
    "files": _FILES,
    "folders": _FOLDERS,
    "own data": "cat /var/lib/kafka/meta.properties",
}
_BETWEEN = "---- next ----"
_LOGINS = ("/var/log/wtmp", "/var/log/btmp", "/var/log/lastlog", "/run/utmp", "/var/lib/sudo", "/run/sudo")


def docker(*words, stdin=None):
    done = subprocess.run(["docker", *words], capture_output=True, text=True, input=stdin, timeout=120, check=False)
    assert done.returncode == 0, f"docker {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()


@dataclass
class Machine:
    """One container: its address, and how SSH reaches it."""

    name: str
    container: str
    address: str
    port: int = 22

    def sh(self, command):
        return docker("exec", self.container, "sh", "-c", command)

    @property
    def fingerprint(self):
        return self.sh("ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub").split()[1]

    @property
    def public_key(self):
        return " ".join(self.sh("cat /etc/ssh/ssh_host_ed25519_key.pub").split()[:2])

    def snapshot(self):
        """Everything that a testbed could leave: traffic control, links, addresses, offloads, processes, files."""
        # One call of docker for all of them: each costs more than what it runs.
        script = f"; printf '\\n%s\\n' '{_BETWEEN}'; ".join(_LOOKS.values())
        said = self.sh(f"set -e; {script}").split(f"\n{_BETWEEN}\n")
        told = {name: text.strip() for name, text in zip(_LOOKS, said, strict=True)}
        links = json.loads(told["links"])
        for link in links:
            for address in link["addr_info"]:
                address.pop("valid_life_time", None)
                address.pop("preferred_life_time", None)
        return {
            **told,
            "qdiscs": json.loads(told["qdiscs"]),
            "links": links,
            "processes": self.processes(),
            **{
                name: sorted(line for line in told[name].splitlines() if not line.startswith(_LOGINS))
                for name in ("files", "folders")
            },
        }

    def processes(self):
        """The command lines of all processes but those of SSH sessions, and of this look itself."""
        lines = self.sh("ps -eo args= --no-headers").splitlines()
        own = ("ps -eo", "sh -c ps -eo", "sshd: ")
        return sorted(line for line in lines if not line.startswith(own) and "defunct" not in line)


@dataclass
class MachineSet:
    """Machines in one network, with the key that opens them."""

    folder: Path
    network: str
    machines: dict[str, Machine] = field(default_factory=dict)

    @property
    def key(self):
        return self.folder / "id_ed25519"

    def __getitem__(self, name):
        return self.machines[name]

    def add(self, image, name, *, port=22, users="root ops"):
        public = (self.folder / "id_ed25519.pub").read_text().strip()
        container = docker(
            "run", "-d", "--init", "--label", f"{LABEL}={self.network}", "--network", self.network,
            "--cap-add", "NET_ADMIN", "--hostname", name,
            "-e", f"KEY={public}", "-e", f"PORT={port}", "-e", f"USERS={users}",
            image, "sh", "-c", _START,
        )  # fmt: skip
        found = json.loads(docker("inspect", container))[0]["NetworkSettings"]["Networks"][self.network]
        self.machines[name] = Machine(name, container, found["IPAddress"], port)
        scan = f"ssh-keyscan -T 2 -p {port} {self.machines[name].address} 2>/dev/null"
        subprocess.run(["sh", "-c", f"until {scan} | grep -q .; do sleep 0.1; done"], timeout=30, check=True)
        return self.machines[name]

    def known_hosts(self):
        """A file with the keys of all machines."""
        path = self.folder / "known_hosts"
        lines = []
        for machine in self.machines.values():
            where = machine.address if machine.port == 22 else f"[{machine.address}]:{machine.port}"
            lines.append(f"{where} {machine.public_key}\n")
        path.write_text("".join(lines))
        return path

    def remove(self):
        left = docker("ps", "-aq", "--filter", f"label={LABEL}={self.network}").split()
        if left:
            docker("rm", "-f", *left)
        docker("network", "rm", self.network)


def machine_set(folder, name):
    """A network and a key; `add` makes the machines."""
    pair = KeyPair.generate()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "id_ed25519").write_bytes(pair.private)
    (folder / "id_ed25519").chmod(0o600)
    (folder / "id_ed25519.pub").write_text(pair.public + "\n")
    docker("network", "create", "--label", f"{LABEL}={name}", name)
    return MachineSet(folder, name)


def image_with_sudo(folder, tag):
    """The node image with sudo, which Debian has as a package; returns its tag, the caller removes it."""
    subprocess.run(
        ["apt-get", "download", "-o", "APT::Sandbox::User=root", SUDO_PACKAGE],
        cwd=folder, capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    (package,) = folder.glob("sudo_*.deb")
    container = docker("run", "-d", "--label", f"{LABEL}={tag}", node_image().tag, "sleep", "60")
    try:
        docker("cp", str(package), f"{container}:/tmp/sudo.deb")
        docker("exec", container, "sh", "-c", "dpkg -i /tmp/sudo.deb >/dev/null 2>&1 && rm /tmp/sudo.deb")
        docker("commit", container, tag)
    finally:
        docker("rm", "-f", container)
    return tag
