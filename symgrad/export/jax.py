"""Compiled ops in JAX, on the CPU: under ``jit``, ``grad`` and ``vmap``.

In: ops of ``sg.compile``, or modules of a generated package.  Out: functions of JAX arrays.

XLA calls the kernels itself, through its foreign function interface: the shared object of an op has
a function that takes XLA's call frames, so that no Python runs and nothing is copied.  Where there
is no shared object (an op that NumPy evaluates), ``jax.pure_callback`` calls back into Python.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy

from symgrad.abi import Array, Backward, Kernel
from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.export.table import Entry, Runner, Served, Table, shape_in
from symgrad.runtime.digests import digest

_ALIGNMENT = 64
_lock = threading.Lock()
_targets: set[str] = set()


def function(*ops: Any) -> JaxFunction:
    """The op as a function of JAX arrays, whose gradient is the op's own (``jax.custom_vjp``).

    ``ops``: what ``sg.compile`` returned, or a module of a generated package; several where the
    same Function is compiled for several dtypes or ranks.  Plain numbers are static: they may
    be given under ``jit``, but not traced.
    """
    return JaxFunction(Table(ops))


class JaxFunction:
    """An op on JAX arrays: ``op(x, alpha=2.0)``."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.names = [one.name for one in table.parameters]
        self.differentiated = _differentiated(table)
        # Out of a trace, what was traced for these shapes and numbers is found again.
        self.compiled = jax.jit(self.differentiated, static_argnums=0)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The outputs: one array, or a tuple of several."""
        tensors, numbers = self._split(args, named)
        outputs = self.compiled(numbers, *tensors)
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        taken = ", ".join(map(str, self.table.inputs))
        return f"<jax function of {self.table.name}: {taken}>"

    def __deepcopy__(self, memo: Any) -> JaxFunction:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, self.table.modules(self)

    def _split(
        self, args: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[list[Any], tuple[str | int, ...]]:
        """The tensors, and the plain numbers in the order of the kernels, as text."""
        where = self.table.name
        given = dict(zip(self.names, args, strict=False))
        unknown = [one for one in named if one not in self.names]
        twice = [one for one in named if one in given]
        if len(args) > len(self.names) or unknown or twice:
            what = f"{len(args)} arguments" if not unknown + twice else (unknown + twice)[0]
            raise KernelTypeError(
                f"{where}: {what} where it takes {', '.join(self.names)}", hint="each once"
            )
        given.update(named)
        tensors, numbers = [], {}
        for one in self.table.parameters:
            if one.number is not None:
                if one.name in given:
                    numbers[one.number.name] = _concrete(where, one.name, given[one.name])
            elif one.name not in given or given[one.name] is None:
                raise KernelTypeError(
                    f"{where}: input {one.name} is missing",
                    hint="whether an optional input is given is decided when the op is compiled",
                )
            else:
                tensors.append(jnp.asarray(given[one.name]))
        known = self.table.number(where, numbers)
        return tensors, tuple(n.hex() if isinstance(n, float) else n for n in known)


def _unpickled(*modules: str) -> JaxFunction:
    return function(*map(importlib.import_module, modules))


def _concrete(where: str, name: str, value: Any) -> Any:
    if isinstance(value, jax.core.Tracer):
        raise KernelTypeError(
            f"{where}: the plain number {name} is traced, and it is part of the call of the kernel",
            hint=f"mark it as static: jax.jit(f, static_argnames={name!r})",
        )
    return value.item() if isinstance(value, jax.Array) else value


def _numbers(table: Table, static: Sequence[str | int]) -> dict[str, Any]:
    """The plain numbers by name."""
    values = (float.fromhex(one) if isinstance(one, str) else one for one in static)
    return dict(zip((one.name for one in table.numbers), values, strict=True))


# -- forward and backward


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Kept:
    """What backward knows of a call besides arrays."""

    entry: int
    shapes: tuple[tuple[int, ...], ...]
    mask: tuple[bool, ...]


def _differentiated(table: Table) -> Any:
    """The op with a rule for its gradients; the first argument is the plain numbers."""

    def plain(static: Any, *tensors: Any) -> tuple[Any, ...]:
        numbers = _numbers(table, static)
        served = _served(table, tensors, numbers)
        case = served.entry.case
        named = dict(zip((one.name for one in case.inputs), tensors, strict=True))

        def by_python(*arrays: Any) -> Any:
            runner = served.entry.runner
            return runner.inference(*arrays, **runner.named(list(numbers.values())))

        return _run(served, case.inference, named, numbers, case.outputs, by_python, tensors)

    def forward(static: Any, *primals: Any) -> tuple[tuple[Any, ...], Any]:
        numbers = _numbers(table, static)
        tensors = [one.value for one in primals]
        served = _served(table, tensors, numbers)
        entry, case = served.entry, served.entry.case
        named = dict(zip((one.name for one in case.inputs), tensors, strict=True))
        made = (*case.outputs, *entry.extra)

        def by_python(*arrays: Any) -> Any:
            runner = entry.runner
            outputs, residuals = runner.forward(*arrays, **runner.named(list(numbers.values())))
            extra = [
                value for one, value in zip(case.residuals, residuals, strict=False)
                if one.source == "kernel"
            ]  # fmt: skip
            return (*(outputs if isinstance(outputs, tuple) else (outputs,)), *extra)

        found = _run(served, case.forward, named, numbers, made, by_python, tensors)
        outputs = found[: len(case.outputs)]
        sources = {"input": tensors, "output": outputs}
        extra = iter(found[len(case.outputs) :])
        kept = [
            next(extra) if one.source == "kernel" else sources[one.source][one.position]
            for one in case.residuals if one.source != "number"
        ]  # fmt: skip
        mask = tuple(
            bool(one.perturbed) and possible
            for one, possible in zip(primals, table.differentiable, strict=True)
        )
        shapes = tuple(tuple(one.shape) for one in tensors)
        return outputs, (kept, _Kept(entry.position, shapes, mask))

    def backward(static: Any, residuals: Any, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        kept, about = residuals
        return _gradients(table, _numbers(table, static), kept, about, cotangents)

    made: Any = jax.custom_vjp(plain, nondiff_argnums=(0,))
    made.defvjp(forward, backward, symbolic_zeros=True)
    return made


def _served(table: Table, tensors: Sequence[Any], numbers: Mapping[str, Any]) -> Served:
    """What serves these arrays.  Raises KernelTypeError and KernelArgumentError."""
    dtypes = [str(one.dtype) for one in tensors]
    for entry in table.entries:
        if [one.dtype for one in entry.case.inputs] == dtypes:
            shapes = [tuple(one.shape) for one in tensors]
            return table.served(shapes, dtypes, list(numbers.values()))
    wanted = [one.dtype for one in table.inputs]
    position = next(p for p, one in enumerate(dtypes) if one != wanted[p])
    hint = f"convert it with .astype({wanted[position]!r}), or compile the op for its dtype"
    if wanted[position] in ("float64", "int64") and not jax.config.jax_enable_x64:
        hint = "jax.config.update('jax_enable_x64', True), or compile the op for 32 bits"
    raise KernelTypeError(
        f"{table.name}: input {table.inputs[position].name} has the dtype {dtypes[position]},"
        f" {wanted[position]} is expected",
        hint=hint,
    )


def _gradients(
    table: Table, numbers: Mapping[str, Any], kept: Sequence[Any], about: _Kept,
    cotangents: Sequence[Any],
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients that are wanted, None for all others."""
    entry = table.entries[about.entry]
    case = entry.case
    dtypes = [one.dtype for one in case.inputs]
    served = table.served(about.shapes, dtypes, list(numbers.values()))
    given = [
        _cotangent(one, array, served.sizes)
        for one, array in zip(cotangents, case.outputs, strict=True)
    ]
    kernel = _least(table, entry, about.mask) if any(about.mask) else None
    if kernel is None:
        return (None,) * len(about.mask)
    arrays = iter(kept)
    by_position = [
        numbers[one.array.name] if one.source == "number" else next(arrays)
        for one in case.residuals
    ]
    named: dict[str, Any] = {}
    taken = kernel.kernel.inputs
    for array, position in zip(taken, kernel.residuals, strict=False):
        named[array.name] = by_position[position]
    for array, position in zip(taken[len(kernel.residuals) :], kernel.cotangents, strict=True):
        named[array.name] = given[position]
    made = [p for p, has in enumerate(kernel.mask) if has and p not in kernel.zeros]
    if not made:
        found: Sequence[Any] = ()
    else:

        def by_python(*arrays: Any) -> Any:
            values = arrays[: len(kept)]
            sizes = [served.sizes[name] for name in case.sizes]
            residuals = entry.pack(values, sizes, numbers)
            all_of = entry.runner.backward(
                residuals, *arrays[len(kept) :], needs_input_grad=kernel.mask
            )
            return tuple(all_of[position] for position in made)

        wanted = [case.inputs[position] for position in made]
        operands = (*kept, *given)
        found = _run(served, kernel.kernel, named, numbers, wanted, by_python, operands)
    gradients: list[Any] = [None] * len(about.mask)
    for position, gradient in zip(made, found, strict=True):
        if about.mask[position]:
            gradients[position] = gradient
    return tuple(gradients)


