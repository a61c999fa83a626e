"""nn_rms_norm: x: float32[n, m], weight: float32[m] -> y: float32[n, m].

Backward PROVED for eps = 1.1920928955078125e-07, axes = (-1,); for weight given.
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
    name="nn_rms_norm",
    differentiable=(True, True),
    cases=(
        Case(
            inputs=(Array("x", "float32", ("n", "m")), Array("weight", "float32", ("m",))),
            outputs=(Array("y", "float32", ("n", "m")),),
            bindings=(Binding("n", input=0, axis=0), Binding("m", input=0, axis=1)),
            residuals=(
                Residual(Array("x", "float32", ("n", "m")), "input"),
                Residual(Array("weight", "float32", ("m",)), "input", position=1),
            ),
            inference=Kernel(
                "nn_rms_norm_forward",
                sizes=("n", "m"),
                inputs=(
                    Array("x", "float32", ("n", "m"), strides=(0,)),
                    Array("weight", "float32", ("m",)),
                ),
                outputs=(Array("y", "float32", ("n", "m")),),
            ),
            forward=Kernel(
                "nn_rms_norm_forward",
                sizes=("n", "m"),
                inputs=(
                    Array("x", "float32", ("n", "m"), strides=(0,)),
                    Array("weight", "float32", ("m",)),
                ),
                outputs=(Array("y", "float32", ("n", "m")),),
            ),
            backward=(
                Backward(
                    mask=(True, True),
                    kernel=Kernel(
                        "nn_rms_norm_backward",
                        sizes=("n", "m"),
                        inputs=(
                            Array("x", "float32", ("n", "m"), strides=(0,)),
                            Array("weight", "float32", ("m",)),
                            Array("grad_y", "float32", ("n", "m"), strides=(0,)),
                        ),
                        outputs=(
                            Array("grad_x", "float32", ("n", "m")),
                            Array("grad_weight", "float32", ("m",)),
                        ),
                    ),
                    residuals=(0, 1),
                    cotangents=(0,),
                ),
                Backward(
                    mask=(True, False),
                    kernel=Kernel(
                        "nn_rms_norm_backward_10",
                        sizes=("n", "m"),
                        inputs=(
                            Array("x", "float32", ("n", "m"), strides=(0,)),
                            Array("weight", "float32", ("m",)),
                            Array("grad_y", "float32", ("n", "m"), strides=(0,)),
                        ),
                        outputs=(Array("grad_x", "float32", ("n", "m")),),
                    ),
                    residuals=(0, 1),
                    cotangents=(0,),
                ),
                Backward(
                    mask=(False, True),
                    kernel=Kernel(
                        "nn_rms_norm_backward_01",
                        sizes=("n", "m"),
                        inputs=(
                            Array("x", "float32", ("n", "m"), strides=(0,)),
                            Array("grad_y", "float32", ("n", "m"), strides=(0,)),
                        ),
                        outputs=(Array("grad_weight", "float32", ("m",)),),
                    ),
                    residuals=(0,),
                    cotangents=(0,),
                ),
            ),
        ),
    ),
    files=("nn_rms_norm.c", "nn_rms_norm_pruned.c"),
    header="nn_rms_norm.h",
    includes=("_prelude.h",),
    values=(Value("eps", "1.1920928955078125e-07", place=2), Value("axes", "(-1,)", place=3)),
)


class Residuals(_Residuals):
    """What forward keeps for backward: x (float32[n, m]), weight (float32[m])."""

    __slots__ = ()
    fields = ("x", "weight", "n", "m")
    op = OP.name


_library = _beside(__file__, OP)
_careful = _Caller(OP, _library, (Residuals,))
_quick = _Quick(OP, _library, (Residuals,))
_pointer = _library.ffi.from_buffer
_float32 = _dtype("float32")
_c_float32 = _library.ffi.typeof("float[]")
_call_nn_rms_norm_forward = _library.lib.call_nn_rms_norm_forward
_call_nn_rms_norm_backward = _library.lib.call_nn_rms_norm_backward
_call_nn_rms_norm_backward_10 = _library.lib.call_nn_rms_norm_backward_10
_call_nn_rms_norm_backward_01 = _library.lib.call_nn_rms_norm_backward_01


def inference(x: _Array, weight: _Array, eps: Any = _AS_COMPILED, axes: Any = _AS_COMPILED, *, out: Any = None) -> Any:
    """Return the outputs alone: y: float32[n, m].

    `out`: an array to write into (a tuple of them for several outputs).
    `eps`: 1.1920928955078125e-07, for which it is compiled; no other value is taken.
    `axes`: (-1,), for which it is compiled; no other value is taken.
    """
    if eps is not _AS_COMPILED:
        _careful.values.check("nn_rms_norm.inference", "eps", eps)
    if axes is not _AS_COMPILED:
        _careful.values.check("nn_rms_norm.inference", "axes", axes)
    _found = _quick.inference((x, weight), out)
    if _found is not None:
        return _found
    try:
        if type(x) is not _Array or x.dtype is not _float32:
            raise _Unusual
        if type(weight) is not _Array or weight.dtype is not _float32:
            raise _Unusual
        n, m = x.shape
        _weight_0, = weight.shape
        if _weight_0 != m:
            raise _Unusual
        _p_x = _pointer(_c_float32, x)
        _p_weight = _pointer(_c_float32, weight)
        if out is None:
            y = _empty((n, m), _float32) if n*m < 32768 else _leased((n, m), _float32)
            _p_y = _pointer(_c_float32, y)
        else:
            y = out
            if type(y) is not _Array or y.dtype is not _float32:
                raise _Unusual
            if y.shape != (n, m):
                raise _Unusual
            _p_y = _pointer(_c_float32, y, True)
        if not _call_nn_rms_norm_forward(n, m, _p_x, m, _p_weight, _p_y, _workspace.pointer, _workspace.size):
            return y
    except _UNUSUAL:
        pass
    return _careful.inference((x, weight), out)


def forward(x: _Array, weight: _Array, eps: Any = _AS_COMPILED, axes: Any = _AS_COMPILED, *, out: Any = None) -> tuple[Any, _Residuals]:
    """Return the outputs, and what `backward` needs: y: float32[n, m].

    `out`: an array to write into (a tuple of them for several outputs).
    `eps`: 1.1920928955078125e-07, for which it is compiled; no other value is taken.
    `axes`: (-1,), for which it is compiled; no other value is taken.
    `backward` reads inputs and outputs themselves, not copies: do not write to them before it.
    """
    if eps is not _AS_COMPILED:
        _careful.values.check("nn_rms_norm.forward", "eps", eps)
    if axes is not _AS_COMPILED:
        _careful.values.check("nn_rms_norm.forward", "axes", axes)
    _found = _quick.forward((x, weight), out)
    if _found is not None:
        return _found
    try:
        if type(x) is not _Array or x.dtype is not _float32:
            raise _Unusual
        if type(weight) is not _Array or weight.dtype is not _float32:
            raise _Unusual
        n, m = x.shape
        _weight_0, = weight.shape
        if _weight_0 != m:
            raise _Unusual
        _p_x = _pointer(_c_float32, x)
        _p_weight = _pointer(_c_float32, weight)
        if out is None:
            y = _empty((n, m), _float32) if n*m < 32768 else _leased((n, m), _float32)
            _p_y = _pointer(_c_float32, y)
        else:
            y = out
            if type(y) is not _Array or y.dtype is not _float32:
                raise _Unusual
            if y.shape != (n, m):
                raise _Unusual
            _p_y = _pointer(_c_float32, y, True)
        if not _call_nn_rms_norm_forward(n, m, _p_x, m, _p_weight, _p_y, _workspace.pointer, _workspace.size):
            return y, Residuals((x, weight, n, m))
    except _UNUSUAL:
        pass
    return _careful.forward((x, weight), out)


def _backward_11(residuals, grad_y, out):
    x, weight, n, m = residuals
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (n, m):
        raise _Unusual
    if type(weight) is not _Array or weight.dtype is not _float32:
        raise _Unusual
    if weight.shape != (m,):
        raise _Unusual
    if type(grad_y) is not _Array or grad_y.dtype is not _float32:
        raise _Unusual
    if grad_y.shape != (n, m):
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_weight = _pointer(_c_float32, weight)
    _p_grad_y = _pointer(_c_float32, grad_y)
    if out is None:
        grad_x = _empty((n, m), _float32) if n*m < 32768 else _leased((n, m), _float32)
        _p_grad_x = _pointer(_c_float32, grad_x)
        grad_weight = _empty((m,), _float32) if m < 32768 else _leased((m,), _float32)
        _p_grad_weight = _pointer(_c_float32, grad_weight)
    else:
        if type(out) is not tuple:
            raise _Unusual
        grad_x, grad_weight = out
        if type(grad_x) is not _Array or grad_x.dtype is not _float32:
            raise _Unusual
        if grad_x.shape != (n, m):
            raise _Unusual
        _p_grad_x = _pointer(_c_float32, grad_x, True)
        if type(grad_weight) is not _Array or grad_weight.dtype is not _float32:
            raise _Unusual
        if grad_weight.shape != (m,):
            raise _Unusual
        _p_grad_weight = _pointer(_c_float32, grad_weight, True)
    if _call_nn_rms_norm_backward(n, m, _p_x, m, _p_weight, _p_grad_y, m, _p_grad_x, _p_grad_weight, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (grad_x, grad_weight)


def _backward_10(residuals, grad_y, out):
    x, weight, n, m = residuals
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (n, m):
        raise _Unusual
    if type(weight) is not _Array or weight.dtype is not _float32:
        raise _Unusual
    if weight.shape != (m,):
        raise _Unusual
    if type(grad_y) is not _Array or grad_y.dtype is not _float32:
        raise _Unusual
    if grad_y.shape != (n, m):
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_weight = _pointer(_c_float32, weight)
    _p_grad_y = _pointer(_c_float32, grad_y)
    if out is None:
        grad_x = _empty((n, m), _float32) if n*m < 32768 else _leased((n, m), _float32)
        _p_grad_x = _pointer(_c_float32, grad_x)
    else:
        if type(out) is not tuple:
            raise _Unusual
        grad_x, _ = out
        if type(grad_x) is not _Array or grad_x.dtype is not _float32:
            raise _Unusual
        if grad_x.shape != (n, m):
            raise _Unusual
        _p_grad_x = _pointer(_c_float32, grad_x, True)
    if _call_nn_rms_norm_backward_10(n, m, _p_x, m, _p_weight, _p_grad_y, m, _p_grad_x, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (grad_x, None)


def _backward_01(residuals, grad_y, out):
    x, _, n, m = residuals
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (n, m):
        raise _Unusual
    if type(grad_y) is not _Array or grad_y.dtype is not _float32:
        raise _Unusual
    if grad_y.shape != (n, m):
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_grad_y = _pointer(_c_float32, grad_y)
    if out is None:
        grad_weight = _empty((m,), _float32) if m < 32768 else _leased((m,), _float32)
        _p_grad_weight = _pointer(_c_float32, grad_weight)
    else:
        if type(out) is not tuple:
            raise _Unusual
        _, grad_weight = out
        if type(grad_weight) is not _Array or grad_weight.dtype is not _float32:
            raise _Unusual
        if grad_weight.shape != (m,):
            raise _Unusual
        _p_grad_weight = _pointer(_c_float32, grad_weight, True)
    if _call_nn_rms_norm_backward_01(n, m, _p_x, m, _p_grad_y, m, _p_grad_weight, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (None, grad_weight)


_BACKWARDS = {
    (Residuals, (True, True)): _backward_11,
    (Residuals, None): _backward_11,
    (Residuals, (True, False)): _backward_10,
    (Residuals, (False, True)): _backward_01,
}


def backward(
    residuals: _Residuals, grad_y: _Array | None, *, needs_input_grad: Any = None, out: Any = None
) -> tuple[_Array | None, ...]:
    """Return the gradients of x: float32[n, m], weight: float32[m]; None where not needed.

    `residuals`: the second result of `forward`, whose arrays have kept their shapes and dtypes.
    `needs_input_grad`: True or False for each input.
    `out`: a tuple with an array or None for each input.
    """
    _found = _quick.backward(residuals, (grad_y,), needs_input_grad, out)
    if _found is not None:
        return _found
    try:
        return _BACKWARDS[type(residuals), needs_input_grad](residuals, grad_y, out)
    except _UNUSUAL:
        return _careful.backward(residuals, (grad_y,), needs_input_grad, out)
