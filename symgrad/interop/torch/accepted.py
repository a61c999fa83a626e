"""Dtypes that torch refuses: calls that raise an error there whatever the values are.

In: the name of a function of torch's, and the arguments of a call.  Out: nothing, or DTypeError.

symgrad's operations take more dtypes than torch's kernels do.  The table has what torch refuses and
symgrad would take; it was found by calls of all that torch tests, in every dtype and with one
argument in another dtype than the rest (``tests/interop/test_torch_dtypes.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any

import torch

from symgrad.errors import DTypeError
from symgrad.frontend.caller import here
from symgrad.frontend.questions import note_raised
from symgrad.frontend.sizes import SymFloat, SymInt
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.interop.torch.constants import leaves
from symgrad.interop.torch.dtypes import ours_if_known
from symgrad.ir.dtype import BOOL, FLOAT, DType, bool_, float64, int64, uint8

Given = Mapping[str, Any]
"""The arguments of a call that a rule is about, by name; None and absent ones are not in it."""
Rule = Callable[[Given], str]
"""What is wrong with the arguments; empty if nothing is."""


def check(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raises DTypeError for arguments whose dtypes the function of a name refuses in torch."""
    for rule, positions in rules(name):
        wrong = rule(_given(positions, args, kwargs))
        if wrong:
            error = DTypeError(
                f"torch's {_ALSO.get(name, name).removesuffix('_')} {wrong}", location=here(),
                hint="convert to a dtype that it takes: .to(dtype)",
            )  # fmt: skip
            raise note_raised(error)


@functools.lru_cache(maxsize=4096)
def rules(name: str) -> tuple[tuple[Rule, tuple[str, ...]], ...]:
    """The rules for a function of torch's, each with the names of its arguments in order.

    A method that writes into its tensor has those of the function, too.
    """
    plain = _ALSO.get(name, name.partition(".")[0].removeprefix("special_"))
    names = {plain} if plain in _NOT_IN_PLACE else {plain, plain.removesuffix("_")}
    return tuple(
        (rule, tuple(arguments.split()))
        for rule, arguments, functions in _TABLE
        if not names.isdisjoint(functions.split())
    )


