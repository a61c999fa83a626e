"""Every case of a split by size, every set of wanted gradients and of cotangents that are there."""

from __future__ import annotations

import builtins
import itertools
import shutil
import symtable
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad import abi
from symgrad.errors import CodegenError, KernelArgumentError
from symgrad.frontend.spec import parse_spec
from symgrad.frontend.trace import trace
from symgrad.kernels import plan, with_backward
from symgrad.numpy_op import NumpyOp
from symgrad.passes.evaluate import evaluate
from tests.driver.splits import SPECS, programs

pytestmark = pytest.mark.usefixtures("unoptimised")

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]
Given = Sequence[Array | None]
Mask = tuple[bool, ...]
Sizes = dict[str, int]
SIZES: list[Sizes] = [{"n": n, "m": m} for n, m in [(1, 1), (1, 3), (3, 1), (2, 3), (3, 3)]]
OURS = programs(sg, sg.Function)
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler was found")


@cache
def compiled(name: str) -> Any:
    return sg.compile(OURS[name], *SPECS[name], allow=("UNDECIDED",))


@cache
def graphs(name: str) -> Any:
    return with_backward(trace(OURS[name], *SPECS[name]))


@cache
def on_numpy(name: str) -> Any:
    return NumpyOp(plan(graphs(name)))


# -- what is given, and what must come out


def drawn(shapes: Sequence[tuple[int, ...]], seed: int) -> list[Array]:
    """Generic numbers, no two of them alike."""
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape) for shape in shapes]


def inputs_of(name: str, sizes: Sizes) -> list[Array]:
    shapes = [tuple(dim.at(sizes) for dim in parse_spec(text).dims) for text in SPECS[name]]
    return drawn(shapes, 10 * sizes["n"] + sizes["m"])


def patterns(outputs: Arrays) -> Iterator[Given]:
    """Distinct cotangents, each of them there or not."""
    whole = drawn([one.shape for one in outputs], 99)
    options: list[Given] = [
        (cotangent, None) if cotangent.dtype == output.dtype else (None,)
        for cotangent, output in zip(whole, outputs, strict=True)
    ]
    yield from itertools.product(*options)


def masks(count: int) -> Iterator[Mask]:
    yield from itertools.product((True, False), repeat=count)


class Traced:
    """The graph as it was traced, evaluated: neither split, nor planned, nor named anew."""

    def __init__(self, name: str, arrays: Arrays, sizes: Sizes) -> None:
        (self.case,) = (
            case
            for case in graphs(name).cases
            if all(abi.evaluate(str(one), sizes) for one in case.conditions)
        )
        self.feeds = dict(zip(graphs(name).input_names, arrays, strict=True))
        self.outputs = evaluate(self.case.outputs, self.feeds)

    def gradients(self, cotangents: Given) -> list[Array]:
        found = {one.input: one.node for one in self.case.gradients}
        feeds = dict(self.feeds)
        for node, value, output in zip(self.case.cotangents, cotangents, self.outputs, strict=True):
            if node is not None:
                feeds[node.attributes["name"]] = np.zeros_like(output) if value is None else value
        nodes = [found.get(name) for name in self.feeds]
        values = iter(evaluate([node for node in nodes if node is not None], feeds))
        return [
            np.zeros_like(x) if node is None else next(values)
            for x, node in zip(self.feeds.values(), nodes, strict=True)
        ]


