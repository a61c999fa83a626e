"""Strides that follow those of the inputs: whether memory is shared depends on the call.

torch is the oracle: each program runs on contiguous, transposed, sliced, expanded and channels-last
inputs, and what is wrong for one of them is not proved without a printed condition.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.frontend.questions import Questions  # noqa: E402
from symgrad.frontend.session import Session, activate  # noqa: E402
from symgrad.frontend.tensor import SymbolicTensor, fresh, own_names  # noqa: E402
from symgrad.frontend.views import possible_copies  # noqa: E402
from symgrad.interop.torch.dtypes import ours  # noqa: E402
from symgrad.interop.torch.running import GUEST  # noqa: E402
from symgrad.ir.dim import Dim  # noqa: E402
from symgrad.ir.types import TensorType  # noqa: E402
from tests.interop.test_torch_names import LEAST, every_call, leaves, mapped  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function
SHAPE = (2, 3, 4, 5)
LAST = torch.channels_last
ROWS = torch.contiguous_format


def layouts(tensor: Any) -> Iterator[Any]:
    """The same values, or one of them repeated, with other strides."""
    yield tensor.contiguous()
    for axes in itertools.islice(itertools.permutations(range(tensor.ndim)), 1, 6):
        back = [axes.index(axis) for axis in range(tensor.ndim)]
        yield tensor.permute(axes).contiguous().permute(back)
    if tensor.ndim:
        wide = torch.zeros([2 * size for size in tensor.shape], dtype=tensor.dtype)
        part = wide[tuple(slice(None, None, 2) for _ in tensor.shape)]
        yield part.copy_(tensor)
    if tensor.ndim == 4:
        yield tensor.contiguous(memory_format=LAST)


def turned(tensor: Any) -> Any:
    """The same values with the last axis outermost in memory."""
    return tensor.mT.contiguous().mT if tensor.ndim > 1 else tensor.contiguous()


def square(backward: Any) -> Any:
    class Square(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

    Square.backward = staticmethod(lambda ctx, g: backward(*ctx.saved_tensors, g))
    return Square


def in_place_square(forward: Any) -> Any:
    class Square(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    return Square


def wrong_somewhere(function: Any) -> bool:
    """Does torch give another gradient than that of a square, or raise, for some strides?"""
    torch.manual_seed(0)
    values = torch.rand(SHAPE, dtype=torch.float64)
    cotangent = torch.rand(SHAPE, dtype=torch.float64)
    cotangents = [
        *layouts(cotangent),
        cotangent[:1].expand(SHAPE),
        cotangent[0, 0, 0, 0].expand(SHAPE),
    ]
    for x, g in itertools.product(layouts(values), cotangents):
        try:
            leaf = x.detach().requires_grad_()
            y = function.apply(leaf)
            (found,) = torch.autograd.grad(y, leaf, g)
        except RuntimeError:
            return True
        if not torch.allclose(y, x * x) or not torch.allclose(found, 2 * x * g):
            return True
    return False


def changed(change: Any, start: Any = lambda x: 2 * x) -> Any:
    """A backward that multiplies a part of a result by the cotangent, and returns the whole."""

    def backward(x: Any, g: Any) -> Any:
        y = start(x)
        part = change(y)
        part.mul_(g.reshape(part.shape))
        return y

    return backward


def filled(change: Any, start: Any = torch.zeros_like) -> Any:
    """A backward that adds the gradient to a part of new memory, and returns the whole."""

    def backward(x: Any, g: Any) -> Any:
        y = start(x)
        part = change(y)
        part.add_((2 * x * g).reshape(part.shape))
        return y

    return backward


RESULTS: dict[str, Any] = {
    "product": lambda x: 2 * x, "sum": lambda x: x + x, "clone": lambda x: (2 * x).clone(),
    "of a clone": lambda x: x.clone() * 2, "cloned and written": lambda x: x.clone().mul_(2),
    "where": lambda x: torch.where(x > 0, 2 * x, 2 * x), "double": lambda x: (2 * x).double(),
    "detached": lambda x: (2 * x).detach(), "of two orders": lambda x: x.mT.mul(2).mT,
    "flipped": lambda x: (2 * x).flip(1).flip(1), "cat": lambda x: torch.cat([2 * x]),
    "addcmul": lambda x: torch.addcmul(x, x, x.new_ones(())),
}  # fmt: skip
SHARED: dict[str, Any] = {
    "contiguous": lambda y: y.contiguous(), "reshape": lambda y: y.reshape(-1),
    "flatten": lambda y: y.flatten(), "ravel": lambda y: y.ravel(),
    "flatten some": lambda y: y.flatten(1, 2),
    "reshape_as": lambda y: y.reshape_as(y.new_empty(y.numel())),
    "view": lambda y: y.view(-1), "view some": lambda y: y.view(y.shape[0], -1),
    "last": lambda y: y.contiguous(memory_format=LAST),
    "to last": lambda y: y.to(memory_format=LAST), "to rows": lambda y: y.to(memory_format=ROWS),
    "float last": lambda y: y.to(y.dtype, memory_format=LAST),
    "a view of one": lambda y: y.contiguous().mT.mT, "twice": lambda y: y.reshape(-1).contiguous(),
    "transposed": lambda y: y.mT.contiguous().mT, "a part": lambda y: y[:, :].reshape(-1),
}  # fmt: skip
MADE: dict[str, Any] = {
    "zeros_like": torch.zeros_like, "full_like": lambda x: torch.full_like(x, 0.0),
    "empty_like": lambda x: torch.empty_like(x).zero_(), "product": lambda x: 0 * x,
    "last": lambda x: torch.zeros_like(x, memory_format=LAST),
    "empty last": lambda x: torch.empty(x.shape, dtype=x.dtype, memory_format=LAST).zero_(),
    "clone last": lambda x: x.clone(memory_format=LAST).zero_(),
}  # fmt: skip


def _by_question(x: Any, g: Any) -> Any:
    y = 2 * x * g
    return y if y.is_contiguous() else 3 * y


def _by_stride(x: Any, g: Any) -> Any:
    y = 2 * x * g
    return y if y.stride(-1) == 1 else 3 * y


def _by_identity(x: Any, g: Any) -> Any:
    y = 2 * x * g
    return y if y.contiguous() is y else 3 * y


def _by_error(x: Any, g: Any) -> Any:
    try:
        return (2 * x * g).view(-1).view(x.shape)
    except RuntimeError:
        return 3 * x * g


def _read_later(x: Any, g: Any) -> Any:
    y = 2 * x * g
    t = y.contiguous()
    y.mul_(0.5)
    return 2 * t


def _of_cotangent(x: Any, g: Any) -> Any:
    return 2 * x * g.view(-1).view(x.shape)


def _written_input(x: Any) -> Any:
    y = x.clone()
    y.contiguous().mul_(x)
    return y


OTHERS: dict[str, Any] = {
    "question": square(_by_question), "stride": square(_by_stride), "error": square(_by_error),
    "identity": square(_by_identity), "read later": square(_read_later),
    "cotangent": square(_of_cotangent), "forward": in_place_square(_written_input),
}  # fmt: skip
PROGRAMS: dict[str, Any] = {
    **{f"{name} of a result": square(changed(change)) for name, change in SHARED.items()},
    **{f"{how} of {name}": square(changed(SHARED[how], start))
       for how in ("reshape", "contiguous") for name, start in RESULTS.items()},
    **{f"{how} of made {name}": square(filled(SHARED[how], start))
       for how in ("reshape", "view") for name, start in MADE.items()},
    **OTHERS,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_wrong_for_some_strides_is_not_proved_without_a_condition(name: str) -> None:
    assert wrong_somewhere(PROGRAMS[name])
    report = sg.verify(PROGRAMS[name], "n c h w")
    printed = [one for one in report.inputs["x"].conditions if one.kind == "asked"]
    assert str(report.verdict) != "PROVED" or printed


SETTLED: dict[str, Any] = {
    "zeros": filled(SHARED["reshape"], lambda x: torch.zeros(x.shape, dtype=x.dtype)),
    "new_zeros": filled(SHARED["view"], lambda x: x.new_zeros(x.shape)),
    "rows": filled(SHARED["reshape"], lambda x: torch.zeros_like(x, memory_format=ROWS)),
    "clone": filled(SHARED["view"], lambda x: x.clone(memory_format=ROWS).zero_()),
    "of a contiguous one": filled(SHARED["reshape"], lambda x: torch.zeros_like(x.contiguous())),
    "copied": lambda x, g: (2 * x.contiguous().view(-1) * g.contiguous().view(-1)).view(x.shape),
    "not read again": lambda x, g: (x * g).contiguous().mul_(2),
    "reshaped and not read again": lambda x, g: (x * g).reshape(-1).mul_(2).reshape(x.shape),
    "parted": filled(lambda y: y.unflatten(3, (-1, 1)).unsqueeze(0).mT),
    "only read": lambda x, g: (2 * x.reshape(-1) * g.flatten()).reshape(x.shape),
    "asked": lambda x, g: 2 * (x if x.is_contiguous() else x.contiguous().mul_(1)) * g,
    "turned twice": lambda x, g: (2 * (x * g).contiguous().mT).mT.view(-1).view(x.shape),
    "rows of turned ones": lambda x, g: (
        x.contiguous().mT.clone(memory_format=ROWS).view(-1)
        * (2 * g.contiguous().mT).masked_fill(torch.tensor(False), 0).view(-1)
    ).view(x.mT.shape).mT,
    "a row": lambda x, g: 2 * x * g * torch.ones_like(x[:1, :1, :1]).view(-1),
}  # fmt: skip


@pytest.mark.parametrize("name", SETTLED)
def test_what_is_right_for_all_strides_is_proved_without_a_condition(name: str) -> None:
    assert not wrong_somewhere(square(SETTLED[name]))
    report = sg.verify(square(SETTLED[name]), "n c h w")
    assert str(report.verdict) == "PROVED"
    assert not [one for one in report.inputs["x"].conditions if one.kind == "asked"]


RAISES: dict[str, Any] = {
    "scaled": lambda x, g: 2 * (x * g).contiguous().mT,
    "of two": lambda x, g: x.contiguous().mT * g.contiguous().mT * 2,
    "chosen": lambda x, g: torch.where(x.contiguous().mT > 0, g.contiguous().mT, 0.0),
    "cloned": lambda x, g: (x * g).contiguous().mT.clone(),
    "zeros": lambda x, g: torch.zeros(x.shape, dtype=x.dtype).mT.exp(),
}  # fmt: skip


@pytest.mark.parametrize("name", RAISES)
def test_a_view_that_torch_refuses_for_all_strides_is_refuted(name: str) -> None:
    def viewed(x: Any, g: Any) -> Any:
        RAISES[name](x, g).view(-1)
        return 2 * x * g

    assert wrong_somewhere(square(viewed))
    for x, g in itertools.product(layouts(torch.ones(SHAPE)), repeat=2):
        with pytest.raises(RuntimeError):
            viewed(x, g)
    assert str(sg.verify(square(viewed), "n c h w").verdict) == "REFUTED"


def memory(session: Any, one: Any, other: Any) -> bool | None:
    """Does a traced tensor lie in the memory of another one?  None: for some strides."""
    names, held = own_names(one), own_names(other)["storage"]
    if names["storage"] is held:
        return None if possible_copies(names["steps"]) else True
    met = [names["storage"]]
    for storage in met:
        pairs = [pair for pair in session._perhaps_one if any(part is storage for part in pair)]
        met += [part for pair in pairs for part in pair if not any(part is old for old in met)]
    return None if any(storage is held for storage in met) else False


KNOWN_ROWS, KNOWN_COLUMNS = -1, -2


def as_traced(
    call: Any, args: Any, kwargs: Any, number: int
) -> list[tuple[tuple[int, ...] | None, list[bool | None]]]:
    """For each result, the strides that are said to be certain, and whose memory it is said to be.

    ``number``: the operands are known to lie contiguously, or with their axes turned; else unknown.
    """
    session, made = Session(), list[Any]()
    session.guest, session.questions = GUEST, Questions({})

    def lifted(tensor: Any) -> Any:
        kind = TensorType(ours(tensor.dtype), tuple(map(Dim.of, tensor.shape)))
        node = session.graph.input(f"x{len(made)}", kind)
        made.append(fresh(node, f"x{len(made)}", settled=number < 0))
        if number == KNOWN_COLUMNS:
            strides = tuple(map(Dim.of, turned(tensor).stride()))
            SymbolicTensor.lies_as(made[-1], strides, None)
        return made[-1]

    with activate(session):
        results = list(leaves(call(*mapped(args, lifted), **mapped(kwargs, lifted))))
        assert all(isinstance(one, torch.Tensor) for one in results)
        return [
            (certainly(one), [memory(session, one, other) for other in made]) for one in results
        ]


def certainly(one: Any) -> tuple[int, ...] | None:
    """The strides of a traced tensor that do not depend on those of inputs."""
    names = own_names(one)
    if names["certain"] is not None:
        return None
    return tuple(size.constant for size in names["strides"])


def alike(one: Any, strides: tuple[int, ...]) -> bool:
    """Has a tensor these strides, along axes where they matter?"""
    pairs = zip(one.shape, one.stride(), strides, strict=True)
    return not one.numel() or all(size == 1 or found == said for size, found, said in pairs)


def wrong_layouts(call: Any, args: Any, kwargs: Any) -> Iterator[str]:
    """Where torch's strides and memory are not as a trace says."""
    for number in range(KNOWN_COLUMNS, 8):
        said = as_traced(call, args, kwargs, number)
        made: list[Any] = []

        def laid(tensor: Any, number: int = number, made: list[Any] = made) -> Any:
            plain = tensor.detach().clone()
            every = list(layouts(plain))
            chosen = every[min(max(number, 0), len(every) - 1)]
            made.append(turned(plain) if number == KNOWN_COLUMNS else chosen)
            return made[-1]

        try:
            results = list(leaves(call(*mapped(args, laid), **mapped(kwargs, laid))))
        except RuntimeError:
            continue
        for (strides, shared), one in zip(said, results, strict=True):
            if strides is not None and not alike(one, strides):
                yield f"strides {one.stride()}, said {strides}"
            for claim, other in zip(shared, made, strict=True):
                same = one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
                if claim is not None and one.numel() and claim != same:
                    yield f"shared: {same}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_that_torch_tests_lies_in_memory_as_the_trace_says() -> None:
    wrong, right = [], set()
    for name, call, args, kwargs in every_call():
        try:
            found = list(wrong_layouts(call, args, kwargs))
        except Exception:  # of torch, or with the line
            continue
        right.add(name)
        wrong += [f"{name}: {one}" for one in found[:1]]
    assert not wrong, "\n".join(wrong)
    assert len(right) >= LEAST


