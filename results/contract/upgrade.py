"""Manifests of earlier schema versions, brought to the newest one step at a time.

1   the first. Fields that came later have a default: *not established*. A table's file does not say of which run it is.
2   a table's file names its run in each row (column `run_id`), so that several runs can share one; `files` say which
    part of a file is the run's (`offset`, `group`).
3   the manifest names the criteria of its experiment; some criteria have other names (`results.contract.aliases`).
    `f` is `nic_bytes_per_log_byte`, flows `keepup` are `in_sync`, as is `keepup_bytes_per_s` of what is expected.
    An incident's `practice` (faulty, remedy) is `variant` (broken, fixed), its `fails` are `expected_failures`.
    `files` have no parts any more: a pack finds the rows of its runs by itself.

A new version is a step here, a store of the version before it in `tests/results/fixtures`, and a line above.
"""

from collections.abc import Callable, Mapping
from typing import Any

from results.contract.aliases import INCIDENT_FIELDS, INCIDENT_VARIANTS


class UnknownSchemaError(ValueError):
    """A document of a version that cannot be read."""


def upgraded(document: Mapping[str, Any], newest: int) -> dict[str, Any]:
    """Return the document as version `newest` writes it. Raise UnknownSchemaError when it is newer, or has none."""
    version = document.get("schema")
    if type(version) is not int or not 1 <= version <= newest:
        raise UnknownSchemaError(
            f"schema {version!r}; this version reads schema 1 to {newest}: "
            "use the version that wrote the run, or a newer one"
        )
    result = dict(document)
    for step in range(version, newest):
        result = _STEPS[step](result) if step in _STEPS else result
    return {**result, "schema": newest}


def _names_of_the_glossary(document: dict[str, Any]) -> dict[str, Any]:
    # `criteria` defaults to None: the criteria of the experiment at that time
    renamed = dict(document)
    if isinstance(document.get("incident"), dict):
        for part in ("incident", "parameters"):
            values = document.get(part)
            if isinstance(values, dict) and "practice" in values:
                values = {**values, "practice": INCIDENT_VARIANTS.get(values["practice"], values["practice"])}
            renamed[part] = _renamed(values, INCIDENT_FIELDS)
    for part in ("move", "relocation"):
        if isinstance(found := document.get(part), dict):
            renamed[part] = _renamed(found, {"f": "nic_bytes_per_log_byte"})
    move = renamed.get("move")
    if isinstance(move, dict) and isinstance(move.get("flows"), list):
        move["flows"] = [
            {**flow, "kind": "in_sync"} if isinstance(flow, dict) and flow.get("kind") == "keepup" else flow
            for flow in move["flows"]
        ]
        if isinstance(move.get("expected"), list):
            names = {"keepup_bytes_per_s": "in_sync_bytes_per_s"}
            move["expected"] = [_renamed(each, names) for each in move["expected"]]
    if isinstance(files := document.get("files"), list):
        dropped = ("offset", "group")
        renamed["files"] = [
            {name: value for name, value in each.items() if name not in dropped} if isinstance(each, dict) else each
            for each in files
        ]
    return renamed


def _renamed(document: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(document, dict):
        return document
    return {names.get(name, name): value for name, value in document.items()}


_STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {2: _names_of_the_glossary}
"""From version n to n + 1; a step is missing where every difference has a default."""
