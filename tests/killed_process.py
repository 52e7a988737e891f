"""Python in a process of its own that is killed by SIGKILL before the n-th of its steps on disk.

One process for all of them imports what they need, once, and forks: to import it again takes most of their time.
"""

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENDS_S = 60
_PRELUDE = """
import os, signal, sys
from pathlib import Path
left = int(sys.argv.pop(1))
def dying(real):
    def call(*arguments, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    return call
def die_writing():
    os.fsync, Path.rename = dying(os.fsync), dying(Path.rename)
def die_removing():
    os.unlink, Path.unlink, os.rmdir = dying(os.unlink), dying(Path.unlink), dying(os.rmdir)
"""
# Answers each line, a request, with the exit code of the process that it forked for it.
_FORKING = """
import importlib, json, os, re, signal, sys, traceback
for line in sys.stdin:
    asked = json.loads(line)
    for name in re.findall(r"^(?:import|from) ([\\w.]+)", asked["code"], re.MULTILINE):
        importlib.import_module(name)
    child = os.fork()
    if not child:
        signal.alarm(asked["ends_s"])
        for number, name in enumerate(("out", "err"), 1):
            os.dup2(os.open(asked[name], os.O_WRONLY), number)
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.argv = ["-c", *asked["arguments"]]
        try:
            exec(compile(asked["code"], "<string>", "exec"), {"__name__": "__main__"})
            status = 0
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def _forking() -> "subprocess.Popen[str]":
    """Return the process that forks; it ends with this one."""
    process = subprocess.Popen(
        [sys.executable, "-c", _FORKING],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.communicate)
    return process


def killed_at(step: int, code: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run `code` with these as `sys.argv[1:]`; `left` steps are left to it.

    A step is, once `die_writing()` was called, each fsync and rename; once `die_removing()` was, each removal.
    """
    words, process = [str(step), *map(str, arguments)], _forking()
    assert process.stdin is not None
    assert process.stdout is not None
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        asked = {
            "code": _PRELUDE + code,
            "arguments": words,
            "environment": dict(os.environ),
            "out": out.name,
            "err": err.name,
            "ends_s": ENDS_S,
        }
        print(json.dumps(asked), file=process.stdin, flush=True)
        answered, _, _ = select.select([process.stdout], [], [], 2 * ENDS_S)
        assert answered, "the process that forks does not answer"
        return subprocess.CompletedProcess(words, int(process.stdout.readline()), out.read(), err.read())
