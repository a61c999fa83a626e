"""The corpus, loaded over symgrad or, with the same text, over torch.

In: the modules of ``tests/suite/corpus``.  Out: their cases, in the order of the text.  Over
torch, ``import symgrad as sg`` binds an adaptor: ``sg.Function`` is ``torch.autograd.Function``
and any other ``sg.name`` is torch's.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.suite.marks import Case

CORPUS = Path(__file__).parent / "corpus"
CATEGORIES = tuple(sorted(path.stem for path in CORPUS.glob("*.py") if path.stem != "__init__"))


class TorchAdaptor(types.ModuleType):
    """What a corpus module sees as ``sg`` over torch."""

    def __getattr__(self, name: str) -> Any:
        import torch

        if name == "Function":
            return torch.autograd.Function
        if name == "once_differentiable":
            return torch.autograd.function.once_differentiable
        if hasattr(torch, name):
            return getattr(torch, name)
        return getattr(torch.nn.functional, name)


def module_over_symgrad(category: str) -> types.ModuleType:
    """A corpus module as its user would import it."""
    return importlib.import_module(f"tests.suite.corpus.{category}")


def module_over_torch(category: str, folder: Path = CORPUS) -> types.ModuleType:
    """The same text with ``sg`` bound to torch, as a module of another name."""
    name = f"tests.suite.{folder.name}_over_torch.{category}"
    if name in sys.modules:
        return sys.modules[name]
    path = folder / f"{category}.py"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import_over_torch}
    sys.modules[name] = module
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_over_torch(name: str, *rest: Any) -> Any:
    if name == "symgrad":
        return TorchAdaptor("symgrad")
    return builtins.__import__(name, *rest)


def cases(module: types.ModuleType) -> Iterator[Case]:
    """The marked classes of a corpus module."""
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            case = vars(value).get("suite_case")
            if case is not None:
                yield case


def cases_over_torch() -> list[Case]:
    """Every case of the corpus, bound to torch."""
    return [case for category in CATEGORIES for case in cases(module_over_torch(category))]


def cases_over_symgrad() -> list[Case]:
    """Every case of the corpus, bound to symgrad."""
    return [case for category in CATEGORIES for case in cases(module_over_symgrad(category))]
