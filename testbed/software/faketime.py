"""libfaketime, the library of the fault `clock-skew`, as the node image's Debian release has it.

A library of a newer release needs a newer C library than a host has, and ends every program that it is loaded into.
"""

import os
import shutil
import tempfile
from pathlib import Path

from testbed.errors import SoftwareError
from testbed.paths import cache_dir, state_dir
from testbed.software.cache import artefact, existing
from testbed.software.commands import run_logged
from testbed.software.distribution import this_distribution
from testbed.software.engine import EngineError, EngineSocket
from testbed.software.image import SUITE, ImageRecipe, made_image

PACKAGE, LIBRARY = "libfaketime", "libfaketimeMT.so.1"
NAME = "faketime"
RECIPE = ImageRecipe(f"testbed-{NAME}", (PACKAGE,))


def cached_library() -> Path | None:
    """Return the library when it is in the cache; fetch nothing."""
    found = existing(NAME, SUITE)
    return None if found is None else found / LIBRARY


def no_library() -> str:
    """Return why this machine cannot have the library; empty when it is in the cache, or can be fetched."""
    if cached_library() is not None or _apt_has_it():
        return ""
    try:
        EngineSocket.from_environment().ping()
    except EngineError as error:
        return (
            f"{PACKAGE} of Debian {SUITE} is not in the cache, and this machine fetches it through a container engine: "
            f"{error}; start one, or run `testbed doctor --fix --with clock-skew` on a machine of this architecture "
            f"that has one, and copy {NAME}/{SUITE} from its cache to {cache_dir() / NAME / SUITE}"
        )
    return ""


def library() -> Path:
    """Return the library; fetch it when it is not in the cache. Raise `SoftwareError` on failure.

    That takes a second where apt has it, else an image, which has the sources of the node image.
    """
    return artefact(NAME, SUITE, _from_apt if _apt_has_it() else _from_image) / LIBRARY


def _apt_has_it() -> bool:
    distribution = this_distribution()
    return distribution.is_debian and distribution.release.get("VERSION_CODENAME") == SUITE


def _from_apt(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target) as folder:
        script = f'cd "$1" && apt-get -q download {PACKAGE} && dpkg -x *.deb .'
        # With the user's environment: a proxy may be named there alone.
        run_logged(["sh", "-c", script, "fetch", folder], state_dir() / "logs" / "faketime.log")
        found = sorted(Path(folder).rglob(LIBRARY))
        if not found:
            raise SoftwareError(f"Debian's package {PACKAGE} has no {LIBRARY}")
        shutil.copyfile(found[0], target / LIBRARY)


def _from_image(target: Path) -> None:
    engine, image = EngineSocket.from_environment(), made_image(RECIPE)
    try:
        engine.copy_out(image.tag, f"/usr/lib/{os.uname().machine}-linux-gnu/{NAME}/{LIBRARY}", target / LIBRARY)
    finally:
        engine.remove_image(image.tag)
