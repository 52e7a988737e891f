"""Which system this is."""

import sys

from testbed.setup.debian import has_apt, os_release
from testbed.setup.finding import Check, Finding


class Platform(Check):
    """Linux, since containers, veth pairs and tc are its own."""

    name = "platform"

    def probe(self) -> Finding:
        """Other Linux distributions work when the programs are there; Debian's are installed."""
        if sys.platform != "linux":
            return self.bad(
                f"this is {sys.platform}; the testbed shapes NICs with Linux's traffic control",
                "run it on Linux: Debian 12, in a virtual machine if need be",
            )
        told = os_release().get("PRETTY_NAME", "Linux")
        return self.good(told if has_apt() else f"{told}: no apt-get, so missing programs are yours to install")
