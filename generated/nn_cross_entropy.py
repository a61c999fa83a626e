"""nn_cross_entropy: x: float32[n, c], labels: int64[n] -> output: float32[].

Backward PROVED for ignore_index = -100, reduction = 'mean', label_smoothing = 0.0 if 0 <= labels < c.
This wrapper VALIDATED against the C and what was traced.

Written by symgrad: the straight-line code below serves the ordinary call, `Caller` every other.
"""

from __future__ import annotations

from math import prod as _prod
from typing import Any

from numpy import dtype as _dtype
from numpy import empty as _empty
from numpy import ndarray as _Array
from numpy import zeros as _zeros

from ._runtime.abi import Array, Backward, Binding, Case, Kernel, Op, Residual, Value
from ._runtime.load import beside as _beside
from ._runtime.pool import leased as _leased
from ._runtime.quick import Quick as _Quick
from ._runtime.residuals import Residuals as _Residuals
from ._runtime.support import UNUSUAL as _UNUSUAL
from ._runtime.support import Caller as _Caller
from ._runtime.support import Unusual as _Unusual
from ._runtime.values import AS_COMPILED as _AS_COMPILED
from ._runtime.workspace import workspace as _workspace

__all__ = ["OP", "backward", "forward", "inference"]

OP = Op(
    name="nn_cross_entropy",
    differentiable=(True, False),
    cases=(
        Case(
            inputs=(Array("x", "float32", ("n", "c")), Array("labels", "int64", ("n",))),
            outputs=(Array("output", "float32", ()),),
            bindings=(Binding("n", input=0, axis=0), Binding("c", input=0, axis=1)),
            residuals=(
                Residual(Array("x", "float32", ("n", "c")), "input"),
                Residual(Array("labels", "int64", ("n",)), "input", position=1),
            ),
            inference=Kernel(
                "nn_cross_entropy_forward",
                sizes=("n", "c"),
                inputs=(
                    Array("x", "float32", ("n", "c"), strides=(0,)),
                    Array("labels", "int64", ("n",)),
                ),
                outputs=(Array("output", "float32", ()),),
                statuses=("an index is out of range",),
            ),
            forward=Kernel(
                "nn_cross_entropy_forward",
                sizes=("n", "c"),
                inputs=(
                    Array("x", "float32", ("n", "c"), strides=(0,)),
                    Array("labels", "int64", ("n",)),
                ),
                outputs=(Array("output", "float32", ()),),
                statuses=("an index is out of range",),
            ),
            backward=(
                Backward(
                    mask=(True, False),
                    kernel=Kernel(
                        "nn_cross_entropy_backward",
                        sizes=("n", "c"),
                        inputs=(
                            Array("x", "float32", ("n", "c"), strides=(0,)),
                            Array("labels", "int64", ("n",)),
                            Array("grad_output", "float32", ()),
                        ),
                        outputs=(Array("grad_x", "float32", ("n", "c")),),
                    ),
                    residuals=(0, 1),
                    cotangents=(0,),
                ),
            ),
        ),
    ),
    files=("nn_cross_entropy.c",),
    header="nn_cross_entropy.h",
    includes=("_prelude.h",),
    values=(
        Value("ignore_index", "-100", place=2),
        Value("reduction", "'mean'", place=3),
        Value("label_smoothing", "0.0", place=4),
    ),
)


class Residuals(_Residuals):
    """What forward keeps for backward: x (float32[n, c]), labels (int64[n])."""

    __slots__ = ()
    fields = ("x", "labels", "n", "c")
    op = OP.name


_library = _beside(__file__, OP)
_careful = _Caller(OP, _library, (Residuals,))
_quick = _Quick(OP, _library, (Residuals,))
_pointer = _library.ffi.from_buffer
_float32 = _dtype("float32")
_c_float32 = _library.ffi.typeof("float[]")
_int64 = _dtype("int64")
_c_int64 = _library.ffi.typeof("int64_t[]")
_call_nn_cross_entropy_forward = _library.lib.call_nn_cross_entropy_forward
_call_nn_cross_entropy_backward = _library.lib.call_nn_cross_entropy_backward


def inference(x: _Array, labels: _Array, ignore_index: Any = _AS_COMPILED, reduction: Any = _AS_COMPILED, label_smoothing: Any = _AS_COMPILED, *, out: Any = None) -> Any:
    """Return the outputs alone: output: float32[].

    `out`: an array to write into (a tuple of them for several outputs).
    `ignore_index`: -100, for which it is compiled; no other value is taken.
    `reduction`: 'mean', for which it is compiled; no other value is taken.
    `label_smoothing`: 0.0, for which it is compiled; no other value is taken.
    """
    if ignore_index is not _AS_COMPILED:
        _careful.values.check("nn_cross_entropy.inference", "ignore_index", ignore_index)
    if reduction is not _AS_COMPILED:
        _careful.values.check("nn_cross_entropy.inference", "reduction", reduction)
    if label_smoothing is not _AS_COMPILED:
        _careful.values.check("nn_cross_entropy.inference", "label_smoothing", label_smoothing)
    _found = _quick.inference((x, labels), out)
    if _found is not None:
        return _found
    try:
        if type(x) is not _Array or x.dtype is not _float32:
            raise _Unusual
        if type(labels) is not _Array or labels.dtype is not _int64:
            raise _Unusual
        n, c = x.shape
        _labels_0, = labels.shape
        if _labels_0 != n:
            raise _Unusual
        _p_x = _pointer(_c_float32, x)
        _p_labels = _pointer(_c_int64, labels)
        if out is None:
            output = _empty((), _float32)
            _p_output = _pointer(_c_float32, output)
        else:
            output = out
            if type(output) is not _Array or output.dtype is not _float32:
                raise _Unusual
            if output.shape != ():
                raise _Unusual
            _p_output = _pointer(_c_float32, output, True)
        if not _call_nn_cross_entropy_forward(n, c, _p_x, c, _p_labels, _p_output, _workspace.pointer, _workspace.size):
            return output
    except _UNUSUAL:
        pass
    return _careful.inference((x, labels), out)


