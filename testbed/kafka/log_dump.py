"""The dump of a log's segments, by Kafka's own tool, on the host of the broker that has them."""

from collections.abc import Sequence

from testbed.hosts import Shell
from testbed.kafka.node import PID_FILE

_TOOL, _OLD_TOOL = "org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"
# The class path of the node's process: it is also right for a local build.
_DUMP = f"""set -e
classes=$(tr '\\0' '\\n' < /proc/$(cat {PID_FILE})/cmdline | grep -A1 -x -e -cp | tail -1)
tools=$(echo "$classes" | tr : '\\n' | grep '/kafka-tools-[0-9][^/]*\\.jar$' || true)
# The names of a jar's classes stand in it as they are.
if [ -n "$tools" ] && grep -q {_TOOL.replace(".", "/")}.class $tools; then tool={_TOOL}; else tool={_OLD_TOOL}; fi
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx256m -cp "$classes" "$tool" "$@"
"""


def dump(host: Shell, files: Sequence[str], *options: str) -> list[str]:
    """Return the lines that the tool prints about `files`, in their order, with its `options`.

    The broker or controller of `host` runs. Raise `CommandFailed` when the tool fails.
    """
    command = ["sh", "-c", _DUMP, "dump", *options, "--files", ",".join(files)]
    return host.run(command).stdout.splitlines()