@pytest.mark.parametrize("spec", ["*b", "*b m"])
@pytest.mark.parametrize("name", ["reshape", "contiguous", "view", "flatten"])
def test_with_any_number_of_axes_no_condition_is_lost(name: str, spec: str) -> None:
    report = sg.verify(square(changed(SHARED[name])), spec)
    printed = [one for one in report.inputs["x"].conditions if one.kind == "asked"]
    assert str(report.verdict) != "PROVED" or printed


def test_the_answer_for_one_axis_is_not_taken_for_several() -> None:
    assert str(sg.verify(square(_by_question), "*b").verdict) != "PROVED"


@pytest.mark.parametrize("name", ["reshape", "contiguous"])
def test_what_is_recorded_keeps_the_condition(name: str) -> None:
    report = sg.verify(square(changed(SHARED[name])), "n m", order=2)
    printed = [one for one in report.inputs["x"].conditions if one.kind == "asked"]
    assert str(report.verdict) != "PROVED" or printed


def test_each_line_is_printed() -> None:
    def backward(x: Any, g: Any) -> Any:
        y, z = 2 * x, 1 * x
        y.reshape(-1).mul_(0.5)
        z.reshape(-1).mul_(2)
        return y * g + z * g / 2

    report = sg.verify(square(backward), "n m")
    printed = [one for one in report.inputs["x"].conditions if one.kind == "asked"]
    assert str(report.verdict) != "PROVED" or len(printed) == 2