def forward(x: _Array, labels: _Array, ignore_index: Any = _AS_COMPILED, reduction: Any = _AS_COMPILED, label_smoothing: Any = _AS_COMPILED, *, out: Any = None) -> tuple[Any, _Residuals]:
    """Return the outputs, and what `backward` needs: output: float32[].

    `out`: an array to write into (a tuple of them for several outputs).
    `ignore_index`: -100, for which it is compiled; no other value is taken.
    `reduction`: 'mean', for which it is compiled; no other value is taken.
    `label_smoothing`: 0.0, for which it is compiled; no other value is taken.
    `backward` reads inputs and outputs themselves, not copies: do not write to them before it.
    """
    if ignore_index is not _AS_COMPILED:
        _careful.values.check("nn_cross_entropy.forward", "ignore_index", ignore_index)
    if reduction is not _AS_COMPILED:
        _careful.values.check("nn_cross_entropy.forward", "reduction", reduction)
    if label_smoothing is not _AS_COMPILED:
        _careful.values.check("nn_cross_entropy.forward", "label_smoothing", label_smoothing)
    _found = _quick.forward((x, labels), out)
    if _found is not None:
        return _found
    try:
        if type(x) is not _Array or x.dtype is not _float32:
            raise _Unusual
        if type(labels) is not _Array or labels.dtype is not _int64:
            raise _Unusual
        n, c = x.shape
        _labels_0, = labels.shape
        if _labels_0 != n:
            raise _Unusual
        _p_x = _pointer(_c_float32, x)
        _p_labels = _pointer(_c_int64, labels)
        if out is None:
            output = _empty((), _float32)
            _p_output = _pointer(_c_float32, output)
        else:
            output = out
            if type(output) is not _Array or output.dtype is not _float32:
                raise _Unusual
            if output.shape != ():
                raise _Unusual
            _p_output = _pointer(_c_float32, output, True)
        if not _call_nn_cross_entropy_forward(n, c, _p_x, c, _p_labels, _p_output, _workspace.pointer, _workspace.size):
            return output, Residuals((x, labels, n, c))
    except _UNUSUAL:
        pass
    return _careful.forward((x, labels), out)


def _backward_10(residuals, grad_output, out):
    x, labels, n, c = residuals
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (n, c):
        raise _Unusual
    if type(labels) is not _Array or labels.dtype is not _int64:
        raise _Unusual
    if labels.shape != (n,):
        raise _Unusual
    if type(grad_output) is not _Array or grad_output.dtype is not _float32:
        raise _Unusual
    if grad_output.shape != ():
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_labels = _pointer(_c_int64, labels)
    _p_grad_output = _pointer(_c_float32, grad_output)
    if out is None:
        grad_x = _empty((n, c), _float32) if n*c < 32768 else _leased((n, c), _float32)
        _p_grad_x = _pointer(_c_float32, grad_x)
    else:
        if type(out) is not tuple:
            raise _Unusual
        grad_x, _ = out
        if type(grad_x) is not _Array or grad_x.dtype is not _float32:
            raise _Unusual
        if grad_x.shape != (n, c):
            raise _Unusual
        _p_grad_x = _pointer(_c_float32, grad_x, True)
    if _call_nn_cross_entropy_backward(n, c, _p_x, c, _p_labels, _p_grad_output, _p_grad_x, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (grad_x, None)


_BACKWARDS = {
    (Residuals, (True, False)): _backward_10,
    (Residuals, None): _backward_10,
}


def backward(
    residuals: _Residuals, grad_output: _Array | None, *, needs_input_grad: Any = None, out: Any = None
) -> tuple[_Array | None, ...]:
    """Return the gradients of x: float32[n, c], labels: int64[n]; None where not needed.

    `residuals`: the second result of `forward`, whose arrays have kept their shapes and dtypes.
    `needs_input_grad`: True or False for each input.
    `out`: a tuple with an array or None for each input.
    """
    _found = _quick.backward(residuals, (grad_output,), needs_input_grad, out)
    if _found is not None:
        return _found
    try:
        return _BACKWARDS[type(residuals), needs_input_grad](residuals, grad_output, out)
    except _UNUSUAL:
        return _careful.backward(residuals, (grad_output,), needs_input_grad, out)
