"""Pydantic's errors in this project's words: what was found, what is allowed, what may have been meant."""

import types
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from testbed.meant import did_you_mean
from testbed.topology.link_forms import DiskForm, NicForm, UplinkForm
from testbed.topology.model import Role
from testbed.topology.problems import Path, choices, show
from testbed.topology.surface import KafkaForm, TopologyForm


def message_of(error: ErrorDetails, path: Path) -> str:
    """The text for one validation error at `path`."""
    found = error["input"]
    limit = error.get("ctx", {})
    match error["type"]:
        case "topology":
            text = error["msg"]
        case "extra_forbidden":
            text = _unknown_field(path)
        case "missing":
            text = _missing(path)
        case "model_type" | "dict_type":
            names = fields_at(path)
            text = f"{show(found)} instead of a mapping" + (f"; allowed: {choices(names)}" if names else "")
        case "list_type":
            text = f"{show(found)} instead of a list; allowed: a list, such as [r1, r2]"
        case "too_short":
            text = "it is empty; allowed: one or more"
        case "too_long":
            text = f"too many entries; allowed: {limit.get('max_length')} at most"
        case _:
            text = f"{show(found)}: {error['msg']}"
    return text


def fields_at(path: Path) -> list[str]:
    """The fields that may stand in the mapping at `path`; none where names are free."""
    here: Any = TopologyForm
    for part in path:
        if isinstance(here, type) and issubclass(here, BaseModel):
            field = here.model_fields.get(str(part))
            here = _bare(field.annotation) if field is not None else None
        elif get_origin(here) is dict:
            here = _bare(get_args(here)[1])
        else:
            here = None
    return list(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else []


def nearest_field(path: Path) -> str | None:
    """The field that an unknown one at `path` most looks like."""
    meant = did_you_mean(path[-1], fields_at(path[:-1]))
    return meant.removeprefix("; did you mean ").removesuffix("?") or None


def _bare(annotation: Any) -> Any:
    """`Annotated[X | None, …]` → `X`."""
    while True:
        if hasattr(annotation, "__metadata__"):
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, types.UnionType):
            kinds = [a for a in get_args(annotation) if a is not type(None)]
            # Racks are a list of names or a mapping: only the mapping has fields.
            annotation = next((kind for kind in map(_bare, kinds) if get_origin(kind) is dict), kinds[0])
        else:
            return annotation


def _unknown_field(path: Path) -> str:
    name, names = str(path[-1]), fields_at(path[:-1])
    meant = did_you_mean(name, names)
    for group, form in (("nic", NicForm), ("kafka", KafkaForm), ("disk", DiskForm), ("uplink", UplinkForm)):
        if not meant and name in form.model_fields and group in names:
            meant = f"; did you mean {group}: {{{name}: …}}?"
    if path == ("defaults", "kafka"):
        meant = "; did you mean kafka at the top of the file? It holds for every host"
    if len(path) == 3 and path[0] == "roles" and path[2] == "kafka" and path[1] in list(Role):
        meant = f" ({Role(path[1]).in_words} runs no Kafka)"
    if path == ("nic",):
        meant = "; did you mean defaults: {nic: …}?"
    return f"unknown field {show(name)}; allowed: {choices(names)}{meant}"


def _missing(path: Path) -> str:
    needed = {
        "name": "the topology's name, such as two-brokers",
        "hosts": "the hosts by name, such as {b1: {role: both}}",
        "role": choices([role.value for role in Role]),
        "automq": "what the cluster runs: automq, such as {automq: {path: ../automq}}",
    }
    return f"missing; allowed: {needed[str(path[-1])]}"