def _cotangent(value: Any, array: Array, sizes: Mapping[str, Any]) -> Any:
    """A cotangent as an array; zeros where nothing depends on the output, or it is an integer."""
    absent = isinstance(value, jax.custom_derivatives.SymbolicZero)
    if absent or array.dtype not in ("float32", "float64"):
        return jnp.zeros(shape_in(array, sizes), array.dtype)
    return value


def _least(table: Table, entry: Entry, mask: Sequence[bool]) -> Backward:
    """The backward kernel that computes these gradients."""
    found = entry.case.backward_for(mask)
    if found is None:
        raise KernelArgumentError(
            f"{table.name} has no backward kernel for these inputs",
            hint="compile it from a Function with a backward",
        )
    return found


# -- a call of a kernel


def _run(
    served: Served, kernel: Kernel, named: Mapping[str, Any], numbers: Mapping[str, Any],
    made: Sequence[Array], by_python: Callable[..., Any], operands: Sequence[Any],
) -> tuple[Any, ...]:  # fmt: skip
    """The arrays that a kernel makes of those that it takes, by XLA, else by Python."""
    runner, sizes = served.entry.runner, served.sizes
    results = [jax.ShapeDtypeStruct(shape_in(one, sizes), one.dtype) for one in made]
    target = _target(runner, kernel)
    if target is None:
        call = partial(_called_back, by_python)
        return tuple(
            jax.pure_callback(call, tuple(results), *operands, vmap_method="sequential")
        )  # fmt: skip
    own = [int(sizes[name]) for name in kernel.sizes]
    needed = int(getattr(runner.caller.library.lib, f"needed_{kernel.name}")(*own))
    if needed < 0:
        raise KernelArgumentError(
            f"{runner.record.name}: the workspace has more bytes than 64 bits count",
            hint="split the input into smaller ones",
        )
    plain = [(one.dtype, numbers[one.name]) for one in kernel.inputs if one.by_value]
    integers = [0, *own, *(value for dtype, value in plain if dtype == "int64")]
    reals = [0.0, *(value for dtype, value in plain if dtype != "int64")]
    results.append(jax.ShapeDtypeStruct((needed + _ALIGNMENT,), "uint8"))
    call = jax.ffi.ffi_call(target, results, vmap_method="sequential")
    arrays = [named[one.name] for one in kernel.inputs if not one.by_value]
    found = call(
        *arrays, integers=numpy.array(integers, numpy.int64), reals=numpy.array(reals, float)
    )
    return tuple(found[:-1])


def _called_back(by_python: Callable[..., Any], *arrays: Any) -> tuple[Any, ...]:
    """What a callback returns, from arrays of JAX or of NumPy."""
    found = by_python(*map(numpy.asarray, arrays))
    return found if isinstance(found, tuple) else (found,)


def _target(runner: Runner, kernel: Kernel) -> str | None:
    """The name under which XLA knows a kernel; None where nothing is compiled."""
    library = runner.caller.library
    if not hasattr(library.lib, f"symgrad_xla_{kernel.name}"):  # NumPy evaluates it
        return None
    name = f"{kernel.name}_{_source(runner)[:20]}"
    with _lock:
        if name not in _targets:
            function = library.ffi.addressof(library.lib, f"symgrad_xla_{kernel.name}")
            address = int(library.ffi.cast("uintptr_t", function))
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(address), platform="cpu")
            _targets.add(name)
    return name


def _source(runner: Runner) -> str:
    """A digest of the C of an op, so that the name of a target stands for what it computes."""
    folder = Path(getattr(runner.op, "__file__", "") or runner.caller.library.path).parent
    texts = [(folder / name).read_text(encoding="utf-8") for name in runner.record.files]
    return digest(repr(runner.record), *texts)