def same(found: Sequence[Array | None], wanted: Arrays, mask: Mask | None = None) -> None:
    """Equal where ``mask`` says, and nothing elsewhere; None is as good as zeros."""
    for one, other, asked in zip(found, wanted, mask or (True,) * len(wanted), strict=True):
        if not asked:
            assert one is None
        elif one is None:
            assert not other.any()
        else:
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def several(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


# -- the ways of calling an op


class Strided:
    """Arrays that no straight-line code takes."""

    def __init__(self, name: str) -> None:
        self.op = compiled(name)

    def forward(self, *arrays: Array) -> Any:
        return self.op.forward(*map(apart, arrays))

    def backward(self, residuals: Any, *cotangents: Any, needs_input_grad: Mask) -> Any:
        given = [None if one is None else apart(one) for one in cotangents]
        return self.op.backward(residuals, *given, needs_input_grad=needs_input_grad)


def apart(array: Array) -> Array:
    """The same numbers, every other element of the memory."""
    wide = np.zeros((*array.shape, 2))
    wide[..., 0] = array
    return wide[..., 0]


class Buffered:
    """Every result goes to an array of the caller's."""

    def __init__(self, name: str) -> None:
        self.op = compiled(name)

    def forward(self, *arrays: Array) -> Any:
        self.inputs = arrays
        out = tuple(np.empty_like(one) for one in several(self.op(*arrays)))
        found, residuals = self.op.forward(*arrays, out=out if len(out) > 1 else out[0])
        assert all(one is other for one, other in zip(several(found), out, strict=True))
        return found, residuals

    def backward(self, residuals: Any, *cotangents: Any, needs_input_grad: Mask) -> Any:
        out = tuple(
            np.full_like(one, np.nan) if asked else None
            for one, asked in zip(self.inputs, needs_input_grad, strict=True)
        )
        return self.op.backward(residuals, *cotangents, needs_input_grad=needs_input_grad, out=out)


WAYS: dict[str, Callable[[str], Any]] = {
    "straight": compiled, "strided": Strided, "buffered": Buffered, "numpy": on_numpy,
}  # fmt: skip


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("way", WAYS)
def test_every_case_mask_and_pattern(way: str, name: str) -> None:
    op, reached = WAYS[way](name), set()
    for sizes in SIZES:
        arrays = inputs_of(name, sizes)
        wanted = Traced(name, arrays, sizes)
        found, residuals = op.forward(*arrays)
        same(several(found), wanted.outputs)
        reached.add(type(residuals))
        for cotangents in patterns(wanted.outputs):
            expected = wanted.gradients(cotangents)
            for mask in masks(len(arrays)):
                got = op.backward(residuals, *cotangents, needs_input_grad=mask)
                same(got, expected, mask)
    assert len(reached) == len(graphs(name).cases) > 1


@needs_compiler
@pytest.mark.parametrize("name", SPECS)
def test_behind_the_tape(name: str) -> None:
    op = compiled(name)
    for sizes in SIZES:
        arrays = inputs_of(name, sizes)
        wanted = Traced(name, arrays, sizes)
        for mask in masks(len(arrays)):
            tensors = [
                sg.from_numpy(one).requires_grad_(asked)
                for one, asked in zip(arrays, mask, strict=True)
            ]
            for cotangents in patterns(wanted.outputs):
                pairs = [
                    (y, sg.from_numpy(g))
                    for y, g in zip(several(op(*tensors)), cotangents, strict=True)
                    if g is not None and any(mask)
                ]
                asked_for = [one for one in tensors if one.requires_grad]
                if not pairs:
                    continue
                ys, gs = zip(*pairs, strict=True)
                given = sg.autograd.grad(ys, asked_for, gs, allow_unused=True)
                expected = itertools.compress(wanted.gradients(cotangents), mask)
                same([None if g is None else g.numpy() for g in given], list(expected))


@needs_compiler
@pytest.mark.peers
@pytest.mark.parametrize("name", SPECS)
def test_torch_agrees(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    theirs, op = programs(torch, torch.autograd.Function)[name], compiled(name)
    for sizes in SIZES:
        arrays = inputs_of(name, sizes)
        found, residuals = op.forward(*arrays)
        for mask in masks(len(arrays)):
            tensors = [
                torch.tensor(one, requires_grad=asked)
                for one, asked in zip(arrays, mask, strict=True)
            ]
            derived = "backward" not in vars(theirs)
            outputs = several(
                theirs.forward(theirs, *tensors) if derived else theirs.apply(*tensors)
            )
            same(several(found), [one.detach().numpy() for one in outputs])
            for cotangents in patterns(several(found)):
                pairs = [
                    (y, torch.tensor(g))
                    for y, g in zip(outputs, cotangents, strict=True)
                    if g is not None and y.requires_grad
                ]
                if not pairs:
                    continue
                ys, gs = zip(*pairs, strict=True)
                asked_for = [one for one in tensors if one.requires_grad]
                given = iter(
                    torch.autograd.grad(ys, asked_for, gs, allow_unused=True, retain_graph=True)
                )
                wanted = [next(given) if asked else None for asked in mask]
                got = op.backward(residuals, *cotangents, needs_input_grad=mask)
                same(
                    got,
                    [
                        np.zeros_like(x) if g is None else g.numpy()
                        for x, g in zip(arrays, wanted, strict=True)
                    ],
                    mask,
                )


# -- the text of the wrapper


def unbound(text: str) -> set[str]:
    """The names that functions of a module read and nobody defines."""
    top = symtable.symtable(text, "wrapper", "exec")
    known = {one.get_name() for one in top.get_symbols() if one.is_assigned() or one.is_imported()}
    known |= {one.get_name() for one in top.get_symbols() if one.is_namespace()} | {"__file__"}
    read = {
        one.get_name()
        for table in (top, *top.get_children())
        for one in table.get_symbols()
        if one.is_global() and one.is_referenced()
    }
    return read - known - set(dir(builtins))


@needs_compiler
@pytest.mark.parametrize("name", SPECS)
def test_no_wrapper_reads_a_name_that_nobody_defines(name: str) -> None:
    assert unbound(compiled(name).source) == set()


def test_names_are_those_of_positions_where_cases_disagree() -> None:
    for name, wanted in [("swapped", ("output_0", "output_1")), ("rolled", ("output",))]:
        for case in on_numpy(name).caller.op.cases:
            assert tuple(array.name for array in case.outputs) == wanted


# -- what is refused


class Fewer(sg.Function):
    """Returns one tensor or two."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2 if x.shape[0] == 1 else (x * 2, x * 3)


def test_another_number_of_outputs_is_refused() -> None:
    with pytest.raises(CodegenError, match=r"outputs of Fewer depends on sizes: 2 for n != 1; 1"):
        sg.compile(Fewer, "n m", allow=("UNDECIDED",))


def test_another_number_of_cotangents_is_refused() -> None:
    op = on_numpy("rolled")
    y, residuals = op.forward(*inputs_of("rolled", SIZES[1]))
    for cotangents in ((), (y, y)):
        with pytest.raises(KernelArgumentError, match="cotangents given, 1 expected"):
            op.backward(residuals, *cotangents)
