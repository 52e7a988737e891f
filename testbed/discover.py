"""Catalogues: packages in which every module has one thing, found because the module is there."""

import importlib
import pkgutil
from typing import Any


def discovered(package: str, name: str) -> dict[str, Any]:
    """What each module of a package calls `name`, by the module's own name, in their order.

    Raises `TypeError` naming a module that has nothing of that name.
    """
    home = importlib.import_module(package)
    found = {}
    for each in sorted(each.name for each in pkgutil.iter_modules(home.__path__)):
        module = importlib.import_module(f"{package}.{each}")
        if not hasattr(module, name):
            raise TypeError(f"{module.__name__} has no {name}: every module of {package} must have one")
        found[each] = getattr(module, name)
    return found
