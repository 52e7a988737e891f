import re

import pytest

from testbed.provision import state as states
from tests.containers.conftest import left_of
from tests.test_api import EXAMPLES

pytestmark = pytest.mark.containers


def test_the_five_lines_of_the_document_run_as_they_stand(capsys):
    exec(compile(EXAMPLES[0], "docs/python.md", "exec"), {})
    first, *rates = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"b1( 198\.19\.\d+\.\d+:9092){3}", first)
    assert len(rates) == 6
    for line in rates:
        told = re.fullmatch(r"b[123] (transmit|receive): (\d\.\d+) of what is declared", line)
        assert told
        # How much it is at least is the subject of tests that measure more than once: a busy machine reads low.
        assert float(told[2]) <= 1.02
    assert left_of("three-brokers") == []
    assert not states.folder("three-brokers").exists()
