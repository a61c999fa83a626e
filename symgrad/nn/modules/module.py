"""``Module``: parameters, buffers and modules under names.

In: attributes.  Out: the same as trees of names; forward, called.

Walks over modules use a stack, never recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from symgrad.nn.errors import MissingForwardError, ModuleAttributeError
from symgrad.nn.modules.naming import as_buffer, as_module, as_parameter, check_made, check_name
from symgrad.nn.modules.printing import described
from symgrad.nn.modules.state import Incompatible, load_state
from symgrad.nn.parameter import Parameter
from symgrad.tensor import Tensor
from symgrad.tensor.gradients import zero_grads
from symgrad.tensor.tape.node import RemovableHandle

Self = TypeVar("Self", bound="Module")
_TABLES = ("_parameters", "_buffers", "_modules")


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
        check_name(self, "parameter", "_parameters", name)
        self._parameters[name] = as_parameter(name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not trained; ``persistent``: in ``state_dict``."""
        check_name(self, "buffer", "_buffers", name)
        self._buffers[name] = as_buffer(name, tensor)
        self._unsaved.discard(name)
        if not persistent:
            self._unsaved.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module, or None for one that could be there."""
        check_name(self, "module", "_modules", name)
        self._modules[name] = as_module(name, module, Module)

    register_module = add_module

    def __getattr__(self, name: str) -> Any:
        for table in _TABLES:
            found = self.__dict__.get(table, {})
            if name in found:
                return found[name]
        raise ModuleAttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self.__dict__
        if isinstance(value, Parameter):
            check_made(self, "parameters")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in tables.get("_parameters", ()):
            self._parameters[name] = as_parameter(name, value)
        elif isinstance(value, Module):
            check_made(self, "module")
            self._forget(name, "_modules")
            self._modules[name] = value
        elif name in tables.get("_modules", ()):
            self._modules[name] = as_module(name, value, Module)
        elif name in tables.get("_buffers", ()):
            self._buffers[name] = as_buffer(name, value)
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
        """Say of every parameter whether it is trained."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Let go of every gradient, or fill it with zeros."""
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
        return load_state(self, state_dict, strict)

    # -- text

    def extra_repr(self) -> str:
        """What stands between the brackets of its text."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return described(self, Module.__repr__)


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
