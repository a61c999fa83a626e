"""A gradient as torch computes it: a class of the user's runs, on real tensors.

In: a class of ``torch.autograd.Function`` and a ``Call``.  Out: ``Measured``: one element of the
gradient by its backward, and by other means.

The other means are two.  Autograd differentiates the class's own forward, where forward is made of
torch's operations.  Difference quotients of forward, with steps of many sizes, bound their own
error.  Where both agree, autograd's number counts, which has more digits.  Where they do not, the
quotients count, unless backward leaves out what autograd does of an embedding with a
``padding_idx``: forward may have cut off the history that autograd follows (``detach``, ``data``,
NumPy), or apply a Function with a wrong backward.  At a kink, where the quotients ahead and behind
differ, there is no derivative.

Floats have 64 bits; where the class does not take these, or rounds them to 32 bits, or the call
says so, 32.  Floats that the class rounds to 16 bits keep their own, since that hides the
derivative.  Where there is no GPU, what the class does on one is done on the CPU.

Of a matrix that is always symmetric an element and its mirror image change together: an operation
may read one triangle alone, so that the quotients of one element are not what autograd gives.
"""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from symgrad.frontend.guests import Call, Given, Measured, NotMeasured
from symgrad.interop.quotients import Weighted, by_quotients

_DIGITS = {torch.float64: 1e-11, torch.float32: 1e-4}
"""How far numbers that were computed in a dtype may be from those that are meant, relatively."""
_ROUNDING = {torch.float64: 2.0**-50, torch.float32: 2.0**-20}
"""The same of the outputs of forward, a few operations deep."""
_COARSE = 1e-3
"""A relative error with which a quotient says nothing."""
PADDED = "by autograd, which leaves out the row padding_idx of an embedding"


class _Rounded(NotMeasured):
    """Forward rounds floats to fewer bits than they are given in, which hides small steps."""


def measured(original: Any, call: Call) -> Measured:
    """One element of a gradient, as the class gives it and as it should be.

    Raises NotMeasured, and what the class raises for floats of 64 bits and of 32.
    """
    first: Exception | None = None
    for dtype in (torch.float64, torch.float32)[call.narrow :]:
        try:
            with _calm():
                return _near(_Run(original, call, dtype))
        except Exception as error:
            if isinstance(error, NotMeasured) and not isinstance(error, _Rounded):
                raise
            first = first or error
    assert first is not None
    raise first


def uncompiled() -> AbstractContextManager[Any]:
    """A block in which what ``torch.compile`` made runs as it is written."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    stance: AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance


@contextmanager
def _calm() -> Iterator[None]:
    """Torch as a program meets it first, with random numbers that a second call draws again.

    In one thread: a fork does not have those that its parent has started, and would wait for them.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with (
        warnings.catch_warnings(), torch.enable_grad(), torch.random.fork_rng(devices=[]),
        torch.autocast("cpu", enabled=False), uncompiled(),
    ):  # fmt: skip
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            torch.set_num_threads(threads)


@dataclass
class _Run:
    """A class, a call of it, and the dtype of its floats.

    ``padded``: what forward returned depends on an embedding with a ``padding_idx``; ``apart``: for
    autograd it depends on what is wanted in no way, as a comparison does.
    """

    original: Any
    call: Call
    dtype: Any
    padded: bool = False
    apart: bool = False

    def values(self) -> dict[str, Any]:
        """New tensors, and the other arguments, by name."""
        return {name: self._tensor(value) for name, value in self.call.arguments}

    def _tensor(self, value: Any) -> Any:
        if not isinstance(value, Given):
            return value
        kind = getattr(torch, value.dtype)
        made = torch.tensor(value.value, dtype=self.dtype if kind.is_floating_point else kind)
        return torch.view_as_complex(made) if value.complex else made

    def apply(self, *args: Any) -> tuple[Any, ...]:
        """The outputs of the class, or of what it is declared to be meant for."""
        torch.default_generator.manual_seed(0)
        return _tensors(self.original.apply(*args))

    def meant(self, *args: Any) -> tuple[Any, ...]:
        """The outputs of what backward is to be the derivative of."""
        torch.default_generator.manual_seed(0)
        function = self.call.meant or self.original.apply
        return _tensors(function(*args))

    def forward(self, *args: Any) -> tuple[Any, ...]:
        """The outputs of forward's own operations, which autograd follows."""
        if self.call.meant is not None:
            return self.meant(*args)
        torch.default_generator.manual_seed(0)
        setup = inspect.getattr_static(self.original, "setup_context", None)
        if setup is not inspect.getattr_static(torch.autograd.Function, "setup_context"):
            return _tensors(self.original.forward(*args))
        ctx = torch.autograd.function.FunctionCtx()
        ctx.needs_input_grad = tuple(name in self.call.asked for name, _ in self.call.arguments)
        return _tensors(self.original.forward(ctx, *args))

    def cotangents(self, outputs: Sequence[Any]) -> list[tuple[Any, Any]]:
        """The outputs that have a cotangent, with it."""
        if len(outputs) != len(self.call.cotangents):
            raise NotMeasured(
                f"forward returns {len(outputs)} tensors, and not {len(self.call.cotangents)}"
            )
        return [
            (output, _cotangent(given, output))
            for output, given in zip(outputs, self.call.cotangents, strict=True)
            if given is not None
        ]


