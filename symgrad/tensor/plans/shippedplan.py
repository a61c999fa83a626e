"""Plans of operations whose kernels come with symgrad: run on these kernels where they are faster.

In: an operation, its arguments, their shapes.  Out: what a plan computes with in place of NumPy.

Everything is decided when a plan is made: whether the tensors have the layout that the kernels
take, and whether there is enough work for kernels to be faster.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from symgrad.errors import KernelArgumentError
from symgrad.frontend.function import Function
from symgrad.frontend.functions.activations import (
    ELU,
    GELU,
    GELUTanh,
    LogSigmoid,
    Mish,
    ReLU,
    Sigmoid,
    SiLU,
    Softplus,
)
from symgrad.frontend.functions.losses import CrossEntropyLoss, MSELoss
from symgrad.frontend.functions.normalization import LayerNorm, LogSoftmax, RMSNorm, Softmax
from symgrad.frontend.table import FUNCTIONS, renamed
from symgrad.frontend.trace import trace
from symgrad.ir.dtype import float32, int64
from symgrad.ir.printer import function_text
from symgrad.runtime.op import CompiledOp, shipped_op
from symgrad.runtime.strict import fall_back
from symgrad.tensor.plans.derivative import Derivative, Gradients, Kept
from symgrad.tensor.plans.program import sizes

if TYPE_CHECKING:
    from symgrad.tensor.plans.plan import Plan, Slot

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Rule:
    """When the kernels of a Function compute an operation.

    ``fits``: for the operation's arguments (``Place`` where a tensor stands) and the slots.
    ``rows``: its first tensor is taken as rows along the last axis; otherwise as one.
    ``least``: the fewest elements of the first tensor for which kernels are faster.
    """

    function: type[Function]
    fits: Callable[[Mapping[str, Any], Sequence[Slot]], bool]
    rows: bool
    least: int


class Erf(Function):
    """The error function."""

    @staticmethod
    def forward(ctx: Any, x: Annotated[Any, "f32[n]"]) -> Any:
        """``sg.erf``."""
        return FUNCTIONS["erf"](x)


class LogSumExp(Function):
    """The logarithm of the sum of each row's powers."""

    @staticmethod
    def forward(ctx: Any, x: Annotated[Any, "f32[n m]"]) -> Any:
        """``sg.logsumexp`` over the last axis."""
        return FUNCTIONS["logsumexp"](x, -1)


_DEFAULTS = {
    "inplace": False, "approximate": "none", "beta": 1, "threshold": 20, "alpha": 1,
    "size_average": None, "reduce": None, "reduction": "mean", "weight": None,
    "ignore_index": -100, "label_smoothing": 0.0,
}  # fmt: skip


def _usual(given: Mapping[str, Any], *but: str) -> bool:
    """Is nothing given that is not as by default, except these?"""
    return all(_DEFAULTS.get(name) == value for name, value in given.items() if name not in but)


def _only_input(given: Mapping[str, Any], slots: Sequence[Slot]) -> bool:
    """Is there the tensor, and nothing that is not as by default?"""
    return len(slots) == 1 and _usual(given, "input")


def _by_tanh(given: Mapping[str, Any], slots: Sequence[Slot]) -> bool:
    """Is it the approximation of gelu?"""
    return len(slots) == 1 and given.get("approximate") == "tanh"


def _mean_of_pair(given: Mapping[str, Any], slots: Sequence[Slot]) -> bool:
    """Is it the mean over two tensors of one shape?"""
    return (
        len(slots) == 2 and slots[0].shape == slots[1].shape and slots[1].dtype == float32
        and _usual(given, "input", "target")
    )  # fmt: skip


def _last_axis(given: Mapping[str, Any], slots: Sequence[Slot]) -> bool:
    """Does it go along the last axis, with nothing else that is not as by default?"""
    rank = len(slots[0].shape)
    axis, rest = given.get("dim"), (given.get("dtype"), given.get("keepdim", False))
    along = type(axis) is int and axis in (-1, rank - 1)
    return len(slots) == 1 and rank > 0 and along and rest == (None, False)


def _normalises_rows(given: Mapping[str, Any], slots: Sequence[Slot]) -> bool:
    """Does it normalise the last axis, with weight, bias and the usual eps?"""
    return len(slots) == 3 and given.get("eps", 1e-5) == 1e-5 and _over_last(given, slots)


def _divides_rows(given: Mapping[str, Any], slots: Sequence[Slot]) -> bool:
    """Does it divide the last axis by its root mean square, with weight and the usual eps?"""
    return len(slots) == 2 and given.get("eps") is None and _over_last(given, slots)


