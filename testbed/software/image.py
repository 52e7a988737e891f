"""The image of every host's container: pulled when one is configured, else made of Debian packages.

Where the engine has Debian's official image, or a registry gives it, the packages are installed on that: a Dockerfile
of the recipe does it. Elsewhere mmdebstrap makes everything of packages. Packages come from this machine's sources, so
from its owner's mirror. The digest of an image covers the recipe and the packages' versions. Images with the same
recipe and versions have one digest, whenever and in whichever way they were made.
"""

import hashlib
import json
import logging
import os
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from results.contract import durable
from testbed.errors import SoftwareError
from testbed.paths import cache_dir, state_dir
from testbed.software.apt import credentials, fetch_settings, host_sources
from testbed.software.commands import CommandError, run_logged
from testbed.software.distribution import as_root, this_distribution
from testbed.software.engine import EngineError, EngineSocket, Trouble, have_image, tar_of

SETTINGS = "/etc/dpkg/dpkg.cfg.d/testbed"
OWN_APT = "/tmp/apt"
"""The folder with the machine's settings of apt while the image is built."""
_IGNORED = ("--variant=",)
"""Options that the base image stands for."""


def dockerfile(
    base: str, packages: Sequence[str], options: Sequence[str], changes: Sequence[str], *, own_apt: bool = False
) -> str:
    """Return a Dockerfile that installs `packages` on `base`, with mmdebstrap's `options`. Pure.

    With `own_apt` the folder `apt` of the build's context has the machine's settings of apt, which leave again.
    Raise ValueError for an option that has no equivalent.
    """
    apt, dpkg = ["-q", "-y"], []
    before, after = [], []
    for option in options:
        name, _, value = option.partition("=")
        if name == "--aptopt":
            apt += ["-o", value.replace(" ", "=", 1)]
        elif name == "--dpkgopt":
            dpkg.append(value)
        elif name == "--setup-hook":
            before.append(value)
        elif name == "--customize-hook":
            after.append(value)
        elif not option.startswith(_IGNORED):
            raise ValueError(f"a Dockerfile has no equivalent of mmdebstrap's option {option}")
    if own_apt:
        parts = (f"SourceList={OWN_APT}/sources.list", "SourceParts=/dev/null", f"NetRC={OWN_APT}/auth.conf")
        apt += [word for part in parts for word in ("-o", f"Dir::Etc::{part}")]
    get = f"apt-get {shlex.join(apt)}"
    steps = [
        # A hook gets the image's root as its first argument.
        "set -e -- /",
        "export DEBIAN_FRONTEND=noninteractive" + (f" APT_CONFIG={OWN_APT}/apt.conf" if own_apt else ""),
        f"printf '%s\\n' {shlex.join(dpkg)} > {SETTINGS}",
        *before,
        f"{get} update",
        f"{get} upgrade",
        f"{get} install --no-install-recommends {' '.join(packages)}",
        "apt-get clean",
        *after,
        f"rm -rf /var/lib/apt/lists/* {SETTINGS} {OWN_APT}",
    ]
    copy = [f"COPY apt {OWN_APT}"] if own_apt else []
    return "\n".join([f"FROM {base}", *copy, "RUN " + "; \\\n    ".join(steps), *changes, ""])


def build_context(text: str, sources: Sequence[str]) -> bytes:
    """Return the tar that an engine builds from: the Dockerfile `text`, and the machine's apt when it has `sources`."""
    files = {"Dockerfile": text}
    if sources:
        files |= {
            "apt/sources.list": "".join(f"{line}\n" for line in sources),
            "apt/apt.conf": fetch_settings(),
            "apt/auth.conf": credentials(),
        }
    return tar_of({name: content.encode() for name, content in files.items()})


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
    # The image is rebuilt after a crash: no need to sync the disk after each package.
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
BASE = f"debian:{SUITE}-slim"
"""The official image with the fewest packages: those of `--variant=minbase`."""
ORIGIN = "testbed.origin"
"""The label that says from what an image was made: `BASE`, or `packages`."""
CONTENTS = "testbed.contents"
"""The label with the digest of an image's content. The id differs after each build, even with the same content. A
new machine each night would have no history by id."""


