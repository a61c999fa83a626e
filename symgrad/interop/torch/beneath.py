"""ATen operations: what torch takes a function apart into that symgrad has no operation for.

In: a function of torch's, or an ATen operation, with traced tensors among its arguments.  Out: what
it gives, as part of the graph; or an error that names the operation.

torch runs the function as it would for any other tensor; each ATen operation comes back here, and
is the operation of its name.  Where there is none, torch's own decomposition into others is taken.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from symgrad.errors import SymgradError
from symgrad.frontend.caller import here
from symgrad.frontend.functions.convolutions import convolution_gradients
from symgrad.frontend.questions import note_limit, questions
from symgrad.frontend.session import current
from symgrad.frontend.sizes import as_size
from symgrad.frontend.table import FUNCTIONS, OperationCallError
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.unsupported import MissingOperationError, missing_op
from symgrad.interop.torch import memory
from symgrad.interop.torch.constants import inward, is_real, is_traced, leaves, refuse_write
from symgrad.interop.torch.derivatives import BACKWARDS, pulled
from symgrad.interop.torch.dtypes import theirs
from symgrad.ir.dtype import DType
from symgrad.ops.integers import Demand

_FACTORIES = frozenset(
    ("arange", "empty", "eye", "full", "linspace", "ones", "scalar_tensor", "zeros")
)


class _Mode(TorchDispatchMode):
    """Hands the ATen operations that make tensors of sizes to the trace, too."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: otherwise torch imports its compiler, which fails in a trace."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return call(func, args, kwargs or {})


