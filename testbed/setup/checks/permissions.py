"""What this user may do."""

import os
from pathlib import Path

from testbed.setup.finding import Check, Finding

NEEDED = {12: "CAP_NET_ADMIN", 21: "CAP_SYS_ADMIN"}
STATUS = Path("/proc/self/status")


class Permissions(Check):
    """Laying links between network namespaces takes root, or its capabilities."""

    name = "permissions"
    needs = ("platform",)

    def probe(self) -> Finding:
        """Compare the effective capabilities with those needed."""
        held = effective_capabilities(STATUS.read_text(encoding="ascii") if STATUS.exists() else "")
        lacking = [name for bit, name in NEEDED.items() if not held >> bit & 1]
        if not lacking:
            return self.good("may shape and link NICs")
        who = "root" if os.geteuid() == 0 else "this user"
        return self.bad(
            f"{who} lacks {' and '.join(lacking)}, needed to lay and shape the containers' NICs",
            "run as root: sudo ./run …" if os.geteuid() else "start this container with --privileged",
        )


def effective_capabilities(status: str) -> int:
    """The bits of CapEff in /proc/self/status; 0 when it is not there."""
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
