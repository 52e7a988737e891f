"""Findings as text, and an engine that does not answer."""

import pytest

from testbed.setup.check import CheckFinding
from testbed.software.engine import EngineError, EngineSocket, Trouble


def told(finding: CheckFinding) -> str:
    assert not finding.ok
    return f"{finding.what} | {finding.fix_command}"


def silence(
    monkeypatch: pytest.MonkeyPatch, trouble: Trouble, message: str = "no container engine at unix:///s"
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise EngineError(message, trouble)

    monkeypatch.setattr(EngineSocket, "ping", refuse)
    monkeypatch.setattr(EngineSocket, "get", refuse)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