@dataclass(frozen=True, slots=True)
class ImageRef:
    """A local image: the name to start containers with, its id, and the digest `contents` of its content.

    For an image made here `contents` covers the recipe and the packages' versions; otherwise it is the id.
    """

    tag: str
    id: str
    contents: str


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """The Debian packages of an image, and the options of mmdebstrap that make it."""

    repository: str
    packages: tuple[str, ...]
    options: tuple[str, ...] = OPTIONS

    @property
    def digest(self) -> str:
        """Return twelve hexadecimal digits that change with the recipe."""
        recipe = json.dumps([SUITE, self.packages, self.options, CHANGES, CONTENTS])
        return hashlib.sha256(recipe.encode()).hexdigest()[:12]

    @property
    def tag(self) -> str:
        """Return the name of the image of this recipe."""
        return f"{self.repository}:{self.digest}"


NODE = ImageRecipe(REPOSITORY, PACKAGES)


def wanted_tag() -> str:
    """Return the image to use: the configured image, else the image of this recipe."""
    return os.environ.get(CONFIGURED) or NODE.tag


def local_image(engine: EngineSocket) -> ImageRef | None:
    """Return the wanted image, or the image of this recipe, when the engine has it."""
    return _find(engine, wanted_tag()) or _find(engine, NODE.tag)


def _find(engine: EngineSocket, tag: str) -> ImageRef | None:
    image_id = engine.find_image(tag)
    return None if image_id is None else ImageRef(tag, image_id, engine.image_labels(tag).get(CONTENTS, image_id))


def image_origin(engine: EngineSocket, image: ImageRef) -> str:
    """Return from what a node image was made: `BASE`, `packages`, or `a registry`."""
    labels = engine.image_labels(image.tag)
    return labels.get(ORIGIN, "packages" if CONTENTS in labels else "a registry")


def node_image(engine: EngineSocket | None = None) -> ImageRef:
    """Return the node image; pull or build it when the engine has none. Raise SoftwareError when both fail."""
    engine = engine or EngineSocket.from_environment()
    found = local_image(engine)
    if found is not None and found.tag == wanted_tag():
        return found
    with durable.lock(cache_dir() / ".node-image.lock"):
        configured = os.environ.get(CONFIGURED)
        if configured:
            try:
                have_image(engine, configured)
            except EngineError as error:
                LOG.warning("%s=%s cannot be pulled (%s): using one made here", CONFIGURED, configured, error)
        return local_image(engine) or _build(engine, NODE)


def made_image(recipe: ImageRecipe) -> ImageRef:
    """Return the image of `recipe`; build it when the engine has none. Raise SoftwareError when that fails."""
    engine = EngineSocket.from_environment()
    with durable.lock(cache_dir() / ".node-image.lock"):
        return _find(engine, recipe.tag) or _build(engine, recipe)


def build_command(target: Path, sources: tuple[str, ...], recipe: ImageRecipe) -> tuple[str, ...]:
    """Return the command that makes the root file system; with `sources` it reads them from standard input."""
    return (
        "mmdebstrap",
        *recipe.options,
        f"--include={','.join(recipe.packages)}",
        SUITE,
        str(target),
        *(("-",) if sources else ()),
    )