OVERLAPPING = """
y.mul_(y[:, :1])
y *= y[:, :1]
y.div_(y[:, 1:2])
y[:, 1:] = y[:, :-1]
y[:, 1:].add_(y[:, :-1])
y[:, 1:] += y[:, :-1]
y[1:][0] += y[:-1][1][:1]
y.addcmul_(y[:, :1], y[:, :1])
torch.mul(y, y[:, :1], out=y)
torch.matmul(y, y.mT, out=y)
y.copy_(y.mT)
y.index_add_(0, torch.tensor([0]), y[:1])
y.mT.contiguous().mul_(y)
""".strip().splitlines()
"""What torch refuses, or computes in an order of its own."""
APART = """
y.mul_(y)
y *= y
y.add_(y.sum())
y[:, 0] = y[:, 1]
y[0].mul_(y[1])
y[:, :2].mul_(y.chunk(2, -1)[1])
y[:, ::2].add_(y[:, 1::2])
y.add_(y.detach())
y.add_(y.view(y.shape))
torch.exp(y, out=y)
y[:] = y
y[:, 0] *= 2
y.mul_(y[:, :1].clone())
y[:, 1:].add_(y[:, :-1] * 1)
""".strip().splitlines()


def written(text: str) -> Any:
    """A backward that makes a call, whose result no gradient depends on."""
    names: dict[str, Any] = {"torch": torch}
    exec(f"def backward(x, g):\n y = 1 * x\n {text}\n return 2 * x * g + 0 * y", names)
    return names["backward"]


@pytest.mark.parametrize("text", OVERLAPPING)
def test_a_write_that_reads_what_it_writes_elsewhere_is_undecided(text: str) -> None:
    assert str(sg.verify(square(written(text)), "4 4").verdict) == "UNDECIDED"


@pytest.mark.parametrize("text", APART)
def test_a_write_that_reads_in_step_or_apart_is_proved(text: str) -> None:
    assert str(sg.verify(square(written(text)), "4 4").verdict) == "PROVED"


@pytest.mark.parametrize("call", ["contiguous()", "mT.contiguous()", "to(memory_format=ROWS)"])
def test_a_shape_that_is_changed_of_what_may_be_two_tensors_is_undecided(call: str) -> None:
    names: dict[str, Any] = {"ROWS": ROWS}
    text = f" y = 2 * x * g\n z = y.{call}\n z.unsqueeze_(0)\n return y"
    exec(f"def backward(x, g):\n{text}", names)
    assert str(sg.verify(square(names["backward"]), "n m").verdict) == "UNDECIDED"
