"""Ducktape's own collection of tests, as JSON lines: run by the tests' Python, with ducktape's arguments.

Only the standard library and that ducktape are imported here, in whatever version the checkout pins.
"""

import json
import sys
import tempfile
from typing import Any


def collect(arguments: list[str]) -> dict[str, Any]:
    """Return `tests` (id, file, class, function, arguments, nodes, ignored), or `error` as ducktape words it."""
    from ducktape.command_line.parse_args import parse_args
    from ducktape.tests.loader import LoaderException, TestLoader
    from ducktape.tests.session import SessionContext, SessionLoggerMaker

    given = parse_args(arguments)
    given["globals"] = json.loads(given["globals"]) if given.get("globals") else {}
    parameters = json.loads(given["parameters"]) if given.get("parameters") else None
    with tempfile.TemporaryDirectory() as folder:
        session = SessionContext(session_id="collection", results_dir=folder, **given)
        logger = SessionLoggerMaker(session).logger
        loader = TestLoader(session, logger, repeat=given["repeat"], injected_args=parameters)
        try:
            tests = loader.load(given["test_path"], excluded_test_symbols=given["exclude"])
        except LoaderException as error:
            return {"error": str(error)}
        return {"tests": [_described(each) for each in tests]}


def _described(test: Any) -> dict[str, Any]:
    return {
        "id": test.test_id,
        "file": test.file,
        "cls": test.cls_name,
        "function": test.function_name,
        "arguments": {str(name): value for name, value in (test.injected_args or {}).items()},
        "nodes": test.expected_num_nodes,
        "ignored": bool(test.ignore),
    }


if __name__ == "__main__":
    found = collect(sys.argv[2:])
    with open(sys.argv[1], "w", encoding="utf-8") as file:  # noqa: PTH123 - the pinned Python may be old
        json.dump(found, file, default=str)