def _build(engine: EngineSocket, recipe: ImageRecipe) -> ImageRef:
    sources = host_sources(SUITE)
    cache_dir().mkdir(parents=True, exist_ok=True)
    for leftover in cache_dir().glob("node-image-*"):
        shutil.rmtree(leftover)
    with tempfile.TemporaryDirectory(prefix="node-image-", dir=cache_dir()) as folder:
        tar = Path(folder) / "root.tar"
        origin = BASE if _base_answers(engine) and _from_base(engine, tar, sources, recipe) else "packages"
        if origin != BASE:
            _from_packages(tar, sources, recipe)
        contents = contents_digest(tar, recipe.digest)
        with tar.open("rb") as stream:
            changes = (*CHANGES, f"LABEL {CONTENTS}={contents}", f"LABEL {ORIGIN}={origin}")
            engine.import_image(stream, recipe.tag, changes)
    found = _find(engine, recipe.tag)
    if found is None:
        raise EngineError(f"the engine took {recipe.tag} but does not list it", Trouble.FAILED)
    return found


def _log() -> Path:
    return state_dir() / "logs" / "node-image.log"


def _base_answers(engine: EngineSocket) -> bool:
    """Return whether the engine has the base, or a registry gives it."""
    try:
        have_image(engine, BASE)
    except EngineError as error:
        LOG.info("%s cannot be pulled (%s): making the image of packages", BASE, error)
        return False
    return True


def _from_base(engine: EngineSocket, tar: Path, sources: tuple[str, ...], recipe: ImageRecipe) -> bool:
    """Write the root file system made by the Dockerfile to `tar`; return whether the build succeeded.

    What is exported has one layer and no history: the machine's settings of apt are in neither.
    """
    context = build_context(dockerfile(BASE, recipe.packages, recipe.options, CHANGES, own_apt=bool(sources)), sources)
    _log().parent.mkdir(parents=True, exist_ok=True)
    try:
        with _log().open("wb") as log:
            built = engine.build_image(context, log)
    except EngineError as error:
        LOG.warning("the node image cannot be built on %s (%s; log: %s)", BASE, error, _log())
        return False
    try:
        with engine.files_of_image(built) as stream, tar.open("wb") as target:
            shutil.copyfileobj(stream, target)
    finally:
        engine.remove_image(built)
    return True


def _from_packages(tar: Path, sources: tuple[str, ...], recipe: ImageRecipe) -> None:
    if shutil.which("mmdebstrap") is None:
        distribution = this_distribution()
        how = distribution.how_to_get("mmdebstrap") if distribution.has("mmdebstrap") else "no package of it is here"
        raise CommandError(
            f"no image registry gives {BASE}, and mmdebstrap, which makes the image of packages, is not installed "
            f"({how}): install it, load {BASE} into the engine, or name an image in {CONFIGURED}"
        )
    env = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    build = build_command(tar, sources, recipe)
    run_logged(
        # Without root it works where the kernel allows user namespaces.
        as_root(build, env) or build,
        _log(),
        # The scratch folder is the folder of the tar, so that the next build finds the remains of a killed one.
        env={**env, "TMPDIR": str(tar.parent)},
        stdin="".join(f"{line}\n" for line in sources) or None,
    )


DPKG_STATUS = "./var/lib/dpkg/status"


def installed_packages(status: str) -> tuple[str, ...]:
    """Return `name version architecture` of every installed package of a dpkg status file, in order. Pure."""
    found = []
    for paragraph in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status", "").endswith(" installed"):
            found.append(f"{fields['Package']} {fields['Version']} {fields['Architecture']}")
    return tuple(sorted(found))


def contents_digest(root: Path, recipe: str) -> str:
    """Return `sha256:…` over the recipe's packages in the root file system's tar.

    Raise `SoftwareError` when it has no packages.
    """
    with tarfile.open(root) as tar:
        member = next((m for m in tar if m.name in (DPKG_STATUS, DPKG_STATUS.removeprefix("./"))), None)
        stream = tar.extractfile(member) if member is not None else None
        packages = installed_packages(stream.read().decode()) if stream is not None else ()
    if not packages:
        raise SoftwareError(f"{root.name} has no installed packages: the image's root file system was not made whole")
    return "sha256:" + hashlib.sha256("\n".join((recipe, *packages)).encode()).hexdigest()
