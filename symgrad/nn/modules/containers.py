"""Modules that hold modules or parameters.

In: modules, parameters.  Out: containers of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from symgrad.nn.errors import ModuleIndexError, ModuleKeyError, ModuleTypeError
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter
from symgrad.tensor import Tensor


class _Numbered(Module):
    """Modules under the names ``0``, ``1`` and so on."""

    def _name_of(self, index: int) -> str:
        count = len(self._modules)
        if not -count <= index < count:
            raise ModuleIndexError(f"index {index} is out of range")
        return list(self._modules)[index]

    def _replace(self, modules: Iterable[Any]) -> None:
        found = list(modules)
        self._modules.clear()
        for number, module in enumerate(found):
            self.add_module(str(number), module)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return _of_kind(self, list(self._modules.values())[index])
        return self._modules[self._name_of(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_of(index), module)

    def __delitem__(self, index: int | slice) -> None:
        kept = list(self._modules.values())
        if isinstance(index, int):
            self._name_of(index)
        del kept[index]
        self._replace(kept)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Any:
        """Add a module at the end; returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end; returns the container."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Put a module before the one at ``index``; returns the container."""
        found = list(self._modules.values())
        found.insert(index, module)
        self._replace(found)
        return self


def _of_kind(container: _Numbered, modules: list[Any]) -> Any:
    found = type(container)()
    found._replace(modules)
    return found


class Sequential(_Numbered):
    """Modules called one after the other: ``Sequential(a, b)`` or ``Sequential({"name": a})``."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = len(args) == 1 and isinstance(args[0], Mapping)
        for name, module in args[0].items() if named else enumerate(args):
            self.add_module(str(name), module)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def forward(self, input: Any) -> Any:
        """What the last module makes of it."""
        for module in self._modules.values():
            assert module is not None
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules."""

    shows_repeats = True

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        self.extend(other)
        return self


class ModuleDict(Module):
    """Modules under names."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Any:
        if key not in self._modules:
            raise ModuleKeyError(f"there is no module {key!r}")
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names with the modules."""
        return self._modules.items()

    def update(self, modules: Any) -> None:
        """Add modules out of a mapping or of pairs."""
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self.add_module(name, module)

    def pop(self, key: str) -> Any:
        """Take a module out."""
        found = self[key]
        del self._modules[key]
        return found

    def clear(self) -> None:
        """Take every module out."""
        self._modules.clear()


class ParameterList(Module):
    """Parameters under the names ``0``, ``1``, …; tensors become parameters."""

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end.  Raises ModuleTypeError for what is no tensor."""
        if not isinstance(value, Tensor):
            raise ModuleTypeError(f"a ParameterList holds tensors, not {type(value).__name__}")
        made = value if isinstance(value, Parameter) else Parameter(value)
        self.register_parameter(str(len(self)), made)
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add parameters at the end."""
        for value in list(values):
            self.append(value)
        return self

    def __getitem__(self, index: int) -> Any:
        count = len(self)
        if not -count <= index < count:
            raise ModuleIndexError(f"index {index} is out of range")
        return list(self._parameters.values())[index]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def __repr__(self) -> str:
        lines = (
            f"  ({name}): Parameter containing: [{one.dtype!r} of size "
            f"{'x'.join(map(str, one.shape))}]"
            for name, one in self._parameters.items()
            if one is not None
        )
        return f"{self._get_name()}(" + "\n".join(lines) + ")"