def _cotangent(given: Any, output: Any) -> Any:
    """The cotangent of an output; a number is expanded, as ``sum().backward()`` does it."""
    if output.is_complex():
        pairs = torch.tensor(given, dtype=output.dtype.to_real())
        return torch.view_as_complex(pairs)
    value = torch.tensor(given, dtype=output.dtype)
    return value.reshape(output.shape) if value.ndim else value.expand(output.shape)


def _reals(tensor: Any) -> Any:
    """A tensor as reals: complex numbers as pairs, in the same memory where it says so."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _tensors(found: Any) -> tuple[Any, ...]:
    """The tensors among what forward returns; only these have cotangents."""
    several = found if isinstance(found, (tuple, list)) else (found,)
    return tuple(one for one in several if isinstance(one, torch.Tensor))


class _Number(torch.autograd.Function):
    """Makes a number of tensors, whose cotangents are those that are ``given``, or None.

    Torch imports sympy, which takes longer than all else here, to compare the shapes of cotangents
    that it is handed.
    """

    @staticmethod
    def forward(ctx: Any, given: Sequence[Any], *tensors: Any) -> Any:
        ctx.given = given
        return torch.zeros((), dtype=torch.float64)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, *ctx.given


class _Elsewhere(TorchFunctionMode):
    """What a class does on a GPU is done on the CPU, and what it stores in 16 bits in ``dtype``.

    ``moved``, ``stored``: how often that was so; each only where it is ``wanted``.
    """

    def __init__(self, dtype: Any, wanted: str) -> None:
        super().__init__()
        self.dtype, self.wanted = dtype, wanted
        self.moved = self.stored = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = getattr(func, "__name__", ""), kwargs or {}
        if name in ("half", "bfloat16"):
            func, args = torch.Tensor.to, (args[0], torch.float16)
        elif name == "cuda" and self.wanted == "moved":
            func, args, named = torch.Tensor.to, (args[0], "cuda"), {}
        given = [self._own(one) for one in args]
        return func(*given, **{key: self._own(one) for key, one in named.items()})

    def _own(self, value: Any) -> Any:
        if self.wanted == "stored" and (value is torch.float16 or value is torch.bfloat16):
            self.stored += 1
            return self.dtype
        on_gpu = type(value) in (str, torch.device) and str(value).startswith("cuda")
        if self.wanted == "moved" and on_gpu:
            self.moved += 1
            return "cpu"
        return value


class _Roundings(TorchFunctionMode):
    """Notes whether floats are written as floats of fewer bits, and of fewer than ``dtype``."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.bits = torch.finfo(dtype).bits
        self.found = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        bits = _bits(made if isinstance(made, torch.Tensor) else next(iter(args), None))
        self.found |= 0 < bits < self.bits and any(_bits(one) > bits for one in args)
        return made


def _bits(value: Any) -> int:
    """How many bits the floats of a tensor have; 0 for all else."""
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return torch.finfo(value.dtype).bits if is_float else 0


def _near(run: _Run) -> Measured:
    """What is measured; else what is measured on the CPU, or without rounding to 16 bits.

    Torch runs on the CPU what the class does on a GPU where there is none, and keeps floats of 16
    bits in the dtype of the others where their rounding hides the derivative.
    """
    try:
        return _measured(run)
    except Exception as error:
        is_hidden = isinstance(error, NotMeasured)
        if not is_hidden and torch.cuda.is_available():
            raise
        with _Elsewhere(run.dtype, "stored" if is_hidden else "moved") as mode:
            found = _measured(run)
        if not mode.moved + mode.stored:
            raise
        how = f"floats of 16 bits kept as {found.dtype}" if is_hidden else "the GPU being the CPU"
        return replace(found, how=f"{found.how}, {how}")


def _measured(run: _Run) -> Measured:
    if not run.call.between:
        _beside(run)
    backward = _gradient(run, run.apply, lambda: _beside(run) if run.call.between else None)
    assert backward is not None
    if all(given is None for given in run.call.cotangents):
        dtype = str(run.dtype).removeprefix("torch.")
        return Measured(backward, 0.0, 0.0, "all incoming gradients are None", dtype)
    by_autograd = _by_autograd(run)
    mirrored = by_autograd if run.call.mirror is None else _by_autograd(_at_mirror(run))
    quotient, error = _quotient(run)
    how = "by difference quotients"
    if by_autograd is not None and mirrored is not None:
        along = (by_autograd + mirrored) / 2
        own, apart = _DIGITS[run.dtype] * (1 + abs(by_autograd)), abs(along - quotient)
        if run.call.meant is not None:  # what it detaches is meant to be a constant
            quotient, error, how = by_autograd, own, "by autograd through the surrogate"
        elif not apart > max(error, _COARSE * (1 + abs(by_autograd))):
            error = own if not apart > error else apart
            quotient, how = by_autograd, "by autograd through forward"
        elif run.padded and not abs(backward - by_autograd) > own:
            error, quotient, how = own, by_autograd, PADDED
    if not math.isfinite(quotient) or error > _COARSE * (1 + abs(quotient)):
        raise NotMeasured("neither autograd nor difference quotients give forward's derivative")
    error += _DIGITS[run.dtype] * (abs(backward) if math.isfinite(backward) else 0)
    return Measured(backward, quotient, error, how, str(run.dtype).removeprefix("torch."))


