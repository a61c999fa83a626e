"""Arguments of kinds that an operation does not take are refused where torch refuses them.

Every call in ``operations.txt`` is made again with each of its arguments replaced: tensors by a
tuple, a list, a number and None, plain values by values of other kinds.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.frontend.kinds import checked
from symgrad.frontend.tensor import SymbolicTensor
from tests.frontend.test_operations import TorchNames, program
from tests.frontend.texts import SIZES, SPECS, arrays_for, texts

ACCEPTED = {
    "x.clamp(1.5, y + 1)": "a number beside a tensor is a bound",
    "sg.add(x, y, alpha=True)": "True is 1",
    "sg.rsub(x, True)": "True is 1",
    "np.float64((1.0,)) * x": "an array is an operand",
    "x / x.size(True)": "True is 1",
    "(x + 1).var(True, unbiased=False)": "var(True) is var(unbiased=True)",
    "x.new(x.size(True)).fill_(1)": "True is 1",
    "sg.zeros(3, dtype=sg.float, device=sg.device('foo'))": "the memory lies where NumPy has it",
    "sg.zeros(3, dtype=sg.float, device=sg.device(None))": "the memory lies where NumPy has it",
    "sg.zeros(3, dtype=sg.float, device=sg.device(3))": "the memory lies where NumPy has it",
    "sq.triu(True)": "True is 1",
    "x.flip(True)": "True is 1, as in flip(0, True)",
    "x.tril(True)": "True is 1",
    "sg.arange(1, None, 2)": "None is the default",
    "sg.arange(0.0, None, 0.25)": "None is the default",
    "x.softmax(None)": "as the function, which has a default",
    "x.log_softmax(dim=None)": "as the function, which has a default",
    "x.prod(None)": "None is the default",
    "x.prod((0,))": "several axes, as sum takes them",
    "x.max(None)": "None is the default",
    "sg.min(x, None)": "None is the default",
    "x.min(None, keepdim=True)": "None is the default",
    "one.squeeze(None)": "None is the default",
    "x.squeeze(None)": "None is the default",
    "sg.flip(b, dims=None)": "all axes",
}
"""What torch refuses and symgrad takes, and why that is no mistake."""


def variants(text: str, others: Callable[[ast.expr], Iterator[str]]) -> Iterator[str]:
    """The text with one argument of a call replaced."""
    tree = ast.parse(text)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        for holder, key in [(call.args, place) for place in range(len(call.args))]:
            kept = holder[key]
            for other in others(kept):
                holder[key] = ast.parse(other, mode="eval").body
                yield ast.unparse(tree).replace("\n", "; ")
            holder[key] = kept
        for keyword in call.keywords:
            value = keyword.value
            for other in others(value):
                keyword.value = ast.parse(other, mode="eval").body
                yield ast.unparse(tree).replace("\n", "; ")
            keyword.value = value


def instead_of_tensors(argument: ast.expr) -> Iterator[str]:
    if isinstance(argument, ast.Name) and argument.id in SPECS:
        yield from (f"({argument.id},)", f"[{argument.id}]", "1.5", "None")


PLAIN = {
    bool: ("None", "'a'", "(1,)"),
    int: ("(0,)", "None", "1.5", "7", "-9", "(0, 0)", "True", "'a'"),
    float: ("None", "(1.0,)", "'a'"),
    str: ("'foo'", "None", "3"),
    tuple: ("None", "1.5", "(9, 9)"),
}


def instead_of_plain_values(argument: ast.expr) -> Iterator[str]:
    try:
        yield from PLAIN[type(ast.literal_eval(argument))]
    except (ValueError, KeyError, TypeError):
        return


def outcome(text: str, module: Any, tensor: Callable[[Any], Any]) -> type[Exception] | None:
    """What the call raises."""
    arguments = {name: tensor(array) for name, array in arrays_for(SIZES[-1]).items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program(text, {"sg": module, "np": np})(**arguments)
    except Exception as error:
        return type(error)
    return None


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("others", [instead_of_tensors, instead_of_plain_values])
def test_what_torch_refuses_is_refused(others: Callable[[ast.expr], Iterator[str]]) -> None:
    import torch

    calls = dict.fromkeys(text for one in texts() for text in variants(one, others))
    assert len(calls) > 900
    wrong = {}
    for text in calls:
        wanted = outcome(text, TorchNames(), torch.tensor)
        if wanted is None or issubclass(wanted, AttributeError):
            continue
        found = outcome(text, sg, sg.tensor)
        if found is None and text not in ACCEPTED:
            wrong[text] = f"torch raises {wanted.__name__}"
    assert wrong == {}, wrong


@pytest.mark.peers
@pytest.mark.parametrize("text", sorted(ACCEPTED))
def test_what_is_accepted_is_refused_by_torch_alone(text: str) -> None:
    import torch

    assert outcome(text, sg, sg.tensor) is None
    assert outcome(text, TorchNames(), torch.tensor) is not None


REFUSED = [
    "sg.glu(v)", "sg.glu(s)", "sg.pad(x, (1,))", "sg.pad(v, (1, 1, 1, 1))",
    "sg.nll_loss(x, i, one.flatten())", "sg.cross_entropy(x, i, sg.ones(3))",
    "sg.cross_entropy(x, i, sg.ones(9), label_smoothing=0.1)", "sg.cross_entropy(x, p, sg.ones(9))",
    "sg.nll_loss(b, j[:, :2], sg.ones(9))", "sg.nll_loss(v, i[0], sg.ones(9))",
    "sg.binary_cross_entropy(sg.tensor([1.5]), sg.tensor([1.0]))",
    "sg.binary_cross_entropy(sg.tensor([-0.5]), sg.tensor([0.0]))",
    "sg.binary_cross_entropy(sg.tensor([float('nan')]), sg.tensor([0.0]))",
    "sg.binary_cross_entropy(sg.tensor([0.5]), sg.tensor([2.0]))",
    "sg.celu(x, 0.0)", "sg.celu(x, 0)", "sg.softmax(x, (0, 1))", "sg.log_softmax(x, (0,))",
    "sg.softmin(x, (0,))", "sg.softmax(x, 7)", "sg.cosine_similarity(x, x, dim=None)",
    "sg.cosine_similarity(x, x, dim=(0,))", "sg.layer_norm(x, 3)",
    "sg.linear(x, x, 1.0)", "sg.pixel_shuffle(x[None, None], 0)", "sg.pixel_shuffle(x, 2)",
    "sg.pixel_shuffle(x[None, :1].expand(3, 5, 5), 2)", "sg.group_norm(x, -1)",
    "sg.group_norm(sg.ones(2, 4), 3)", "sg.embedding(i, w, padding_idx=99)",
    "sg.embedding(i, w, padding_idx=-99)", "sg.cat(x)", "sg.stack(x)", "sg.chunk(x, 0)",
    "sg.zeros(2, -1)", "x.repeat(-1, 2)", "x.roll((1, 2), 0)", "sg.movedim(x, (0, 0), (0, 1))",
    "sg.movedim(x, 0, (1,))", "sg.arange(5, 1)", "sg.sum((x,))", "sg.where(mask, x, None)",
    "sg.gelu(x, approximate='no')", "x.max((0, 1))", "sg.tensordot(x, x, -1)", "sg.clamp(x)",
    "sg.div(x, x, rounding_mode='up')",
]  # fmt: skip


@pytest.mark.peers
@pytest.mark.parametrize("text", REFUSED)
def test_errors_are_of_the_kinds_of_torch(text: str) -> None:
    import torch

    wanted = outcome(text, TorchNames(), torch.tensor)
    found = outcome(text, sg, sg.tensor)
    assert wanted is not None
    assert found is not None
    assert issubclass(found, wanted)
    assert issubclass(found, sg.errors.SymgradError)


def test_kinds_are_read_from_annotations() -> None:
    def call(
        x: SymbolicTensor, dim: int, *rest: Any, flag: bool = False, eps: float | None = None
    ) -> Any:
        return dim

    call.__annotations__ |= {"x": "Tensor", "rest": "Tensor"}

    known, x = checked(call), sg.ones(2)
    assert known(x, 1) == 1
    assert known(x, np.int64(1), x, np.ones(2), flag=True, eps=1) == 1
    wrong: list[tuple[Any, dict[str, Any]]] = [
        ((1.0, 1), {}), ((x, 1.0), {}), ((x, True), {}), ((x, (1,)), {}), ((x, None), {}),
        ((x, 1, 2.0), {}), ((x, 1), {"flag": 1}), ((x, 1), {"eps": "a"}), (([x], 1), {}),
    ]  # fmt: skip
    for arguments, named in wrong:
        with pytest.raises(TypeError, match=r"call\(\): argument '\w+' must be \w+, not \w+"):
            known(*arguments, **named)


def test_a_trace_knows_its_tensors_without_eager_ones() -> None:
    """``verify`` imports no eager tensors."""
    program = """
import symgrad as sg

class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.sizes = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx, g):
        return sg.mul(g, 1).expand(ctx.sizes).expand_as(sg.matmul(g.new_ones(ctx.sizes), g.new_ones(
            ctx.sizes[1], ctx.sizes[1])))

print(sg.verify(Op, "n m").verdict)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "PROVED\n"
