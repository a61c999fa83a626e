"""``sg.jit``: a function of tensors as fused kernels, forward and backward.

In: a function of tensors, a bound method, a module.  Out: the same function, compiled.

A function is traced once for each pattern of its arguments: dtypes and ranks of its tensors, which
sizes are equal (those that are 1, or that a tensor it closes over has, are numbers), the values of
everything else but floats.  These are passed to the kernels, unless the function asks for their
values.  Other sizes of the same pattern run the same kernels.  What cannot be traced or
compiled runs eagerly, with one warning.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, overload

from symgrad.budgets import MOST_READY
from symgrad.errors import SymgradError
from symgrad.frontend.functions.names import script
from symgrad.frontend.session import active
from symgrad.runtime.strict import is_strict
from symgrad.tensor import pytree
from symgrad.tensor.batched import levels
from symgrad.tensor.jit.variant import EmptyTensor, Prepared, StaleCapture, Variant
from symgrad.tensor.jit.watching import Watched
from symgrad.tensor.modes import state
from symgrad.tensor.tensor import Tensor


class JitWarning(RuntimeWarning):
    """A function that was to be compiled runs eagerly."""


class _Jit:
    """``sg.jit``; it has the names of ``torch.jit`` too, which change nothing."""

    script = ignore = export = unused = staticmethod(script)

    @overload
    def __call__(self, function: Callable[..., Any], *, strict: bool = False) -> Jitted: ...

    @overload
    def __call__(self, *, strict: bool) -> Callable[[Callable[..., Any]], Jitted]: ...

    def __call__(
        self, function: Callable[..., Any] | None = None, *, strict: bool = False
    ) -> Any:  # fmt: skip
        """The function, compiled: one kernel forward, one backward, for every size.

        Arguments and results are tensors in tuples, lists and dicts.  A finite float is passed to
        the kernels; where it is compared with a number, they are for the numbers on its side.  Any
        other argument, and a float whose value is asked for, counts by its value, and is compiled
        again for each.  So do numbers, strings, None, functions, and
        tuples, lists and dicts of them, that the function and those that it calls read from
        closures, defaults and globals; give as a tensor what changes often.  The function is run
        once for each, and nothing else that it reads may change: no attribute of an object that is
        not a tensor, nothing that it writes itself, nothing that libraries read.  Tensors that it
        closes over (the parameters of a module, whose mode of training is looked at) may change,
        and are differentiated by.  Functions that it applies keep their backwards.  Inside another
        trace it is inlined.  Results share no memory with arguments.

        ``strict``, or SYMGRAD_STRICT=1: what cannot be traced or compiled raises, where it would
        else run eagerly with a JitWarning.  ``@sg.jit(strict=True)`` decorates.
        """
        if function is None:
            return functools.partial(Jitted, strict=strict)
        return Jitted(function, strict=strict)


class Jitted:
    """A function that is compiled when it is called."""

    def __init__(self, function: Callable[..., Any], *, strict: bool = False) -> None:
        functools.update_wrapper(self, function, updated=())
        self._strict = strict
        self.function = function
        self._owners = _with_modes([function, getattr(function, "__self__", None)])
        self._variants: dict[Any, Variant] = {}
        self._ready: dict[Any, Prepared | None] = {}
        self._watched = Watched([function])
        self._warned = False

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Jitted, strict=self._strict), (self.function,)

    def __repr__(self) -> str:
        return f"<jit of {self.function!r}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns."""
        if active() is not None or levels.active:
            return self.function(*args, **kwargs)
        tensors: list[Tensor] = []
        rest: list[Any] = []
        floats: list[int] = []
        key = (pytree.flatten((args, kwargs), tensors, rest, floats), self._modes(rest))
        if key not in self._ready:
            return self._first(key[0], args, kwargs, tensors, rest, floats)
        prepared = self._ready[key]
        if prepared is None:
            return self.function(*args, **kwargs)
        if floats and not prepared.serves(tensors, floats):
            return self._first(key[0], args, kwargs, tensors, rest, floats)
        try:
            inputs = prepared.inputs(tensors, [self.function, *rest])
        except StaleCapture:
            self._forget()
            return self(*args, **kwargs)
        kernels = prepared.entry.ready(prepared.needs(inputs))
        if kernels is None:
            return self._first(key[0], args, kwargs, tensors, rest, floats)
        return prepared.run(kernels, inputs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """What is compiled for these arguments.  Raises what tracing raises, and CodegenError."""
        tensors: list[Tensor] = []
        rest: list[Any] = []
        floats: list[int] = []
        pytree.flatten((args, kwargs), tensors, rest, floats)
        roots = [self.function, *rest]
        prepared = Variant(self.function, args, kwargs, floats).prepare(tensors, roots)
        return Lowered(prepared, prepared.needs(prepared.inputs(tensors, roots)))

    # -- the first call of its kind

    def _modes(self, rest: Sequence[Any]) -> Any:
        """What the trace depends on beside the arguments."""
        owners = [*self._owners, *_with_modes(rest)] if rest else self._owners
        flags = tuple([module.training for owner in owners for module in owner.modules()])
        return state.dtype.name, flags, self._watched.key()

    def _first(
        self, shape: Any, args: Any, kwargs: Any, tensors: list[Tensor], rest: list[Any],
        floats: list[int],
    ) -> Any:  # fmt: skip
        """Trace and compile; run it eagerly where that fails."""
        self._watched.renew()
        before = self._watched.key()
        general = _without_sizes(shape)
        variant = self._variants.get((general, self._modes(rest)))
        if variant is None:
            variant = Variant(self.function, args, kwargs, floats)
        result, prepared = self._tried(variant, args, kwargs, tensors, [self.function, *rest])
        self._watched.settle(before)
        modes = self._modes(rest)
        self._variants[general, modes] = variant
        if len(self._ready) >= MOST_READY:
            self._ready.pop(next(iter(self._ready)))
        self._ready[shape, modes] = prepared
        return result

    def _tried(
        self, variant: Variant, args: Any, kwargs: Any, tensors: list[Tensor], roots: list[Any]
    ) -> tuple[Any, Prepared | None]:
        """What the function returns, and its kernels; None where it runs eagerly."""
        try:
            if variant.hopeless:
                raise EmptyTensor("it ran eagerly before")
            prepared = variant.prepare(tensors, roots)
            inputs = prepared.inputs(tensors, roots)
            kernels = prepared.entry.kernels(prepared.needs(inputs))
        except Exception as error:
            if not isinstance(error, EmptyTensor) and (self._strict or is_strict()):
                raise
            result = self.function(*args, **kwargs)  # raises what is the function's own fault
            if not isinstance(error, EmptyTensor):
                variant.hopeless = True
                self._warn(error)
            return result, None
        return prepared.run(kernels, inputs), prepared

    def _forget(self) -> None:
        self._variants.clear()
        self._ready.clear()

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            text = str(error) if isinstance(error, SymgradError) else repr(error)
            name = getattr(self.function, "__name__", type(self.function).__name__)
            warnings.warn(f"{name} runs eagerly: {text}", JitWarning, stacklevel=5)


jit = _Jit()


class Lowered:
    """What a call is compiled to, as text."""

    def __init__(self, prepared: Prepared, needs: tuple[bool, ...]) -> None:
        self._planned = prepared.entry.traced.planned(needs)

    def __str__(self) -> str:
        return self.graph

    @property
    def graph(self) -> str:
        """The graphs of the kernels."""
        from symgrad import stage_text as stages

        return stages.reverse(self._planned)

    @property
    def c(self) -> str:
        """The C of the kernels."""
        from symgrad import stage_text as stages

        return stages.c(self._planned, "The backward is derived.")


def _with_modes(values: Sequence[Any]) -> list[Any]:
    """Those that are modules, which train or do not."""
    return [
        value for value in values
        if hasattr(value, "training") and callable(getattr(value, "modules", None))
    ]  # fmt: skip


def _without_sizes(key: Any) -> Any:
    """A key of arguments with ranks in place of shapes."""
    kind, value = key
    if isinstance(kind, str):
        return kind, len(value)
    if isinstance(kind, type) and issubclass(kind, (tuple, list)):
        return kind, tuple([_without_sizes(item) for item in value])
    if isinstance(kind, type) and issubclass(kind, dict):
        return kind, tuple([(name, _without_sizes(item)) for name, item in value])
    return key