def _over_last(given: Mapping[str, Any], slots: Sequence[Slot]) -> bool:
    """Is it over the last axis, with parameters of its shape?"""
    last = slots[0].shape[-1:]
    shape = given.get("normalized_shape")
    whole = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return whole == last and all(slot.shape == last for slot in slots[1:])


def _mean_of_labels(given: Mapping[str, Any], slots: Sequence[Slot]) -> bool:
    """Is it the mean over rows, of labels that are numbers of classes?"""
    return (
        len(slots) == 2 and len(slots[0].shape) == 2 and slots[1].dtype == int64
        and slots[1].shape == slots[0].shape[:1] and _usual(given, "input", "target")
    )  # fmt: skip


_EACH: dict[str, tuple[type[Function], int]] = {
    "relu": (ReLU, 4096), "sigmoid": (Sigmoid, 4096), "silu": (SiLU, 4096),
    "softplus": (Softplus, 2048), "mish": (Mish, 2048), "elu": (ELU, 2048),
    "logsigmoid": (LogSigmoid, 2048), "erf": (Erf, 512),
}  # fmt: skip
_ROWS: dict[str, type[Function]] = {
    "softmax": Softmax, "log_softmax": LogSoftmax, "logsumexp": LogSumExp,
}  # fmt: skip
RULES: dict[str, tuple[Rule, ...]] = {
    **{name: (Rule(function, _only_input, False, least),)
       for name, (function, least) in _EACH.items()},
    **{name: (Rule(function, _last_axis, True, 512),) for name, function in _ROWS.items()},
    "gelu": (Rule(GELU, _only_input, False, 512), Rule(GELUTanh, _by_tanh, False, 512)),
    "layer_norm": (Rule(LayerNorm, _normalises_rows, True, 512),),
    "rms_norm": (Rule(RMSNorm, _divides_rows, True, 512),),
    "cross_entropy": (Rule(CrossEntropyLoss, _mean_of_labels, True, 512),),
    "mse_loss": (Rule(MSELoss, _mean_of_pair, False, 1024),),
}  # fmt: skip
"""By the name of the operation; a second rule is for the approximation by tanh."""

SHIPPED: dict[str, type[Function]] = {
    f"nn_{name}{suffix}": rule.function
    for name, rules in RULES.items()
    for rule, suffix in zip(rules, ("", "_tanh"), strict=False)
}
"""The Functions, by the names of their modules in ``symgrad.generated``."""
_MODULES = {function: name for name, function in SHIPPED.items()}

_loaded: dict[type[Function], CompiledOp | None] = {}


def load(name: str, function: type[Function]) -> CompiledOp:
    """The op of a module of ``symgrad.generated``, if it is that of the Function as it is now.

    Raises ImportError where it is not there, out of date, or cannot be compiled.  Out of date: the
    manifest has another digest of the graphs than the Function traces to, with one axis for all
    batch axes (a Function that looks at their number has more graphs, and is not for here).
    """
    op = shipped_op(name)
    recorded = manifest(Path(op.module.__file__ or "").parent).get(name, {}).get("graph_sha256")
    if recorded != digest(function):
        raise ImportError(f"symgrad.generated.{name} is out of date: run symgrad regen")
    return op


def digest(function: type[Function]) -> str:
    """The digest of the graphs that a Function traces to, its backward among them."""
    traced = trace(function, batch_rank=None)
    return hashlib.sha256(function_text(traced).encode()).hexdigest()


@functools.lru_cache(maxsize=4)
def manifest(folder: Path) -> dict[str, Any]:
    """The ops that a folder's manifest lists, by name.  Raises ImportError."""
    try:
        found: dict[str, Any] = json.loads((folder / "MANIFEST.json").read_text("utf-8"))["ops"]
    except (OSError, ValueError, KeyError) as error:
        raise ImportError(f"{folder} has no readable manifest") from error
    return found


def equip(plan: Plan, call: Callable[..., Any], template: Any, keywords: Any,
          slots: Sequence[Slot]) -> None:  # fmt: skip
    """Let a plan compute with kernels, where there are some for it."""
    rules = RULES.get(plan.name)
    if rules is None or not plan.simple or not slots or not slots[0].shape:
        return
    given = dict(inspect.signature(call).bind(*template, **renamed(call, keywords)).arguments)
    if "self" in given:
        given["input"] = given.pop("self")
    for rule in rules:
        if not _usable(slots, rule) or not rule.fits(given, slots):
            continue
        op = _load(rule.function)
        if op is not None and len(op.caller.op.cases) == 1:
            plan.use(ShippedKernels(op, [_taken(slot.shape, rule.rows) for slot in slots], plan))


