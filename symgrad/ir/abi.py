"""What a C kernel's call looks like: the contract between the emitted C and whoever calls it.

In: nothing.  Out: frozen records; the code generator fills them, the wrapper template reads them.

A kernel is one C function.  Its parameters, in this order:

1. one ``int64_t`` for each size symbol, in the order of ``KernelSignature.sizes``;
2. for each input: ``const T *restrict name``, then one ``int64_t name_s<axis>`` (counted in
   elements) for each axis named in ``ArrayArgument.strides``;
3. for each output: ``T *restrict name``, C-contiguous;
4. ``void *workspace``, aligned to 64 bytes, of at least the bytes that the companion function
   ``int64_t <name>_workspace(int64_t sizes...)`` returns.

It returns ``int``: 0, or a positive status that indexes ``KernelSignature.statuses`` (1 is the
first): an index out of range, for instance.  It allocates nothing and keeps no state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType


class BatchAxes(NamedTuple):
    """Axes of a shape that stand for any number of axes of an array, ``*name`` in its spec.

    They are ``number`` axes from ``axis`` on: the last one has as many elements as all axes of the
    array together, those before it have one.
    """

    name: str
    axis: int
    number: int


@dataclass(frozen=True)
class ArrayArgument:
    """One array of a kernel's call.

    ``strides``: the axes whose stride is passed.  Axes not named there must lie as in a
    C-contiguous array: with ``()`` the whole array is contiguous, with ``(0,)`` of a matrix
    each row is.  The caller packs an array that does not comply.  ``batch``: the axes that stand
    for any number of the caller's; in the arrays of an op only, a kernel takes them as they are.
    """

    name: str
    dtype: DType
    shape: tuple[Dim, ...]
    strides: tuple[int, ...] = ()
    batch: BatchAxes | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The sizes as in a shape spec, without blanks: ``("*batch", "2*m")``."""
        words = [str(dim).replace(" ", "") for dim in self.shape]
        if self.batch is not None:
            name, axis, count = self.batch
            words[axis : axis + count] = [f"*{name}"]
        return tuple(words)


@dataclass(frozen=True)
class KernelSignature:
    """Everything a caller needs to know of one kernel."""

    name: str
    sizes: tuple[str, ...]
    inputs: tuple[ArrayArgument, ...]
    outputs: tuple[ArrayArgument, ...]
    statuses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Residual:
    """An array that forward hands to backward.

    ``source`` is ``"input"`` or ``"output"`` when the array is one of the op's own (``position``
    says which), else ``"kernel"``: an extra output of the forward kernel.
    """

    array: ArrayArgument
    source: str
    position: int = 0


@dataclass(frozen=True)
class BackwardSignature:
    """One backward kernel: the gradients of the inputs that ``mask`` marks.

    ``mask`` has one entry an op input.  The kernel's inputs are those ``residuals`` (positions
    in ``OpSignature.residuals``), then those ``cotangents`` (positions among the op's outputs)
    that these gradients really need; its outputs are the gradients in input order.  A gradient
    that is identically zero has no output: its input is in ``zeros``.
    """

    mask: tuple[bool, ...]
    kernel: KernelSignature
    residuals: tuple[int, ...]
    cotangents: tuple[int, ...]
    zeros: tuple[int, ...] = ()


@dataclass(frozen=True)
class OpSignature:
    """One op, ready to be called: its arrays, its kernels, and the sizes it holds for.

    ``conditions`` are Python expressions over the size symbols (``"k != 1"``) that must all hold.
    ``inference`` computes the outputs alone; ``forward`` also the residuals of source
    ``"kernel"``.  They are the same record where there are none.  ``differentiable`` marks the
    inputs that have a gradient.  ``apart``: numbers of batch axes that other cases serve, or none.
    """

    name: str
    inputs: tuple[ArrayArgument, ...]
    outputs: tuple[ArrayArgument, ...]
    differentiable: tuple[bool, ...]
    residuals: tuple[Residual, ...]
    inference: KernelSignature
    forward: KernelSignature
    backward: tuple[BackwardSignature, ...]
    conditions: tuple[str, ...] = ()
    apart: tuple[int, ...] = ()
