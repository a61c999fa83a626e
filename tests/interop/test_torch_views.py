"""Which memory a result of torch's lies in: a trace shares it where torch does, and nowhere else.

What returns views is read off the schemas of torch's operations, which say so; the rest of what
torch tests its operations with is compared as well.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402
from symgrad.frontend.session import Session, activate, current  # noqa: E402
from symgrad.frontend.tensor import SymbolicTensor, fresh, own_names  # noqa: E402
from symgrad.interop.torch import beneath  # noqa: E402
from symgrad.interop.torch.dtypes import ours  # noqa: E402
from symgrad.interop.torch.running import GUEST  # noqa: E402
from symgrad.ir.dim import Dim  # noqa: E402
from symgrad.ir.types import TensorType  # noqa: E402
from symgrad.passes.evaluate import evaluate  # noqa: E402
from tests.interop.test_torch_names import LEAST, every_call, leaves, mapped  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function
SHAPES = ((2, 3), (1, 3), (3, 1), (1, 1), (2, 2))
VIEWS = {
    "_reshape_alias": "torch.ops.aten._reshape_alias(y, [1, y.numel()], [y.numel(), 1])",
    "adjoint": "y.adjoint()", "alias": "torch.ops.aten.alias(y)", "as_tensor": "torch.as_tensor(y)",
    "broadcast_to": "torch.broadcast_to(y, (1, *y.shape))", "chunk": "y.chunk(1, 1)[0]",
    "contiguous": "y.T.contiguous()", "cpu": "y.cpu()", "cuda": "y.cpu()", "detach": "y.detach()",
    "diagonal": "y.diagonal()", "expand": "y.expand(y.shape)", "expand_as": "y.expand_as(y)",
    "flatten": "y.flatten()", "lift_fresh": "torch.ops.aten.lift_fresh(y)",
    "moveaxis": "y.moveaxis(0, 1)", "movedim": "torch.movedim(y, 0, 1)",
    "narrow": "y.narrow(1, 0, 1)", "permute": "y.permute(1, 0)", "positive": "+y",
    "ravel": "y.T.ravel()", "reshape": "y[:, :1].reshape(-1)", "reshape_as": "y.reshape_as(y)",
    "select": "y.select(1, 0)", "slice": "torch.ops.aten.slice(y, 0, 0, 1)",
    "split": "y.split(1)[0]", "split_with_sizes": "y.split_with_sizes([1, y.shape[0] - 1])[0]",
    "squeeze": "y.squeeze(1)", "swapaxes": "y.swapaxes(0, 1)", "swapdims": "y.swapdims(0, 1)",
    "t": "y.t()", "tensor_split": "y.tensor_split(1)[0]", "transpose": "torch.transpose(y, 0, 1)",
    "unbind": "y.unbind(1)[0]", "unflatten": "y.unflatten(0, (1, -1))",
    "unfold": "y.unfold(1, 1, 1)", "unsqueeze": "y.unsqueeze(0)", "view": "y.view(-1)",
    "view_as": "y.view_as(y)",
}  # fmt: skip
"""For each operation whose schema in torch says that its result shares memory, a call of it."""

OTHERS = """
torch.einsum('ij->ij', y)
torch.einsum('ij->ji', y)
torch.einsum('...->...', y)
torch.einsum(y, [0, 1], [1, 0])
torch.einsum('ii->i', y[:1, :1])
torch.einsum('ij->i', y)
torch.einsum('ij,ij->ij', y, y)
torch.einsum('ij,->ij', y, y.sum())
y.unfold(0, 1, 1).squeeze(2)
y.unfold(0, y.shape[0], 1)
y.unfold(1, 1, 2)[0]
y.view(-1).unfold(0, 1, 3)
torch.meshgrid(y[0], indexing='ij')[0]
torch.meshgrid(y[0], y[:, 0], indexing='ij')[0]
torch.meshgrid(y[0], y[:, 0], indexing='xy')[1]
torch.meshgrid(y[0], y[0, 0], indexing='xy')[0]
torch.broadcast_tensors(y, y)[0]
torch.atleast_1d(y[0, 0])
torch.atleast_2d(y[0])
torch.atleast_3d(y)
torch.atleast_3d(y[0])
torch.atleast_2d([y, y[0]])[1]
torch.linalg.diagonal(y)
torch.hsplit(y, 1)[0]
torch.vsplit(y, 1)[0]
y.T
y.mT
y.H
y.data
y[None][0]
y[...]
y[:, ::2]
y.view(-1)[::2]
y.type_as(y)
y.to(y)
y.to(y.dtype, copy=True)
y.to(y.dtype, False, True)
y.to(y.dtype, True)
y.to('cpu', copy=True)
y.double()
y.float()
y.type(torch.float64)
torch.asarray(y, copy=True)
torch.asarray(y)
y.clone()
y.t().reshape(-1)
y.permute(1, 0).contiguous().view(-1)
y.diagonal().contiguous()
y[:, :1].expand(y.shape).contiguous()
y.sum_to_size(y.shape)
y[0, 0].sum_to_size(())
torch.nn.functional.pixel_shuffle(y[None, None], 1)
torch.nn.functional.dropout(y, 0.5, False)
torch.nn.functional.pad(y, (0, 0))
torch.cat([y])
torch.tile(y, (1,))
torch.squeeze_copy(y)
torch.view_copy(y, y.shape)
torch.diagonal_copy(y)
torch.triangular_solve(y[:1, :1], y[:1, :1])[1]
""".strip().splitlines()


def annotated() -> set[str]:
    """The operations of which torch says that what they return shares the memory of an argument."""
    return {
        schema.name.removeprefix("aten::")
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("aten::") and not schema.name.endswith("_")
        and any(one.alias_info is not None and not one.alias_info.is_write
                for one in schema.returns)
    }  # fmt: skip


def test_each_operation_that_returns_views_is_tested() -> None:
    traced = {name for name in annotated() if beneath._operation(name) is not None}
    assert traced == set(VIEWS)


def written(text: str, y: Any) -> tuple[Any, Any, bool] | None:
    """The result of a call that is then written, and whether it shares memory; None if refused."""
    result = eval(text, {"torch": torch, "y": y})
    if isinstance(y, SymbolicTensor):
        shared = own_names(result)["storage"] is own_names(y)["storage"]
    else:
        shared = result.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    result.mul_(3.0)
    return y, result, shared


@pytest.mark.parametrize("text", [*VIEWS.values(), *OTHERS])
@pytest.mark.filterwarnings("ignore")
def test_a_write_reaches_what_it_reaches_in_torch(text: str) -> None:
    for shape in SHAPES:
        start = torch.arange(1.0, 1.0 + shape[0] * shape[1], dtype=torch.float64).reshape(shape)
        session = Session()
        session.guest = GUEST
        try:
            wanted = written(text, start.clone())
        except RuntimeError:  # several elements of what would be written are one
            wanted = None
        with activate(session):
            kind = TensorType(ours(start.dtype), tuple(map(Dim.of, shape)))
            y = fresh(session.graph.input("y", kind), "y")
            try:
                found = written(text, y)
            except SymgradError:
                assert wanted is None, shape
                continue
            assert wanted is not None, shape
            assert found is not None
            assert found[2] == wanted[2], shape
            parts = [SymbolicTensor.node.fget(one) for one in found[:2]]  # type: ignore[attr-defined]
        values = evaluate(parts, {"y": start.numpy()})
        for one, other in zip(values, wanted[:2], strict=True):
            assert one.tolist() == other.tolist(), shape


OF_COTANGENTS = {
    "einsum": lambda g: torch.einsum("ij->ij", g),
    "transposing einsum": lambda g: torch.einsum("ij->ji", g),
    "unfold": lambda g: g.unfold(0, 1, 1),
    "atleast_2d": torch.atleast_2d,
}


@pytest.mark.parametrize("name", OF_COTANGENTS)
def test_a_written_view_of_the_cotangent_is_refuted(name: str) -> None:
    view = OF_COTANGENTS[name]

    class Square(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            view(g).mul_(3.0)
            return 2 * x * g

    assert str(sg.verify(Square, "n m").verdict) == "REFUTED"


def test_a_diagonal_is_written_through_einsum() -> None:
    class Diagonal(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return torch.diagonal(x).clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            found = torch.zeros_like(x)
            torch.einsum("ii->i", found).copy_(g)
            return found

    assert str(sg.verify(Diagonal, "n n").verdict) == "PROVED"


def _square(backward: Any) -> Any:
    class Square(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

    Square.backward = staticmethod(lambda ctx, g: backward(*ctx.saved_tensors, g))
    return Square


def _written_local(change: Any) -> Any:
    def backward(x: Any, g: Any) -> Any:
        y = 2 * x * g
        change(y).mul_(3.0)
        return y

    return backward


PERHAPS_COPIES: dict[str, Any] = {
    "contiguous": lambda y: y.T.contiguous(),
    "reshape": lambda y: y.t().reshape(-1),
    "flatten": lambda y: y.t().flatten(),
    "part": lambda y: y[:, :1].contiguous(),
    "expanded": lambda y: y[:1].expand(y.shape).contiguous(),
    "double": lambda y: y.double(),
    "to": lambda y: y.to(torch.float64),
    "as_tensor": lambda y: torch.as_tensor(y, dtype=torch.float64),
    "asarray": lambda y: torch.asarray(y, dtype=torch.float64),
    "a view of one": lambda y: y.t().contiguous().t(),
    "twice": lambda y: y.t().contiguous().double(),
}


@pytest.mark.parametrize("name", PERHAPS_COPIES)
def test_a_write_into_what_may_be_a_copy_is_undecided(name: str) -> None:
    change = PERHAPS_COPIES[name]

    def of_cotangent(x: Any, g: Any) -> Any:
        change(g).mul_(3.0)
        return 2 * x * g

    for backward in (_written_local(change), of_cotangent):
        assert str(sg.verify(_square(backward), "n m").verdict) == "UNDECIDED"


def _written_and_kept(x: Any, g: Any) -> Any:
    y = 2 * x * g
    t = y.t().contiguous()
    t.mul_(0.5)
    return 2 * t.t()


def _asked(x: Any, g: Any) -> Any:
    t = x.T
    t = t if t.is_contiguous() else t.contiguous()
    return 2 * (t * g.T).T


RIGHT: dict[str, Any] = {
    "only read": lambda x, g: (2 * x.T * g.T.contiguous()).T,
    "the other one is not read": _written_and_kept,
    "asked": _asked,
    "a copy": lambda x, g: x * g.to(g.dtype, copy=True).mul_(2.0),
    "a copy in float64": lambda x, g: (x * g.to(torch.float64, copy=True).mul_(2.0)).to(g.dtype),
    "in float64": lambda x, g: (2 * x.double() * g.double()).to(g.dtype),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_for_views_and_copies_is_proved(name: str) -> None:
    assert str(sg.verify(_square(RIGHT[name]), "n m").verdict) == "PROVED"


def test_whether_a_view_is_contiguous_has_both_answers() -> None:
    def backward(x: Any, g: Any) -> Any:
        return 3 * x * g if x.T.is_contiguous() else 2 * x * g

    assert str(sg.verify(_square(backward), "n m").verdict) != "PROVED"


def sharing(tensors: list[Any], results: list[Any], memory: Any) -> list[Any]:
    """For each result that is a tensor, which of the tensors lie in its memory."""
    return [
        [at for at, tensor in enumerate(tensors) if memory(tensor) == memory(one)]
        if isinstance(one, torch.Tensor) and one.numel() else None
        for one in results
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_that_torch_tests_shares_memory_where_torch_does() -> None:
    wrong, right = [], set()
    for name, call, args, kwargs in every_call():
        real: list[Any] = []
        traced: list[Any] = []

        def copied(tensor: Any, made: list[Any] = real) -> Any:
            made.append(tensor.detach().clone(memory_format=torch.contiguous_format))
            return made[-1]

        def lifted(tensor: Any, made: list[Any] = traced) -> Any:
            kind = TensorType(ours(tensor.dtype), tuple(map(Dim.of, tensor.shape)))
            made.append(fresh(current().graph.input(f"x{len(made)}", kind), f"x{len(made)}"))
            return made[-1]

        session = Session()
        session.guest = GUEST
        try:
            results = list(leaves(call(*mapped(args, copied), **mapped(kwargs, copied))))
            wanted = sharing(real, results, lambda one: one.untyped_storage().data_ptr())
            with activate(session):
                results = list(leaves(call(*mapped(args, lifted), **mapped(kwargs, lifted))))
                found = sharing(traced, results, lambda one: id(own_names(one)["storage"]))
        except Exception:  # of torch, or with the line
            continue
        right.add(name)
        pairs = zip(wanted, found, strict=False)
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            wrong.append(f"{name}: {args} {kwargs}: {wanted}, not {found}")
    assert not wrong, "\n".join(wrong)
    assert len(right) >= LEAST
