"""Inferred shapes: as general as forward allows, never chosen so that a mistake hides."""

from __future__ import annotations

import json
import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad import compiler
from symgrad.errors import ShapeError, SpecError, UnsupportedOpError
from symgrad.frontend.request import Request, bind
from symgrad.frontend.trace import trace_request
from symgrad.shapes import requested, search, tracing
from symgrad.shapes.candidates import Candidate
from symgrad.shapes.hopeless import ALIKE, Hopeless
from symgrad.tools.certificate import check
from symgrad.tools.cli import main
from symgrad.tools.discover import functions
from symgrad.tools.judging import Judged, judge


def op(forward: Any, backward: Any = lambda ctx, grad: grad) -> type[sg.Function]:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (sg.Function,), methods)


def inferred(judged: Judged) -> str:
    """The shapes that the report names first."""
    found = re.search(r"symgrad inferred (.*?)\.(?= Also| The)", judged.inferred)
    return found[1] if found else ""


def facts(request: Request) -> dict[str, str]:
    return {one.name: one.text for one in request.assumptions}


def cross(a: Any, b: Any, c: Any) -> list[Any]:
    return [a * b, b * c, c * a]


def unpacked(ctx: Any, x: Any, w: Any) -> Any:
    _, channels, _, _ = x.shape
    return x * w.view(1, channels, 1, 1)


class Linear(sg.Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight, bias)
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        return grad @ weight, grad.t() @ x, None if bias is None else grad.sum(0)