def _given(positions: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Given:
    """The arguments by name; ``_`` is one that does not matter, ``*`` ends those with a place."""
    if positions == ("...",):
        return dict(enumerate(leaves(tuple(args))))  # type: ignore[arg-type]
    placed = positions[: positions.index("*")] if "*" in positions else positions
    found = dict(zip(placed, args, strict=False))
    found |= {key: kwargs[key] for key in positions if key in kwargs}
    if positions[0] == "input" and "self" in kwargs:
        found["input"] = kwargs["self"]
    return {key: value for key, value in found.items() if key != "_" and value is not None}


def _dtype(value: Any) -> DType | None:
    """The dtype of a tensor, or one that is an argument; None for anything else."""
    if isinstance(value, SymbolicTensor):
        return value.storage.node.dtype
    if isinstance(value, torch.Tensor):
        return ours_if_known(value.dtype)
    return ours_if_known(value) if isinstance(value, torch.dtype) else None


def _dtypes(given: Given) -> Iterator[DType]:
    """The dtypes of the tensors."""
    for value in given.values():
        found = _dtype(value)
        if found is not None:
            yield found


def _category(value: Any) -> int:
    """What a tensor or a number holds."""
    found = _dtype(value)
    if found is not None:
        return found.category
    if isinstance(value, (SymInt, SymFloat)):
        return FLOAT - isinstance(value, SymInt)
    return int(bool_.category if isinstance(value, bool) else FLOAT - isinstance(value, int))


def _listed(given: Given) -> str:
    return " and ".join(dict.fromkeys(map(str, _dtypes(given))))


# -- the rules


def _floats(given: Given) -> str:
    bad = next((one for one in _dtypes(given) if not one.is_float), None)
    return "" if bad is None else f"takes floats, not {bad}"


def _no_bools(given: Given) -> str:
    return "does not take bools" if any(one == bool_ for one in _dtypes(given)) else ""


def _no_bools_of_python(given: Given) -> str:
    bools = any(isinstance(value, bool) for value in given.values())
    return "does not take bools" if bools or _no_bools(given) else ""


def _one_float(given: Given) -> str:
    if not given or any(_category(value) == FLOAT for value in given.values()):
        return ""
    return f"takes a float at least, not {_listed(given)} alone"


def _not_bools_alone(given: Given) -> str:
    bools = all(_category(value) == BOOL for value in given.values())
    return "does not take bools alone" if given and bools else ""


def _clamped(given: Given) -> str:
    """Bools have one bound, which is a tensor."""
    bounds = [given[key] for key in ("min", "max") if key in given]
    tensor = len(bounds) == 1 and _dtype(bounds[0]) is not None
    return "" if tensor else _not_bools_alone(given)


def _one_dtype(given: Given) -> str:
    return "" if len(set(_dtypes(given))) < 2 else f"takes one dtype, not {_listed(given)}"


def _int64(given: Given) -> str:
    bad = next((one for one in _dtypes(given) if one != int64), None)
    return "" if bad is None else f"takes an index of int64, not {bad}"


def _float64(given: Given) -> str:
    bad = next((one for one in _dtypes(given) if one != float64), None)
    return "" if bad is None else f"gives float64, which is not written into {bad}"


def _drawn(given: Given) -> str:
    """The dtype that is asked for, or that of the first tensor, is that of the draws."""
    order = [given[key] for key in ("dtype", "input", "mean", "std") if key in given]
    found = next((one for one in map(_dtype, order) if one is not None), None)
    return "" if found is None or found.is_float else f"draws floats, not {found}"


def _scaled(given: Given) -> str:
    """``alpha`` of a sum."""
    alpha = given.get("alpha")
    kind = max((_category(given[key]) for key in ("input", "other") if key in given), default=FLOAT)
    if isinstance(alpha, bool) and kind != BOOL:
        return "takes alpha=True for bools alone"
    fraction = isinstance(alpha, (float, SymFloat)) and kind != FLOAT
    return "takes no fraction as alpha for integers" if fraction else ""


def _interpolated(given: Given) -> str:
    found, mode = _dtype(given.get("input")), given.get("mode", "nearest")
    if found is None or found.is_float:
        return ""
    flat = mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
    return "" if flat and found == uint8 else f"({mode}) does not take {found}"


def _padded(given: Given) -> str:
    """Edges that are repeated, but for those of the other end."""
    return _no_bools(given) if given.get("mode") in ("reflect", "replicate") else ""


def _weighted(given: Given) -> str:
    """A loss over classes, whose target is their numbers, not probabilities."""
    target = _dtype(given.get("target"))
    if target is None or target.is_float:
        return ""
    if target == uint8 and given["input"].ndim > 2:
        return "takes classes of int64 where there are more than two axes, not uint8"
    return _one_dtype({key: given[key] for key in ("input", "weight") if key in given})


def _poisson(given: Given) -> str:
    read = {"target": given.get("target")}
    if given.get("log_input") is False:
        read["input"] = given.get("input")
    return _no_bools(read)


def _exponents(given: Given) -> str:
    floats = _category(given.get("input")) == FLOAT
    return "takes no bools as exponents" if floats and _dtype(given.get("other")) == bool_ else ""


def _dropped(given: Given) -> str:
    share = given.get("p")
    idle = given.get("training") is False or (type(share) in (int, float) and share in (0, 1))
    return "" if idle else _floats({"input": given.get("input")})


def _held(given: Given) -> str:
    """The integers that are drawn, below ``high`` or the last bound given."""
    found = _dtype(given.get("dtype", given.get("input")))
    bounds = [given[key] for key in ("low", "high") if type(given.get(key)) is int]
    if found is None or found.is_float or not bounds:
        return ""
    greatest = 1 if found == bool_ else found.greatest
    return f"draws integers that {found} does not hold" if bounds[-1] - 1 > greatest else ""


def _triplet(given: Given) -> str:
    usual = isinstance(given.get("distance_function"), (NoneType, torch.nn.PairwiseDistance))
    return _no_bools(given) if usual else ""


_TABLE: tuple[tuple[Rule, str, str], ...] = (
    (_floats, "input",
     "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
     "adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices "
     "adaptive_max_pool3d adaptive_max_pool3d_with_indices batch_norm bernoulli cauchy_ celu elu "
     "exponential_ gelu group_norm hardshrink hardsigmoid hardswish instance_norm layer_norm "
     "ldexp_ leaky_relu lerp linalg_matrix_norm linalg_norm linalg_vector_norm log_normal_ "
     "log_sigmoid logcumsumexp logsigmoid matrix_norm max_unpool1d max_unpool2d max_unpool3d "
     "multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss native_batch_norm "
     "native_layer_norm nll_loss norm renorm selu soft_margin_loss softplus softshrink uniform_ "
     "vector_norm"),
    (_floats, "grad_output output", "_softmax_backward_data"),
    (_floats, "input grid", "grid_sample"),
    (_floats, "input weight", "prelu"),
    (_floats, "logits", "gumbel_softmax"),
    (_floats, "x1 x2", "cdist"),
    (_one_float, "input other", "dist hypot logaddexp2"),
    (_one_float, "input target", "mse_loss"),
    (_one_float, "_ tensor1 tensor2", "addcdiv"),
    (_no_bools, "input",
     "_threshold ceil fix floor hardtanh kthvalue multigammaln mvlgamma positive relu6 round stft "
     "threshold topk trace trunc"),
    (_no_bools_of_python, "elements test_elements", "isin"),
    (_no_bools, "input other", "dist"),
    (_no_bools, "input target", "l1_loss"),
    (_no_bools, "input1 input2", "margin_ranking_loss"),
    (_no_bools, "x1 x2", "pairwise_distance"),
    (_no_bools, "anchor positive negative", "triplet_margin_loss"),
    (_triplet, "anchor positive negative * distance_function",
     "triplet_margin_with_distance_loss"),
    (_no_bools, "* dtype", "cumsum cumprod"),
    (_no_bools_of_python, "input other", "sub subtract rsub"),
    (_not_bools_alone, "input tensor1 tensor2", "addcmul"),
    (_clamped, "input min max", "clamp clip"),
    (_clamped, "input min", "clamp_min"),
    (_clamped, "input max", "clamp_max"),
    (_not_bools_alone, "input boundaries", "bucketize"),
    (_one_dtype, "input mat1 mat2", "addmm"),
    (_one_dtype, "input batch1 batch2", "addbmm baddbmm"),
    (_one_dtype, "input mat vec", "addmv"),
    (_one_dtype, "input end weight", "lerp"),
    (_one_dtype, "input other", "cross heaviside isclose linalg_cross"),
    (_one_dtype, "grad_output output", "_softmax_backward_data"),
    (_one_dtype, "x1 x2", "cdist"),
    (_one_dtype, "input weight", "prelu"),
    (_one_dtype, "input grid", "grid_sample"),
    (_one_dtype, "input weight bias", "linear"),
    (_one_dtype, "input _ weight bias", "group_norm layer_norm native_layer_norm"),
    (_one_dtype, "input running_mean running_var weight bias", "batch_norm"),
    (_one_dtype, "input weight bias running_mean running_var", "native_batch_norm"),
    (_one_dtype, "_ weight _ _ _ _ _ _ per_sample_weights", "embedding_bag"),
    (_one_dtype, "input _ running_var weight bias", "instance_norm"),
    (_one_dtype, "input _ _ _ weight", "multi_margin_loss"),
    (_one_dtype, "query _ _ _ _ in_proj_weight in_proj_bias", "multi_head_attention_forward"),
    (_one_dtype, "...", "meshgrid"),
    (_int64, "_ _ index", "index_copy index_fill"),
    (_int64, "_ indices", "take_along_dim"),
    (_int64, "_ target", "multi_margin_loss multilabel_margin_loss"),
    (_float64, "input", "float_power_"),
    (_drawn, "input * dtype", "rand_like randn_like"),
    (_drawn, "* dtype", "rand randn"),
    (_drawn, "mean std * dtype", "normal"),
    (_held, "input low high * dtype", "randint_like"),
    (_scaled, "input other * alpha", "add sub subtract"),
    (_interpolated, "input _ _ mode", "interpolate"),
    (_padded, "input _ mode", "pad"),
    (_weighted, "input target weight", "cross_entropy nll_loss"),
    (_poisson, "input target log_input", "poisson_nll_loss"),
    (_exponents, "input other", "ldexp"),
    (_dropped, "input p training", "dropout"),
)  # fmt: skip
"""What is wrong with which arguments, of which functions."""
_ALSO = {
    "__sub__": "sub", "__rsub__": "sub", "__isub__": "sub", "__pos__": "positive",
}  # fmt: skip
"""Operators."""
_NOT_IN_PLACE = frozenset(("bernoulli_",))
"""Methods that take more than the function does."""
