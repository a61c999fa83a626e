"""softmax_cross_entropy: logits: float32[n, c], labels: int64[n] -> loss: float32[].

Backward PROVED, under: 0 <= labels < c.

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
    name="softmax_cross_entropy",
    differentiable=(True, False),
    cases=(
        Case(
            inputs=(Array("logits", "float32", ("n", "c")), Array("labels", "int64", ("n",))),
            outputs=(Array("loss", "float32", ()),),
            bindings=(Binding("n", input=0, axis=0), Binding("c", input=0, axis=1)),
            residuals=(
                Residual(Array("labels", "int64", ("n",)), "input", position=1),
                Residual(Array("log_probabilities", "float32", ("n", "c")), "kernel", position=1),
            ),
            inference=Kernel(
                "softmax_cross_entropy_inference",
                sizes=("n", "c"),
                inputs=(
                    Array("logits", "float32", ("n", "c"), strides=(0,)),
                    Array("labels", "int64", ("n",)),
                ),
                outputs=(Array("loss", "float32", ()),),
                statuses=("an index is out of range",),
            ),
            forward=Kernel(
                "softmax_cross_entropy_forward",
                sizes=("n", "c"),
                inputs=(
                    Array("logits", "float32", ("n", "c"), strides=(0,)),
                    Array("labels", "int64", ("n",)),
                ),
                outputs=(
                    Array("loss", "float32", ()),
                    Array("log_probabilities", "float32", ("n", "c")),
                ),
                statuses=("an index is out of range",),
            ),
            backward=(
                Backward(
                    mask=(True, False),
                    kernel=Kernel(
                        "softmax_cross_entropy_backward",
                        sizes=("n", "c"),
                        inputs=(
                            Array("labels", "int64", ("n",)),
                            Array("log_probabilities", "float32", ("n", "c"), strides=(0,)),
                            Array("grad_loss", "float32", ()),
                        ),
                        outputs=(Array("grad_logits", "float32", ("n", "c")),),
                    ),
                    residuals=(0, 1),
                    cotangents=(0,),
                ),
            ),
            conditions=("c >= 1",),
        ),
    ),
    files=("softmax_cross_entropy.c",),
    header="softmax_cross_entropy.h",
)


class Residuals(_Residuals):
    """What forward keeps for backward: labels (int64[n]), log_probabilities (float32[n, c])."""

    __slots__ = ()
    fields = ("labels", "log_probabilities", "n", "c")
    op = OP.name


_library = _beside(__file__, OP)
_careful = _Caller(OP, _library, (Residuals,))
_pointer = _library.ffi.from_buffer
_float32 = _dtype("float32")
_c_float32 = _library.ffi.typeof("float[]")
_int64 = _dtype("int64")
_c_int64 = _library.ffi.typeof("int64_t[]")
_call_softmax_cross_entropy_inference = _library.lib.call_softmax_cross_entropy_inference
_call_softmax_cross_entropy_forward = _library.lib.call_softmax_cross_entropy_forward
_call_softmax_cross_entropy_backward = _library.lib.call_softmax_cross_entropy_backward


def inference(logits: _Array, labels: _Array, *, out: Any = None) -> Any:
    """Return the outputs alone: loss: float32[].

    `out`: an array to write into (a tuple of them for several outputs).
    """
    try:
        if type(logits) is not _Array or logits.dtype is not _float32:
            raise _Unusual
        if type(labels) is not _Array or labels.dtype is not _int64:
            raise _Unusual
        n, c = logits.shape
        _labels_0, = labels.shape
        if _labels_0 != n:
            raise _Unusual
        if not (c >= 1):
            raise _Unusual
        _p_logits = _pointer(_c_float32, logits)
        _p_labels = _pointer(_c_int64, labels)
        if out is None:
            loss = _empty((), _float32)
            _p_loss = _pointer(_c_float32, loss)
        else:
            loss = out
            if type(loss) is not _Array or loss.dtype is not _float32:
                raise _Unusual
            if loss.shape != ():
                raise _Unusual
            _p_loss = _pointer(_c_float32, loss, True)
        if not _call_softmax_cross_entropy_inference(n, c, _p_logits, c, _p_labels, _p_loss, _workspace.pointer, _workspace.size):
            return loss
    except _UNUSUAL:
        pass
    return _careful.inference((logits, labels), out)


def forward(logits: _Array, labels: _Array, *, out: Any = None) -> tuple[Any, _Residuals]:
    """Return the outputs, and what `backward` needs: loss: float32[].

    `out`: an array to write into (a tuple of them for several outputs).
    `backward` reads inputs and outputs themselves, not copies: do not write to them before it.
    """
    try:
        if type(logits) is not _Array or logits.dtype is not _float32:
            raise _Unusual
        if type(labels) is not _Array or labels.dtype is not _int64:
            raise _Unusual
        n, c = logits.shape
        _labels_0, = labels.shape
        if _labels_0 != n:
            raise _Unusual
        if not (c >= 1):
            raise _Unusual
        _p_logits = _pointer(_c_float32, logits)
        _p_labels = _pointer(_c_int64, labels)
        if out is None:
            loss = _empty((), _float32)
            _p_loss = _pointer(_c_float32, loss)
        else:
            loss = out
            if type(loss) is not _Array or loss.dtype is not _float32:
                raise _Unusual
            if loss.shape != ():
                raise _Unusual
            _p_loss = _pointer(_c_float32, loss, True)
        log_probabilities = _empty((n, c), _float32)
        _p_log_probabilities = _pointer(_c_float32, log_probabilities)
        if not _call_softmax_cross_entropy_forward(n, c, _p_logits, c, _p_labels, _p_loss, _p_log_probabilities, _workspace.pointer, _workspace.size):
            return loss, Residuals((labels, log_probabilities, n, c))
    except _UNUSUAL:
        pass
    return _careful.forward((logits, labels), out)


def _backward_10(residuals, grad_loss, out):
    labels, log_probabilities, n, c = residuals
    if not (c >= 1):
        raise _Unusual
    if type(labels) is not _Array or labels.dtype is not _int64:
        raise _Unusual
    if labels.shape != (n,):
        raise _Unusual
    if type(log_probabilities) is not _Array or log_probabilities.dtype is not _float32:
        raise _Unusual
    if log_probabilities.shape != (n, c):
        raise _Unusual
    if type(grad_loss) is not _Array or grad_loss.dtype is not _float32:
        raise _Unusual
    if grad_loss.shape != ():
        raise _Unusual
    _p_labels = _pointer(_c_int64, labels)
    _p_log_probabilities = _pointer(_c_float32, log_probabilities)
    _p_grad_loss = _pointer(_c_float32, grad_loss)
    if out is None:
        grad_logits = _empty((n, c), _float32)
        _p_grad_logits = _pointer(_c_float32, grad_logits)
    else:
        if type(out) is not tuple:
            raise _Unusual
        grad_logits, _ = out
        if type(grad_logits) is not _Array or grad_logits.dtype is not _float32:
            raise _Unusual
        if grad_logits.shape != (n, c):
            raise _Unusual
        _p_grad_logits = _pointer(_c_float32, grad_logits, True)
    if _call_softmax_cross_entropy_backward(n, c, _p_labels, _p_log_probabilities, c, _p_grad_loss, _p_grad_logits, _workspace.pointer, _workspace.size):
        raise _Unusual
    return (grad_logits, None)


_BACKWARDS = {
    (Residuals, (True, False)): _backward_10,
    (Residuals, None): _backward_10,
}


def backward(
    residuals: _Residuals, grad_loss: _Array | None, *, needs_input_grad: Any = None, out: Any = None
) -> tuple[_Array | None, ...]:
    """Return the gradients of logits: float32[n, c], labels: int64[n]; None where not needed.

    `residuals`: the second result of `forward`, whose arrays have kept their shapes and dtypes.
    `needs_input_grad`: True or False for each input.
    `out`: a tuple with an array or None for each input.
    """
    try:
        return _BACKWARDS[type(residuals), needs_input_grad](residuals, grad_loss, out)
    except _UNUSUAL:
        return _careful.backward(residuals, (grad_loss,), needs_input_grad, out)
