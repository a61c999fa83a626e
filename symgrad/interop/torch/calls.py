"""What a function of torch is while one of its Functions is traced.

In: a function, a method or an attribute of torch's, and the arguments of a call.  Out: what the
operation of that name gives, as part of the graph.

torch asks before each of its functions, whatever the arguments are.  A call without anything traced
is torch's own; one that writes into a tensor from outside is refused, since what it writes would be
lost.  What symgrad has no operation for is run by torch, which takes it apart (``beneath``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from symgrad.errors import SymgradError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.functions.casting import to
from symgrad.frontend.questions import (
    CPU_OR_GPU,
    none_is,
    note_limit,
    note_raised,
    observed,
    questions,
)
from symgrad.frontend.session import Session, current
from symgrad.frontend.table import FUNCTIONS, OperationCallError
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.unsupported import missing_op
from symgrad.interop.torch import (
    accepted,
    beneath,
    complexes,
    draws,
    memory,
    overlaps,
    refused,
    sparse,
    strided,
)
from symgrad.interop.torch.constants import (
    inward,
    is_real,
    is_traced,
    leaves,
    refuse_write,
)
from symgrad.interop.torch.dtypes import told
from symgrad.interop.torch.old_orders import in_new_order
from symgrad.ir.dtype import NARROW, DType
from symgrad.ir.graph import ancestors
from symgrad.tensor import gradients


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FACTORIES = _words(
    "arange as_tensor asarray empty empty_like eye full full_like linspace logspace "
    "ones ones_like scalar_tensor tensor tril_indices triu_indices zeros zeros_like clone "
    "new_empty new_full new_ones new_tensor new_zeros cuda"
)
"""Functions that make tensors, which belong to the trace whatever they are made of."""

_UNINITIALISED = _words("empty_permuted empty_strided new_empty_strided")
"""Functions that make tensors with strides of their own, of whatever lies in memory."""

RANDOM = _words(
    "alpha_dropout bernoulli bernoulli_ cauchy_ exponential_ feature_alpha_dropout "
    "feature_dropout fractional_max_pool2d fractional_max_pool3d geometric_ gumbel_softmax "
    "dropout1d dropout2d dropout3d log_normal_ multinomial native_dropout normal normal_ poisson "
    "rand rand_like randint randint_like randn randn_like random_ randperm uniform_ binomial"
)
"""Functions that draw random numbers."""

_PRIVATE = _words("_stacklevel")
_SPECIAL = {
    "special_expit": "sigmoid", "special_gammaln": "lgamma", "special_psi": "digamma",
    "log_sigmoid": "logsigmoid", "_is_all_true": "all", "_is_any_true": "any",
}  # fmt: skip
"""Functions that have another name here."""


def call(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What a function of torch gives.  Raises SymgradError."""
    name = name_of(func)
    if name == "_set_grad_enabled":
        return set_recording(args[0])
    if name == "_assert":
        condition, *message = (*args, *kwargs.values())
        return func(bool(condition), *message)
    args, kwargs = in_new_order(name, args, kwargs, method=_is_method(func))
    values = list(leaves((*args, *kwargs.values())))
    traced = any(map(is_traced, values))
    if traced and sparse.concerns(name, values):
        return sparse.call(name, args, kwargs)
    _check_written(name, args, kwargs, traced=traced)
    note_device(name, values)
    any_complex = complexes.concerns("", values)
    of_complex = any_complex or complexes.concerns(name, ())
    if not any_complex:
        _check_arguments(name, args, kwargs, traced=traced)
    if name in draws.NAMES and (traced or name in draws.OF_SIZES):
        found = draws.drawn(
            name, [inward(one) for one in args], {key: inward(kwargs[key]) for key in kwargs}
        )
        if found is not None:
            return outward(found)
    _check_known(name)
    if not traced and (name not in FACTORIES or (of_complex and not complexes.is_known(name))):
        return _natively(func, name, args, kwargs)
    out = kwargs.get("out")
    if out is not None:
        if of_complex:
            raise limit(f"{name} of complex numbers is called with out=", "assign the result")
        called = overlaps.of_two(name, args, kwargs)
        given = [kwargs[key] for key in kwargs if key != "out"]
        overlaps.check(called, inward(out), (*args, *given))
        return _into(out, call(func, args, {**kwargs, "out": None}))
    taken = complexes.taken if of_complex else inward
    own = {key: taken(kwargs[key]) for key in kwargs if key not in (*_PRIVATE, "out")}
    operation = complexes.operation_of(name) if of_complex else None
    found = _apply(func, name, [taken(one) for one in args], own, operation)
    if traced and name not in _METHODS:
        refused.check(func, name, args, kwargs)
    return outward(found, name)


