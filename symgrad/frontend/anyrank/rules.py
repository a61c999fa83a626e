"""Operations that are blind to the number of batch axes, and when.  Shapes, products: next door.

In: calls.  Out: ``RULES``, filled.
"""

from __future__ import annotations

from typing import Any

import symgrad.frontend.functions  # noqa: F401  (attaches the methods)
from symgrad.frontend.anyrank.call import (
    Call,
    elementwise,
    has_batch_axis,
    layout,
    off_batch_axis,
    rule,
    same_layout,
    shape_of,
)
from symgrad.frontend.anyrank.session import layout_of
from symgrad.frontend.tensor import SymbolicTensor

ELEMENTWISE = """
    absolute addcdiv addcmul bitwise_and bitwise_not bitwise_or bitwise_xor celu clamp clamp_max
    clamp_min clip deg2rad dropout elu entr float_power floor_divide fmax fmin frac gelu
    hardshrink hardsigmoid hardswish hardtanh heaviside isclose isfinite isinf isnan leaky_relu
    lerp logit masked_fill mish nan_to_num polygamma positive rad2deg relu6 remainder rsub selu
    softshrink softsign tanhshrink threshold true_divide xlogy
"""
"""Those that are made of several ops."""
OPERATORS = """
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__
    __rfloordiv__ __mod__ __rmod__ __pow__ __rpow__ __neg__ __pos__ __abs__ __and__ __rand__ __or__
    __ror__ __xor__ __rxor__ __invert__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__
    __iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__
    __ixor__
"""
LOSSES = """
    mse_loss l1_loss huber_loss smooth_l1_loss binary_cross_entropy binary_cross_entropy_with_logits
    kl_div hinge_embedding_loss dist
"""
WRITES = "copy_ fill_ zero_ fill"
REDUCTIONS = """
    sum prod mean var std var_mean std_mean amax amin aminmax argmax argmin any all count_nonzero
    norm logsumexp nansum nanmean linalg.vector_norm
"""
ALONG_AXES = """
    softmax log_softmax softmin cumsum cumprod logcumsumexp sort argsort topk kthvalue glu normalize
    cosine_similarity select narrow diff roll unbind chunk split split_with_sizes unfold squeeze
    repeat_interleave flip
"""
PLACES = """
    gather take_along_dim take_along_axis scatter scatter_add scatter_reduce
"""
SLICES = "index_select index_add index_fill index_copy"
WHOLE = """
    clone copy detach detach_ alias cpu cuda float double long bool to astype type type_as
    zeros_like ones_like empty_like full_like numel nelement is_floating_point is_complex is_tensor
    result_type element_size get_device requires_grad_ data __deepcopy__ one_hot
"""


def in_place(names: str) -> str:
    """The names of the forms that write into their first argument, where there are such."""
    return " ".join(f"{name}_" for name in names.split() if hasattr(SymbolicTensor, f"{name}_"))


rule(f"{ELEMENTWISE} {in_place(ELEMENTWISE)} {OPERATORS} {WRITES}")(elementwise)


@rule(LOSSES)
def _loss(call: Call) -> Any:
    """Element by element, then over all elements or none."""
    if call.given.get("reduction") == "batchmean":
        call.refuse("divides by the size of the first axis")
    return elementwise(call)


@rule(WHOLE)
def _whole(call: Call) -> Any:
    """Looks at no axis; what it is given beside the tensor has no batch axes to meet."""
    for tensor in call.tensors[1:]:
        if call.name in ("full_like",) and layout(tensor) is not None:
            call.refuse("takes a value with batch axes")
    return call.run()


# -- over axes


def _axes(call: Call) -> tuple[Any, ...]:
    """The axes that a call names, in whichever way; none where it means all of them."""
    found: list[Any] = []
    for name in ("dim", "dims", "axis", "dimension", "axes_given"):
        named = call.given.get(name)
        for item in named if isinstance(named, (tuple, list)) else (named,):
            found.extend(item if isinstance(item, (tuple, list)) else (item,))
    return tuple(axis for axis in found if axis is not None and not isinstance(axis, bool))


