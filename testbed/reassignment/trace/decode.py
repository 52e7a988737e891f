"""The metadata log of a node that runs, decoded on its host by the dump tool of the very release that wrote it."""

from collections.abc import Sequence

from testbed.hosts import Shell
from testbed.kafka.node import PID_FILE
from testbed.kafka.properties import DATA_DIR
from testbed.reassignment.trace.metadata_log import History, MetadataLogError, parse, replay

_FOLDER = f"{DATA_DIR}/__cluster_metadata-0"
_TOOL, _OLD_TOOL = "org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"
# The class path of the node itself: also that of a build of one's own.
_DUMP = f"""set -e
classes=$(tr '\\0' '\\n' < /proc/$(cat {PID_FILE})/cmdline | grep -A1 -x -e -cp | tail -1)
tools=$(echo "$classes" | tr : '\\n' | grep '/kafka-tools-[0-9][^/]*\\.jar$' || true)
# The names of a jar's classes stand in it as they are.
if [ -n "$tools" ] && grep -q {_TOOL.replace(".", "/")}.class $tools; then tool={_TOOL}; else tool={_OLD_TOOL}; fi
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx256m -cp "$classes" "$tool" \
--cluster-metadata-decoder --files "$1"
"""


def read_history(host: Shell, *, timeout_s: float = 60.0) -> History:
    """Every state of every partition, from the metadata log of a controller or broker that runs on `host`.

    Raises `MetadataLogError` when its beginning is gone and no snapshot stands for it, `CommandFailed` by the tool.
    """
    names = host.run(["ls", _FOLDER]).stdout.split()
    files = ",".join(f"{_FOLDER}/{name}" for name in files_to_read(names))
    dumped = host.run(["sh", "-c", _DUMP, "dump", files], timeout_s=timeout_s)
    return replay(parse(dumped.stdout.splitlines()))


def files_to_read(names: Sequence[str]) -> list[str]:
    """The log's segments in order; a snapshot before them when the first one does not begin at 0.

    Raises `MetadataLogError` when neither leads back to the beginning.
    """
    segments = sorted(name for name in names if name.endswith(".log"))
    if not segments:
        raise MetadataLogError(f"no segment in {_FOLDER}; there are {', '.join(sorted(names)) or 'no files'}")
    begins = int(segments[0].removesuffix(".log"))
    if begins == 0:
        return segments
    # A snapshot is named for the first offset that it does not hold; the log goes on from there, or begins before.
    snapshots = [name for name in sorted(names) if name.endswith(".checkpoint") and name[0].isdigit()]
    fitting = [name for name in snapshots if int(name.split("-")[0]) >= begins]
    if not fitting:
        raise MetadataLogError(f"the log begins at offset {begins} and no snapshot reaches it: {snapshots or 'none'}")
    return [fitting[-1], *segments]
