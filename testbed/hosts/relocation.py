"""The testbed's own paths and processes on a machine that exists.

In a container the testbed's files have fixed paths (`/var/lib/kafka`, `/opt/testbed`, …). A machine that exists may use
these paths for something else. So the testbed has one folder of its own there, and each of its paths is under it.
Every command that reaches the machine names its paths as in a container; `PathRelocation` replaces them.
"""

import re
import shlex
from dataclasses import dataclass

from testbed.hosts.host import AGENT_PATH

FOLDERS = (
    "/opt/testbed",
    "/opt/kafka",
    "/etc/testbed",
    "/var/lib/kafka",
    "/var/log/kafka",
    "/var/log/testbed",
    "/var/lib/minio",
    "/var/log/minio",
)
"""The folders of the testbed's own files on a host."""
_FILES = (r"/run/(?:kafka|kafka-pulses|minio|minio-pulses|stampede|iperf3-\d+)\.pid", "/run/testbed-defects")
_OWN = rf"(?<![\w./-])(?:{'|'.join((*map(re.escape, FOLDERS), *_FILES))})(?![\w-])"
MARK = "TESTBED_ID"
"""The variable in the environment of every process that the testbed starts on a machine that exists."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class PathRelocation:
    """The testbed's folder on a machine, and the mark of its processes.

    `home` is the folder; `mark` is a random text. Commands run as root: with `sudo`, by sudo. `java` is Java's home.
    """

    home: str
    mark: str
    sudo: bool
    java: str = ""

    @property
    def folders(self) -> tuple[str, ...]:
        """Return the folders that exist under `home` before anything is written there."""
        return tuple(self.home + folder for folder in (*FOLDERS, "/run", "/tmp"))

    @property
    def agent(self) -> str:
        """Return the path of the probes' agent."""
        return self.home + AGENT_PATH

    def text(self, text: str) -> str:
        """Return `text` with each of the testbed's own paths under `home`."""
        # The parent folder may be one of these paths itself: what is in the testbed's own folders there stays.
        there = rf"(?P<there>{re.escape(self.home.rpartition('/')[0])}/testbed-[\w.-]+)"
        return re.sub(f"{there}|{_OWN}", lambda found: found[0] if found["there"] else self.home + found[0], text)

    def content(self, content: bytes) -> bytes:
        """Return a file's content in the same way; a file that is not text stays as it is."""
        try:
            return self.text(content.decode()).encode()
        except UnicodeDecodeError:
            return content

    def command(self, text: str) -> str:
        """Return a command line that runs `text` in a shell as root, with its processes marked."""
        path = f"{self.java}/bin:{_PATH}" if self.java else _PATH
        words = ["env", f"{MARK}={self.mark}", f"PATH={path}", "sh", "-c", self.text(text)]
        return shlex.join([*(["sudo", "-n", "--"] if self.sudo else []), *words])
