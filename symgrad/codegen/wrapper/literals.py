"""An op's signatures written out as Python literals, for the table in a generated wrapper.

In: ``OpSignature`` records.  Out: text that builds the records of ``symgrad.runtime.spec``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symgrad.codegen.names import literal_text
from symgrad.codegen.wrapper.safe_names import with_readable_sizes
from symgrad.errors import CodegenError
from symgrad.ir.abi import ArrayArgument, BackwardSignature, KernelSignature, OpSignature, Residual
from symgrad.ir.dim import Dim, Size
from symgrad.plain import PlainArgument

WIDTH = 100


@dataclass(frozen=True)
class SizeBinding:
    """Where a size is read: ``size = (inputs[input].shape[axis] - offset) / factor``."""

    size: str
    input: int
    axis: int
    factor: int = 1
    offset: int = 0

    @property
    def plain(self) -> bool:
        """Is the axis the size itself?"""
        return (self.factor, self.offset) == (1, 0)


def size_bindings(signature: OpSignature) -> tuple[SizeBinding, ...]:
    """How each size of the op is read off the shapes of its inputs.

    An axis that is the bare size is preferred, then one that is linear in it alone.  Raises
    CodegenError for a size that no axis determines.
    """
    found: dict[str, SizeBinding] = {}
    for position, array in enumerate(signature.inputs):
        for axis, dim in enumerate(array.shape):
            solved = _linear(dim)
            if solved is None:
                continue
            name, factor, offset = solved
            binding = SizeBinding(name, position, axis, factor, offset)
            if name not in found or (binding.plain and not found[name].plain):
                found[name] = binding
    needed = {size for kernel in _kernels(signature) for size in kernel.sizes}
    needed |= {size for array in signature.inputs for dim in array.shape for size in dim.sizes}
    missing = sorted(needed - found.keys())
    if missing:
        raise CodegenError(
            f"{signature.name}: no input's shape tells the size {missing[0]}",
            hint="give some input an axis of that size",
        )
    plain = [binding for binding in found.values() if binding.plain]
    return (*plain, *(binding for binding in found.values() if not binding.plain))


def _linear(dim: Dim) -> tuple[str, int, int] | None:
    """``(name, factor, offset)`` where ``dim`` is ``factor*name + offset``, factor positive."""
    if len(dim.sizes) != 1:
        return None
    (name,) = dim.sizes
    offset = dim.at({name: 0}) if not _divides(dim) else None
    if offset is None:
        return None
    factor = dim.at({name: 1}) - offset
    return (
        (name, factor, offset) if factor > 0 and dim == Dim.size(name) * factor + offset else None
    )


def _divides(dim: Dim) -> bool:
    """Does it hold anything but a polynomial, which might divide by zero at 0?"""
    return any(not isinstance(atom, Size) for atom in dim.atoms)


def _kernels(signature: OpSignature) -> tuple[KernelSignature, ...]:
    backward = (one.kernel for one in signature.backward if one.kernel.outputs)
    return (signature.inference, signature.forward, *backward)


@dataclass(frozen=True)
class _Call:
    """``name(argument, keyword=argument)``; arguments are text or calls and tuples of calls."""

    name: str
    arguments: tuple[tuple[str, object], ...]


def _text(value: object, indent: int, prefix: str = "") -> str:
    """``value`` on one line where that fits, else one part a line."""
    flat = _flat(value)
    if indent + len(prefix) + len(flat) + 1 <= WIDTH or isinstance(value, str):
        return flat
    inner = " " * (indent + 4)
    if isinstance(value, _Call):
        parts = [(f"{key}=" if key else "", argument) for key, argument in value.arguments]
        opening, closing = f"{value.name}(", ")"
    else:
        assert isinstance(value, tuple)
        parts = [("", one) for one in value]
        opening, closing = "(", ")"
    lines = [f"{inner}{key}{_text(argument, indent + 4, key)}," for key, argument in parts]
    return "\n".join([opening, *lines, " " * indent + closing])


def _flat(value: object) -> str:
    if isinstance(value, _Call):
        parts = [f"{key}={_flat(one)}" if key else _flat(one) for key, one in value.arguments]
        return f"{value.name}({', '.join(parts)})"
    if isinstance(value, tuple):
        words = [_flat(one) for one in value]
        return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"
    return str(value)


def _quoted(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(string_literal(text) for text in texts)


def string_literal(text: str) -> str:
    """A string literal in double quotes."""
    return f'"{literal_text(text)}"'


def _array(array: ArrayArgument) -> _Call:
    dtype = array.dtype.name.rstrip("_")
    words: list[tuple[str, object]] = [
        ("", string_literal(array.name)),
        ("", string_literal(dtype)),
        ("", _quoted([str(dim) for dim in array.shape])),
    ]
    if array.strides:
        words.append(("strides", tuple(map(str, array.strides))))
    if array.batch is not None:
        name, axis, count = array.batch
        words.append(("batch", (string_literal(name), str(axis), str(count))))
    return _Call("Array", tuple(words))


def _kernel(kernel: KernelSignature) -> _Call:
    words: list[tuple[str, object]] = [
        ("", string_literal(kernel.name)),
        ("sizes", _quoted(kernel.sizes)),
        ("inputs", tuple(map(_array, kernel.inputs))),
        ("outputs", tuple(map(_array, kernel.outputs))),
    ]
    if kernel.statuses:
        words.append(("statuses", _quoted(kernel.statuses)))
    return _Call("Kernel", tuple(words))


def _binding(binding: SizeBinding) -> _Call:
    words = [
        ("", string_literal(binding.size)),
        ("input", str(binding.input)),
        ("axis", str(binding.axis)),
    ]
    if not binding.plain:
        words += [("factor", str(binding.factor)), ("offset", str(binding.offset))]
    return _Call("Binding", tuple(words))


def _residual(residual: Residual) -> _Call:
    words: list[tuple[str, object]] = [
        ("", _array(residual.array)),
        ("", string_literal(residual.source)),
    ]
    if residual.position:
        words.append(("position", str(residual.position)))
    return _Call("Residual", tuple(words))


def _backward(backward: BackwardSignature) -> _Call:
    words: list[tuple[str, object]] = [
        ("mask", tuple(map(str, backward.mask))),
        ("kernel", _kernel(backward.kernel)),
        ("residuals", tuple(map(str, backward.residuals))),
        ("cotangents", tuple(map(str, backward.cotangents))),
    ]
    if backward.zeros:
        words.append(("zeros", tuple(map(str, backward.zeros))))
    return _Call("Backward", tuple(words))


def _case(signature: OpSignature) -> _Call:
    words: list[tuple[str, object]] = [
        ("inputs", tuple(map(_array, signature.inputs))),
        ("outputs", tuple(map(_array, signature.outputs))),
        ("bindings", tuple(map(_binding, size_bindings(signature)))),
        ("residuals", tuple(map(_residual, signature.residuals))),
        ("inference", _kernel(signature.inference)),
        ("forward", _kernel(signature.forward)),
        ("backward", tuple(map(_backward, signature.backward))),
    ]
    if signature.conditions:
        words.append(("conditions", _quoted(signature.conditions)))
    if signature.apart:
        words.append(("apart", tuple(map(str, signature.apart))))
    return _Call("Case", tuple(words))


def _value(value: PlainArgument) -> _Call:
    words: list[tuple[str, object]] = [
        ("", string_literal(value.name)),
        ("", string_literal(value.text)),
    ]
    if value.place is not None:
        words.append(("place", str(value.place)))
    if not value.exact:
        words.append(("exact", "False"))
    return _Call("Value", tuple(words))


def op_literal(
    name: str, signatures: Sequence[OpSignature], files: Sequence[str], header: str, blas: bool,
    values: Sequence[PlainArgument] = (),
) -> str:  # fmt: skip
    """The text of an ``Op``, to stand behind ``OP = ``.  CodegenError as ``size_bindings``."""
    signatures = with_readable_sizes(signatures)
    words: list[tuple[str, object]] = [
        ("name", string_literal(name)),
        ("differentiable", tuple(map(str, signatures[0].differentiable))),
        ("cases", tuple(map(_case, signatures))),
        ("files", _quoted(files)),
        ("header", string_literal(header)),
    ]
    if blas:
        words.append(("blas", "True"))
    if values:
        words.append(("values", tuple(map(_value, values))))
    return _text(_Call("Op", tuple(words)), 0, "OP = ")