def _check_known(name: str) -> None:
    """Raises UnsupportedOpError for what gives other values in each call."""
    if name in RANDOM:
        raise limit(f"{name} draws random numbers", "draw outside, and pass the draw as an input")
    if name in _UNINITIALISED:
        raise missing(f"torch.{name}")


def _check_arguments(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, traced: bool
) -> None:
    """Raises DTypeError for what torch refuses; what is written and read elsewhere is observed."""
    if traced or name in draws.NAMES:
        accepted.check(name, args, kwargs)
    if traced and args and overlaps.writes(name):
        overlaps.check_written(name, args, kwargs)


def _into(out: Any, found: Any) -> Any:
    """A result written into the tensor that ``out=`` names, whose shape it has."""
    target = inward(out)
    if isinstance(found, SymbolicTensor) and any(size == 0 for size in target.node.shape):
        memory.resized(target, found.node.shape)
    if not isinstance(found, SymbolicTensor) or tuple(found.shape) != tuple(target.shape):
        raise limit("out= is given a tensor of another shape", "assign the result")
    return target.copy_(found)


def name_of(func: Any) -> str:
    """The name of a function; of an attribute that is read, with ``get_`` before it."""
    name: str = getattr(func, "__name__", "")
    if name in ("__get__", "__set__", "__delete__"):
        of = getattr(func, "__self__", None)
        own = getattr(of, "__name__", "") or getattr(getattr(of, "fget", None), "__name__", "")
        return f"{name[2:5]}_{own}" if name == "__get__" else name
    return name


def limit(what: str, hint: str = "") -> SymgradError:
    """The error for what cannot be traced, which is remembered however it is handled."""
    return note_limit(UnsupportedOpError(what, location=here(), hint=hint))


def _check_written(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, traced: bool
) -> None:
    """Raises EffectError for a write into a tensor from outside, and for ``out=``."""
    if kwargs.get("out") is not None and not is_traced(kwargs["out"]):
        raise limit(f"{name} is called with out=", "assign the result")
    in_place = overlaps.writes(name)
    target = args[0] if args else None
    if name == "requires_grad_" and not traced:
        return
    if in_place and any(is_real(one) for one in leaves(target)):
        raise refuse_write(name)
    if kwargs.get("inplace") and is_real(target if args else kwargs.get("input")):
        raise refuse_write(name)


def note_device(name: str, values: Sequence[Any]) -> None:
    """Observe that the program moves a tensor to CUDA, or makes one there."""
    named = (str(one) for one in values if type(one) in (str, torch.device))
    known = questions()
    if known is not None and (name == "cuda" or any(one.startswith("cuda") for one in named)):
        known.put_on_gpu(here())