# -- by autograd


def _by_autograd(run: _Run) -> float | None:
    """The derivative of forward's operations; None where autograd finds none."""
    try:
        found = _gradient(run, run.forward, required=run.call.meant is None)
    except Exception:  # of an operation without a derivative, say, or of a method of ctx
        return None
    return found if found is not None and math.isfinite(found) else None


def _beside(run: _Run) -> None:
    """The other call, if there is one, with any incoming gradients."""
    call = run.call
    if call.beside:
        given = [None if one is None else 1.0 for one in call.cotangents]
        wanted = run._tensor(dict(call.beside)[call.wanted])
        at = (0,) * getattr(wanted, "ndim", 0)
        call = replace(call, arguments=call.beside, cotangents=given, at=at, beside=())
        _gradient(replace(run, call=call), run.apply)


def _at_mirror(run: _Run) -> _Run:
    """The run that is asked about the mirror image of the element."""
    at, other = run.call.at, run.call.mirror
    assert other is not None
    return replace(run, call=replace(run.call, at=other, mirror=at))


def _gradient(
    run: _Run, function: Callable[..., tuple[Any, ...]],
    between: Callable[[], None] = lambda: None, *, required: bool = False,
) -> float | None:  # fmt: skip
    """One element of a gradient as autograd gives it.

    ``between``: is called between forward and backward.
    Where no output depends on it: 0, or None where one is ``required``.
    """
    values = run.values()
    leaves = {
        name: value.requires_grad_() for name, value in values.items()
        if name in run.call.asked and isinstance(value, torch.Tensor)
        and (value.is_floating_point() or value.is_complex())
    }  # fmt: skip
    passed = {name: leaves[name].clone() if name in leaves else values[name] for name in values}
    wanted = leaves.get(run.call.wanted)
    if wanted is None:
        raise NotMeasured(f"{run.call.wanted} is no float tensor that requires a gradient")
    made = function(*passed.values())
    between()
    run.padded |= any(map(_is_padded, made))
    pairs = run.cotangents(made)
    if not pairs:  # all of them are None
        pairs = [(output, None) for output in made]
    pairs = [(output, given) for output, given in pairs if output.requires_grad]
    run.apart = required and not pairs
    if not pairs:
        return None if required else 0.0
    outputs, given = zip(*pairs, strict=True)
    number = _Number.apply(given, *outputs)
    engine: Any = torch.autograd.Variable._execution_engine  # grad() turns modes off
    (found,) = engine.run_backward(
        (number,), (torch.ones_like(number),), False, False, (wanted,), allow_unreachable=True,
        accumulate_grad=False,
    )  # fmt: skip
    if found is None:
        return None if required else 0.0
    return float(_reals(found)[run.call.at])


def _is_padded(output: Any) -> bool:
    """Does it depend on an embedding with a ``padding_idx``?"""
    todo, seen = [output.grad_fn], {None}
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            rows = getattr(node, "_saved_weight_sym_argsize_0", 0)
            if 0 <= getattr(node, "_saved_padding_idx", rows) < rows:
                return True
            todo += [one for one, _ in node.next_functions]
    return False


# -- by difference quotients


def _quotient(run: _Run) -> tuple[float, float]:
    """The derivative, and how wrong it may be; NaN where the quotients show none."""
    here = float(_reals(run.values()[run.call.wanted])[run.call.at])
    try:
        with torch.no_grad(), _Roundings(run.dtype) as noted:
            found = by_quotients(lambda value: _outputs_at(run, value), here, stepwise=run.apart)
    except NotMeasured:
        raise
    except Exception:  # forward does not take the values next to these
        return math.nan, math.inf
    if noted.found:
        raise _Rounded("forward rounds its floats, which hides small differences")
    return found


def _outputs_at(run: _Run, value: float) -> tuple[list[Weighted], float]:
    """The outputs with one element moved, and where it then is.

    Where a mirror image moves with it, each goes half the way, and ``there`` is the sum of both.
    """
    values = run.values()
    moved = _reals(values[run.call.wanted])
    here = there = float(moved[run.call.at])
    places = [run.call.at] if run.call.mirror is None else [run.call.at, run.call.mirror]
    for place in places:
        before = float(moved[place])
        moved[place] = before + (value - here) / len(places)
        there += float(moved[place]) - before
    pairs = run.cotangents(run.meant(*values.values()))
    return [
        Weighted(
            _reals(output.detach()).double().clone().numpy(), _reals(given).double().numpy(),
            _ROUNDING.get(_reals(output.detach()).dtype, _ROUNDING[run.dtype]),
        )
        for output, given in pairs
    ], there  # fmt: skip
