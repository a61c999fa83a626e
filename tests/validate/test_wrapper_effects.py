"""Edits of wrappers that compute other values, or write what is not theirs: none is validated."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import symgrad as sg
from symgrad import compiler
from symgrad.emission import emit
from symgrad.kernels import OpPlan
from tests.validate.test_wrappers import judged, original

WORKSPACE = "_workspace.pointer, _workspace.size"
AGAIN = f"_call_nn_softmax_backward(n, m, _p_y, m, _p_y, m, _p_grad_x, {WORKSPACE})"
FORWARD = f"_call_nn_softmax_forward(n, m, _p_x, m, _p_y, {WORKSPACE})"
RETURNS = "    return (grad_x,)\n"
TAKEN_APART = "        n, m = x.shape\n        _p_x"
NEW = "_empty((n, m), _float32) if n*m < 32768 else _leased((n, m), _float32)"
OUT = f"""        if out is None:
            y = {NEW}
            _p_y = _pointer(_c_float32, y)
        else:
            y = out
            if type(y) is not _Array or y.dtype is not _float32:
                raise _Unusual
            if y.shape != (n, m):
                raise _Unusual
            _p_y = _pointer(_c_float32, y, True)
"""
Edits = tuple[tuple[str, str], ...]

SOFTMAX: dict[str, Edits] = {
    "a call whose result is not looked at": (
        (RETURNS, f"    if not {AGAIN}:\n        pass\n{RETURNS}"),
    ),
    "a call that nothing follows from": (
        (RETURNS, f"    if not {AGAIN}:\n        k = n\n{RETURNS}"),
    ),
    "a call in a test of two parts": (
        (RETURNS, f"    if not {AGAIN} or n == n:\n        k = n\n{RETURNS}"),
    ),
    "a call behind a test": ((RETURNS, f"    if n == n or {AGAIN}:\n        k = n\n{RETURNS}"),),
    "a call in a test of a test": (
        (RETURNS, f"    if not not {AGAIN}:\n        k = n\n{RETURNS}"),
    ),
    "a status that is compared": (
        (RETURNS, f"    if {AGAIN} != 0:\n        raise _Unusual\n{RETURNS}"),
    ),
    "a status that is kept": ((RETURNS, f"    k = {AGAIN}\n{RETURNS}"),),
    "a call that is tried": (
        (RETURNS, f"    try:\n        if {AGAIN}:\n            raise _Unusual\n"
         f"    except _UNUSUAL:\n        pass\n{RETURNS}"),
    ),
    "a second call": (
        (RETURNS, f"    if {AGAIN}:\n        raise _Unusual\n{RETURNS}"),
    ),
    "a call that failed": (
        (f"        if not {FORWARD}:\n            return y\n",
         f"        if not {FORWARD}:\n            return y\n        return y\n"),
    ),
    "an input that is written": (
        ("            return y\n", "            _p_q = _pointer(_c_float32, x, True)\n"
         f"            if _call_nn_softmax_forward(n, m, _p_y, m, _p_q, {WORKSPACE}):\n"
         "                raise _Unusual\n            return y\n"),
    ),
    "a residual that is written": (
        (RETURNS, "    _p_q = _pointer(_c_float32, y, True)\n"
         f"    if _call_nn_softmax_forward(n, m, _p_grad_x, m, _p_q, {WORKSPACE}):\n"
         f"        raise _Unusual\n{RETURNS}"),
    ),
    "out that is never looked at": (
        (OUT, "        y = _empty((n, m), _float32)\n        _p_y = _pointer(_c_float32, y)\n"),
    ),
    "a smaller array": (
        ("    try:\n        if type(x)",
         "    small = _empty((1, 1), _float32)\n    try:\n        if type(x)"),
        ("            _p_y = _pointer(_c_float32, y)\n",
         "            _p_y = _pointer(_c_float32, y)\n            y = small\n"),
    ),
    "a generator": ((RETURNS, f"{RETURNS}    yield\n"),),
    "a generator in a case": (
        ("            return y\n", "            return y\n            yield\n"),
    ),
    "a local that is never assigned": ((RETURNS, f"{RETURNS}    _float32 = None\n"),),
    "a local that is assigned later": (
        (f"        grad_x = {NEW}\n", f"        grad_x = {NEW}\n        _float32 = _float32\n"),
    ),
    "a global": ((RETURNS, f"{RETURNS}    global y\n"),),
    "a loop": ((RETURNS, f"{RETURNS}    while True:\n        pass\n"),),
    "an import": ((RETURNS, f"{RETURNS}    from os import path as y\n"),),
    "a name that is deleted": ((RETURNS, f"{RETURNS}    del y\n"),),
    "an assignment in place": ((RETURNS, f"    n += 0\n{RETURNS}"),),
    "None that is returned": (("_found is not None", "_found is None"),),
    "C that is asked without out": (
        ("_quick.inference((x,), out)", "_quick.inference((x,), None)"),
    ),
    "C that is asked for something else": (("_quick.forward(", "_quick.inference("),),
    "C that is asked for all gradients": (
        ("_quick.backward(residuals, (grad_y,), needs_input_grad,",
         "_quick.backward(residuals, (grad_y,), None,"),
    ),
    "C of another op": (("_quick = _Quick(OP, _library", "_quick = _Quick(_library, OP"),),
    "what C leaves is not computed": (
        ("    if _found is not None:\n        return", "    return"),
    ),
}  # fmt: skip


def _refused(op: OpPlan, text: str, edits: Edits) -> None:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    outcome = judged(op, text)
    assert not outcome.validated
    assert not outcome.reason.startswith("not understood"), outcome.reason


@pytest.mark.parametrize("what", SOFTMAX)
def test_calls_have_effects(what: str) -> None:
    _refused(*original("nn_softmax"), SOFTMAX[what])


class Scale(sg.Function):
    """With two plain numbers."""

    @staticmethod
    def forward(ctx: Any, x: "f32[n m]", alpha: float = 1.0, beta: float = 2.0) -> Any:  # type: ignore[valid-type]
        ctx.alpha = alpha
        return x * alpha + beta

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.alpha, None, None


class Product(sg.Function):
    """Keeps both of its inputs."""

    @staticmethod
    def forward(ctx: Any, a: "f32[n k]", b: "f32[k m]") -> Any:  # type: ignore[valid-type]
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return g @ b.T, a.T @ g


class Same(sg.Function):
    """Its output is its input."""

    @staticmethod
    def forward(ctx: Any, x: "f32[n m]") -> Any:  # type: ignore[valid-type]
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 1.0


class Sum(sg.Function):
    """Both of its gradients are the same."""

    @staticmethod
    def forward(ctx: Any, a: "f32[n m]", b: "f32[n m]") -> Any:  # type: ignore[valid-type]
        return a + b

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, g


@cache
def _of(function: Any) -> tuple[OpPlan, str]:
    """The op with its plain numbers as arguments, and the text of its wrapper."""
    request = compiler._requested(function, None, (), None, None)
    op = compiler.judged_plan(request, allow=("UNDECIDED",))[0]
    return op, emit(op, "").wrapper()


FIRST = "        if type(x) is not _Array or x"
NUMBERS: dict[str, Edits] = {
    "a number that is assigned in a test": (
        (FIRST, f"        if not (alpha := 5.0):\n            raise _Unusual\n{FIRST}"),
    ),
    "a generator of numbers": ((FIRST, f"        if (yield alpha):\n            pass\n{FIRST}"),),
    "a test that calls a method": (
        (FIRST, f"        if not alpha.is_integer():\n            raise _Unusual\n{FIRST}"),
    ),
    "a test with a list": (
        (FIRST, "        if [].append(alpha) or 1 / alpha > 0:\n            raise _Unusual\n"
         f"{FIRST}"),
    ),
    "a test before the type": (
        ("        if type(alpha) is not float:",
         "        if alpha > 0:\n            raise _Unusual\n        if type(alpha) is not float:"),
    ),
    "a test that calls a number": (
        (FIRST, f"        if alpha(beta) > 0:\n            raise _Unusual\n{FIRST}"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", NUMBERS)
def test_tests_of_numbers_have_no_effects(what: str) -> None:
    _refused(*_of(Scale), NUMBERS[what])


def test_a_test_of_numbers_may_stand_among_the_others() -> None:
    op, text = _of(Scale)
    test = "        if not (min(alpha, beta) * 2 > 0 or beta < 3):\n            raise _Unusual\n"
    for changed in (text, text.replace(FIRST, test + FIRST)):
        outcome = judged(op, changed)
        assert outcome.validated, outcome.reason


def _made(name: str, shape: str) -> str:
    return (
        f"        {name} = _empty({shape}, _float32)\n"
        f"        _p_{name} = _pointer(_c_float32, {name})\n"
    )


def _checked(name: str, shape: str) -> str:
    return (
        f"    if type({name}) is not _Array or {name}.dtype is not _float32:\n"
        f"        raise _Unusual\n    if {name}.shape != {shape}:\n        raise _Unusual\n"
    )


PRODUCT: dict[str, Edits] = {
    "a gradient in an input that was kept": (
        ("    _, b, n, k, m = residuals\n",
         f"    a, b, n, k, m = residuals\n{_checked('a', '(n, k)')}"),
        ("        grad_a = _empty((n, k), _float32) if n*k < 32768 else _leased((n, k), _float32)\n"
         "        _p_grad_a = _pointer(_c_float32, grad_a)\n",
         "        grad_a = a\n        _p_grad_a = _pointer(_c_float32, grad_a, True)\n"),
    ),
    "a gradient in what out has for another": (
        ("        grad_a, _ = out\n", "        _, grad_a = out\n"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", PRODUCT)
def test_gradients_have_memory_of_their_own(what: str) -> None:
    _refused(*_of(Product), PRODUCT[what])


@pytest.mark.parametrize("function", [Scale, Product, Same, Sum])
def test_these_wrappers_are_validated(function: Any) -> None:
    op, text = _of(function)
    outcome = judged(op, text)
    assert outcome.validated, outcome.reason


def _between(text: str, first: str, last: str, new: str) -> Edits:
    start = text.index(first)
    return ((text[start : text.index(last, start) + len(last)], new),)


def test_outputs_are_no_inputs() -> None:
    op, text = _of(Same)
    new = "        if out is not None:\n            raise _Unusual\n        return x\n"
    _refused(op, text, _between(text, "        _p_x = ", "            return output\n", new))


@pytest.mark.parametrize("looked_at", ["", "    if out is not None:\n        raise _Unusual\n"])
def test_gradients_are_no_cotangents(looked_at: str) -> None:
    op, text = _of(Same)
    new = f"{looked_at}    return (grad_output,)\n"
    _refused(op, text, _between(text, "    _p_grad_output = ", "    return (grad_x,)\n", new))


def test_gradients_are_different_arrays() -> None:
    op, text = _of(Sum)
    old = "    return (grad_a, grad_b)\n"
    _refused(op, text, ((old, f"    if out is None:\n        return (grad_a, grad_a)\n{old}"),))
    _refused(op, text, ((old, "    return (grad_a, grad_a)\n"),))


def test_backward_looks_at_out() -> None:
    op, text = _of(Product)
    new = (
        f"{_made('grad_b', '(k, m)').replace('        ', '    ')}    if _call_product_backward_01("
    )
    start = text.index("def _backward_01")
    changed = text[:start] + text[start:].replace(
        *_between(text[start:], "    if out is None", "    if _call_product_backward_01(", new)[0]
    )
    _refused(op, changed, ())
