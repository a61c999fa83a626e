"""``Module``: parameters, buffers and modules under names.

In: attributes.  Out: the same as trees of names; forward, called; text; states.

Walks over modules use a stack, never recursion.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from symgrad.nn.errors import (
    MissingForwardError,
    ModuleAttributeError,
    ModuleKeyError,
    ModuleTypeError,
    ModuleValueError,
    StateDictError,
)
from symgrad.nn.parameter import Parameter
from symgrad.tensor import Tensor, as_tensor
from symgrad.tensor.gradients import zero_grads
from symgrad.tensor.modes import no_grad
from symgrad.tensor.tape.node import RemovableHandle

Self = TypeVar("Self", bound="Module")
_TABLES = ("_parameters", "_buffers", "_modules")


class Incompatible(NamedTuple):
    """The names that ``load_state_dict`` missed, and those it had no use for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class Module:
    """The parent of every layer: write ``__init__`` and ``forward``.

    Attributes that are parameters or modules belong to it; ``register_buffer`` adds tensors that
    are state but not trained.
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _unsaved: set[str]
    _before: dict[int, Callable[..., Any]]
    _after: dict[int, Callable[..., Any]]
    _shown: tuple[str, ...] = ()

    def __init__(self) -> None:
        for table in (*_TABLES, "_before", "_after"):
            object.__setattr__(self, table, {})
        object.__setattr__(self, "_unsaved", set())
        object.__setattr__(self, "training", True)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes.  To be written by the subclass."""
        raise MissingForwardError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call forward, and the hooks around it."""
        for hook in tuple(self._before.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in tuple(self._after.values()):
            changed = hook(self, args, result)
            result = result if changed is None else changed
        return result

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; what it returns replaces the arguments."""
        return RemovableHandle(self._before, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; what it returns is the new output."""
        return RemovableHandle(self._after, hook)

    # -- attributes

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None for one that could be there.  Raises what torch raises."""
        _check_name(self, "parameter", "_parameters", name)
        self._parameters[name] = _accepted("_parameters", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not trained; ``persistent``: in ``state_dict``."""
        _check_name(self, "buffer", "_buffers", name)
        self._buffers[name] = _accepted("_buffers", name, tensor)
        self._unsaved.discard(name)
        if not persistent:
            self._unsaved.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module, or None for one that could be there."""
        _check_name(self, "module", "_modules", name)
        self._modules[name] = _accepted("_modules", name, module)

    register_module = add_module

    def __getattr__(self, name: str) -> Any:
        for table in _TABLES:
            found = self.__dict__.get(table, {})
            if name in found:
                return found[name]
        raise ModuleAttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self.__dict__
        known = next((table for table in _TABLES if name in tables.get(table, ())), None)
        if isinstance(value, Parameter):
            _check_made(self, "parameters")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module) and known != "_parameters":
            _check_made(self, "module")
            self._forget(name, "_modules")
            self._modules[name] = value
        elif known is not None:
            tables[known][name] = _accepted(known, name, value)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, but: str) -> None:
        """Take a name away from wherever it is, but for the table where it will be replaced."""
        self.__dict__.pop(name, None)
        for table in _TABLES:
            if table != but:
                self.__dict__[table].pop(name, None)

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__.get(table, {}):
                del self.__dict__[table][name]
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(n for t in _TABLES for n in self.__dict__[t])})

    # -- walks

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Itself and every module inside, each before its own, with dotted names."""
        seen = set() if memo is None else memo
        todo = [(prefix, self)]
        while todo:
            name, module = todo.pop()
            if remove_duplicate and module in seen:
                continue
            seen.add(module)
            yield name, module
            dotted = f"{name}." if name else ""
            inner = [(f"{dotted}{key}", one) for key, one in module._modules.items() if one]
            todo.extend(reversed(inner))

    def modules(self) -> Iterator[Module]:
        """Itself and every module inside."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside, with their names."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly inside."""
        return (module for _, module in self.named_children())

    def _named(
        self, table: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Tensor] = set()
        inside = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in inside if recurse else [(prefix, self)]:
            for name, tensor in module.__dict__[table].items():
                if tensor is None or (remove_duplicate and tensor in seen):
                    continue
                seen.add(tensor)
                yield f"{path}.{name}" if path else name, tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Every parameter with its dotted name."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Every parameter."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Every buffer with its dotted name."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Every buffer."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name.  Raises ModuleAttributeError."""
        found: Any = self
        for name in target.split(".") if target else ():
            inner = found._modules.get(name)
            if inner is None:
                raise ModuleAttributeError(f"{type(found).__name__} has no attribute `{name}`")
            found = inner
        return found  # type: ignore[no-any-return]

    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Call ``fn`` with every module, each after those inside it."""
        order: list[Module] = []
        todo: list[Module] = [self]
        while todo:
            module = todo.pop()
            order.append(module)
            todo.extend(module.children())
        for module in reversed(order):
            fn(module)
        return self

    # -- states

    def train(self: Self, mode: bool = True) -> Self:
        """Put it, and every module inside, into training (or evaluation)."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: Self) -> Self:
        """Put it, and every module inside, into evaluation."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set for every parameter whether it is trained."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop every gradient, or fill it with zeros."""
        zero_grads(self.parameters(), set_to_none)

    def to(self: Self, *args: Any, dtype: Any = None, **ignored: Any) -> Self:
        """Every float parameter and buffer in another dtype; devices are taken and ignored."""
        wanted = [arg for arg in args if arg is not None and not isinstance(arg, (str, bool))]
        chosen = dtype if dtype is not None else (wanted[0] if wanted else None)
        if chosen is not None:
            kind = chosen.dtype if isinstance(chosen, Tensor) else chosen
            for module in self.modules():
                _convert(module, kind)
        return self

    def double(self: Self) -> Self:
        """Every float parameter and buffer as float64."""
        return self.to(dtype="float64")

    def float(self: Self) -> Self:
        """Every float parameter and buffer as float32."""
        return self.to(dtype="float32")

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """Every parameter and persistent buffer by dotted name, in the same memory."""
        found: dict[str, Any] = {}
        for path, module in self.named_modules(prefix=prefix.rstrip("."), remove_duplicate=False):
            dotted = f"{path}." if path else ""
            kept = {n: b for n, b in module._buffers.items() if n not in module._unsaved}
            for name, tensor in (*module._parameters.items(), *kept.items()):
                if tensor is not None:
                    found[dotted + name] = tensor if keep_vars else tensor.detach()
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Incompatible:
        """Copy what ``state_dict`` holds.  Raises StateDictError where it does not fit.

        ``strict``: names that are missing or too many are errors, else they are returned.
        """
        return _load_state(self, state_dict, strict)

    # -- text

    def extra_repr(self) -> str:
        """What stands between the brackets of its text: the settings that ``_shown`` names."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return _described(self)


def _convert(module: Module, dtype: Any) -> None:
    """The float tensors of one module, without those inside, in another dtype."""
    for parameter in module._parameters.values():
        if parameter is not None:
            grad = parameter._grad
            parameter.data = parameter.data.to(dtype)
            if grad is not None:
                parameter.grad = grad.detach().to(dtype)
    for name, buffer in module._buffers.items():
        if buffer is not None and buffer.is_floating_point():
            module._buffers[name] = buffer.to(dtype)


# -- what may be a parameter, a buffer or a module, and under which names


def _check_made(module: Any, kind: str) -> None:
    """Was ``Module.__init__`` called?  Raises ModuleAttributeError."""
    if "_parameters" not in module.__dict__:
        raise ModuleAttributeError(f"cannot assign {kind} before Module.__init__() call")


def _check_name(module: Any, kind: str, table: str, name: Any) -> None:
    """May something new have this name?  Raises ModuleTypeError, ModuleKeyError."""
    _check_made(module, kind)
    if not isinstance(name, str):
        raise ModuleTypeError(f"{kind} name should be a string. Got {type(name).__name__}")
    if "." in name:
        raise ModuleKeyError(f'{kind} name can\'t contain "."')
    if not name:
        raise ModuleKeyError(f'{kind} name can\'t be empty string ""')
    if hasattr(module, name) and name not in module.__dict__[table]:
        raise ModuleKeyError(f"attribute '{name}' already exists")


_KINDS: dict[str, tuple[type, str, str]] = {
    "_parameters": (Parameter, "parameter", "nn.Parameter"),
    "_buffers": (Tensor, "buffer", "Tensor"),
    "_modules": (Module, "child module", "nn.Module"),
}


def _accepted(table: str, name: str, value: Any) -> Any:
    """The value, if the table takes it.  Raises ModuleTypeError, ModuleValueError."""
    kind, word, expected = _KINDS[table]
    if value is not None and not isinstance(value, kind):
        found = value.type() if isinstance(value, Tensor) else type(value).__name__
        raise ModuleTypeError(
            f"cannot assign '{found}' as {word} '{name}' (symgrad.{expected} or None expected)"
        )
    if isinstance(value, Parameter) and table == "_parameters" and value.grad_fn is not None:
        raise ModuleValueError(
            f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
            f"created explicitly. To express '{name}' as a function of another Tensor, compute "
            "the value in the forward() method."
        )
    return value


# -- a module as text, as torch writes it: modules inside are indented by two spaces


_Lines = list[tuple[int, str]]  # lines, and how far each is indented


def _described(module: Module) -> str:
    """The text of a module and of those inside it, without recursion."""
    found: dict[int, _Lines] = {}
    ordinary: Any = Module.__repr__
    todo: list[tuple[Any, bool]] = [(module, False)]
    while todo:
        one, ready = todo.pop()
        if ready:
            found[id(one)] = _lines(one, found)
        elif id(one) not in found:
            todo.append((one, True))
            todo.extend(
                (inner, False) for inner in one._modules.values()
                if type(inner).__repr__ is ordinary
            )  # fmt: skip
    return "\n".join("  " * depth + line for depth, line in found[id(module)])


def _lines(module: Any, found: Mapping[int, _Lines]) -> _Lines:
    extra = module.extra_repr()
    own = extra.split("\n") if extra else []
    if not module._modules and len(own) < 2:
        return [(0, f"{module._get_name()}({extra})")]
    lines = [(0, f"{module._get_name()}("), *((1, line) for line in own)]
    pairs = [(name, found.get(id(one)) or _foreign(one)) for name, one in module._modules.items()]
    shown = _repeats if getattr(module, "shows_repeats", False) else _each
    for head, inner in shown(pairs):
        lines.append((1, head + inner[0][1]))
        lines.extend((depth + 1, line) for depth, line in inner[1:])
    return [*lines, (0, ")")]


def _foreign(module: Any) -> _Lines:
    """The lines of what has a text of its own."""
    return [(0, line) for line in repr(module).split("\n")]


def _each(pairs: list[tuple[str, _Lines]]) -> Iterator[tuple[str, _Lines]]:
    for name, lines in pairs:
        yield f"({name}): ", lines


def _repeats(pairs: list[tuple[str, _Lines]]) -> Iterator[tuple[str, _Lines]]:
    """Equal texts in a row as one: ``(0-2): 3 x Linear(…)``."""
    for lines, group in itertools.groupby(pairs, key=lambda pair: pair[1]):
        names = [name for name, _ in group]
        many = len(names) > 1
        yield f"({names[0]}-{names[-1]}): {len(names)} x " if many else f"({names[0]}): ", lines


# -- loading a ``state_dict``


def _load_state(module: Any, given: Mapping[str, Any], strict: bool) -> Incompatible:
    """Copy every tensor into that of the same name.  Raises ModuleTypeError, StateDictError."""
    if not isinstance(given, Mapping):
        raise ModuleTypeError(f"Expected state_dict to be dict-like, got {type(given)}.")
    own = module.state_dict(keep_vars=True)
    missing = [name for name in own if name not in given]
    unexpected = [name for name in given if name not in own]
    problems = []
    if strict and unexpected:
        problems.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
    if strict and missing:
        problems.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
    problems += _copied({name: (own[name], given[name]) for name in own if name in given})
    if problems:
        lines = "\n\t".join(problems)
        raise StateDictError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{lines}"
        )
    return Incompatible(missing, unexpected)


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _copied(pairs: Mapping[str, tuple[Tensor, Any]]) -> Iterator[str]:
    """Copy the tensors of the right shapes, as torch does, and say which are not."""
    for name, (tensor, value) in pairs.items():
        if not isinstance(value, (Tensor, np.ndarray)):
            yield (
                f'While copying the parameter named "{name}", expected symgrad.Tensor or '
                f"Tensor-like object from checkpoint but received {type(value)}"
            )
        elif tuple(value.shape) != tuple(tensor.shape):
            yield (
                f"size mismatch for {name}: copying a param with shape "
                f"{_shape(value)} from checkpoint, the shape in current model is "
                f"{_shape(tensor)}."
            )
        else:
            with no_grad():
                tensor.copy_(as_tensor(value))


def _shape(value: Any) -> str:
    return f"symgrad.Size({list(value.shape)})"
