"""Index notation as operators: what is written with ``@`` or ``*`` is what the notation says."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

import symgrad as sg
from symgrad.proof.words.spelling import vector_product
from tests.proof.written import function_from

SIZES = {"i": 2, "j": 3, "k": 4}
SPECS = [
    f"{''.join(left)},{''.join(right)}->{''.join(result)}"
    for ranks in product(range(4), range(3))
    for left in product(SIZES, repeat=ranks[0])
    for right in product(SIZES, repeat=ranks[1])
    for rank in range(4)
    for result in permutations(sorted({*left, *right}), rank)
]


def test_operators_do_what_the_specs_say() -> None:
    random = np.random.default_rng(0)
    spelled = 0
    for spec in SPECS:
        found = vector_product(spec)
        if found is None:
            continue
        spelled += 1
        operator, swapped = found
        pair = [
            random.normal(size=[SIZES[letter] for letter in operand])
            for operand in spec.partition("->")[0].split(",")
        ]
        first, second = pair[::-1] if swapped else pair
        value = first * second if operator == "*" else first @ second
        assert value == pytest.approx(np.einsum(spec, *pair)), spec
    assert spelled > 50


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("k,kj->j", ("@", False)),
        ("j,kj->k", ("@", True)),
        (",k->k", ("*", False)),
        ("k,k->", ("@", False)),
        ("ijk,k->ij", ("@", False)),
        ("i,j->ij", None),
        ("kk,k->k", None),
        ("ij,jk->ki", None),
    ],
)
def test_which_specs_have_an_operator(spec: str, said: tuple[str, bool] | None) -> None:
    assert vector_product(spec) == said


def test_the_repair_of_a_quadratic_form_reads_as_one_writes_it() -> None:
    report = sg.verify(
        function_from("""
def forward(ctx, x, a):
    ctx.save_for_backward(x, a)
    return x @ a @ x

def backward(ctx, grad_y):
    x, a = ctx.saved_tensors
    return grad_y * 2 * (a @ x), grad_y * sg.outer(x, x)
"""),
        "n",
        "n n",
    )
    assert report.inputs["x"].suggestion == "grad_y * (x @ a) + a @ (grad_y * x)"
