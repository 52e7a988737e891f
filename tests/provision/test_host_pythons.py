"""The programs that run on a machine that exists are read by the oldest Python that the preflight lets pass."""

import ast
import builtins
from pathlib import Path

import pytest

from testbed.faults import programs
from testbed.network import announcements
from testbed.probes import agent
from testbed.provision.inventory.survey import PROGRAM
from testbed.workload import log_digests

STAMPEDE = Path(programs.__file__).with_name("stampede.py")
PATHS = [PROGRAM, STAMPEDE, *(Path(str(module.__file__)) for module in (agent, announcements, log_digests))]


class OldType(type):
    """A type before Python 3.9 and 3.10: neither `list[int]` nor `int | None`."""

    __or__ = __ror__ = None  # type: ignore[assignment]


def old(kind: type) -> type:
    return OldType(kind.__name__, (kind,), {"__class_getitem__": None})


OLD = {kind.__name__: old(kind) for kind in (list, dict, tuple, set, frozenset, int, float, str, bytes)}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_program_is_read_by_python_3_7(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 7))
    exec(compile(source, str(path), "exec"), {"__name__": "program", "__builtins__": {**vars(builtins), **OLD}})