def _natively(func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A call of torch's own tensors, which must change none of them."""
    real = [one for one in leaves((*args, *kwargs.values())) if is_real(one)]
    before = [_version(one) for one in real]
    result = func(*args, **kwargs)
    if [_version(one) for one in real] != before:
        raise refuse_write(name)
    return result


def _version(tensor: Any) -> int:
    try:
        return int(tensor._version)
    except RuntimeError:  # of tensors made in inference mode
        return 0


def _apply(
    func: Any, name: str, args: list[Any], kwargs: dict[str, Any],
    operation: Callable[..., Any] | None,
) -> Any:  # fmt: skip
    found = operation or _method(func, name) or _function(func, name)
    if found is not None:
        try:
            return found(*args, **kwargs)
        except SymgradError as error:
            raise note_raised(note_limit(error)) from error.__cause__
        except (TypeError, AttributeError, IndexError) as error:
            raise limit(f"{name} is called as symgrad's is not: {error}") from error
    return beneath.taken_apart(func, name, args, kwargs)


def _is_method(func: Any) -> bool:
    """Is it a method of tensors?"""
    if inspect.isfunction(func):
        return func.__module__ == "torch._tensor" or func.__qualname__.startswith("Tensor.")
    return type(func).__name__ in ("method_descriptor", "wrapper_descriptor")


def _method(func: Any, name: str) -> Callable[..., Any] | None:
    """The traced tensor's method of that name, which is called with a tensor first."""
    if name.startswith("get_") and type(func).__name__ == "method-wrapper":
        if name[4:] in _FALSE:
            return lambda self: _flag(name[4:])
        if name in _METHODS:
            return _METHODS[name]
        shown: Any = inspect.getattr_static(SymbolicTensor, name[4:], None)
        if not isinstance(shown, property):
            raise missing(name)
        return shown.fget
    if not _is_method(func):
        return None
    if name in _METHODS:
        return _METHODS[name]
    method: Any = inspect.getattr_static(SymbolicTensor, name, None)
    return beneath.guarded(name, method) if inspect.isfunction(method) else None


def _flag(name: str) -> bool:
    """A flag that no tensor of a trace has, which is printed."""
    known = questions()
    if known is not None:
        kind = name.removeprefix("is_").replace("mkldnn", "of MKL-DNN").replace("_csr", "")
        known.assume(CPU_OR_GPU if name in _OF_DEVICES else none_is(kind), here())
    return False


def _function(func: Any, name: str) -> Callable[..., Any] | None:
    """The operation of the name of a function of torch's."""
    module = getattr(func, "__module__", "") or ""
    if name in _OF_BOTH:
        return _METHODS[name]
    if module == "torch.autograd":
        return _grad if name == "grad" else _backward if name == "backward" else None
    if isinstance(func, (torch._ops.OpOverloadPacket, torch._ops.OpOverload)):
        return None
    if module not in ("torch.nn.functional", "torch.functional") and name in beneath.UNLIKE:
        return beneath.own(name)
    wanted = _SPECIAL.get(name, name)
    if module == "torch._C._special":
        wanted = wanted.removeprefix("special_")
    elif module == "torch._C._linalg":
        found: Callable[..., Any] | None = getattr(
            FUNCTIONS["linalg"], name.removeprefix("linalg_"), None
        )
        return found
    unlike = {"softplus": beneath.softplus, "embedding": beneath.embedding}
    own = unlike.get(wanted) or FUNCTIONS.get(wanted)
    return own if callable(own) and not isinstance(own, type) else None


# -- what is recorded, and gradients inside


def set_recording(mode: bool) -> None:
    """``torch.no_grad`` and its like begin or end."""
    session, known = current(), questions()
    if known is not None:
        known.set_mode(bool(mode))
    if not mode:
        session.note_detached()
    if session.history is not None:
        if mode:
            session.history.record_in_forward()
        session.history.recording = bool(mode)


def _grad(outputs: Any, inputs: Any, grad_outputs: Any = None, **settings: Any) -> Any:
    settings.pop("only_inputs", None)
    return gradients.grad(outputs, inputs, grad_outputs, **settings)


def _backward(
    tensors: Any, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False,
    inputs: Any = None, **settings: Any,
) -> None:  # fmt: skip
    given = settings.pop("grad_tensors", gradient)
    gradients.backward(
        tensors, given, retain_graph=retain_graph, create_graph=create_graph, inputs=inputs
    )


def _is_neg(self: Any) -> Any:
    """Raises MissingOperationError: a real tensor that is a view of a complex one may say yes."""
    raise missing("is_neg")


def _resolve_neg(self: Any) -> Any:
    """Itself, or a copy of what ``is_neg`` is said of, where it may be asked which."""
    known = questions()
    if known is not None and known.identity:
        known.observe("whether resolve_neg() gives the tensor itself may be asked", here())
    return self


def _real(self: Any) -> Any:
    """Itself: a tensor of which this is asked may be complex in other calls, which is printed."""
    known = questions()
    if known is not None:
        known.assume("no tensor whose real part is taken is complex", here())
    return self


_NOT_OF_REALS = {
    "imag": "imag is not implemented for tensors with non-complex dtypes.",
    "view_as_real": "view_as_real is only supported for complex tensors",
}
"""What torch says of what complex tensors alone have."""


def _refused_of_reals(name: str) -> Callable[..., Any]:
    """What raises torch's error for a real tensor."""

    def raising(input: Any) -> Any:
        roots = ancestors([inward(input).node])
        inputs = [one.attributes["name"] for one in roots if one.op == "input"]
        error = OperationCallError(
            f"torch raises RuntimeError: {_NOT_OF_REALS[name]}", location=here(), real=inputs,
            hint="state which inputs are complex: c64[n m]",
        )  # fmt: skip
        raise note_raised(error)

    return raising


_METHODS: dict[str, Callable[..., Any]] = {
    "as_strided": beneath.guarded("as_strided", strided.as_strided),
    "resize_as_": memory.resize_as_, "resize_": memory.resize_,
    "backward": _backward, "stride": beneath.stride, "is_conj": lambda self: False,
    "get_real": _real, "real": _real, "get_imag": _refused_of_reals("imag"),
    **{name: _refused_of_reals(name) for name in _NOT_OF_REALS},
    "is_neg": _is_neg, "resolve_conj": lambda self: self, "resolve_neg": _resolve_neg,
    "type": lambda self, *args, **named: self.type(*args, **named),
    "is_same_size": lambda self, other: SymbolicTensor.is_same_size(self, inward(other)),
    **{
        one.method: lambda self, one=one, **named: to(self, str(one), **named)
        for one in NARROW
    },
    "is_complex": lambda self: False, "is_signed": lambda self: self.storage.node.dtype.is_signed,
}  # fmt: skip
_OF_BOTH = _words(
    "as_strided is_conj is_neg is_same_size is_complex is_signed real resolve_conj resolve_neg "
    "imag view_as_real"
)
"""Methods that are functions of torch, too, with the same answers."""
_OF_DEVICES = _words("is_hpu is_ipu is_maia is_meta is_mps is_mtia is_vulkan is_xla is_xpu")
"""Flags of devices besides the CPU and GPUs of CUDA."""
_FALSE = _OF_DEVICES | _words("is_mkldnn is_nested is_sparse_csr")
"""Flags that no tensor of a trace has."""


# -- results


def outward(value: Any, name: str = "") -> Any:
    """A result of a function as the program sees it: dtypes and named results are torch's."""
    if isinstance(value, DType):
        return told(value)
    kind: Any = getattr(torch.return_types, name, None) if isinstance(value, tuple) else None
    if kind is None or type(value) is kind or len(value) != kind.n_sequence_fields:
        return value
    return kind(tuple(value))


def missing(name: str) -> SymgradError:
    """The error for an operation that symgrad has not."""
    if name.startswith("get_"):
        observed(f".{name[4:]} of a tensor is asked for")
    error = missing_op(name.removeprefix("get_"), here())
    note_limit(error)
    return error


__all__ = ["Session", "call", "limit", "missing", "outward"]
