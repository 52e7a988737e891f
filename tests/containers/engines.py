"""Machines with an engine of their own: containers with a network namespace, an SSH server and a dockerd.

The engine's programs and libraries are those of this machine, mounted: no package is installed, and no registry asked.
"""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.provision.state import KeyPair, write_private
from testbed.software.image import node_image

PROGRAMS = ("dockerd", "containerd", "containerd-shim-runc-v2", "runc", "docker-proxy", "docker-init", "docker")
LIBRARIES = "/opt/engine/lib"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# fmt: off
CAPABILITIES = (
    "chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
    "linux_immutable", "net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner",
    "sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct", "sys_admin", "sys_boot", "sys_nice",
    "sys_resource", "sys_time", "sys_tty_config", "mknod", "lease", "audit_write", "audit_control", "setfcap",
    "mac_override", "mac_admin", "syslog", "wake_alarm", "block_suspend", "audit_read",
)
# fmt: on
"""By number, as the engine knows them."""
SSHD = (
    "HostKey /etc/ssh/host_key",
    "PermitRootLogin prohibit-password",
    "UsePAM no",
    "UseDNS no",
    "PidFile none",
    "Subsystem sftp internal-sftp",
)


NETWORK = f"engines-{os.getpid()}"


@dataclass(frozen=True)
class Machine:
    """A machine as a topology names it, and the container that it is."""

    name: str
    container: str
    address: str
    key: Path
    known_hosts: Path

    def yaml(self, **more):
        fields = {"engine": f"ssh://root@{self.address}", "key": self.key, "known_hosts": self.known_hosts, **more}
        return "{" + ", ".join(f'{name}: "{value}"' for name, value in fields.items()) + "}"

    def run(self, *words, check=True):
        """Run a command on the machine; returns its output."""
        done = run("docker", "exec", self.container, *words, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def left(self, name):
        """Everything the machine has of a testbed, in words."""
        label = f"label=testbed.name={name}"
        found = self.run("docker", "ps", "-aq", "--filter", label).split()
        found += self.run("docker", "network", "ls", "-q", "--filter", label).split()
        return found + self.run("docker", "volume", "ls", "-q", "--filter", label).split()


def run(*words, check=True, stdin=None):
    return subprocess.run(words, check=check, capture_output=True, text=True, input=stdin, timeout=120)


def _own_capabilities():
    """`privileged` asks for capabilities that a container's machine may itself lack."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapBnd"))
    bits = int(line.split()[1], 16)
    return [f"--cap-add={name.upper()}" for number, name in enumerate(CAPABILITIES) if bits >> number & 1]


def _programs():
    found = {name: shutil.which(name, path=PATH) for name in PROGRAMS}
    missing = [name for name, path in found.items() if path is None]
    assert not missing, f"an engine's programs are missing: {missing}"
    mounts = [f"--volume={Path(path).resolve()}:/usr/bin/{name}:ro" for name, path in found.items()]
    linked = run("ldd", *(path for path in found.values() if path), check=False).stdout
    libraries = {line.split()[2] for line in linked.splitlines() if "=> /" in line}
    own = ("libc.so", "libm.so", "libpthread", "libdl.so", "libresolv", "librt.so")
    return mounts + [
        f"--volume={path}:{LIBRARIES}/{Path(path).name}:ro"
        for path in sorted(libraries)
        if not Path(path).name.startswith(own)
    ]


def _start(name, network, image, host_key, login):
    container = f"{network}-{name}"
    options = ["--bridge=none", "--iptables=false", f"--cgroup-parent=/{container}", "--storage-driver=overlay2"]
    script = "; ".join(
        (
            "mkdir -p /root/.ssh /run/sshd /etc/ssh",
            f"printf '%s\\n' '{login.public}' > /root/.ssh/authorized_keys",
            f"umask 077; printf '%s' '{host_key.private.decode()}' > /etc/ssh/host_key",
            "printf '%s\\n' " + " ".join(f"'{line}'" for line in SSHD) + " > /etc/ssh/sshd_config",
            "/usr/sbin/sshd -f /etc/ssh/sshd_config -E /var/log/sshd.log",
            f"LD_LIBRARY_PATH={LIBRARIES} exec dockerd {' '.join(options)} > /var/log/dockerd.log 2>&1",
        )
    )
    words = ["docker", "run", "--detach", "--name", container, "--hostname", name, "--network", network]
    words += [*_own_capabilities(), "--device-cgroup-rule=a *:* rwm", "--cgroupns=host"]
    words += [f"--security-opt={each}=unconfined" for each in ("seccomp", "apparmor", "systempaths")]
    words += ["--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw", "--volume=/var/lib/docker", *_programs()]
    run(*words, image, "sh", "-c", script)
    return container


def _wait_for(container):
    deadline = time.monotonic() + 30
    while run("docker", "exec", container, "docker", "info", check=False).returncode != 0:
        log = run("docker", "exec", container, "tail", "/var/log/dockerd.log", check=False)
        assert time.monotonic() < deadline, f"{container}: its engine does not answer: {log.stdout}{log.stderr}"
        time.sleep(0.1)


def _load(image, container):
    """Give the machine's engine the image, faster than over SSH."""
    with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as save:
        load = ["docker", "exec", "--interactive", container, "docker", "load", "--quiet"]
        subprocess.run(load, stdin=save.stdout, check=True, capture_output=True, timeout=120)


@contextmanager
def machines(folder, *names, network=NETWORK, mtu=1500, with_image=True):
    """Machines of these names, on a network of their own with this MTU; removed at the end.

    Their engines have the node image, unless `with_image` is false.
    """
    image, login = node_image().tag, KeyPair.generate()
    folder.mkdir(parents=True, exist_ok=True)
    key, known_hosts = folder / "id_ed25519", folder / "known_hosts"
    write_private(key, login.private)
    host_keys = {name: KeyPair.generate() for name in names}
    containers = [f"{network}-{name}" for name in names]
    option = f"com.docker.network.driver.mtu={mtu}"
    run("docker", "network", "create", "--opt", option, network)
    try:
        for name in names:
            _start(name, network, image, host_keys[name], login)
        found = []
        for name, container in zip(names, containers, strict=True):
            _wait_for(container)
            if with_image:
                _load(image, container)
            form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
            address = run("docker", "inspect", "--format", form, container).stdout.strip()
            found.append(Machine(name, container, address, key, known_hosts))
        lines = [f"{machine.address} {host_keys[machine.name].public}\n" for machine in found]
        known_hosts.write_text("".join(lines), encoding="utf-8")
        yield tuple(found)
    finally:
        for container in containers:
            with suppress(subprocess.CalledProcessError):
                run("docker", "rm", "--force", "--volumes", container)
        with suppress(subprocess.CalledProcessError):
            run("docker", "network", "rm", network)
