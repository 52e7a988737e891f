"""The image of the hosts of Apache's system tests: the node image's packages, a JDK, and the programs they call."""

from testbed.software.engine import EngineSocket
from testbed.software.image import OPTIONS, PACKAGES, ImageRecipe, ImageRef, made_image

USER = "ducker"
"""The user as which the tests log in: the name that Kafka's own Docker image gives it."""
_PACKAGES = (
    "iperf",
    "iptables",
    "iputils-ping",
    "less",
    "lsof",
    "net-tools",
    "netcat-openbsd",
    "openjdk-17-jdk-headless",
    "openssl",
    "procps",
    "psmisc",
    "rsync",
    "sudo",
    "traceroute",
    "unzip",
)
_HOOKS = (
    # No password, yet not locked: sshd without PAM refuses a locked account's keys, too.
    f"--customize-hook=chroot \"$1\" useradd --create-home --shell /bin/bash --password '*' {USER}",
    f'--customize-hook=echo "{USER} ALL=(ALL) NOPASSWD: ALL" > "$1"/etc/sudoers.d/{USER}',
    f'--customize-hook=chmod 0440 "$1"/etc/sudoers.d/{USER}',
    # Services write to /mnt, and some scripts to their own folder.
    f'--customize-hook=chroot "$1" chown {USER} /mnt /opt',
)
RECIPE = ImageRecipe(
    "testbed-system-test", tuple(sorted({*PACKAGES, *_PACKAGES} - {"openjdk-17-jre-headless"})), (*OPTIONS, *_HOOKS)
)


def system_test_image(engine: EngineSocket | None = None) -> ImageRef:
    """Return the image; build it when the engine has none: a minute. Raise SoftwareError when that fails."""
    return made_image(RECIPE, engine)
