"""nn_gelu_tanh: x: float32[*s] -> y: float32[*s].

Backward PROVED.
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

from ._runtime.abi import Array, Backward, Binding, Case, Kernel, Op, Residual
from ._runtime.load import beside as _beside
from ._runtime.pool import leased as _leased
from ._runtime.quick import Quick as _Quick
from ._runtime.residuals import Residuals as _Residuals
from ._runtime.support import UNUSUAL as _UNUSUAL
from ._runtime.support import Caller as _Caller
from ._runtime.support import Unusual as _Unusual
from ._runtime.workspace import workspace as _workspace

__all__ = ["OP", "backward", "forward", "inference"]

OP = Op(
    name="nn_gelu_tanh",
    differentiable=(True,),
    cases=(
        Case(
            inputs=(Array("x", "float32", ("s",), batch=("s", 0, 1)),),
            outputs=(Array("y", "float32", ("s",), batch=("s", 0, 1)),),
            bindings=(Binding("s", input=0, axis=0),),
            residuals=(Residual(Array("x", "float32", ("s",), batch=("s", 0, 1)), "input"),),
            inference=Kernel(
                "nn_gelu_tanh_forward",
                sizes=("s",),
                inputs=(Array("x", "float32", ("s",)),),
                outputs=(Array("y", "float32", ("s",)),),
            ),
            forward=Kernel(
                "nn_gelu_tanh_forward",
                sizes=("s",),
                inputs=(Array("x", "float32", ("s",)),),
                outputs=(Array("y", "float32", ("s",)),),
            ),
            backward=(
                Backward(
                    mask=(True,),
                    kernel=Kernel(
                        "nn_gelu_tanh_backward",
                        sizes=("s",),
                        inputs=(Array("x", "float32", ("s",)), Array("grad_y", "float32", ("s",))),
                        outputs=(Array("grad_x", "float32", ("s",)),),
                    ),
                    residuals=(0,),
                    cotangents=(0,),
                ),
            ),
        ),
    ),
    files=("nn_gelu_tanh.c",),
    header="nn_gelu_tanh.h",
    includes=("_prelude.h",),
)


class Residuals(_Residuals):
    """What forward keeps for backward: x (float32[*s])."""

    __slots__ = ()
    fields = ("x", "*s")
    op = OP.name


_library = _beside(__file__, OP)
_careful = _Caller(OP, _library, (Residuals,))
_quick = _Quick(OP, _library, (Residuals,))
_pointer = _library.ffi.from_buffer
_float32 = _dtype("float32")
_c_float32 = _library.ffi.typeof("float[]")
_call_nn_gelu_tanh_forward = _library.lib.call_nn_gelu_tanh_forward
_call_nn_gelu_tanh_backward = _library.lib.call_nn_gelu_tanh_backward


def inference(x: _Array, *, out: Any = None) -> Any:
    """Return the outputs alone: y: float32[*s].

    `out`: an array to write into (a tuple of them for several outputs).
    """
    _found = _quick.inference((x,), out)
    if _found is not None:
        return _found
    try:
        if type(x) is not _Array or x.dtype is not _float32:
            raise _Unusual
        *_axes_s, = x.shape
        s = _prod(_axes_s)
        _p_x = _pointer(_c_float32, x)
        if out is None:
            y = _empty((*_axes_s,), _float32) if s < 32768 else _leased((*_axes_s,), _float32)
            _p_y = _pointer(_c_float32, y)
        else:
            y = out
            if type(y) is not _Array or y.dtype is not _float32:
                raise _Unusual
            if y.shape != (*_axes_s,):
                raise _Unusual
            _p_y = _pointer(_c_float32, y, True)
        if not _call_nn_gelu_tanh_forward(s, _p_x, _p_y, _workspace.pointer, _workspace.size):
            return y
    except _UNUSUAL:
        pass
    return _careful.inference((x,), out)


def forward(x: _Array, *, out: Any = None) -> tuple[Any, _Residuals]:
    """Return the outputs, and what `backward` needs: y: float32[*s].

    `out`: an array to write into (a tuple of them for several outputs).
    `backward` reads inputs and outputs themselves, not copies: do not write to them before it.
    """
    _found = _quick.forward((x,), out)
    if _found is not None:
        return _found
    try:
        if type(x) is not _Array or x.dtype is not _float32:
            raise _Unusual
        *_axes_s, = x.shape
        s = _prod(_axes_s)
        _p_x = _pointer(_c_float32, x)
        if out is None:
            y = _empty((*_axes_s,), _float32) if s < 32768 else _leased((*_axes_s,), _float32)
            _p_y = _pointer(_c_float32, y)
        else:
            y = out
            if type(y) is not _Array or y.dtype is not _float32:
                raise _Unusual
            if y.shape != (*_axes_s,):
                raise _Unusual
            _p_y = _pointer(_c_float32, y, True)
        if not _call_nn_gelu_tanh_forward(s, _p_x, _p_y, _workspace.pointer, _workspace.size):
            return y, Residuals((x, tuple(_axes_s)))
    except _UNUSUAL:
        pass
    return _careful.forward((x,), out)


def _backward_1(residuals, grad_y, out):
    x, _axes_s = residuals
    s = _prod(_axes_s)
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (*_axes_s,):
        raise _Unusual
    if type(grad_y) is not _Array or grad_y.dtype is not _float32:
        raise _Unusual
    if grad_y.shape != (*_axes_s,):
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_grad_y = _pointer(_c_float32, grad_y)
    if out is None:
        grad_x = _empty((*_axes_s,), _float32) if s < 32768 else _leased((*_axes_s,), _float32)
        _p_grad_x = _pointer(_c_float32, grad_x)
    else:
        if type(out) is not tuple:
            raise _Unusual
        grad_x, = out
        if type(grad_x) is not _Array or grad_x.dtype is not _float32:
            raise _Unusual
        if grad_x.shape != (*_axes_s,):
            raise _Unusual
        _p_grad_x = _pointer(_c_float32, grad_x, True)
    if _call_nn_gelu_tanh_backward(s, _p_x, _p_grad_y, _p_grad_x, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (grad_x,)


_BACKWARDS = {
    (Residuals, (True,)): _backward_1,
    (Residuals, None): _backward_1,
}


def backward(
    residuals: _Residuals, grad_y: _Array | None, *, needs_input_grad: Any = None, out: Any = None
) -> tuple[_Array | None, ...]:
    """Return the gradients of x: float32[*s]; None where not needed.

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