@rule(REDUCTIONS)
def _reduction(call: Call) -> Any:
    """Over all axes, or over axes that are no batch axes."""
    if call.name in ("std", "var_mean", "std_mean"):  # they hand their arguments on to var
        var: Any = SymbolicTensor.var  # type: ignore[attr-defined]
        _check_reduction(Call(call.session, call.name, var, call.args, call.kwargs))
    else:
        _check_reduction(call)
    return call.run()


def _check_reduction(call: Call) -> None:
    tensor, *others = call.tensors
    if any(map(has_batch_axis, others)):
        call.refuse("takes several tensors with batch axes")
    axes = _axes(call)
    if not axes and (call.given.get("keepdim") or call.name == "logsumexp"):
        call.refuse("keeps the batch axes that it reduces")
    if isinstance(call.given.get("dim"), bool) and call.name != "var":
        call.refuse("takes no axes")
    for axis in axes:
        off_batch_axis(call, axis, layout(tensor))


@rule("max min")
def _extremum(call: Call) -> Any:
    """Of all elements, along an axis, or of two tensors."""
    second = call.given["other"]
    second = call.given["dim"] if second is None else second
    if isinstance(second, SymbolicTensor):
        return elementwise(call)
    return _reduction(call)


@rule(f"{ALONG_AXES} {in_place('cumsum cumprod')}")
def _along_axes(call: Call) -> Any:
    """Along axes that are no batch axes; all axes are not meant."""
    axes = _axes(call)
    if not axes:
        call.refuse("names no axis")
    same_layout(call, call.tensors)
    for axis in axes:
        off_batch_axis(call, axis, layout(call.tensors[0]))
    return call.run()


@rule(f"{PLACES} {in_place('scatter scatter_add scatter_reduce')}")
def _places(call: Call) -> Any:
    """Elements at computed places along an axis: all tensors have the same batch axes."""
    tensors = [tensor for tensor in call.tensors if shape_of(tensor)]
    same_layout(call, tensors)
    dim = call.given["dim"]
    if isinstance(dim, SymbolicTensor):  # take_along_dim(input, indices, dim)
        dim = call.given["index"] if call.given["index"] is not None else call.given["axis"]
    off_batch_axis(call, dim, layout(tensors[0]))
    return call.run()


@rule(f"{SLICES} {in_place('index_add index_fill index_copy')}")
def _slices(call: Call) -> Any:
    """Slices along an axis that an index without batch axes names."""
    if has_batch_axis(call.given["index"]):
        call.refuse("takes an index with batch axes")
    given = [call.given[name] for name in ("input", "source", "value") if name in call.given]
    same_layout(call, [one for one in given if isinstance(one, SymbolicTensor) and shape_of(one)])
    off_batch_axis(call, call.given["dim"], layout(call.given["input"]))
    return call.run()


@rule("embedding")
def _embedding(call: Call) -> Any:
    """Rows of a table: the table has no batch axes."""
    if has_batch_axis(call.given["weight"]):
        call.refuse("takes a table with batch axes")
    return call.run()


@rule("tril triu tril_ triu_")
def _triangle(call: Call) -> Any:
    found = layout(call.args[0])
    if found is not None and found.right < 2:
        call.refuse("works on the last two axes")
    if len(call.tensors) > 1:
        call.refuse("takes a tensor as diagonal")
    return call.run()


@rule("sum_to_size")
def _sum_to_size(call: Call) -> Any:
    """As gradients are summed to the shapes of inputs."""
    from symgrad.frontend.functions.movement import shape_of as sizes

    tensor, wanted = call.args[0], sizes(call.args[1:])
    found, other = layout(tensor), layout_of(wanted)
    if found is None or (other is None and len(wanted) > found.right):
        call.refuse("sums to a shape that fits only some numbers of batch axes")
    elif other is not None and (other.batch, other.right) != (found.batch, found.right):
        call.refuse("sums to a shape with batch axes at another place")
    return call.run()


@rule("__array_ufunc__ __array_function__")
def _numpy(call: Call) -> Any:
    """NumPy's functions end in operations that have rules of their own."""
    name = getattr(call.args[1], "__name__", "")
    if name == "transpose" or call.kwargs.get("out") is not None:
        call.refuse(f"calls np.{name}")
    return call.run()