class Scaled(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x * alpha

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.alpha, None


class Product(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[1], None


class Embedding(sg.Function):
    @staticmethod
    def forward(ctx, weight, tokens):
        ctx.save_for_backward(tokens)
        ctx.rows = weight.shape[0]
        return weight[tokens]

    @staticmethod
    def backward(ctx, grad):
        (tokens,) = ctx.saved_tensors
        return sg.zeros(ctx.rows, grad.shape[-1]).index_add(0, tokens, grad), None


class Halves(sg.Function):
    @staticmethod
    def forward(ctx, x, dim, training):
        ctx.training = training
        return sg.softmax(x, dim) if training else x

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


class Transposed(sg.Function):
    """The gradient of weight is transposed: no choice of shapes may make that right."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), grad.t() @ x


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (op(lambda ctx, x: x + 1), "x[n, m]"),
        (op(lambda ctx, x, y: x + y), "x[n, m], y[n, m]"),
        (op(lambda ctx, q, k, v: q @ k.transpose(-1, -2) @ v), "q[n, m], k[k, m], v[k, l]"),
        (op(lambda ctx, a, b: sg.bmm(a, b)), "a[n, m, k], b[n, k, l]"),
        (op(lambda ctx, a, b: sg.cat([a, b], 1)), "a[n, m], b[n, k]"),
        (op(lambda ctx, a, b: sg.stack([a, b])), "a[n, m], b[n, m]"),
        (op(lambda ctx, a: sg.linalg.inv(a)), "a[n, n]"),
        (op(lambda ctx, x: x.mean((0, 2, 3))), "x[n, m, k, l]"),
        (op(lambda ctx, x, w: x + w.view(3, 1)), "x[n], w[3]"),
        (op(lambda ctx, *xs: sg.cat(xs, 0)), "xs_0[n, m], xs_1[k, m]"),
        (op(lambda ctx, x, *, flag: x if flag else 2 * x), "x[n, m], flag = -1"),
        (op(lambda ctx, x: sg.tanh(x.chunk(2, -1)[0])), "x[n, 2*m]"),
        (op(lambda ctx, x: x[..., : x.shape[-1] // 3]), "x[n, m]"),
        (op(lambda ctx, q: sg.stack(cross(*q.unbind(-1)))), "q[n, 3]"),
        (op(lambda ctx, x, mask: x * mask), "x[n, m], bool mask[n, m]"),
        (op(unpacked), "x[n, m, k, l], w[m]"),
        (
            op(lambda ctx, x, w: x * w, lambda ctx, g: (g, g.sum(1, keepdim=True))),
            "x[n, m], w[n, 1]",
        ),
        (op(lambda ctx, x, w: x * w, lambda ctx, g: (g, g.sum((0, 1)))), "x[n, m, k], w[k]"),
        (op(lambda ctx, x, w: x * w, lambda ctx, g: (g, g.sum())), "x[n, m], w[n, m]"),
        (
            op(lambda ctx, x, w: x * w.reshape(()), lambda ctx, g: (g, g.sum())),
            "x[n, m], w[]",
        ),
        (op(lambda ctx, x, order: x[:, order], lambda ctx, g: (g, None)), "x[n, m], i64 order[m]"),
        (Linear, "x[n, m], weight[k, m], bias[k]"),
        (Scaled, "x[n, m], alpha (any number, without a gradient)"),
        (Product, "x[n, m], y[n, m]"),
        (Embedding, "weight[n, m], i64 tokens[k]"),
        (Halves, "x[n, m], dim = -1, training = True"),
        (Transposed, "x[n, m], weight[m, k]"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_found(function: type[sg.Function], text: str) -> None:
    found = requested(function)
    assert found.guess is not None
    assert found.guess.text == text
    assert trace_request(found).cases
    again = bind(function, found.specs, dict(found.static), facts(found))
    assert again.arguments == found.arguments


@pytest.mark.parametrize(
    ("function", "verdict"),
    [(Linear, "PROVED"), (Scaled, "PROVED"), (Product, "REFUTED"), (Embedding, "PROVED"),
     (Transposed, "REFUTED")],
)  # fmt: skip
def test_the_verdict_says_what_it_holds_for(function: type[sg.Function], verdict: str) -> None:
    judged = judge(function)
    assert judged.verdict == verdict
    assert "No shapes were given; symgrad inferred " in judged.inferred
    assert judged.inferred in " ".join(judged.text.split())


def linear(sum_of_bias: Any) -> type[sg.Function]:
    """Torch's own example, and what its backward makes of the bias."""

    def forward(ctx: Any, input: Any, weight: Any, bias: Any = None) -> Any:
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    def backward(ctx: Any, grad: Any) -> Any:
        input, weight, bias = ctx.saved_tensors
        grad_bias = None if bias is None else sum_of_bias(grad)
        return grad.mm(weight), grad.t().mm(input), grad_bias

    return op(forward, backward)


@pytest.mark.parametrize(
    ("sum_of_bias", "verdict"),
    [(lambda g: g.sum(0), "PROVED"), (lambda g: g, "PROVED"), (lambda g: g.sum(), "REFUTED"),
     (lambda g: g.sum(1), "REFUTED"), (lambda g: 2 * g.sum(0), "REFUTED")],
    ids=["right", "summed by torch", "a number", "wrong axis", "wrong factor"],
)  # fmt: skip
def test_a_bias_is_no_number(sum_of_bias: Any, verdict: str) -> None:
    judged = judge(linear(sum_of_bias))
    assert judged.verdict == verdict
    assert inferred(judged) == "input[n, m], weight[k, m], bias[k]"
    hint = 'If bias is a number, write bias: "f32[]"'
    assert (hint in " ".join(judged.text.split())) == (sum_of_bias(sg.zeros(2, 3)).ndim == 0)


OF_TENSORS = {
    "right": (lambda g, axes: g.sum(tuple(range(g.ndim - axes))) if axes < g.ndim else g, "PROVED"),
    "right for rows": (lambda g, axes: g.sum(0), "PROVED"),
    "a number": (lambda g, axes: g.sum(), "REFUTED"),
    "no such axis": (lambda g, axes: g.sum(7), "REFUTED"),
    "none for matrices": (lambda g, axes: g.sum() if axes > 0 else None, "REFUTED"),
}


@pytest.mark.parametrize("kind", ["optional", "any"])
@pytest.mark.parametrize("name", OF_TENSORS)
def test_what_gets_a_gradient_is_judged_as_a_tensor(name: str, kind: str) -> None:
    """Nothing that has no gradient stands for it: neither None, nor a number, nor an index."""
    of_tensor, verdict = OF_TENSORS[name]

    def forward(ctx: Any, x: Any, b: Any) -> Any:
        ctx.axes = getattr(b, "ndim", None)
        return x if b is None else x + b

    if kind == "optional":
        forward.__defaults__ = (None,)
    function = op(forward, lambda ctx, g: (g, None if ctx.axes is None else of_tensor(g, ctx.axes)))
    judged = judge(function)
    assert (judged.verdict, inferred(judged)[:10]) == (verdict, "x[n, m], b")
    assert "b[" in inferred(judged)


@pytest.mark.parametrize(
    ("asks", "shown"),
    [(lambda g, k: g * float(k), "k (any number, without a gradient)"),
     (lambda g, k: g * k * len([*range(k**0)]), "k = -1"),
     (lambda g, k: g * k if k < 2 else k * g, "k (any number, without a gradient)"),
     (lambda g, k: g * k + 0 * g.flip(k), "k = -1")],
    ids=["float", "range", "if", "axis"],
)  # fmt: skip
def test_what_backward_asks_the_value_of_is_no_tensor(asks: Any, shown: str) -> None:
    def forward(ctx: Any, x: Any, k: Any) -> Any:
        ctx.k = k
        return x * k

    judged = judge(op(forward, lambda ctx, g: (asks(g, ctx.k), None)))
    assert (judged.verdict, inferred(judged)) == ("PROVED", f"x[n, m], {shown}")


def test_what_backward_takes_for_a_mask_is_one() -> None:
    def forward(ctx: Any, x: Any, mask: Any) -> Any:
        ctx.save_for_backward(mask)
        return x * mask

    function = op(forward, lambda ctx, g: (sg.where(~ctx.saved_tensors[0], 0.0, g), None))
    judged = judge(function)
    assert (judged.verdict, inferred(judged)) == ("PROVED", "x[n, m], bool mask[n, m]")


@pytest.mark.parametrize("default", [1.0, (), False], ids=repr)
@pytest.mark.parametrize("name", ["right", "a number", "twice", "no such axis"])
def test_a_tensor_instead_of_a_default_is_judged_as_well(name: str, default: Any) -> None:
    """As far as it gets a gradient: what backward raises for is plain."""
    twice = (lambda g, axes: 2 * g if axes else 2 * g.sum(), "REFUTED")
    of_tensor, _ = OF_TENSORS.get(name, twice)

    def forward(ctx: Any, x: Any, b: Any = default, w: Any = None) -> Any:
        ctx.axes, ctx.weighted = getattr(b, "ndim", None), w is not None
        return x + (w if ctx.weighted else 0) + (0 if ctx.axes is None else b)

    def backward(ctx: Any, g: Any) -> Any:
        of_b = None if ctx.axes is None else of_tensor(g, ctx.axes)
        return g, of_b, g if ctx.weighted else None

    judged = judge(op(forward, backward))
    wrong = name == "twice" or (name == "a number" and default == ())
    assert judged.verdict == ("REFUTED" if wrong else "PROVED")
    assert ("b[" in judged.inferred) == (name != "no such axis")


@pytest.mark.parametrize("wrong", [1, 2, 3])
def test_one_tensor_more_than_two_is_judged_as_well(wrong: int) -> None:
    def backward(ctx: Any, g: Any) -> Any:
        return tuple(g if at < wrong else 2 * g for at in range(len(ctx.needs_input_grad)))

    judged = judge(op(lambda ctx, *xs: sum(xs[1:], xs[0]), backward))
    assert judged.verdict == ("PROVED" if wrong == 3 else "REFUTED")
    assert "xs_2[n, m]" in judged.inferred or wrong == 1


@pytest.mark.parametrize("default", [(), (None,)], ids=["open", "optional"])
@pytest.mark.parametrize("right", [True, False])
def test_integers_are_judged_beside_a_plain_index(right: bool, default: tuple[Any, ...]) -> None:
    """Rows that are chosen twice have a sum for a gradient."""

    def forward(ctx: Any, x: Any, at: Any) -> Any:
        ctx.at, ctx.shape = at, x.shape
        return 2 * x if at is None else x[at]

    def backward(ctx: Any, g: Any) -> Any:
        if ctx.at is None:
            return 2 * g, None
        zeros = sg.zeros(*ctx.shape)
        if right and not isinstance(ctx.at, int):
            return zeros.index_add(0, ctx.at, g), None
        zeros[ctx.at] = g
        return zeros, None

    forward.__defaults__ = default
    judged = judge(op(forward, backward))
    assert judged.verdict == ("PROVED" if right else "REFUTED")
    assert "i64 at[k]" in judged.inferred


def test_an_annotation_of_one_argument_says_nothing_of_an_optional_one() -> None:
    def forward(ctx: Any, x: Any, b: Any = None) -> Any:
        ctx.given = b is not None
        return x + b if ctx.given else x

    forward.__annotations__ = {"x": "f32[n m]"}
    function = op(forward, lambda ctx, g: (g, 3 * g.sum(0) if ctx.given else None))
    judged = judge(function)
    assert (judged.verdict, inferred(judged)) == ("REFUTED", "f32 x[n, m], b[m]")


def test_an_axis_that_is_stretched_stays_of_any_size() -> None:
    """Else a gradient along the wrong axis fits."""

    def forward(ctx: Any, x: Any, b: Any) -> Any:
        return x + b.unsqueeze(1).expand_as(x)

    judged = judge(op(forward, lambda ctx, g: (g, g.sum(0))))
    assert (judged.verdict, inferred(judged)) == ("REFUTED", "x[n, m], b[n]")


def softmax(axis: int) -> type[sg.Function]:
    """Right for matrices if ``axis`` is 1, for all ranks if it is -1."""

    def forward(ctx: Any, x: Any) -> Any:
        y = sg.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    def backward(ctx: Any, grad: Any) -> Any:
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(axis, keepdim=True))

    return op(forward, backward)


def test_all_ranks_that_fit_are_judged_and_the_worst_is_told() -> None:
    wrong, right = (judge(softmax(axis)) for axis in (1, -1))
    assert (wrong.verdict, inferred(wrong)) == ("REFUTED", "x[n, m, k]")
    assert wrong.report.beside == {"x[n, m]": "PROVED"}
    assert (right.verdict, inferred(right)) == ("PROVED", "x[n, m]")
    assert right.report.beside == {"x[n]": "PROVED", "x[n, m, k]": "PROVED"}
    for judged in (wrong, right):
        said = " ".join(judged.text.split())
        assert all(f"{text} ({verdict})" in said for text, verdict in judged.report.beside.items())
        assert judged.to_dict()["judged_as_well"] == judged.report.beside


def test_a_gradient_that_integers_cannot_have_is_told() -> None:
    function = op(lambda ctx, x, i: x * i, lambda ctx, g: (g, g))
    report = sg.verify(function, "n", "i64[n]", suggest=False)
    assert (
        "i is not a float tensor: the gradient that backward returns for it is ignored"
        in report.notes
    )


@pytest.mark.parametrize(
    "transposed",
    [
        *(flags for count in (1, 2, 3) for flags in product((False, True), repeat=count)),
        (True, False, False, True),
    ],
    ids=str,
)
def test_chains_of_products_of_matrices(transposed: tuple[bool, ...]) -> None:
    """The sizes of a chain are all different, but for the inner ones that have to be equal."""
    names = [f"w{i}" for i in range(len(transposed))]
    lines = [
        f"    x = x @ {n}{'.t()' if t else ''}" for n, t in zip(names, transposed, strict=True)
    ]
    source = "\n".join([f"def forward(ctx, x, {', '.join(names)}):", *lines, "    return x"])
    scope: dict[str, Any] = {}
    exec(source, scope)
    found = requested(op(scope["forward"]))
    first, *rest = (str(spec).split() for spec in found.specs.values())
    inner = first[1]
    for turned, sizes in zip(transposed, rest, strict=True):
        rows, columns = reversed(sizes) if turned else sizes
        assert rows == inner
        inner = columns
    assert len({size for sizes in (first, *rest) for size in sizes}) == len(transposed) + 2


def test_annotations_that_are_there_are_kept() -> None:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return x + y

    forward.__annotations__["x"] = "f32[rows m]"
    assert requested(op(forward)).specs == {"x": "f32[rows m]", "y": "rows m"}
    forward.__annotations__["y"] = "f32[rows 1]"
    forward.__defaults__ = (1.0,)
    forward.__annotations__.pop("x")
    assert requested(op(forward)).guess.text == "x[rows, n], f32 y[rows, 1]"


def test_a_matrix_that_is_declared_symmetric_is_square() -> None:
    function = sg.assume(a="symmetric")(op(lambda ctx, a: 2 * a, lambda ctx, g: 2 * g))
    judged = judge(function)
    assert inferred(judged) == "a[n, n]"
    assert judged.verdict == "PROVED"
    oblong = judge(function, ("n m",))
    assert isinstance(oblong.error, SpecError)
    assert "its shape is [n m]" in oblong.text


def test_values_that_are_given_are_kept() -> None:
    function = op(lambda ctx, x, beta: x * beta)
    found = requested(function, static={"beta": 2.5})
    assert found.specs == {"x": "n m"}
    assert dict(found.static) == {"beta": 2.5}
    assert found.guess.text == "x[n, m]"


def test_nothing_is_found() -> None:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        raise ValueError("never")

    with pytest.raises(SpecError) as caught:
        requested(op(forward))
    said = str(caught.value)
    assert "the nearest, x[n, m], y[k, l]: forward raised ValueError: never" in said
    assert '--shapes "n m; n m"' in said
    assert "--static" in said
    assert caught.value.location is not None


SQUARE = """
import symgrad as sg


class Square(sg.Function):
    @staticmethod
    def forward(ctx, x, scale=None):
        ctx.save_for_backward(x, scale)
        return x * x if scale is None else x * scale

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        return (2 * grad * x, None) if scale is None else (grad * scale, grad * x)
"""
SAID = "No shapes were given; symgrad inferred x[n, m], scale[n, m]."


@pytest.mark.filterwarnings("default:.*No shapes were given")
def test_what_is_made_of_inferred_shapes_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels, a package, a stage: the ranks that they serve stand in each."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "square.py").write_text(SQUARE)
    run = CliRunner().invoke(main, ["show", "square.py", "--stage", "c"])
    assert run.exit_code == 0
    assert SAID in " ".join(run.output.replace(" *", "").split())
    assert f"Square: {SAID} The kernels serve only these shapes." in run.output
    run = CliRunner().invoke(main, ["build", "square.py", "-o", "made", "--no-compile"])
    assert f"Square: {SAID} The kernels serve only these shapes." in run.output
    made = json.loads((tmp_path / "made" / "MANIFEST.json").read_text())["ops"]["square"]
    assert made["specs"] == {"x": "n m", "scale": "n m"}
    assert check(tmp_path / "made").holds
    with pytest.warns(sg.InferredShapesWarning, match="inferred x"):
        assert sg.compile(functions("square.py")[0]).name == "square"


def test_what_is_stated_is_checked_once_for_all() -> None:
    for stated, said in (
        ({"order": 3}, "order=3"), ({"static": {"y": 1}}, "no argument 'y'"),
        ({"assume": {"y": "positive"}}, "not a tensor input"),
        ({"assume": {"x": "odd"}}, "be read"),
    ):  # fmt: skip
        for specs in ((), ("n",)):
            with pytest.raises(SpecError, match=said):
                requested(op(lambda ctx, x: x + 1), specs, **stated)


# -- plain arguments without a stated value


def optional(parameter: str, wrong: str) -> type[sg.Function]:
    """``x * x`` for the default None, else ``x * r``; backward is wrong for one of them."""
    factors = {"default": "2 * x", "value": "ctx.r"} | {wrong: "3 * x"}
    text = f"""
def forward(ctx, x, {parameter}):
    ctx.save_for_backward(x)
    ctx.r = r
    return x * x if r is None else x * r
def backward(ctx, g):
    (x,) = ctx.saved_tensors
    grad = g * ({factors["default"]} if ctx.r is None else {factors["value"]})
    return {"grad" if "*" in parameter else "(grad, None)"}
"""
    names: dict[str, Any] = {"sg": sg}
    exec(text, names)
    return op(names["forward"], names["backward"])


KINDS = ("int", "float", "bool", "str")


@pytest.mark.parametrize(
    "parameter", ["*, r", *(f"{star}r: {kind}" for star in ("", "*, ") for kind in KINDS)]
)
@pytest.mark.filterwarnings("ignore::symgrad.errors.InferredShapesWarning")
def test_the_default_none_is_judged_and_compiled(parameter: str) -> None:
    wrong = optional(f"{parameter} = None", "default")
    assert str(sg.verify(wrong, suggest=False).verdict) == "REFUTED"
    right = optional(f"{parameter} = None", "neither")
    assert str(sg.verify(right).verdict) == "PROVED"
    if parameter != "r: float":  # a number, or None: the kernel is for a number
        x = np.full((2, 3), 3, np.float32)
        y, _ = sg.compile(right).forward(x)
        assert (y == right.apply(sg.tensor(x)).numpy()).all()


@pytest.mark.parametrize("parameter", ["n: int", "*, n: int", "*, n", "n: bool"])
def test_no_value_is_chosen_for_a_kernel(parameter: str) -> None:
    names: dict[str, Any] = {"sg": sg}
    exec(f"def forward(ctx, x, {parameter}): return x * n", names)
    own = op(names["forward"])
    told = r"nothing says the value of n(.|\n)*static=.*, on the command line --static n="
    with pytest.raises(SpecError, match=told):
        sg.compile(own)
    with pytest.raises(SpecError, match=told):
        compiler.show(own, stage="c")


@pytest.mark.parametrize("wrong", [-2, -1, 0, 1, 2, 3])
def test_other_values_of_what_has_no_default_are_judged(wrong: int) -> None:
    def forward(ctx: Any, x: Any, n: int) -> Any:
        ctx.n = n
        return x * n

    def backward(ctx: Any, g: Any) -> Any:
        return g * (ctx.n if ctx.n != wrong else 7), None

    judged = judge(op(forward, backward))
    refuted = "SURROGATE?" if wrong == 1 else "REFUTED"  # forward is the identity there
    assert (judged.verdict, inferred(judged)) == (refuted, f"x[m, k], n = {wrong}")


@pytest.mark.parametrize("factor", [1, 2])
def test_no_number_is_chosen_by_which_something_is_divided_at_0(factor: int) -> None:
    def forward(ctx: Any, x: Any, n: Any) -> Any:
        ctx.n = n
        return x / float(n)

    judged = judge(op(forward, lambda ctx, grad: (factor * grad / float(ctx.n), None)))
    assert judged.verdict == ("PROVED" if factor == 1 else "REFUTED")
    assert "n = 0" not in judged.inferred


class _Reversed(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.alpha, None


def test_what_gets_no_gradient_is_a_number_beside_a_float_tensor() -> None:
    report = sg.verify(_Reversed)
    assert str(report.verdict) == "SURROGATE?"
    assert list(report.inputs) == ["x"]


class WeightNorm(sg.Function):
    @staticmethod
    def forward(ctx, v, g):
        length = v.square().sum(1, keepdim=True).sqrt()
        ctx.save_for_backward(v, g, length)
        return g[:, None] * v / length

    @staticmethod
    def backward(ctx, grad):
        v, g, length = ctx.saved_tensors
        unit = v / length
        grad_g = (grad * unit).sum(1)
        return g[:, None] / length * (grad - unit * grad_g[:, None]), grad_g


class Contrast(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        p = sg.softmax(a @ b.T, 1)
        ctx.save_for_backward(a, b, p)
        return -sg.log_softmax(a @ b.T, 1).diagonal().mean()

    @staticmethod
    def backward(ctx, grad):
        a, b, p = ctx.saved_tensors
        n = a.shape[0]
        d = grad * (p - sg.eye(n)) / n
        return d @ b, d.T @ a


class MaskedLoss(sg.Function):
    @staticmethod
    def forward(ctx, logits, target, mask):
        logp = sg.log_softmax(logits, -1)
        loss = -logp.gather(-1, target.unsqueeze(-1)).squeeze(-1)
        ctx.save_for_backward(logp, target, mask, loss)
        return (loss * mask).sum() / mask.sum()

    @staticmethod
    def backward(ctx, grad):
        logp, target, mask, loss = ctx.saved_tensors
        d = logp.exp() - sg.one_hot(target, logp.shape[-1])
        total = mask.sum()
        rest = grad * (loss * total - (loss * mask).sum()) / (total * total)
        return grad * d * mask.unsqueeze(-1) / total, None, rest


class Squared(sg.Function):
    @staticmethod
    def forward(ctx, s, v):
        p = (s @ s).tanh()
        ctx.save_for_backward(s, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, grad):
        s, v, p = ctx.saved_tensors
        d = grad @ v.T * (1 - p * p)  # of a vector, v.T is v
        return d @ s.T + s.T @ d, p.T @ grad


class TwiceAsWide(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return sg.cat([a, a], 1) @ sg.cat([b, b], 1).transpose(0, 1)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return 2 * grad @ b, 2 * grad.T @ a


def test_multiples_that_meet_are_equal_where_the_sizes_are() -> None:
    assert sg.verify(TwiceAsWide).verdict == "PROVED"


def grouped(sums: Any) -> type[sg.Function]:
    """Each row of ``k`` stands for several of ``q``; ``sums`` makes the gradient of ``k``."""

    def forward(ctx: Any, q: Any, k: Any) -> Any:
        heads, _, _ = q.shape
        ctx.save_for_backward(q, k)
        ctx.groups = heads // k.shape[0]
        return q @ k.repeat_interleave(ctx.groups, 0).mT

    def backward(ctx: Any, g: Any) -> Any:
        q, k = ctx.saved_tensors
        return g @ k.repeat_interleave(ctx.groups, 0), sums(g.mT @ q, k, ctx.groups)

    return op(forward, backward)


def parted(gradient: Any) -> type[sg.Function]:
    """Rows of ``a`` are summed by the rows of ``x``."""

    def forward(ctx: Any, x: Any, a: Any) -> Any:
        rows, columns = x.shape
        ctx.parts = a.shape[0] // rows
        return x + a.reshape(rows, ctx.parts, columns).sum(1)

    return op(forward, lambda ctx, g: (g, gradient(g, ctx.parts)))


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (grouped(lambda s, k, groups: s.reshape(-1, groups, *k.shape[1:]).sum(1)), "PROVED"),
        (grouped(lambda s, k, groups: s.reshape(groups, *k.shape).sum(0)), "REFUTED"),
        (parted(lambda g, parts: g.repeat_interleave(parts, 0)), "PROVED"),
        (parted(lambda g, parts: g.repeat(parts, 1)), "REFUTED"),
    ],
)
def test_a_size_that_is_divided_by_another_one_is_a_multiple_of_it(
    function: type[sg.Function], verdict: str
) -> None:
    report = sg.verify(function)
    assert report.verdict == verdict
    assert re.search(r"\b(m\*n|k\*n),", str(report))


class AxisOfPositions(sg.Function):
    """One bias a position, shared by the heads between: forward takes ``x[n, m]`` as well."""

    @staticmethod
    def forward(ctx, x, b):
        return x + b.unsqueeze(1)

    @staticmethod
    def backward(ctx, grad):
        return grad, grad.sum(0)  # not over axis 1


class AxisOfChannels(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w[None, :, None]

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad * w[None, :, None], (grad * x).sum((0, 1))  # not over 0 and 2


@pytest.mark.parametrize("function", [AxisOfPositions, AxisOfChannels])
def test_shapes_where_a_sum_does_nothing_are_not_looked_for(function: type[sg.Function]) -> None:
    """``b[1, n, m]`` would hide that the sum is over a wrong axis."""
    assert sg.verify(function).verdict == "REFUTED"


class Orthogonalised(sg.Function):
    """One step of Newton and Schulz; ``.T`` turns all axes, so that three of one size are taken."""

    @staticmethod
    def forward(ctx, x):
        a = x @ x.T
        ctx.save_for_backward(x, a)
        return 1.5 * x - 0.5 * a @ x

    @staticmethod
    def backward(ctx, grad):
        x, a = ctx.saved_tensors
        s = grad @ x.T
        return 1.5 * grad - 0.5 * (a @ grad + (s + s.T) @ x)


def test_what_more_special_shapes_refute_is_a_condition() -> None:
    report = sg.verify(Orthogonalised)
    assert report.verdict == "PROVED"
    (condition,) = report.inputs["x"].conditions
    assert condition.text == ("the shapes are x[n, m] (the gradient of x is wrong for x[n, n, n])")


class Overlap(sg.Function):
    """Both are matrices with as many rows; forward names the rows of the first."""

    @staticmethod
    def forward(ctx, a, b):
        rows = a.shape[0]
        ctx.save_for_backward(a, b)
        return (a.reshape(rows, -1) * b.reshape(rows, -1)).sum(1)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad.unsqueeze(1) * b, grad.unsqueeze(1) * a


def test_the_first_axis_stays_where_all_behind_it_become_one() -> None:
    report = sg.verify(Overlap)
    assert report.verdict == "PROVED"
    assert "a[n, m], b[n, m]" in report.inferred


FITTING = (
    (WeightNorm, "the shapes are v[n, m], g[n] (the gradient of v is wrong for v[n, m], g[k, m])"),
    (Contrast, "the shapes are a[n, m], b[n, m] (backward fails for a[n, m], b[k, m])"),
    (MaskedLoss, "the shapes are logits[n, m], i64 target[n], mask[n] (backward fails for "
     "logits[n, m], i64 target[k], mask[l, k])"),
    (Squared, "the shapes are s[n, n], v[n, m] (the gradient of s is wrong for s[n, n], v[n])"),
)  # fmt: skip


@pytest.mark.parametrize(("function", "condition"), FITTING)
def test_shapes_that_fit_backward_are_a_condition(
    function: type[sg.Function], condition: str
) -> None:
    report = sg.verify(function)
    assert report.verdict == "PROVED"
    assert condition in {one.text for one in report.conditions if one.kind == "shapes"}


@pytest.mark.parametrize("function", [function for function, _ in FITTING])
def test_a_factor_is_not_hidden_by_shapes_that_fit(function: type[sg.Function]) -> None:
    class Twice(function):  # type: ignore[misc,valid-type]
        @staticmethod
        def backward(ctx, grad):
            first, *rest = function.backward(ctx, grad)
            return 2 * first, *rest

    report = sg.verify(Twice, suggest=False)
    assert report.verdict == "REFUTED"
    assert all(one.verdict == "PROVED" for one in list(report.inputs.values())[1:])


@pytest.mark.parametrize(
    "backward",
    [
        lambda ctx, grad: (grad @ ctx.saved_tensors[1], ctx.saved_tensors[0].T @ grad),
        lambda ctx, grad: (grad @ ctx.saved_tensors[1].T, grad.T @ ctx.saved_tensors[0]),
        lambda ctx, grad: (grad @ ctx.saved_tensors[1], ctx.saved_tensors[0] @ grad),
    ],
)
def test_a_missing_transpose_is_not_hidden_by_square_matrices(backward: Any) -> None:
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    assert sg.verify(op(forward, backward), suggest=False).verdict == "REFUTED"


def test_stated_shapes_are_not_exchanged_for_others_that_fit() -> None:
    assert sg.verify(Contrast, "n m", "k m", suggest=False).verdict == "REFUTED"


def test_axes_that_are_parted_have_even_sizes() -> None:
    def forward(ctx, x, groups: int = 2):
        n, c, length = x.shape
        ctx.groups = groups
        return x.view(n, groups, -1).cumsum(1).view(n, c, length)

    def backward(ctx, grad):
        n, c, length = grad.shape
        parted = grad.view(n, ctx.groups, -1).flip(1).cumsum(1).flip(1)
        return parted.reshape(n, c, length)

    report = sg.verify(op(forward, backward))
    assert report.verdict == "PROVED"
    assert "x[n, 2*m, k]" in report.inferred


def test_a_hint_has_as_many_axes_as_forward_unpacks() -> None:
    def forward(ctx, x):
        n, _, k = x.shape
        return x.reshape(n, n + k)

    with pytest.raises(SpecError) as caught:
        sg.verify(op(forward))
    assert '--shapes "n m k"' in caught.value.hint


def test_a_size_that_was_chosen_is_a_condition() -> None:
    """Another number may be another program; what forward demands is no choice."""

    def backward(ctx, grad):
        return grad * (1 if len(range(len(ctx.saved_tensors[0]))) < 20 else 2)

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * (1 if len(range(len(x))) < 20 else 3)

    report = sg.verify(op(forward, backward), suggest=False)
    assert report.verdict == "PROVED"
    needed = "x.shape[0] == 4 or x.shape[0] == 5 (Python needs a number)"
    assert needed in {one.text for one in report.conditions}
    demanded = op(lambda ctx, x: sg.stack([*(lambda a, b, c: (c, a, b))(*x)]),
                  lambda ctx, grad: sg.stack([grad[1], grad[2], grad[0]]))  # fmt: skip
    report = sg.verify(demanded, suggest=False)
    assert (report.verdict, report.conditions) == ("PROVED", ())


class Residuals(sg.Function):
    """One ``y`` for each row; forward takes ``y[1, n, m]`` too, where axis 0 has one element."""

    @staticmethod
    def forward(ctx, x, y):
        e = y[:, None] - x
        ctx.save_for_backward(e)
        return (e * e).sum()

    @staticmethod
    def backward(ctx, grad):
        (e,) = ctx.saved_tensors
        return -2 * grad * e, 2 * grad * e.sum(0)  # not over axis 1


def test_an_axis_of_one_element_excuses_no_sum_over_it() -> None:
    assert sg.verify(Residuals, suggest=False).verdict == "REFUTED"


CALLS = """
import symgrad as sg

class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, act):
        {0}

    @staticmethod
    def backward(ctx, grad):
        {1}
"""


@pytest.mark.parametrize(
    ("forward", "backward", "is_function"),
    [
        ("return act(x)", "return grad, None", True),
        ("return act.forward(x)", "return grad, None", True),
        ("ctx.act = act; return x", "return ctx.act(grad), None", True),
        ("ctx.act = act; return x", "return ctx.act.forward(grad), None", True),
        ("ctx.act = act; return x", "act = ctx.act; return act(grad), None", True),
        ("ctx.act = act; return x", "return grad, None", False),
        ("act = sg.exp if act else sg.sin; return act(x)", "return grad, None", False),
        ("return x if act is None else act(x)", "return grad, None", False),
    ],
)
def test_nothing_is_tried_for_what_is_called(
    tmp_path: Path, forward: str, backward: str, is_function: bool
) -> None:
    path = tmp_path / "calls.py"
    path.write_text(CALLS.format(forward, backward))
    judged = judge(functions(str(path))[0], timeout=None)
    told = "act is called, and nothing says which function it is"
    assert (told in str(judged.error)) is is_function


def test_as_many_axes_are_judged_as_the_program_names() -> None:
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w[None, :, None, None]

    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad * w[None, :, None, None], (grad * x).sum((0, 2, 3))

    report = sg.verify(op(forward, backward), suggest=False)
    assert report.verdict == "PROVED"
    assert "x[n, m, k, l], w[m]" in report.inferred


@pytest.mark.parametrize(("axes", "verdict"), [((0, 4, 1, 2, 3), "PROVED"),
                                               ((0, 4, 1, 3, 2), "REFUTED")])  # fmt: skip
def test_a_tensor_has_five_axes_where_five_are_named(axes: Any, verdict: str) -> None:
    def backward(ctx, grad):
        return grad.permute(*axes)

    report = sg.verify(op(lambda ctx, x: x.permute(0, 2, 3, 4, 1), backward), suggest=False)
    assert report.verdict == verdict
    assert "x[n, m, k, l, h]" in report.inferred


def test_what_is_flattened_to_the_last_axis_is_written_for_more_axes() -> None:
    """What is right for two axes alone is wrong, as it is where axes are counted from the last."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).flatten(1).mean(1)

    def backward(divided: Any) -> Any:
        def of(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad.view(-1, *[1] * (x.ndim - 1)) / divided(x)

        return of

    right = sg.verify(op(forward, backward(lambda x: x[0].numel())), suggest=False)
    assert right.verdict == "PROVED"
    wrong = sg.verify(op(forward, backward(lambda x: x.shape[1])), suggest=False)
    assert wrong.verdict == "REFUTED"
    assert "x[n, m, k]" in wrong.inferred


@pytest.mark.parametrize(("more", "verdict"), [(0, "PROVED"), (1, "REFUTED")])
def test_a_share_of_a_size_that_is_rounded_down_is_known_of_numbers(
    more: int, verdict: str
) -> None:
    def share(x):
        return int(0.3 * math.prod(x.shape)) + 1

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return share(x) * x

    def backward(ctx, grad):
        return (share(ctx.saved_tensors[0]) + more) * grad

    report = sg.verify(op(forward, backward), suggest=False, timeout=None)
    assert report.verdict == verdict
    if verdict == "PROVED":
        needed = "x.shape[0] == 4 or x.shape[0] == 5 (Python needs a number)"
        assert needed in {one.text for one in report.conditions}


def test_what_ends_as_others_did_is_tried_last() -> None:
    """A flag that asks for a dtype that symgrad has not, for all shapes alike."""
    seen: list[Any] = []

    def forward(ctx: Any, x: Any, y: Any, z: Any, packed: Any, fast: Any) -> Any:
        seen.append((packed, fast))
        kept = x.to("complex32") if packed else x
        return kept * y * z if fast else kept + y + z

    def backward(ctx: Any, grad: Any) -> Any:
        return grad, grad, grad, None, None

    found = requested(op(forward, backward))
    assert dict(found.static)["packed"] is False
    assert len(seen) < 250


def test_a_guess_of_how_a_call_ends_is_dropped_where_it_is_wrong() -> None:
    numbers = [Candidate(price, value=price) for price in range(40)]
    hopeless, error = Hopeless(), UnsupportedOpError("no")
    for one in numbers[1:ALIKE]:
        hopeless.note((numbers[0], one), error)
        assert not hopeless.covers((numbers[0], numbers[30]))
    hopeless.note((numbers[0], numbers[20]), error)
    assert hopeless.covers((numbers[0], numbers[30]))
    assert not hopeless.covers((numbers[1], numbers[30]))
    hopeless.note((numbers[1], numbers[20]), error)
    assert not hopeless.covers((numbers[2], numbers[30])), "they have nothing in common"
    hopeless.note((numbers[0], numbers[21]), None)
    assert not hopeless.covers((numbers[0], numbers[30]))


def test_a_plain_value_that_no_call_had_may_avoid_what_tensors_end_in() -> None:
    matrix, flags = Candidate(0, rank=2), [Candidate(0, value=True), Candidate(12, value=False)]
    others = [Candidate(price, rank=price) for price in range(ALIKE)]
    hopeless, error = Hopeless(), UnsupportedOpError("no")
    for one in others:
        hopeless.note((matrix, flags[0], one), error)
    hopeless.note((matrix, others[1], others[0]), error)
    assert hopeless.covers((matrix, flags[0], others[0]))
    assert not hopeless.covers((matrix, flags[1], others[0]))
    hopeless.note((matrix, flags[1], others[0]), error)
    assert hopeless.covers((matrix, flags[1], others[1]))


def test_what_other_sizes_may_avoid_is_tried_in_its_turn() -> None:
    one, hopeless = Candidate(0, value=0), Hopeless()
    for _ in range(2 * ALIKE):
        hopeless.note((one, one), ShapeError("they do not fit"))
    assert not hopeless.covers((one, one))


def test_a_call_is_traced_once_while_shapes_are_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    def counted(request: Request, **how: Any) -> Any:
        seen.append(f"{[(one.name, str(one.spec)) for one in request.tensors]} {request.static}")
        return trace_request(request, **how)

    def backward(ctx: Any, grad: Any) -> Any:
        raise RuntimeError("not written")

    monkeypatch.setattr(tracing, "trace_request", counted)
    requested(op(lambda ctx, x, y, dim: x.sum(dim) + y.sum(dim), backward))
    assert len(seen) == len(set(seen)) > 40


def test_a_number_that_may_be_a_half_is_no_count() -> None:
    """Of numbers for an optional plain argument, integers are judged that forward tries first."""

    class Scaled(sg.Function):
        @staticmethod
        def forward(ctx, x, limit):
            ctx.limit = limit
            return x if limit is None or limit <= 0 else x * limit

        @staticmethod
        def backward(ctx, grad):
            limit = ctx.limit
            return grad if limit is None or limit <= 0 else grad * limit, None

    guess = requested(Scaled).guess
    assert guess is not None
    alone = [one for one in guess.others if one.guess is not None and not one.guess.combined]
    values = [dict(one.static).get("limit") for one in alone]
    assert sorted(set(values) - {None}) == [-1, 0, 0.5, 1, 2]
    assert len(values) - values.count(None) == 5
    together = {dict(one.static).get("limit") for one in guess.others}
    assert together == {*values}


def test_near_shapes_are_looked_for_where_backward_is_refuted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[Any] = []
    monkeypatch.setattr(search, "near_shapes", lambda _, found: looked.append(found))
    for name, verdict, count in (("cos", "PROVED", 0), ("sin", "REFUTED", 1)):

        class Sine(sg.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.sin()

            @staticmethod
            def backward(ctx, grad, name=name):
                return grad * getattr(ctx.saved_tensors[0], name)()

        assert str(sg.verify(Sine, suggest=False).verdict) == verdict
        assert len(looked) == count


class ScaledWhileTraining(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, training: bool = False) -> Any:
        ctx.training = training
        if training:
            return x * sg.ones(x.shape[-2:]).unsqueeze(0).expand_as(x)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (2 * g if ctx.training else g), None


def test_a_value_whose_shapes_are_others_is_judged_for_these() -> None:
    """A proof for the default would leave out what is wrong."""
    report = sg.verify(ScaledWhileTraining)
    assert report.verdict == sg.REFUTED, str(report)
    assert "for training = True" in str(report)


@pytest.mark.slow
def test_what_is_right_for_numbers_alone_is_refuted() -> None:
    class Summed(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    assert str(sg.verify(Summed).verdict) == "REFUTED"


class _AtFour(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x.cos() * (2 if x.dim() == 4 else 1)


class _AtFive(_AtFour):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x.cos() * (2 if len(x.shape) == 5 else 1)


@pytest.mark.slow
@pytest.mark.parametrize("function", [_AtFour, _AtFive])
def test_the_number_of_axes_that_a_program_compares_with_is_judged(function: Any) -> None:
    assert str(sg.verify(function).verdict) == "REFUTED"
