"""The testbed's software on a machine that exists: copied over SSH, one folder for each content, and linked.

A folder is named by the digest of its content, so that what is there is not copied again. Each testbed that uses it is
a file in `DIGEST.users`; the last one to go removes the folder, unless the topology keeps it.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path

from testbed.hosts import Shell
from testbed.hosts.relocation import PathRelocation
from testbed.provision.copied_files import COPY_S, archive, content_digest


def copy_software(host: Shell, relocation: PathRelocation, parent: str, copies: Mapping[Path, str]) -> int:
    """Copy what the host does not have yet, and link it to its path; return the bytes that were sent.

    `parent` is the folder of all software on the host. `copies` has for each file or folder its path in a container.
    """
    sent = 0
    for source, target in copies.items():
        folder = f"{parent}/{content_digest(source)}"
        user = shlex.quote(f"{folder}.users/{relocation.mark}")
        # Its user first: another testbed that ends now must not remove what this one finds.
        begin = f"mkdir -p {shlex.quote(folder + '.users')} && : > {user}; test -d {shlex.quote(folder)}"
        if host.run(begin, check=False).exit_status != 0:
            content = archive(source, source.name if source.is_file() else ".")
            partial, whole = shlex.quote(f"{folder}.partial"), shlex.quote(folder)
            unpack = f"rm -rf {partial} && mkdir -p {partial} && tar -x -f - -C {partial} && mv {partial} {whole}"
            host.run(unpack, stdin=content, timeout_s=COPY_S)
            sent += len(content)
        there = f"{folder}/{source.name}" if source.is_file() else folder
        # The link's path is one of the testbed's own: the host places it under the testbed's folder.
        host.run(f"mkdir -p {shlex.quote(str(Path(target).parent))} && ln -sfn {shlex.quote(there)} {target}")
    return sent