def _usable(slots: Sequence[Slot], rule: Rule) -> bool:
    """Do the tensors lie contiguously in the right dtypes, with elements enough?"""
    if not slots or math.prod(slots[0].shape) < rule.least:
        return False
    return slots[0].dtype == float32 and all(
        slot.strides is None and slot.dtype in (float32, int64) for slot in slots
    )


def _load(function: type[Function]) -> CompiledOp | None:
    if function not in _loaded:
        try:
            _loaded[function] = load(_MODULES[function], function)
        except ImportError as error:  # no compiler, or out of date
            fall_back("operations of tensors run", error, once=True)
            _loaded[function] = None
    return _loaded[function]


def _taken(shape: Shape, rows: bool) -> Shape:
    """The shape in which the kernel takes a tensor."""
    if not rows:
        return (math.prod(shape),)
    return shape if len(shape) < 3 else (math.prod(shape[:-1]), shape[-1])


class ShippedKernels:
    """An op of kernels, and the shapes in which it takes its arrays."""

    def __init__(self, op: CompiledOp, taken: Sequence[Shape], plan: Plan) -> None:
        self.op = op
        self.shapes = [sizes(node.shape) for node in plan.inputs]
        self.taken = list(taken)
        if len(self.shapes[0]) == 1 and len(op.caller.op.cases[0].inputs[0].dims) == 2:
            self.taken[0] = (1, *self.shapes[0])
        self.output = sizes(plan.computed[0].shape)
        self._numpy = plan.program

    def run(self, arrays: Sequence[Array]) -> list[Any]:
        """As ``Program.run``: the output."""
        try:
            return [self.op.inference(*self.flat(arrays)).reshape(self.output)]
        except KernelArgumentError:  # an index out of range: NumPy says it in its own way
            return self._numpy.run(arrays)

    def forward(self, arrays: Sequence[Array]) -> list[Any]:
        """The output, and behind it what backward needs."""
        try:
            found, residuals = self.op.forward(*self.flat(arrays))
        except KernelArgumentError:
            self._numpy.run(arrays)
            raise
        return [found.reshape(self.output), residuals]

    def flat(self, arrays: Sequence[Array]) -> list[Array]:
        """The arrays as the kernels take them."""
        return [array.reshape(shape) for array, shape in zip(arrays, self.taken, strict=True)]

    def backward(self, residuals: Any, cotangent: Array, mask: tuple[bool, ...]) -> list[Array]:
        """The gradients of the inputs in ``mask``."""
        case = self.op.caller.op.cases[0]
        flat = self.taken[0][: len(case.outputs[0].dims)]
        given = np.ascontiguousarray(cotangent).reshape(flat)
        found = self.op.backward(residuals, given, needs_input_grad=mask)
        return [
            gradient.reshape(shape)
            for gradient, shape in zip(found, self.shapes, strict=True)
            if gradient is not None
        ]


class ShippedDerivative(Derivative):
    """The backward of a plan by kernels; where it is itself recorded, by the plan's graph."""

    def __init__(self, plan: Plan, needs: tuple[bool, ...], kernels: ShippedKernels) -> None:
        super().__init__(plan, needs)
        self.kernels = kernels
        case = kernels.op.caller.op.cases[0]
        own = [
            Kept(residual.source, residual.position)
            for residual in case.residuals
            if residual.source in ("input", "output")
        ]
        self.keep((*own, Kept("between", 0)))
        self.forward = Call(kernels.forward)

    def gradients(self, mask: tuple[bool, ...]) -> Gradients:
        """The kernel for the gradients of the inputs in ``mask``."""
        found = self._programs.get(mask)
        if found is None:
            able = self.kernels.op.caller.op.differentiable
            present = tuple(a and b for a, b in zip(able, mask, strict=True))
            found = Gradients(Call(functools.partial(self._pulled_back, present)), present)
            self._programs[mask] = found
        return found

    def _pulled_back(self, present: tuple[bool, ...], arrays: Sequence[Any]) -> list[Array]:
        """The gradients, of what was kept (the residuals last) and the cotangent."""
        residuals, cotangent = arrays[len(self.kept) - 1 : len(self.kept) + 1]
        return self.kernels.backward(residuals, cotangent, present)


@dataclass(frozen=True)
class Call:
    """A function of arrays as a program."""

    run: Callable[[Sequence[Any]], list[Any]]
