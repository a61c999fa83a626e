"""Calls that torch refuses for the dtypes of their tensors are refused where they are traced.

torch is the oracle: its own test inputs, in every dtype, and with one tensor in another dtype than
the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import DTypeError  # noqa: E402
from symgrad.frontend.session import Session, activate  # noqa: E402
from symgrad.frontend.tensor import fresh  # noqa: E402
from symgrad.interop.torch.dtypes import ours  # noqa: E402
from symgrad.interop.torch.running import GUEST  # noqa: E402
from symgrad.ir.dim import Dim  # noqa: E402
from symgrad.ir.types import TensorType  # noqa: E402
from tests.interop.test_torch_names import every_call, leaves, mapped  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function
DTYPES = (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32, torch.float64)
OF_VALUES = ("ZeroDivisionError", "without overflow", "unsigned type with negative limits")
"""What errors say that are not about dtypes."""
LEAST = 3000
"""So many calls that both take, and as many that both refuse, are there at least."""


def tensors(args: Any, kwargs: Any) -> list[Any]:
    """The tensors among the arguments."""
    return [one for one in leaves([args, kwargs]) if isinstance(one, torch.Tensor)]


def in_dtypes(args: Any, kwargs: Any) -> Iterator[tuple[Any, Any]]:
    """The arguments in every dtype, and with each tensor alone in every dtype."""
    kinds = [one.dtype for one in tensors(args, kwargs)]
    wanted = [kinds]
    wanted += [[kind if one == kinds[0] else one for one in kinds] for kind in DTYPES if kinds]
    for place, kind in itertools.product(range(min(len(kinds), 3)), DTYPES):
        wanted.append([*kinds[:place], kind, *kinds[place + 1 :]])
    for choice in dict.fromkeys(map(tuple, wanted)):
        left = iter(choice)

        def cast(tensor: Any, left: Any = left) -> Any:
            return tensor.detach().to(next(left)).clone()

        yield mapped(args, cast), mapped(kwargs, cast)


def refusal(call: Any, args: Any, kwargs: Any) -> str | None:
    """What torch says of a call that it refuses; None where it takes it."""
    try:
        call(*mapped(args, torch.clone), **mapped(kwargs, torch.clone))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def trace(call: Any, args: Any, kwargs: Any) -> None:
    """Trace a call.  Raises what the trace raises, TypeError where there is no result."""
    session, made = Session(), itertools.count()
    session.guest = GUEST

    def lifted(tensor: Any) -> Any:
        name = f"x{next(made)}"
        kind = TensorType(ours(tensor.dtype), tuple(map(Dim.of, tensor.shape)))
        return fresh(session.graph.input(name, kind), name)

    with activate(session):
        results = leaves(call(*mapped(args, lifted), **mapped(kwargs, lifted)))
        if any(one is NotImplemented for one in results):
            raise TypeError("no result")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_torch_refuses_is_refused_and_nothing_else() -> None:
    wrong, taken, refused = [], 0, 0
    for name, call, args, kwargs in every_call():
        if not all(one.numel() for one in tensors(args, kwargs)):
            continue
        for given, named in in_dtypes(args, kwargs):
            said = refusal(call, given, named)
            try:
                trace(call, given, named)
                taken += said is None
                if said is not None and not any(word in said for word in OF_VALUES):
                    wrong.append(f"{name} is taken, torch: {said}")
            except DTypeError as error:
                refused += said is not None
                if said is None and "torch's" in str(error):
                    wrong.append(f"{name} is refused: {error}")
            except Exception:
                refused += said is not None
    assert not wrong, "\n".join(wrong)
    assert min(taken, refused) >= LEAST


def square(text: str) -> Any:
    """A Function whose backward makes a call, on which no gradient depends."""
    names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    lines = f"def backward(ctx, g):\n x, = ctx.saved_tensors\n n = (x > 0).long()\n {text}\n"
    exec(f"{lines} return 2 * x * g", names)

    class Square(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        backward = staticmethod(names["backward"])

    return Square


REFUSED = """
F.gelu(n)
torch.special.round(x > 0)
torch.ops.aten.gelu.default(n)
torch.addmm(x.double().float(), x.double(), x.double())
torch.lerp(x, x.double() if x.dtype != torch.float64 else x.float(), 0.5)
x - True
x - (x > 0)
True - x
+(x > 0)
(x > 0).floor_()
(x > 0).clamp(False, True)
n.logcumsumexp(0)
n.add_(n, alpha=0.5)
torch.cumsum(n, 0, dtype=torch.bool)
torch.rand(3, dtype=torch.int64)
n.normal_()
n.exponential_()
n.log_normal_()
F.gumbel_softmax(n)
F.gumbel_softmax(logits=x > 0)
F.cross_entropy(x, n[0], x[0].double() if x.dtype != torch.float64 else x[0].float())
torch.index_copy(x, 0, n[0, :1].int(), x[:1])
torch.addcdiv(x, n, n)
""".strip().splitlines()
TAKEN = """
torch.ldexp(n, x > 0)
(x > 0).clamp(x > 0)
torch.addcdiv(n, x, n)
torch.lerp(x, x, 0.5)
F.dropout(n, 0.0)
F.cross_entropy(x, n[0])
torch.hypot(n, x)
n.add_(n, alpha=2)
torch.add(n, x, alpha=0.5)
n.floor()
n.clamp(0.5)
torch.cumsum(x > 0, 0)
torch.randn(3, dtype=torch.float64)
F.gumbel_softmax(x)
F.poisson_nll_loss(x > 0, x)
torch.index_copy(x, 0, n[0, :1] * 0, x[:1])
""".strip().splitlines()


@pytest.mark.parametrize("text", [*REFUSED, *TAKEN])
@pytest.mark.filterwarnings("ignore")
def test_a_backward_that_always_raises_is_refuted(text: str) -> None:
    report = sg.verify(square(text), "3 3", suggest=False)
    expected = "REFUTED" if text in REFUSED else "PROVED"
    assert str(report.verdict) == expected, report.inputs["x"].reason
    assert not report.inputs["x"].reason or "torch's" in report.inputs["x"].reason


def test_the_message_has_the_line_and_the_dtypes() -> None:
    report = sg.verify(square("torch.heaviside(x, n)"), "n n", suggest=False)
    assert "torch's heaviside takes one dtype, not float32 and int64" in report.inputs["x"].reason


OLD = {
    name: kind for name, kind in vars(torch).items()
    if type(kind) is type(torch.FloatTensor) and not kind.dtype.is_complex
}  # fmt: skip


@pytest.mark.parametrize("way", ["class", "text", "of Tensor"])
@pytest.mark.parametrize("name", [*OLD, "Tensor"])
def test_old_names_of_dtypes_cast_as_in_torch(name: str, way: str) -> None:
    kind: Any = getattr(torch, name)

    def cast(x: Any) -> Any:
        if way == "of Tensor":
            return torch.Tensor.type(x, kind)
        return x.type(kind if way == "class" else f"torch.{name}")

    wanted = cast(torch.ones(2) > 0).dtype

    class Masked(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            mask = cast(x > 0)
            assert mask.dtype == wanted
            ctx.save_for_backward(mask)
            return (x * mask).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (mask,) = ctx.saved_tensors
            return (g * mask).to(g.dtype)

    assert str(sg.verify(Masked, "n").verdict) == "PROVED"
