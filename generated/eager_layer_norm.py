"""eager_layer_norm: x: float32[n, m], weight: float32[m], bias: float32[m] -> output: float32[n, m].

Backward PROVED (derived: no backward written).

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
from ._runtime.residuals import Residuals as _Residuals
from ._runtime.support import UNUSUAL as _UNUSUAL
from ._runtime.support import Caller as _Caller
from ._runtime.support import Unusual as _Unusual
from ._runtime.workspace import workspace as _workspace

__all__ = ["OP", "backward", "forward", "inference"]

OP = Op(
    name="eager_layer_norm",
    differentiable=(True, True, True),
    cases=(
        Case(
            inputs=(
                Array("x", "float32", ("n", "m")),
                Array("weight", "float32", ("m",)),
                Array("bias", "float32", ("m",)),
            ),
            outputs=(Array("output", "float32", ("n", "m")),),
            bindings=(Binding("n", input=0, axis=0), Binding("m", input=0, axis=1)),
            residuals=(
                Residual(Array("x", "float32", ("n", "m")), "input"),
                Residual(Array("weight", "float32", ("m",)), "input", position=1),
                Residual(Array("residual_2", "float32", ("n", "1")), "kernel", position=2),
                Residual(Array("residual_3", "float32", ("n", "1")), "kernel", position=3),
            ),
            inference=Kernel(
                "eager_layer_norm_inference",
                sizes=("n", "m"),
                inputs=(
                    Array("x", "float32", ("n", "m"), strides=(0,)),
                    Array("weight", "float32", ("m",)),
                    Array("bias", "float32", ("m",)),
                ),
                outputs=(Array("output", "float32", ("n", "m")),),
            ),
            forward=Kernel(
                "eager_layer_norm_forward",
                sizes=("n", "m"),
                inputs=(
                    Array("x", "float32", ("n", "m"), strides=(0,)),
                    Array("weight", "float32", ("m",)),
                    Array("bias", "float32", ("m",)),
                ),
                outputs=(
                    Array("output", "float32", ("n", "m")),
                    Array("residual_2", "float32", ("n", "1")),
                    Array("residual_3", "float32", ("n", "1")),
                ),
            ),
            backward=(
                Backward(
                    mask=(True, True, True),
                    kernel=Kernel(
                        "eager_layer_norm_backward",
                        sizes=("n", "m"),
                        inputs=(
                            Array("x", "float32", ("n", "m"), strides=(0,)),
                            Array("weight", "float32", ("m",)),
                            Array("residual_2", "float32", ("n", "1")),
                            Array("residual_3", "float32", ("n", "1")),
                            Array("grad_output", "float32", ("n", "m"), strides=(0,)),
                        ),
                        outputs=(
                            Array("grad_x", "float32", ("n", "m")),
                            Array("grad_weight", "float32", ("m",)),
                            Array("grad_bias", "float32", ("m",)),
                        ),
                    ),
                    residuals=(0, 1, 2, 3),
                    cotangents=(0,),
                ),
                Backward(
                    mask=(True, True, False),
                    kernel=Kernel(
                        "eager_layer_norm_backward_110",
                        sizes=("n", "m"),
                        inputs=(
                            Array("x", "float32", ("n", "m"), strides=(0,)),
                            Array("weight", "float32", ("m",)),
                            Array("residual_2", "float32", ("n", "1")),
                            Array("residual_3", "float32", ("n", "1")),
                            Array("grad_output", "float32", ("n", "m"), strides=(0,)),
                        ),
                        outputs=(
                            Array("grad_x", "float32", ("n", "m")),
                            Array("grad_weight", "float32", ("m",)),
                        ),
                    ),
                    residuals=(0, 1, 2, 3),
                    cotangents=(0,),
                ),
                Backward(
                    mask=(True, False, True),
                    kernel=Kernel(
                        "eager_layer_norm_backward_101",
                        sizes=("n", "m"),
                        inputs=(
                            Array("x", "float32", ("n", "m"), strides=(0,)),
                            Array("weight", "float32", ("m",)),
                            Array("residual_2", "float32", ("n", "1")),
                            Array("residual_3", "float32", ("n", "1")),
                            Array("grad_output", "float32", ("n", "m"), strides=(0,)),
                        ),
                        outputs=(
                            Array("grad_x", "float32", ("n", "m")),
                            Array("grad_bias", "float32", ("m",)),
                        ),
                    ),
                    residuals=(0, 1, 2, 3),
                    cotangents=(0,),
                ),
                Backward(
                    mask=(True, False, False),
                    kernel=Kernel(
                        "eager_layer_norm_backward_100",
                        sizes=("n", "m"),
                        inputs=(
                            Array("x", "float32", ("n", "m"), strides=(0,)),
                            Array("weight", "float32", ("m",)),
                            Array("residual_2", "float32", ("n", "1")),
                            Array("residual_3", "float32", ("n", "1")),
                            Array("grad_output", "float32", ("n", "m"), strides=(0,)),
                        ),
                        outputs=(Array("grad_x", "float32", ("n", "m")),),
                    ),
                    residuals=(0, 1, 2, 3),
                    cotangents=(0,),
                ),
                Backward(
                    mask=(False, True, True),
                    kernel=Kernel(
                        "eager_layer_norm_backward_011",
                        sizes=("n", "m"),
                        inputs=(
                            Array("x", "float32", ("n", "m"), strides=(0,)),
                            Array("residual_2", "float32", ("n", "1")),
                            Array("residual_3", "float32", ("n", "1")),
                            Array("grad_output", "float32", ("n", "m"), strides=(0,)),
                        ),
                        outputs=(
                            Array("grad_weight", "float32", ("m",)),
                            Array("grad_bias", "float32", ("m",)),
                        ),
                    ),
                    residuals=(0, 2, 3),
                    cotangents=(0,),
                ),
                Backward(
                    mask=(False, True, False),
                    kernel=Kernel(
                        "eager_layer_norm_backward_010",
                        sizes=("n", "m"),
                        inputs=(
                            Array("x", "float32", ("n", "m"), strides=(0,)),
                            Array("residual_2", "float32", ("n", "1")),
                            Array("residual_3", "float32", ("n", "1")),
                            Array("grad_output", "float32", ("n", "m"), strides=(0,)),
                        ),
                        outputs=(Array("grad_weight", "float32", ("m",)),),
                    ),
                    residuals=(0, 2, 3),
                    cotangents=(0,),
                ),
                Backward(
                    mask=(False, False, True),
                    kernel=Kernel(
                        "eager_layer_norm_backward_001",
                        sizes=("n", "m"),
                        inputs=(Array("grad_output", "float32", ("n", "m"), strides=(0,)),),
                        outputs=(Array("grad_bias", "float32", ("m",)),),
                    ),
                    residuals=(),
                    cotangents=(0,),
                ),
            ),
        ),
    ),
    files=("eager_layer_norm.c", "eager_layer_norm_pruned.c"),
    header="eager_layer_norm.h",
)


class Residuals(_Residuals):
    """What forward keeps for backward: x (float32[n, m]), weight (float32[m]), residual_2 (float32[n, 1]), residual_3 (float32[n, 1])."""

    __slots__ = ()
    fields = ("x", "weight", "residual_2", "residual_3", "n", "m")
    op = OP.name


_library = _beside(__file__, OP)
_careful = _Caller(OP, _library, (Residuals,))
_pointer = _library.ffi.from_buffer
_float32 = _dtype("float32")
_c_float32 = _library.ffi.typeof("float[]")
_call_eager_layer_norm_inference = _library.lib.call_eager_layer_norm_inference
_call_eager_layer_norm_forward = _library.lib.call_eager_layer_norm_forward
_call_eager_layer_norm_backward = _library.lib.call_eager_layer_norm_backward
_call_eager_layer_norm_backward_110 = _library.lib.call_eager_layer_norm_backward_110
_call_eager_layer_norm_backward_101 = _library.lib.call_eager_layer_norm_backward_101
_call_eager_layer_norm_backward_100 = _library.lib.call_eager_layer_norm_backward_100
_call_eager_layer_norm_backward_011 = _library.lib.call_eager_layer_norm_backward_011
_call_eager_layer_norm_backward_010 = _library.lib.call_eager_layer_norm_backward_010
_call_eager_layer_norm_backward_001 = _library.lib.call_eager_layer_norm_backward_001


def inference(x: _Array, weight: _Array, bias: _Array, *, out: Any = None) -> Any:
    """Return the outputs alone: output: float32[n, m].

    `out`: an array to write into (a tuple of them for several outputs).
    """
    try:
        if type(x) is not _Array or x.dtype is not _float32:
            raise _Unusual
        if type(weight) is not _Array or weight.dtype is not _float32:
            raise _Unusual
        if type(bias) is not _Array or bias.dtype is not _float32:
            raise _Unusual
        n, m = x.shape
        _weight_0, = weight.shape
        _bias_0, = bias.shape
        if _weight_0 != m:
            raise _Unusual
        if _bias_0 != m:
            raise _Unusual
        _p_x = _pointer(_c_float32, x)
        _p_weight = _pointer(_c_float32, weight)
        _p_bias = _pointer(_c_float32, bias)
        if out is None:
            output = _empty((n, m), _float32)
            _p_output = _pointer(_c_float32, output)
        else:
            output = out
            if type(output) is not _Array or output.dtype is not _float32:
                raise _Unusual
            if output.shape != (n, m):
                raise _Unusual
            _p_output = _pointer(_c_float32, output, True)
        if not _call_eager_layer_norm_inference(n, m, _p_x, m, _p_weight, _p_bias, _p_output, _workspace.pointer, _workspace.size):
            return output
    except _UNUSUAL:
        pass
    return _careful.inference((x, weight, bias), out)


def forward(x: _Array, weight: _Array, bias: _Array, *, out: Any = None) -> tuple[Any, _Residuals]:
    """Return the outputs, and what `backward` needs: output: float32[n, m].

    `out`: an array to write into (a tuple of them for several outputs).
    `backward` reads inputs and outputs themselves, not copies: do not write to them before it.
    """
    try:
        if type(x) is not _Array or x.dtype is not _float32:
            raise _Unusual
        if type(weight) is not _Array or weight.dtype is not _float32:
            raise _Unusual
        if type(bias) is not _Array or bias.dtype is not _float32:
            raise _Unusual
        n, m = x.shape
        _weight_0, = weight.shape
        _bias_0, = bias.shape
        if _weight_0 != m:
            raise _Unusual
        if _bias_0 != m:
            raise _Unusual
        _p_x = _pointer(_c_float32, x)
        _p_weight = _pointer(_c_float32, weight)
        _p_bias = _pointer(_c_float32, bias)
        if out is None:
            output = _empty((n, m), _float32)
            _p_output = _pointer(_c_float32, output)
        else:
            output = out
            if type(output) is not _Array or output.dtype is not _float32:
                raise _Unusual
            if output.shape != (n, m):
                raise _Unusual
            _p_output = _pointer(_c_float32, output, True)
        residual_2 = _empty((n, 1), _float32)
        _p_residual_2 = _pointer(_c_float32, residual_2)
        residual_3 = _empty((n, 1), _float32)
        _p_residual_3 = _pointer(_c_float32, residual_3)
        if not _call_eager_layer_norm_forward(n, m, _p_x, m, _p_weight, _p_bias, _p_output, _p_residual_2, _p_residual_3, _workspace.pointer, _workspace.size):
            return output, Residuals((x, weight, residual_2, residual_3, n, m))
    except _UNUSUAL:
        pass
    return _careful.forward((x, weight, bias), out)


def _backward_111(residuals, grad_output, out):
    x, weight, residual_2, residual_3, n, m = residuals
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (n, m):
        raise _Unusual
    if type(weight) is not _Array or weight.dtype is not _float32:
        raise _Unusual
    if weight.shape != (m,):
        raise _Unusual
    if type(residual_2) is not _Array or residual_2.dtype is not _float32:
        raise _Unusual
    if residual_2.shape != (n, 1):
        raise _Unusual
    if type(residual_3) is not _Array or residual_3.dtype is not _float32:
        raise _Unusual
    if residual_3.shape != (n, 1):
        raise _Unusual
    if type(grad_output) is not _Array or grad_output.dtype is not _float32:
        raise _Unusual
    if grad_output.shape != (n, m):
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_weight = _pointer(_c_float32, weight)
    _p_residual_2 = _pointer(_c_float32, residual_2)
    _p_residual_3 = _pointer(_c_float32, residual_3)
    _p_grad_output = _pointer(_c_float32, grad_output)
    if out is None:
        grad_x = _empty((n, m), _float32)
        _p_grad_x = _pointer(_c_float32, grad_x)
        grad_weight = _empty((m,), _float32)
        _p_grad_weight = _pointer(_c_float32, grad_weight)
        grad_bias = _empty((m,), _float32)
        _p_grad_bias = _pointer(_c_float32, grad_bias)
    else:
        if type(out) is not tuple:
            raise _Unusual
        grad_x, grad_weight, grad_bias = out
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
        if type(grad_bias) is not _Array or grad_bias.dtype is not _float32:
            raise _Unusual
        if grad_bias.shape != (m,):
            raise _Unusual
        _p_grad_bias = _pointer(_c_float32, grad_bias, True)
    if _call_eager_layer_norm_backward(n, m, _p_x, m, _p_weight, _p_residual_2, _p_residual_3, _p_grad_output, m, _p_grad_x, _p_grad_weight, _p_grad_bias, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (grad_x, grad_weight, grad_bias)


def _backward_110(residuals, grad_output, out):
    x, weight, residual_2, residual_3, n, m = residuals
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (n, m):
        raise _Unusual
    if type(weight) is not _Array or weight.dtype is not _float32:
        raise _Unusual
    if weight.shape != (m,):
        raise _Unusual
    if type(residual_2) is not _Array or residual_2.dtype is not _float32:
        raise _Unusual
    if residual_2.shape != (n, 1):
        raise _Unusual
    if type(residual_3) is not _Array or residual_3.dtype is not _float32:
        raise _Unusual
    if residual_3.shape != (n, 1):
        raise _Unusual
    if type(grad_output) is not _Array or grad_output.dtype is not _float32:
        raise _Unusual
    if grad_output.shape != (n, m):
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_weight = _pointer(_c_float32, weight)
    _p_residual_2 = _pointer(_c_float32, residual_2)
    _p_residual_3 = _pointer(_c_float32, residual_3)
    _p_grad_output = _pointer(_c_float32, grad_output)
    if out is None:
        grad_x = _empty((n, m), _float32)
        _p_grad_x = _pointer(_c_float32, grad_x)
        grad_weight = _empty((m,), _float32)
        _p_grad_weight = _pointer(_c_float32, grad_weight)
    else:
        if type(out) is not tuple:
            raise _Unusual
        grad_x, grad_weight, _ = out
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
    if _call_eager_layer_norm_backward_110(n, m, _p_x, m, _p_weight, _p_residual_2, _p_residual_3, _p_grad_output, m, _p_grad_x, _p_grad_weight, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (grad_x, grad_weight, None)


def _backward_101(residuals, grad_output, out):
    x, weight, residual_2, residual_3, n, m = residuals
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (n, m):
        raise _Unusual
    if type(weight) is not _Array or weight.dtype is not _float32:
        raise _Unusual
    if weight.shape != (m,):
        raise _Unusual
    if type(residual_2) is not _Array or residual_2.dtype is not _float32:
        raise _Unusual
    if residual_2.shape != (n, 1):
        raise _Unusual
    if type(residual_3) is not _Array or residual_3.dtype is not _float32:
        raise _Unusual
    if residual_3.shape != (n, 1):
        raise _Unusual
    if type(grad_output) is not _Array or grad_output.dtype is not _float32:
        raise _Unusual
    if grad_output.shape != (n, m):
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_weight = _pointer(_c_float32, weight)
    _p_residual_2 = _pointer(_c_float32, residual_2)
    _p_residual_3 = _pointer(_c_float32, residual_3)
    _p_grad_output = _pointer(_c_float32, grad_output)
    if out is None:
        grad_x = _empty((n, m), _float32)
        _p_grad_x = _pointer(_c_float32, grad_x)
        grad_bias = _empty((m,), _float32)
        _p_grad_bias = _pointer(_c_float32, grad_bias)
    else:
        if type(out) is not tuple:
            raise _Unusual
        grad_x, _, grad_bias = out
        if type(grad_x) is not _Array or grad_x.dtype is not _float32:
            raise _Unusual
        if grad_x.shape != (n, m):
            raise _Unusual
        _p_grad_x = _pointer(_c_float32, grad_x, True)
        if type(grad_bias) is not _Array or grad_bias.dtype is not _float32:
            raise _Unusual
        if grad_bias.shape != (m,):
            raise _Unusual
        _p_grad_bias = _pointer(_c_float32, grad_bias, True)
    if _call_eager_layer_norm_backward_101(n, m, _p_x, m, _p_weight, _p_residual_2, _p_residual_3, _p_grad_output, m, _p_grad_x, _p_grad_bias, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (grad_x, None, grad_bias)


def _backward_100(residuals, grad_output, out):
    x, weight, residual_2, residual_3, n, m = residuals
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (n, m):
        raise _Unusual
    if type(weight) is not _Array or weight.dtype is not _float32:
        raise _Unusual
    if weight.shape != (m,):
        raise _Unusual
    if type(residual_2) is not _Array or residual_2.dtype is not _float32:
        raise _Unusual
    if residual_2.shape != (n, 1):
        raise _Unusual
    if type(residual_3) is not _Array or residual_3.dtype is not _float32:
        raise _Unusual
    if residual_3.shape != (n, 1):
        raise _Unusual
    if type(grad_output) is not _Array or grad_output.dtype is not _float32:
        raise _Unusual
    if grad_output.shape != (n, m):
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_weight = _pointer(_c_float32, weight)
    _p_residual_2 = _pointer(_c_float32, residual_2)
    _p_residual_3 = _pointer(_c_float32, residual_3)
    _p_grad_output = _pointer(_c_float32, grad_output)
    if out is None:
        grad_x = _empty((n, m), _float32)
        _p_grad_x = _pointer(_c_float32, grad_x)
    else:
        if type(out) is not tuple:
            raise _Unusual
        grad_x, _, _ = out
        if type(grad_x) is not _Array or grad_x.dtype is not _float32:
            raise _Unusual
        if grad_x.shape != (n, m):
            raise _Unusual
        _p_grad_x = _pointer(_c_float32, grad_x, True)
    if _call_eager_layer_norm_backward_100(n, m, _p_x, m, _p_weight, _p_residual_2, _p_residual_3, _p_grad_output, m, _p_grad_x, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (grad_x, None, None)


def _backward_011(residuals, grad_output, out):
    x, _, residual_2, residual_3, n, m = residuals
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (n, m):
        raise _Unusual
    if type(residual_2) is not _Array or residual_2.dtype is not _float32:
        raise _Unusual
    if residual_2.shape != (n, 1):
        raise _Unusual
    if type(residual_3) is not _Array or residual_3.dtype is not _float32:
        raise _Unusual
    if residual_3.shape != (n, 1):
        raise _Unusual
    if type(grad_output) is not _Array or grad_output.dtype is not _float32:
        raise _Unusual
    if grad_output.shape != (n, m):
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_residual_2 = _pointer(_c_float32, residual_2)
    _p_residual_3 = _pointer(_c_float32, residual_3)
    _p_grad_output = _pointer(_c_float32, grad_output)
    if out is None:
        grad_weight = _empty((m,), _float32)
        _p_grad_weight = _pointer(_c_float32, grad_weight)
        grad_bias = _empty((m,), _float32)
        _p_grad_bias = _pointer(_c_float32, grad_bias)
    else:
        if type(out) is not tuple:
            raise _Unusual
        _, grad_weight, grad_bias = out
        if type(grad_weight) is not _Array or grad_weight.dtype is not _float32:
            raise _Unusual
        if grad_weight.shape != (m,):
            raise _Unusual
        _p_grad_weight = _pointer(_c_float32, grad_weight, True)
        if type(grad_bias) is not _Array or grad_bias.dtype is not _float32:
            raise _Unusual
        if grad_bias.shape != (m,):
            raise _Unusual
        _p_grad_bias = _pointer(_c_float32, grad_bias, True)
    if _call_eager_layer_norm_backward_011(n, m, _p_x, m, _p_residual_2, _p_residual_3, _p_grad_output, m, _p_grad_weight, _p_grad_bias, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (None, grad_weight, grad_bias)


def _backward_010(residuals, grad_output, out):
    x, _, residual_2, residual_3, n, m = residuals
    if type(x) is not _Array or x.dtype is not _float32:
        raise _Unusual
    if x.shape != (n, m):
        raise _Unusual
    if type(residual_2) is not _Array or residual_2.dtype is not _float32:
        raise _Unusual
    if residual_2.shape != (n, 1):
        raise _Unusual
    if type(residual_3) is not _Array or residual_3.dtype is not _float32:
        raise _Unusual
    if residual_3.shape != (n, 1):
        raise _Unusual
    if type(grad_output) is not _Array or grad_output.dtype is not _float32:
        raise _Unusual
    if grad_output.shape != (n, m):
        raise _Unusual
    _p_x = _pointer(_c_float32, x)
    _p_residual_2 = _pointer(_c_float32, residual_2)
    _p_residual_3 = _pointer(_c_float32, residual_3)
    _p_grad_output = _pointer(_c_float32, grad_output)
    if out is None:
        grad_weight = _empty((m,), _float32)
        _p_grad_weight = _pointer(_c_float32, grad_weight)
    else:
        if type(out) is not tuple:
            raise _Unusual
        _, grad_weight, _ = out
        if type(grad_weight) is not _Array or grad_weight.dtype is not _float32:
            raise _Unusual
        if grad_weight.shape != (m,):
            raise _Unusual
        _p_grad_weight = _pointer(_c_float32, grad_weight, True)
    if _call_eager_layer_norm_backward_010(n, m, _p_x, m, _p_residual_2, _p_residual_3, _p_grad_output, m, _p_grad_weight, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (None, grad_weight, None)


def _backward_001(residuals, grad_output, out):
    _, _, _, _, n, m = residuals
    if type(grad_output) is not _Array or grad_output.dtype is not _float32:
        raise _Unusual
    if grad_output.shape != (n, m):
        raise _Unusual
    _p_grad_output = _pointer(_c_float32, grad_output)
    if out is None:
        grad_bias = _empty((m,), _float32)
        _p_grad_bias = _pointer(_c_float32, grad_bias)
    else:
        if type(out) is not tuple:
            raise _Unusual
        _, _, grad_bias = out
        if type(grad_bias) is not _Array or grad_bias.dtype is not _float32:
            raise _Unusual
        if grad_bias.shape != (m,):
            raise _Unusual
        _p_grad_bias = _pointer(_c_float32, grad_bias, True)
    if _call_eager_layer_norm_backward_001(n, m, _p_grad_output, m, _p_grad_bias, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (None, None, grad_bias)


_BACKWARDS = {
    (Residuals, (True, True, True)): _backward_111,
    (Residuals, None): _backward_111,
    (Residuals, (True, True, False)): _backward_110,
    (Residuals, (True, False, True)): _backward_101,
    (Residuals, (True, False, False)): _backward_100,
    (Residuals, (False, True, True)): _backward_011,
    (Residuals, (False, True, False)): _backward_010,
    (Residuals, (False, False, True)): _backward_001,
}


def backward(
    residuals: _Residuals, grad_output: _Array | None, *, needs_input_grad: Any = None, out: Any = None
) -> tuple[_Array | None, ...]:
    """Return the gradients of x: float32[n, m], weight: float32[m], bias: float32[m]; None where not needed.

    `residuals`: the second result of `forward`, whose arrays have kept their shapes and dtypes.
    `needs_input_grad`: True or False for each input.
    `out`: a tuple with an array or None for each input.
    """
    try:
        return _BACKWARDS[type(residuals), needs_input_grad](residuals, grad_output, out)
    except _UNUSUAL:
        return _careful.backward(residuals, (grad_output,), needs_input_grad, out)
