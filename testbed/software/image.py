"""The image of every host's container: pulled when one is configured, else made of Debian packages."""

import hashlib
import json
import logging
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from results.contract import durable
from testbed.paths import cache_dir, state_dir
from testbed.software.apt_sources import host_sources
from testbed.software.commands import CommandError, run_logged
from testbed.software.engine import Engine, EngineError, Trouble
from testbed.software.packages import contents_digest

LOG = logging.getLogger(__name__)
REPOSITORY = "testbed-node"
CONFIGURED = "TESTBED_NODE_IMAGE"
SUITE = "bookworm"
PACKAGES = (
    "ethtool",
    "iperf3",
    "iproute2",
    "iputils-ping",
    "less",
    "openjdk-17-jre-headless",
    "openssh-server",
    "procps",
    "python3",
    "tini",
)
OPTIONS = (
    "--variant=minbase",
    "--aptopt=Acquire::Languages none",
    # The image is made anew after a crash: no need to wait for the disk after each package.
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
    # Java's packages link manual pages into a folder that must exist although the pages do not.
    '--setup-hook=mkdir -p "$1"/usr/share/man/man1',
    # Host keys are made per testbed; an image must not share its own.
    '--customize-hook=rm -f "$1"/etc/ssh/ssh_host_*',
    '--customize-hook=mkdir -p "$1"/run/sshd',
)
CHANGES = (
    "LABEL testbed.image=node",
    "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    'ENTRYPOINT ["/usr/bin/tini", "--"]',
)
CONTENTS = "testbed.contents"
"""The label that says what is in an image made here. Its id differs each time it is made, also where nothing else
does: a machine that is new each night would have no history."""


@dataclass(frozen=True, slots=True)
class ImageRef:
    """A local image: the name to start containers with, its id, and the digest that says what is in it.

    Of an image made here `contents` is that of the recipe and the packages' versions, otherwise it is the id.
    """

    tag: str
    id: str
    contents: str


def recipe_digest() -> str:
    """Twelve hexadecimal digits that change with the recipe."""
    recipe = json.dumps([SUITE, PACKAGES, OPTIONS, CHANGES, CONTENTS])
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def wanted_tag() -> str:
    """The image to use: the configured one, else the one this recipe makes."""
    return os.environ.get(CONFIGURED) or f"{REPOSITORY}:{recipe_digest()}"


def local_image(engine: Engine) -> ImageRef | None:
    """The wanted image, or the one this recipe makes, when the engine has it."""
    for tag in dict.fromkeys((wanted_tag(), f"{REPOSITORY}:{recipe_digest()}")):
        image_id = engine.find_image(tag)
        if image_id is not None:
            return ImageRef(tag, image_id, engine.image_labels(tag).get(CONTENTS, image_id))
    return None


def node_image(engine: Engine | None = None) -> ImageRef:
    """The node image, pulled or built when the engine has none; raises SoftwareError when neither works."""
    engine = engine or Engine.from_environment()
    found = local_image(engine)
    if found is not None and found.tag == wanted_tag():
        return found
    with durable.lock(cache_dir() / ".node-image.lock"):
        configured = os.environ.get(CONFIGURED)
        if configured and engine.find_image(configured) is None:
            try:
                engine.pull_image(configured)
            except EngineError as error:
                LOG.warning("%s=%s cannot be pulled (%s): using one made here", CONFIGURED, configured, error)
        found = local_image(engine)
        if found is None:
            _build(engine, f"{REPOSITORY}:{recipe_digest()}")
            found = local_image(engine)
    if found is None:
        raise EngineError(f"the engine took {wanted_tag()} but does not list it", Trouble.FAILED)
    return found


def build_command(target: Path, sources: tuple[str, ...]) -> tuple[str, ...]:
    """The words that make the root file system; with `sources` they are read from standard input."""
    return (
        "mmdebstrap",
        *OPTIONS,
        f"--include={','.join(PACKAGES)}",
        SUITE,
        str(target),
        *(("-",) if sources else ()),
    )


def _build(engine: Engine, tag: str) -> None:
    if shutil.which("mmdebstrap") is None:
        raise CommandError("mmdebstrap is not installed; on Debian: apt-get install mmdebstrap")
    sources = host_sources(SUITE)
    cache_dir().mkdir(parents=True, exist_ok=True)
    for leftover in cache_dir().glob("node-image-*"):
        shutil.rmtree(leftover)
    with tempfile.TemporaryDirectory(prefix="node-image-", dir=cache_dir()) as folder:
        tar = Path(folder) / "root.tar"
        run_logged(
            build_command(tar, sources),
            state_dir() / "logs" / "node-image.log",
            # Its own scratch lies beside the tar, so that what a kill leaves is found by the next build.
            env={"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "TMPDIR": folder},
            stdin="".join(f"{line}\n" for line in sources) or None,
        )
        contents = contents_digest(tar, recipe_digest())
        with tar.open("rb") as stream:
            engine.import_image(stream, tag, (*CHANGES, f"LABEL {CONTENTS}={contents}"))
