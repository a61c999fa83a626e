"""nn_mse_loss: x: float32[*s], target: float32[*s] -> output: float32[].

Backward PROVED for reduction = 'mean'.
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
    name="nn_mse_loss",
    differentiable=(True, True),
    cases=(
        Case(
            inputs=(
                Array("x", "float32", ("s",), batch=("s", 0, 1)),
                Array("target", "float32", ("s",), batch=("s", 0, 1)),
            ),
            outputs=(Array("output", "float32", ()),),
            bindings=(Binding("s", input=0, axis=0),),
            residuals=(
                Residual(Array("x", "float32", ("s",), batch=("s", 0, 1)), "input"),
                Residual(
                    Array("target", "float32", ("s",), batch=("s", 0, 1)),
                    "input",
                    position=1,
                ),
            ),
            inference=Kernel(
                "nn_mse_loss_forward",
                sizes=("s",),
                inputs=(Array("x", "float32", ("s",)), Array("target", "float32", ("s",))),
                outputs=(Array("output", "float32", ()),),
            ),
            forward=Kernel(
                "nn_mse_loss_forward",
                sizes=("s",),
                inputs=(Array("x", "float32", ("s",)), Array("target", "float32", ("s",))),
                outputs=(Array("output", "float32", ()),),
            ),
            backward=(
                Backward(
                    mask=(True, True),
                    kernel=Kernel(
                        "nn_mse_loss_backward",
                        sizes=("s",),
                        inputs=(
                            Array("x", "float32", ("s",)),
                            Array("target", "float32", ("s",)),
                            Array("grad_output", "float32", ()),
                        ),
                        outputs=(
                            Array("grad_x", "float32", ("s",)),
                            Array("grad_target", "float32", ("s",)),
                        ),
                    ),
                    residuals=(0, 1),
                    cotangents=(0,),
                ),
                Backward(
                    mask=(True, False),
                    kernel=Kernel(
                        "nn_mse_loss_backward_10",
                        sizes=("s",),
                        inputs=(
                            Array("x", "float32", ("s",)),
                            Array("target", "float32", ("s",)),
                            Array("grad_output", "float32", ()),
                        ),
                        outputs=(Array("grad_x", "float32", ("s",)),),
                    ),
                    residuals=(0, 1),
                    cotangents=(0,),
                ),
                Backward(
                    mask=(False, True),
                    kernel=Kernel(
                        "nn_mse_loss_backward_01",
                        sizes=("s",),
                        inputs=(
                            Array("x", "float32", ("s",)),
                            Array("target", "float32", ("s",)),
                            Array("grad_output", "float32", ()),
                        ),
                        outputs=(Array("grad_target", "float32", ("s",)),),
                    ),
                    residuals=(0, 1),
                    cotangents=(0,),
                ),
            ),
        ),
    ),
    files=("nn_mse_loss.c", "nn_mse_loss_pruned.c"),
    header="nn_mse_loss.h",
    includes=("_prelude.h",),
    values=(Value("reduction", "'mean'", place=2),),
)


class Residuals(_Residuals):
    """What forward keeps for backward: x (float32[*s]), target (float32[*s])."""

    __slots__ = ()
    fields = ("x", "target", "*s")
    op = OP.name


_library = _beside(__file__, OP)
_careful = _Caller(OP, _library, (Residuals,))
_quick = _Quick(OP, _library, (Residuals,))
_pointer = _library.ffi.from_buffer
_float32 = _dtype("float32")
_c_float32 = _library.ffi.typeof("float[]")
_call_nn_mse_loss_forward = _library.lib.call_nn_mse_loss_forward
_call_nn_mse_loss_backward = _library.lib.call_nn_mse_loss_backward
_call_nn_mse_loss_backward_10 = _library.lib.call_nn_mse_loss_backward_10
_call_nn_mse_loss_backward_01 = _library.lib.call_nn_mse_loss_backward_01


def inference(x: _Array, target: _Array, reduction: Any = _AS_COMPILED, *, out: Any = None) -> Any:
    """Return the outputs alone: output: float32[].

    `out`: an array to write into (a tuple of them for several outputs).
    `reduction`: 'mean', for which it is compiled; no other value is taken.
    """
    if reduction is not _AS_COMPILED:
        _careful.values.check("nn_mse_loss.inference", "reduction", reduction)
    _found = _quick.inference((x, target), out)
    if _found is not None:
        return _found
    try:
        if type(x) is not _Array or x.dtype is not _float32:
            raise _Unusual
        if type(target) is not _Array or target.dtype is not _float32:
            raise _Unusual
        *_axes_s, = x.shape
        *_axes1_s, = target.shape
        s = _prod(_axes_s)
        if _axes1_s != _axes_s:
            raise _Unusual
        _p_x = _pointer(_c_float32, x)
        _p_target = _pointer(_c_float32, target)
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
        if not _call_nn_mse_loss_forward(s, _p_x, _p_target, _p_output, _workspace.pointer, _workspace.size):
            return output
    except _UNUSUAL:
        pass
    return _careful.inference((x, target), out)


def forward(x: _Array, target: _Array, reduction: Any = _AS_COMPILED, *, out: Any = None) -> tuple[Any, _Residuals]:
    """Return the outputs, and what `backward` needs: output: float32[].

    `out`: an array to write into (a tuple of them for several outputs).
    `reduction`: 'mean', for which it is compiled; no other value is taken.
    `backward` reads inputs and outputs themselves, not copies: do not write to them before it.
    """
    if reduction is not _AS_COMPILED:
        _careful.values.check("nn_mse_loss.forward", "reduction", reduction)
    _found = _quick.forward((x, target), out)
    if _found is not None:
        return _found
    try:
        if type(x) is not _Array or x.dtype is not _float32:
            raise _Unusual
        if type(target) is not _Array or target.dtype is not _float32:
            raise _Unusual
        *_axes_s, = x.shape
        *_axes1_s, = target.shape
        s = _prod(_axes_s)
        if _axes1_s != _axes_s:
            raise _Unusual
        _p_x = _pointer(_c_float32, x)
        _p_target = _pointer(_c_float32, target)
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
        if not _call_nn_mse_loss_forward(s, _p_x, _p_target, _p_output, _workspace.pointer, _workspace.size):
            return output, Residuals((x, target, tuple(_axes_s)))
    except _UNUSUAL:
        pass
    return _careful.forward((x, target), out)


def _backward_11(residuals, grad_output, out):
    x, target, _axes_s = residuals
    s = _prod(_axes_s)
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (*_axes_s,):
        raise _Unusual
    if type(target) is not _Array or target.dtype is not _float32:
        raise _Unusual
    if target.shape != (*_axes_s,):
        raise _Unusual
    if type(grad_output) is not _Array or grad_output.dtype is not _float32:
        raise _Unusual
    if grad_output.shape != ():
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_target = _pointer(_c_float32, target)
    _p_grad_output = _pointer(_c_float32, grad_output)
    if out is None:
        grad_x = _empty((*_axes_s,), _float32) if s < 32768 else _leased((*_axes_s,), _float32)
        _p_grad_x = _pointer(_c_float32, grad_x)
        grad_target = _empty((*_axes_s,), _float32) if s < 32768 else _leased((*_axes_s,), _float32)
        _p_grad_target = _pointer(_c_float32, grad_target)
    else:
        if type(out) is not tuple:
            raise _Unusual
        grad_x, grad_target = out
        if type(grad_x) is not _Array or grad_x.dtype is not _float32:
            raise _Unusual
        if grad_x.shape != (*_axes_s,):
            raise _Unusual
        _p_grad_x = _pointer(_c_float32, grad_x, True)
        if type(grad_target) is not _Array or grad_target.dtype is not _float32:
            raise _Unusual
        if grad_target.shape != (*_axes_s,):
            raise _Unusual
        _p_grad_target = _pointer(_c_float32, grad_target, True)
    if _call_nn_mse_loss_backward(s, _p_x, _p_target, _p_grad_output, _p_grad_x, _p_grad_target, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (grad_x, grad_target)


def _backward_10(residuals, grad_output, out):
    x, target, _axes_s = residuals
    s = _prod(_axes_s)
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (*_axes_s,):
        raise _Unusual
    if type(target) is not _Array or target.dtype is not _float32:
        raise _Unusual
    if target.shape != (*_axes_s,):
        raise _Unusual
    if type(grad_output) is not _Array or grad_output.dtype is not _float32:
        raise _Unusual
    if grad_output.shape != ():
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_target = _pointer(_c_float32, target)
    _p_grad_output = _pointer(_c_float32, grad_output)
    if out is None:
        grad_x = _empty((*_axes_s,), _float32) if s < 32768 else _leased((*_axes_s,), _float32)
        _p_grad_x = _pointer(_c_float32, grad_x)
    else:
        if type(out) is not tuple:
            raise _Unusual
        grad_x, _ = out
        if type(grad_x) is not _Array or grad_x.dtype is not _float32:
            raise _Unusual
        if grad_x.shape != (*_axes_s,):
            raise _Unusual
        _p_grad_x = _pointer(_c_float32, grad_x, True)
    if _call_nn_mse_loss_backward_10(s, _p_x, _p_target, _p_grad_output, _p_grad_x, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (grad_x, None)


def _backward_01(residuals, grad_output, out):
    x, target, _axes_s = residuals
    s = _prod(_axes_s)
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (*_axes_s,):
        raise _Unusual
    if type(target) is not _Array or target.dtype is not _float32:
        raise _Unusual
    if target.shape != (*_axes_s,):
        raise _Unusual
    if type(grad_output) is not _Array or grad_output.dtype is not _float32:
        raise _Unusual
    if grad_output.shape != ():
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_target = _pointer(_c_float32, target)
    _p_grad_output = _pointer(_c_float32, grad_output)
    if out is None:
        grad_target = _empty((*_axes_s,), _float32) if s < 32768 else _leased((*_axes_s,), _float32)
        _p_grad_target = _pointer(_c_float32, grad_target)
    else:
        if type(out) is not tuple:
            raise _Unusual
        _, grad_target = out
        if type(grad_target) is not _Array or grad_target.dtype is not _float32:
            raise _Unusual
        if grad_target.shape != (*_axes_s,):
            raise _Unusual
        _p_grad_target = _pointer(_c_float32, grad_target, True)
    if _call_nn_mse_loss_backward_01(s, _p_x, _p_target, _p_grad_output, _p_grad_target, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (None, grad_target)


_BACKWARDS = {
    (Residuals, (True, True)): _backward_11,
    (Residuals, None): _backward_11,
    (Residuals, (True, False)): _backward_10,
    (Residuals, (False, True)): _backward_01,
}


def backward(
    residuals: _Residuals, grad_output: _Array | None, *, needs_input_grad: Any = None, out: Any = None
) -> tuple[_Array | None, ...]:
    """Return the gradients of x: float32[*s], target: float32[*s]; None where not needed.

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
