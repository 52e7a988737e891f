"""Catalogues: packages whose modules each declare entries. A catalogue lists every module of its package."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def discovered(package: str, name: str) -> dict[str, Any]:
    """Return the attribute `name` of each module of a package, by module. Raise `TypeError` for a module without it."""
    found = {}
    for module in _modules(package):
        if not hasattr(module, name):
            raise TypeError(f"{module.__name__} has no {name}: every module of {package} must have one")
        found[module.__name__.rpartition(".")[2]] = getattr(module, name)
    return found


def discovered_all(package: str, one: str, several: str) -> list[Any]:
    """Return the entries of a package's modules: `one`, or all of `several`. Raise `TypeError` for a module without."""
    found: list[Any] = []
    for module in _modules(package):
        if not hasattr(module, one) and not hasattr(module, several):
            raise TypeError(f"{module.__name__} has neither {one} nor {several}: every module of {package} must")
        found += [getattr(module, one)] if hasattr(module, one) else getattr(module, several)
    return found


def _modules(package: str) -> Iterator[ModuleType]:
    home = importlib.import_module(package)
    for each in sorted(each.name for each in pkgutil.iter_modules(home.__path__)):
        yield importlib.import_module(f"{package}.{each}")