def taken_apart(func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What torch makes of a function.  Raises MissingOperationError."""
    numbers = _with_numbers(func, args, kwargs)
    try:
        with torch._C.DisableTorchFunction(), _Mode():
            result = call(_packet(func).default, numbers, {}) if numbers else func(*args, **kwargs)
    except MissingOperationError as error:
        raise _missing(func, name) from error
    except SymgradError as error:
        raise note_limit(error) from error.__cause__
    except Exception as error:  # of torch's, which has no memory to compute with
        raise _missing(func, name) from error
    if name.startswith("sym_"):
        return result  # of sizes: a number, too
    if not all(one is None or is_traced(one) for one in leaves(result)):
        raise _missing(func, name)  # what it says is of no memory
    for one in leaves(result):
        if isinstance(one, SymbolicTensor):
            one.lies_anyhow()  # as torch's own kernel leaves it
    return result


def _with_numbers(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Any] | None:  # fmt: skip
    """The arguments of a normalization of ATen, tensors of one element as the numbers it takes.

    None for other functions, and where none of them is one; torch's parser reads their memory.
    """
    packet = _packet(func)
    if packet is None:
        return None
    found, any_number = [], False
    for place, one in enumerate(packet.default._schema.arguments):
        value = args[place] if place < len(args) else kwargs.get(one.name, one.default_value)
        if str(one.type) in ("float", "number") and isinstance(value, SymbolicTensor):
            if value.ndim:
                return None
            value, any_number = value.item(), True
        found.append(inward(value))
    return found if any_number else None


def _packet(func: Any) -> Any:
    """The ATen operation of a normalization, which ``torch`` has as well; None for all else."""
    name = getattr(func, "__name__", "")
    of_torch = isinstance(func, torch._ops.OpOverloadPacket) or func is getattr(torch, name, None)
    return getattr(torch.ops.aten, name) if of_torch and name in _NORMALIZING else None


def _missing(func: Any, name: str) -> SymgradError:
    """The error for a function, by the name that users know it by."""
    known = torch.overrides.resolve_name(func) or f"torch.{name}"
    return note_limit(missing_op(known.replace("torch.functional.", "torch."), here()))


def call(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """An ATen operation.  Raises MissingOperationError."""
    name = func._schema.name.removeprefix("aten::")
    values = list(leaves((*args, *kwargs.values())))
    if not any(map(is_traced, values)):
        return func(*args, **kwargs)
    if func._schema.is_mutable and args and is_real(args[0]):
        raise refuse_write(name)
    asked = _ASKED.get(name)
    if asked is not None and len(args) == 1:
        return asked(args[0])
    if name in _NEVER:
        raise note_limit(missing_op(f"torch.ops.aten.{name}", here()))
    found = _operation(name)
    if found is not None:
        return _outward(found(*map(inward, args), **{k: inward(kwargs[k]) for k in kwargs}))
    found = _decomposition(func)
    if found is not None:
        return found(*args, **kwargs)
    raise note_limit(missing_op(f"torch.ops.aten.{name}", here()))


def _outward(value: Any) -> Any:
    """A result as torch's C code takes it."""
    if isinstance(value, DType):
        return theirs(value)
    return tuple(value) if isinstance(value, tuple) and type(value) is not tuple else value


# -- what torch asks a tensor


_OF_INPUTS = "the inputs and the incoming gradients are contiguous"
_OF_COTANGENTS = "the incoming gradients are contiguous, or expanded from a number"
_OF_RESULTS = "the memory of what is asked for its strides is contiguous"


def _strides(tensor: Any) -> Any:
    known = questions()
    if known is not None and tensor.certain is not None:
        if tensor.storage.label in known.cotangents:
            if not tensor.is_expanded:
                known.assume(_OF_COTANGENTS, here())
        else:
            known.assume(_OF_INPUTS if known.name_of(tensor.storage) else _OF_RESULTS, here())
    return tuple(map(as_size, tensor.strides))


_ASKED: dict[str, Callable[[Any], Any]] = {
    "sym_size": lambda tensor: tuple(tensor.shape), "size": lambda tensor: tuple(tensor.shape),
    "sym_numel": lambda tensor: tensor.numel(), "numel": lambda tensor: tensor.numel(),
    "sym_stride": _strides, "stride": _strides, "dim": lambda tensor: tensor.ndim,
    "sym_storage_offset": lambda tensor: 0, "storage_offset": lambda tensor: 0,
    "is_contiguous": lambda tensor: tensor.is_contiguous(),
    "sym_is_contiguous": lambda tensor: tensor.is_contiguous(),
    "is_strides_like_format": lambda tensor: tensor.is_contiguous(),
    "is_non_overlapping_and_dense": lambda tensor: True,
    "layout": lambda tensor: torch.strided,
}  # fmt: skip


# -- operations that have other arguments there


def stride(self: Any, dim: int | None = None) -> Any:
    """The strides of a tensor, or one of them; the report prints what they rest on."""
    return _strides(self) if dim is None else _strides(self)[dim]


def _index(self: Any, indices: Sequence[Any]) -> Any:
    return self[tuple(slice(None) if one is None else one for one in indices)]


def _slice(self: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    if type(end) is int and end >= torch.iinfo(torch.int64).max:
        end = None
    return self[(slice(None),) * (dim % self.ndim) + (slice(start, end, step),)]


def _to_copy(self: Any, *, dtype: Any = None, **ignored: Any) -> Any:
    return self.clone() if dtype is None else self.to(dtype, copy=True)


def _embedding(weight: Any, indices: Any, padding_idx: int = -1, *settings: Any) -> Any:
    return embedding(indices, weight, padding_idx if padding_idx >= 0 else None)


def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, *given: Any, **by: Any
) -> Any:
    """Rows of a table; autograd leaves out what depends on that at ``padding_idx``."""
    known = questions()
    if padding_idx is not None and known is not None:
        known.assume(
            "the row padding_idx is meant to have the derivative of its values, which F.embedding "
            "leaves out", here(),
        )  # fmt: skip
        place = input if padding_idx >= 0 else input - weight.shape[0]
        current().demanded.wish(Demand(place.node, apart=padding_idx))
    return FUNCTIONS["embedding"](input, weight, padding_idx, *given, **by)


def _layer_norm(input: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    axes = tuple(range(input.ndim - len(shape), input.ndim))
    mean = input.mean(axes, keepdim=True)
    rstd = (input.var(axes, correction=0, keepdim=True) + eps).rsqrt()
    normal = (input - mean) * rstd
    normal = normal if weight is None else normal * weight
    return (normal if bias is None else normal + bias), mean, rstd


def _batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float, eps: float,
) -> Any:  # fmt: skip
    """The result, and what backward takes: in training the mean, and one over the deviation."""
    found = FUNCTIONS["batch_norm"](
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    if not training:
        return found, input.new_empty(0), input.new_empty(0)
    axes = (0, *range(2, input.ndim))
    return found, input.mean(axes), (input.var(axes, correction=0) + eps).rsqrt()


def _group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    return FUNCTIONS["group_norm"](input, num_groups, weight, bias, eps)


def _instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool,
    momentum: float, eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    return FUNCTIONS["instance_norm"](
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Any:
    """Torch's softplus, which is its argument above the threshold, the default one, too.

    symgrad's own is the smooth function there.
    """
    smooth = FUNCTIONS["softplus"](input, beta)
    scaled = input if isinstance(beta, (int, float)) and beta == 1 else input * beta
    return FUNCTIONS["where"](scaled > threshold, input, smooth)


def _convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: Any,
) -> Any:  # fmt: skip
    count = weight.ndim - 2
    if transposed:
        return FUNCTIONS[f"conv_transpose{count}d"](
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return FUNCTIONS[f"conv{count}d"](input, weight, bias, stride, padding, dilation, groups)


def _convolution_backward(
    grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any,
    dilation: Any, transposed: bool, output_padding: Any, groups: Any, output_mask: Any,
) -> Any:  # fmt: skip
    if not transposed and any(as_size(one) != 0 for one in output_padding):
        raise OperationCallError(
            "output_padding is not supported for non-transposed convolutions", location=here()
        )
    wants_input, wants_weight, wants_bias = output_mask
    wanted = (wants_input, wants_weight)
    if transposed:
        by_input, by_weight = pulled(
            "convolution_backward", grad_output,
            lambda *two: _convolution(two[0], two[1], None, stride, padding, dilation, transposed,
                                      output_padding, groups),
            input, weight, mask=wanted,
        )  # fmt: skip
    else:
        by_input, by_weight = convolution_gradients(
            grad_output, input, weight, stride, padding, dilation, groups, wanted
        )
    bias = grad_output.sum((0, *range(2, grad_output.ndim))) if wants_bias else None
    return by_input, by_weight, bias


def _erfcx(self: Any) -> Any:
    return FUNCTIONS["exp"](self * self) * FUNCTIONS["erfc"](self)


def _ndtr(self: Any) -> Any:
    return FUNCTIONS["erfc"](-self / self.new_full((), 2.0).sqrt()) / 2


def guarded(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of traced tensors, called as the trace in progress calls the operation of a name."""
    return lambda *args, **kwargs: current().call(name, method, args, kwargs)


_OWN: dict[str, Callable[..., Any]] = {
    "_softmax": lambda self, dim, half: FUNCTIONS["softmax"](self, dim),
    "_log_softmax": lambda self, dim, half: FUNCTIONS["log_softmax"](self, dim),
    "_to_copy": _to_copy,
    "softplus": softplus,
    "_unsafe_view": lambda self, size: self.reshape(size),
    "_reshape_alias": lambda self, size, stride: self.view(size),
    "_local_scalar_dense": lambda self: self.item(),
    "index": _index,
    "slice": _slice,
    "unfold": guarded("unfold", vars(SymbolicTensor)["unfold"]),
    "im2col": lambda *args: FUNCTIONS["unfold"](*args),
    "col2im": lambda *args: FUNCTIONS["fold"](*args),
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "embedding": _embedding,
    "native_layer_norm": _layer_norm,
    "native_batch_norm": _batch_norm,
    "batch_norm": lambda *args: _batch_norm(*args[:8])[0],
    "group_norm": _group_norm,
    "instance_norm": _instance_norm,
    "rms_norm": lambda *args, **named: FUNCTIONS["rms_norm"](*args, **named),
    "constant_pad_nd": lambda self, pad, value=0: FUNCTIONS["pad"](self, pad, "constant", value),
    "unsafe_chunk": lambda self, chunks, dim=0: self.chunk(chunks, dim),
    "unsafe_split": lambda self, size, dim=0: self.split(size, dim),
    **BACKWARDS,
    "special_erfcx": _erfcx,
    "special_ndtr": _ndtr,
    "special_log_ndtr": lambda self: FUNCTIONS["log"](_ndtr(self)),
    "set_": memory.set_,
    "lift_fresh": lambda self: self,
    "lift": lambda self: self,
    "linalg_vector_norm": lambda *args, **kwargs: FUNCTIONS["linalg"].vector_norm(*args, **kwargs),
}
_NEVER = frozenset(
    ("_safe_softmax", "_batch_norm_with_update", "_native_batch_norm_legit",
     "empty_permuted", "empty_strided", "new_empty_strided", "native_dropout", "copy", "resize_",
     "resize_as_", "_foreach_add", "data_ptr")
)  # fmt: skip
"""Operations of which neither symgrad's, nor torch's definition by others, is what they do here."""
UNLIKE = frozenset(
    ("dropout", "group_norm", "layer_norm", "batch_norm", "instance_norm", "cross_entropy_loss",
     "binary_cross_entropy_with_logits", "hinge_embedding_loss", "kl_div", "rms_norm", "to",
     "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
     "soft_margin_loss", "pad", "normalize", "gelu_backward", "embedding")
)  # fmt: skip
"""Operations of which ATen has others of the same name, with other arguments."""


_NORMALIZING = ("native_layer_norm", "native_batch_norm", "native_batch_norm_backward")


def own(name: str) -> Callable[..., Any] | None:
    """The operation of a name whose arguments are ATen's, if it stands here."""
    return _OWN.get(name)


def _operation(name: str) -> Callable[..., Any] | None:
    """The operation of the name of an ATen operation."""
    if name in _OWN:
        return _OWN[name]
    if name in UNLIKE:
        return None
    for wanted in (name, name.removeprefix("special_")):
        own = FUNCTIONS.get(wanted)  # its arguments are in ATen's order, those of a method are not
        if callable(own) and not isinstance(own, type):
            return own  # type: ignore[no-any-return]
        method: Any = inspect.getattr_static(SymbolicTensor, wanted, None)
        if inspect.isfunction(method) and not wanted.startswith("_"):
            return guarded(wanted, method)
    if name.startswith("linalg_"):
        found: Callable[..., Any] | None = getattr(FUNCTIONS["linalg"], name[7:], None)
        return found
    return None


@functools.lru_cache(maxsize=1)
def _table() -> Mapping[Any, Callable[..., Any]]:
    from torch._decomp import decomposition_table

    return decomposition_table  # type: ignore[no-any-return]


def _decomposition(func: Any) -> Callable[..., Any] | None:
    """Torch's own definition of an operation by others."""
    found = _table().get(func)
    if found is not None:
        return found
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    own: Callable[..., Any] | None = func.decompose if func.has_kernel_for_dispatch_key(
        composite
    ) else None  # fmt: skip
    return own
