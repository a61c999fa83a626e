"""What the arguments of a class are, found by what its code does with them."""

from __future__ import annotations

import linecache
import math
import re
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.interop.torch import adapted  # noqa: E402
from symgrad.shapes import requested  # noqa: E402
from symgrad.shapes.tracing import Search  # noqa: E402

pytestmark = pytest.mark.peers

F: Any = torch.nn.functional
FUNCTION: Any = torch.autograd.Function


def judged(cls: Any) -> sg.Report:
    return sg.verify(cls, suggest=False, timeout=None)


class Shift(FUNCTION):
    """A shape of five axes is taken apart; ``fold`` bounds slices."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, fold: Any) -> Any:
        n, t, c, h, w = x.size()
        ctx.fold = fold
        out = x.new_zeros(n, t, c, h, w)
        out[:, :-1, :fold] = x[:, 1:, :fold]
        out[:, :, fold:] = x[:, :, fold:]
        return out

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        out = torch.zeros_like(g)
        out[:, 1:, : ctx.fold] = g[:, :-1, : ctx.fold]
        out[:, :, ctx.fold :] = g[:, :, ctx.fold :]
        return cls.scale * out, None


class Cell(FUNCTION):
    """Sizes meet in ``linear``."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, z: Any, weights: Any) -> Any:
        ctx.save_for_backward(weights)
        return F.linear(x + z, weights)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (weights,) = ctx.saved_tensors
        return g @ weights, cls.scale * g @ weights, None


class Rows(FUNCTION):
    """All axes but the last become one; that has the size of the book's."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, book: Any) -> Any:
        ctx.save_for_backward(book)
        return x.view(-1, book.size(1)) @ book.t()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (book,) = ctx.saved_tensors
        return cls.scale * (g @ book), None


class Parts(FUNCTION):
    """What is left behind the third element meets three: one element is stretched."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        v, w = x[..., :3], x[..., 3:]
        ctx.save_for_backward(v, w)
        return v * w

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        v, w = ctx.saved_tensors
        return torch.cat([cls.scale * g * w, (g * v).sum(-1, keepdim=True)], -1)


def _scaled(x: Any, half_mode: bool) -> Any:
    return x * 0.5 if half_mode is True else x


class Switch(FUNCTION):
    """A flag is handed on to a function, which asks for it."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, half_mode: Any) -> Any:
        ctx.half_mode = half_mode
        return _scaled(x, half_mode)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.scale * _scaled(g, ctx.half_mode), None


class Segments(FUNCTION):
    """``count`` is a size."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, index: Any, count: Any) -> Any:
        ctx.save_for_backward(index)
        return x.new_zeros(count, x.size(1)).index_add_(0, index, x)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (index,) = ctx.saved_tensors
        return cls.scale * g.index_select(0, index), None, None


class Depthwise(FUNCTION):
    """Each channel has a kernel, whose sizes have to be numbers."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, kernel: Any) -> Any:
        ctx.save_for_backward(x, kernel)
        return F.conv1d(x, kernel, groups=x.shape[1])

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, kernel = ctx.saved_tensors
        by_input = torch.nn.grad.conv1d_input(x.shape, kernel, g, groups=x.shape[1])
        by_kernel = torch.nn.grad.conv1d_weight(x, kernel.shape, g, groups=x.shape[1])
        return cls.scale * by_input, cls.scale * by_kernel


class Triangle(FUNCTION):
    """The sizes of a matrix have to be numbers."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.places = torch.ones(x.shape[-1], x.shape[-1]).triu().nonzero()
        return x[ctx.places[:, 0], ctx.places[:, 1]]

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        size = int(ctx.places.max()) + 1
        out = g.new_zeros(size, size)
        out[ctx.places[:, 0], ctx.places[:, 1]] = cls.scale * g
        return out


class Lettered(FUNCTION):
    """The letters of an equation say how many axes tensors have."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, core: Any, left: Any, right: Any) -> Any:
        ctx.save_for_backward(core, left, right)
        return torch.einsum("i j k l, j r, i p -> p r k l", core, right, left)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        core, left, right = ctx.saved_tensors
        g = cls.scale * g
        by_core = torch.einsum("prkl,jr,ip->ijkl", g, right, left)
        by_left = torch.einsum("prkl,ijkl,jr->ip", g, core, right)
        return by_core, by_left, torch.einsum("prkl,ijkl,ip->jr", g, core, left)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [Shift, Parts, Switch, Segments, Depthwise, Triangle, Lettered])
def test_arguments_are_found(cls: Any) -> None:
    assert str(judged(cls).verdict) == "PROVED"
    assert str(judged(type("Wrong", (cls,), {"scale": 2})).verdict) == "REFUTED"


@pytest.mark.parametrize(("cls", "wrong"), [(Cell, "z"), (Rows, "x")])
def test_sizes_that_meet_are_one(cls: Any, wrong: str) -> None:
    for scale, verdict in ((1, "PROVED"), (2, "REFUTED")):
        report = judged(type("Scaled", (cls,), {"scale": scale}))
        assert str(report.inputs[wrong].verdict) == verdict


class Rotation(FUNCTION):
    """Backward asks for four elements, forward does not."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        if x.shape[-1] != 4:
            raise ValueError("four elements")
        return cls.scale * 2 * x * g


def test_a_size_that_backward_asks_for_is_a_condition() -> None:
    report = judged(Rotation)
    assert str(report.verdict) == "PROVED"
    assert "x[n, 4] (backward fails for x[n, m])" in str(report)
    assert str(judged(type("Wrong", (Rotation,), {"scale": 2})).verdict) == "REFUTED"


class Asking(FUNCTION):
    """A number that has to be a tensor; forward is flat, backward is not."""

    @staticmethod
    def forward(ctx: Any, x: Any, width: Any) -> Any:
        ctx.width = width
        ctx.save_for_backward(x)
        return x.floor()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x * ctx.width.to(x), None


def test_a_number_that_is_asked_what_tensors_are_is_run_as_a_tensor() -> None:
    (one,) = [one for one in judged(Asking).inputs.values() if one.replayed is not None]
    assert one.replayed.confirmed


CACHING = """
import functools

def shape_of(sizes):
    return (sizes[0] * sizes[1],)

kept = functools.lru_cache(16)(shape_of)

def flat(x):
    try:
        shape = kept(tuple(x.shape))
    except TypeError:
        shape = shape_of(tuple(x.shape))
    return x.reshape(shape)
"""


def _library(name: str) -> Any:
    module = ModuleType(name)
    path = f"<{name}>"
    linecache.cache[path] = (len(CACHING), None, CACHING.splitlines(keepends=True), path)
    exec(compile(CACHING, path, "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("name", ["einops.some", "another"])
def test_a_library_may_keep_what_it_finds_for_sizes(name: str) -> None:
    library = _library(name)

    class Flat(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return library.flat(x) ** 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * g.view(x.shape) * x

    assert str(sg.verify(Flat, "n m", suggest=False, timeout=None).verdict) == "PROVED"


class Replaced(FUNCTION):
    """Forward is one tensor, backward the gradient of another."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return y * y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.scale * g, None


class Kept(Replaced):
    """Forward uses the tensor that gets a gradient: a mistake."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return y * x


def test_the_gradient_of_a_tensor_that_another_one_stands_for_is_named() -> None:
    report = judged(Replaced)
    assert str(report.verdict) == "SURROGATE?"
    assert report.inputs["x"].surrogate == "is the derivative of `x` in place of forward"
    assert str(judged(Kept).verdict) == "REFUTED"


class Nearest(FUNCTION):
    """Rows of a book, and which they are; the gradient goes through to what was compared."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, book: Any) -> Any:
        at = ((x[:, None] - book[None]) ** 2).sum(-1).argmin(1)
        ctx.save_for_backward(at, book)
        ctx.mark_non_differentiable(at)
        return book[at], at

    @classmethod
    def backward(cls, ctx: Any, g: Any, _: Any) -> Any:
        at, book = ctx.saved_tensors
        return cls.scale * g, torch.zeros_like(book).index_add_(0, at, g)


def test_outputs_without_a_gradient_hide_no_name() -> None:
    report = sg.verify(Nearest, "n m", "k m", suggest=False, timeout=None)
    assert str(report.verdict) == "SURROGATE?"
    assert str(report.inputs["book"].verdict) == "PROVED"
    assert report.inputs["x"].surrogate == "is the derivative of `x` in place of forward"


class Smoothed(FUNCTION):
    """``a`` is a number; forward takes one for each row as well."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, a: Any) -> Any:
        h, rows = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            h = a * h + (1 - a) * x[:, t]
            rows.append(h)
        y = torch.stack(rows, 1)
        ctx.save_for_backward(x, a, y)
        return y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, a, y = ctx.saved_tensors
        of_a, of_h, of_x = torch.zeros_like(a), torch.zeros_like(g[:, 0]), []
        for t in range(g.shape[1] - 1, -1, -1):
            of_h = of_h + g[:, t]
            of_x.append((1 - a) * of_h)
            before = y[:, t - 1] if t > 0 else torch.zeros_like(of_h)
            of_a = of_a + (of_h * (before - x[:, t])).sum()
            of_h = a * of_h
        return cls.scale * torch.stack(of_x[::-1], 1), of_a


class Weights(FUNCTION):
    """Filters of three axes, with a length for each; forward takes matrices and one number."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, v: Any, g: Any) -> Any:
        norm = v.flatten(1).norm(dim=1).view(-1, 1, 1)
        ctx.save_for_backward(v, g, norm)
        return g * v / norm

    @classmethod
    def backward(cls, ctx: Any, grad: Any) -> Any:
        v, g, norm = ctx.saved_tensors
        of_g = (grad * v).sum((1, 2), keepdim=True) / norm
        return cls.scale * (g / norm * grad - g * of_g / norm**2 * v), of_g


class Divergence(FUNCTION):
    """The mean over rows; of three axes, it would be one over pairs."""

    scale = 1

    @classmethod
    def forward(cls, ctx: Any, mu: Any) -> Any:
        ctx.save_for_backward(mu)
        return mu.pow(2).sum(1).mean() / 2

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (mu,) = ctx.saved_tensors
        return cls.scale * g * mu / mu.shape[0]


NATURAL = (
    (Smoothed, "x", "the shapes are x[n, 4], a[] (the gradient of a is wrong for x[n, 4], a[n])"),
    (Weights, "v", "the shapes are v[n, m, k], g[n, 1, 1] (the gradient of v is wrong for v[n, m], "
     "g[])"),
    (Divergence, "mu", "the shapes are mu[n, m] (the gradient of mu is wrong for mu[n, m, k])"),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "wrong", "condition"), NATURAL)
def test_shapes_that_are_taken_by_accident_are_a_condition(
    cls: Any, wrong: str, condition: str
) -> None:
    report = judged(cls)
    assert str(report.verdict) == "PROVED"
    assert condition in {one.text for one in report.conditions if one.kind == "shapes"}
    report = judged(type("Wrong", (cls,), {"scale": 2}))
    assert str(report.inputs[wrong].verdict) == "REFUTED"


class Duplicated(FUNCTION):
    """By the duplication formula of Legendre, which the proof does not know; of matrices."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.lgamma() + (x + 0.5).lgamma()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return (g.t() * (2 * torch.digamma(2 * x.t()) - 2 * math.log(2))).t()


def test_what_is_undecided_of_matrices_is_not_refuted_by_more_axes() -> None:
    """Backward fails for these, as a condition says."""
    report = judged(Duplicated)
    assert str(report.verdict) == "UNDECIDED"
    conditions = {one.text for one in report.conditions}
    assert conditions == {"the shapes are x[n, m] (backward fails for x[n, m, k])"}


def test_more_axes_are_no_accident_where_they_are_counted_from_the_last() -> None:
    class Last(Divergence):
        @classmethod
        def forward(cls, ctx: Any, mu: Any) -> Any:
            ctx.save_for_backward(mu)
            return mu.pow(2).sum(-1).mean() / 2

    assert str(judged(Last).verdict) == "REFUTED"


class Added(FUNCTION):
    """What is added is a row, whose gradient is no number."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, bias: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x.mm(w.t()) + bias

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g.mm(w), g.t().mm(x), g.sum()


class AddedRow(Added):
    """It is called otherwise, but gets an axis."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, c: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x.mm(w.t()) + c.unsqueeze(0)


class AddedNumber(Added):
    """Nothing says that it has axes."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, c: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x.mm(w.t()) + c


@pytest.mark.parametrize("cls", [Added, AddedRow])
def test_a_bias_is_no_number(cls: Any) -> None:
    report = judged(cls)
    assert str(report.verdict) == "REFUTED"
    assert [name for name, one in report.inputs.items() if str(one.verdict) == "REFUTED"] in (
        ["bias"], ["c"],
    )  # fmt: skip


def test_more_general_shapes_for_which_backward_fails_are_named() -> None:
    report = judged(AddedNumber)
    assert str(report.verdict) == "PROVED"
    assert "Forward takes x[n, m], w[k, m], c[k] as well: backward fails there." in report.inferred


class Placed(FUNCTION):
    """Backward alone says that it is given an index."""

    scale = 0

    @staticmethod
    def forward(ctx: Any, x: Any, places: Any) -> Any:
        ctx.save_for_backward(places)
        return 2 * x

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (places,) = ctx.saved_tensors
        out = 2 * g
        return out.scatter_add_(1, places, cls.scale * g), None


def test_an_index_that_backward_alone_reads() -> None:
    assert "i64 places" in str(judged(Placed))
    shapes = "n m; i64[n m]"
    assert sg.verify(Placed, shapes).verdict == "PROVED"

    class Wrong(Placed):
        scale = 1

    assert sg.verify(Wrong, shapes).verdict == "REFUTED"


def repeating(reduced: Any) -> Any:
    """A product whose backward takes the axes back that an operand was repeated along."""

    def fitted(g: Any, shape: Any) -> Any:
        while g.dim() > len(shape):
            g = reduced[0](g)
        for axis, size in enumerate(shape):
            if size == 1:
                g = reduced[1](g, axis)
        return g

    class Product(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return fitted(g * y, x.shape), fitted(g * x, y.shape)

    return Product


def whole(g: Any) -> Any:
    return g.sum(0)


def kept(g: Any, axis: int) -> Any:
    return g.sum(axis, keepdim=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reduced", "expected"),
    [
        ((whole, kept), "PROVED"),
        ((lambda g: g.mean(0), kept), "REFUTED"),
        ((whole, lambda g, axis: g.mean(axis, keepdim=True)), "REFUTED"),
        ((whole, lambda g, axis: 2 * g.sum(axis, keepdim=True)), "REFUTED"),
    ],
)
def test_a_backward_that_takes_axes_back_is_judged_where_it_does(
    reduced: Any, expected: str
) -> None:
    report = judged(repeating(reduced))
    assert str(report.verdict) == expected
    if expected == "PROVED":
        assert {"x[n, m], y[n, 1]", "x[n, m], y[m]", "x[1, n], y[m, n]"} <= set(report.beside)


class Mse(FUNCTION):
    """It counts the elements of one argument, which is right for equal shapes alone."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return ((x - y) ** 2).mean()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        part = g * 2 * (x - y) / x.numel()
        return part, -part


def test_a_backward_that_is_written_for_equal_shapes_is_judged_for_these() -> None:
    """The gradient of y may be larger, and is summed; that of x is wrong where x is repeated."""
    report = judged(Mse)
    assert str(report.verdict) == "PROVED"
    summed = ["x[n, m], y[1, m]", "x[n, m], y[n, 1]", "x[n, m], y[m]"]
    assert list(report.beside)[-3:] == summed
    assert "y[1, m] (PROVED; PyTorch sums a larger gradient)" in report.inferred
    (condition,) = report.conditions
    assert "(the gradients of x and y are wrong for x[1, n], y[m, n])" in condition.text


def expanded(g: Any, y: Any) -> Any:
    return g.sum(0).expand_as(g) if y.dim() == 1 and g.dim() == 2 else g


def divided(g: Any, y: Any) -> Any:
    return g / g.shape[0] if y.shape != g.shape else g


def cut(g: Any, y: Any) -> Any:
    return g[..., :1] if y.shape[-1] == 1 and g.shape[-1] != 1 else g


def averaged(g: Any, y: Any) -> Any:
    for axis in range(g.dim()):
        if y.dim() == g.dim() and y.shape[axis] == 1 and g.shape[axis] > 1:
            g = g.mean(axis, keepdim=True)
    return g


def of_three_axes(g: Any, y: Any) -> Any:
    return g.sum(0).mean(0) if g.dim() == 3 and y.dim() == 1 else g


def as_it_is(g: Any, y: Any) -> Any:
    return g


def added_product(back: Any) -> Any:
    """The last of three operands is treated in a way of its own where it is repeated."""

    class AddedProduct(FUNCTION):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, c: Any) -> Any:
            ctx.save_for_backward(b, c)
            return a + b * c

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            b, c = ctx.saved_tensors
            return g, g * c, back(g * b, c)

    return AddedProduct


@pytest.mark.parametrize(
    ("back", "shapes"),
    [
        (expanded, "a[n, m], b[n, m], c[m]"), (divided, "a[n, m], b[n, m], c[1, m]"),
        (cut, "a[n, m], b[n, m], c[n, 1]"), (averaged, "a[n, m], b[n, m], c[1, m]"),
        (of_three_axes, "a[n, m, k], b[n, m, k], c[k]"),
    ],
)  # fmt: skip
def test_a_mistake_for_repeated_operands_alone_is_refuted(back: Any, shapes: str) -> None:
    report = judged(added_product(back))
    assert (str(report.verdict), report.guessed) == ("REFUTED", shapes)


def test_each_operand_is_judged_where_torch_sums_its_gradient() -> None:
    report = judged(added_product(as_it_is))
    assert (str(report.verdict), report.conditions) == ("PROVED", ())
    repeated = {f"c[{shape}]" for shape in ("1, m", "n, 1", "m")}
    assert {f"a[n, m], b[n, m], {one}" for one in repeated} <= set(report.beside)


class Factor(FUNCTION):
    """The gradients are of the shape of the output, whatever that of the factor is."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: Any) -> Any:
        ctx.save_for_backward(x, factor)
        return torch.exp(x * factor)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, factor = ctx.saved_tensors
        y = torch.exp(x * factor)
        return g * y * factor, g * y * x


class WrongFactor(Factor):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, factor = ctx.saved_tensors
        y = torch.exp(x * factor)
        return g * y * factor, g * y * x / factor.shape[0]


def test_a_gradient_that_torch_sums_is_judged_for_tensors_that_broadcast() -> None:
    report = judged(Factor)
    assert str(report.verdict) == "PROVED"
    assert "x[n, m], factor[1, m]" in report.beside
    for shape in ("m", "1 m", "n 1", ""):
        stated = sg.verify(Factor, "n m", shape, suggest=False)
        assert str(stated.verdict) == "PROVED"
        assert "as PyTorch does" in str(stated)
        wrong = sg.verify(WrongFactor, "n m", shape, suggest=False) if shape else None
        right = shape == "1 m"  # there is one row
        assert wrong is None or str(wrong.verdict) == ("PROVED" if right else "REFUTED")


@pytest.mark.parametrize("own", [(), (1,), (3,), (1, 3), (2, 3), (2, 1), (3, 2), (1, 1)])
@pytest.mark.parametrize("its", [(), (3,), (2, 3), (1, 2, 3), (2, 1), (1,), (4, 2, 3), (2,)])
def test_gradients_of_other_shapes_are_summed_or_refused_as_by_torch(own: Any, its: Any) -> None:
    class Given(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.expand(its)

    x = torch.ones(own, requires_grad=True)
    try:
        Given.apply(x).backward()
        right = torch.equal(x.grad, torch.ones(own))
    except RuntimeError:
        right = False
    report = sg.verify(Given, " ".join(map(str, own)), suggest=False)
    assert (str(report.verdict) == "PROVED") is right


class TwoParts(FUNCTION):
    """The gradients have their arguments' shapes, whatever these are: nothing is taken back."""

    @staticmethod
    def forward(ctx: Any, mean: Any, log: Any) -> Any:
        ctx.save_for_backward(mean, log)
        return (mean.pow(2) + log.exp() - log - 1).sum(1).mean(0) / 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        mean, log = ctx.saved_tensors
        return g * mean / mean.shape[0], g * (log.exp() - 1) / 2 / mean.shape[0]


def test_gradients_of_the_right_shape_by_themselves_are_not_written_for_repeated_tensors() -> None:
    report = judged(TwoParts)
    assert str(report.verdict) == "PROVED"
    assert not any("1" in shapes for shapes in report.beside)


class Pairs(FUNCTION):
    """A function of rows, which takes a vector by accident: its gradient has two axes then."""

    counts = (1, 1)

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        every = x.new_ones(x.shape[0], x.shape[0])
        return (((x[:, None] - x[None]) ** 2).sum(-1) * every).sum(1)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        d = x[:, None] - x[None]
        part = 2 * (cls.counts[0] * g[:, None] + cls.counts[1] * g[None])
        return (part[..., None] * d).sum(1)


class WrongPairs(Pairs):
    counts = (1, 2)


class Spread(FUNCTION):
    """Its gradient has an axis more, whatever it is given: torch sums it down."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.exp()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return torch.stack([g, g])


def test_ranks_for_which_a_gradient_has_another_shape_are_a_condition() -> None:
    report = judged(Pairs)
    assert str(report.verdict) == "PROVED"
    conditions = [str(one) for one in report.inputs["x"].conditions]
    assert any("the shapes are x[n, m]" in one and "x[n])" in one for one in conditions)


@pytest.mark.parametrize("cls", [WrongPairs, Spread])
def test_what_is_wrong_at_every_rank_is_refuted(cls: Any) -> None:
    assert str(judged(cls).verdict) != "PROVED"
    assert str(judged(cls).verdict) != "UNDECIDED"


def halves(factor: float) -> Any:
    class Halves(FUNCTION):
        """Odd sizes are refused in the class's own words; even ones are split."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if x.size(1) % 2 != 0:
                raise RuntimeError(f"{x.size(1)} is odd")
            left, right = x.chunk(2, dim=1)
            ctx.save_for_backward(left, right)
            return left * right

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            left, right = ctx.saved_tensors
            return torch.cat([g * right, factor * g * left], dim=1)

    return Halves


def test_even_sizes_are_found_where_odd_ones_are_refused() -> None:
    right, wrong = judged(halves(1.0)), judged(halves(0.5))
    assert str(right.verdict) == "PROVED"
    assert "2*m" in str(right)
    assert str(wrong.verdict) == "REFUTED"


class Gathered(FUNCTION):
    """What is kept as an attribute is an index, which backward alone reads, behind an axis more."""

    scale = 0

    @staticmethod
    def forward(ctx: Any, x: Any, rows: Any) -> Any:
        ctx.rows = rows
        return 2 * x

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        rows = ctx.rows.unsqueeze(-1).expand(g.shape)
        return 2 * g + cls.scale * torch.gather(g, 0, rows), None


class Batched(FUNCTION):
    """Backward alone says that it is given a batch of matrices."""

    scale = 0

    @staticmethod
    def forward(ctx: Any, x: Any, blocks: Any) -> Any:
        ctx.save_for_backward(blocks)
        return 2 * x

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (blocks,) = ctx.saved_tensors
        return 2 * g + cls.scale * torch.bmm(blocks, blocks.transpose(1, 2)).sum() * g, None


@pytest.mark.parametrize(
    ("cls", "shapes"), [(Gathered, "i64 rows[n]"), (Batched, "blocks[k, l, h]")]
)
def test_what_backward_alone_reads_is_what_backward_takes(cls: Any, shapes: str) -> None:
    report = judged(cls)
    assert str(report.verdict) == "PROVED"
    assert shapes in report.inferred
    report = judged(type("Wrong", (cls,), {"scale": 1}))
    assert str(report.verdict) in ("REFUTED", "SURROGATE?")
    assert "backward failed" not in str(report)


class Decayed(FUNCTION):
    """``options`` has parts that have parts."""

    @staticmethod
    def forward(ctx: Any, x: Any, options: Any) -> Any:
        ctx.options = options
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (2 if ctx.options.decay.right else 3) * g, None


@pytest.mark.parametrize(("right", "verdict"), [(True, "PROVED"), (False, "REFUTED")])
def test_nothing_stands_for_what_has_parts_of_parts(right: bool, verdict: str) -> None:
    with pytest.raises(sg.errors.SpecError, match="nothing says what options is"):
        judged(Decayed)
    options, decay = ModuleType("options"), ModuleType("decay")
    options.decay, decay.right = decay, right  # type: ignore[attr-defined]
    report = sg.verify(Decayed, static={"options": options}, suggest=False, timeout=None)
    assert str(report.verdict) == verdict


class Padded(FUNCTION):
    """Its backward fits windows of three elements alone."""

    axes = (2, 3)

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return F.conv2d(x, w, padding=1)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        own = torch.nn.grad.conv2d_weight(x, w.shape, g, padding=1)
        return F.conv2d(g, w.flip(cls.axes).transpose(0, 1), padding=1), own


@pytest.mark.slow
@pytest.mark.parametrize(("axes", "verdict"), [((2, 3), "PROVED"), ((2,), "REFUTED")])
def test_windows_have_the_number_that_fits_backward(axes: Any, verdict: str) -> None:
    report = judged(type("Twin", (Padded,), {"axes": axes}))
    assert str(report.inputs["x"].verdict) == verdict
    assert "w[h, m, 3, 3]" in report.inferred


class PerChannel(FUNCTION):
    """One number a channel; backward names the axes of a batch of pictures."""

    axes = (0, 2, 3)

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, b: Any) -> Any:
        assert x.shape == y.shape
        ctx.save_for_backward(x, y)
        return x * y + b[:, None, None]

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y, g * x, g.sum(cls.axes)


@pytest.mark.slow
@pytest.mark.parametrize(("axes", "verdict"), [((0, 2, 3), "PROVED"), ((1, 2, 3), "REFUTED")])
def test_tensors_have_the_axes_that_backward_names(axes: Any, verdict: str) -> None:
    report = judged(type("Twin", (PerChannel,), {"axes": axes}))
    assert str(report.verdict) == verdict


class Unnamed(FUNCTION):
    """Forward gives names to what it is given, and one of them is kept at once."""

    power = 2

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """A text before that."""
        x, weight, bias, ctx.slope, eps, training = args
        ctx.save_for_backward(x, weight, bias)
        ctx.eps, ctx.training = eps, training
        return ctx.slope * (x * weight + bias) / (1 + eps**2)

    @classmethod
    def backward(cls, ctx: Any, *grads: Any) -> Any:
        x, weight, bias = ctx.saved_tensors
        part = grads[0] * ctx.slope / (1 + ctx.eps**cls.power)
        own = (part * x).sum_to_size(weight.shape), part.sum_to_size(bias.shape)
        return part * weight, *own, None, None, None


@pytest.mark.slow
@pytest.mark.parametrize(("power", "verdict"), [(2, "PROVED"), (4, "REFUTED")])
def test_unnamed_arguments_have_the_names_that_forward_gives(power: int, verdict: str) -> None:
    cls = type("Twin", (Unnamed,), {"power": power})
    report = judged(cls)
    assert str(report.verdict) == verdict
    assert "x[n, m], weight[n, m], bias[n, m], slope" in report.inferred
    static = {"slope": 2.0, "eps": 1.0, "training": True}
    stated = sg.verify(cls, "n; n; n", static=static, suggest=False, timeout=None)
    assert str(stated.verdict) == "PROVED"  # 1 has the same powers
    other = sg.verify(cls, "n; n; n", static={**static, "eps": 2.0}, suggest=False, timeout=None)
    assert str(other.verdict) == verdict


def in_words(mode: Any) -> str:
    if mode == 0:
        return "same"
    if mode == 1:
        return "twice"
    raise ValueError(f"unknown mode {mode}")


class Modes(FUNCTION):
    """A helper compares a plain argument among many with numbers."""

    right = True

    @staticmethod
    def forward(ctx: Any, x: Any, a: Any, b: Any, c: Any, d: Any, e: Any, mode: Any) -> Any:
        ctx.mode = in_words(mode)
        ctx.save_for_backward(a, b, c, d, e)
        return x * (2 if ctx.mode == "twice" else 1) + (a + b + c + d + e).sum()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        factor = 2 if ctx.mode == "twice" and cls.right else 1
        every = [g.sum().expand(one.shape) for one in ctx.saved_tensors]
        return factor * g, *every, None


@pytest.mark.slow
@pytest.mark.parametrize(("right", "verdict"), [(True, "PROVED"), (False, "REFUTED")])
def test_what_python_compares_is_a_plain_value(right: bool, verdict: str) -> None:
    report = judged(type("Twin", (Modes,), {"right": right}))
    assert str(report.verdict) == verdict
    assert "mode = 1" in report.inferred


class Filtered(FUNCTION):
    """A convolution by names alone; the gradient of its bias is doubled."""

    @staticmethod
    def forward(
        ctx: Any, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, groups: Any
    ) -> Any:
        ctx.save_for_backward(input, weight)
        ctx.stride, ctx.padding, ctx.groups = stride, padding, groups
        return F.conv1d(input, weight, bias=bias, stride=stride, padding=padding, groups=groups)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        input, weight = ctx.saved_tensors
        own = (ctx.stride, ctx.padding, 1, ctx.groups)
        by_input = torch.nn.grad.conv1d_input(input.shape, weight, g, *own)
        by_weight = torch.nn.grad.conv1d_weight(input, weight.shape, g, *own)
        return by_input, by_weight, g.sum(2).sum(0) * 2, *[None] * 3


@pytest.mark.slow
def test_what_a_convolution_takes_shows_the_axes() -> None:
    """What is right of it is proved, and what is wrong is not."""
    report = judged(Filtered)
    verdicts = {name: str(one.verdict) for name, one in report.inputs.items()}
    assert verdicts == {"input": "PROVED", "weight": "PROVED", "bias": "REFUTED"}
    assert re.search(r"input\[.*, .*, .*\], weight\[.*, .*, 4\], bias\[.*\]", report.inferred)
    assert "stride = 1, padding = 0, groups = 1" in report.inferred


class Halved(FUNCTION):
    """Sizes made by ``int`` and exponents hold counts within expressions."""

    @staticmethod
    def forward(ctx: Any, x: Any, groups: Any, left: Any, width: Any) -> Any:
        ordered = x.reshape(int(x.numel() / groups), groups)
        mask = torch.ones_like(ordered)
        mask[:, : int(groups - left)] = 0
        ctx.mask = mask.reshape(x.shape) / 2 ** (width - 1)
        return x * ctx.mask

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.mask, None, None, None


def test_counts_within_expressions_are_found() -> None:
    report = judged(Halved)
    assert str(report.verdict) == "PROVED"
    assert "groups = 2, left = " in report.inferred


class Rescaled(FUNCTION):
    """The argument has the name that the first size has elsewhere."""

    @staticmethod
    def forward(ctx: Any, x: Any, n: Any) -> Any:
        ctx.n = n
        return x * n

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.n, None


def test_no_size_has_the_name_of_an_argument() -> None:
    assert "x[m, k], n (any number" in judged(Rescaled).inferred


class Clipped(FUNCTION):
    """Limits that are computed of a tensor are in order, or torch raises."""

    lower = -1

    @classmethod
    def forward(cls, ctx: Any, x: Any, step: Any) -> Any:
        ctx.save_for_backward(x, step)
        return F.hardtanh(x, cls.lower * step.item(), 2 * step.item())

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, step = ctx.saved_tensors
        return torch.where((x > cls.lower * step) & (x < 2 * step), g, 0.0), None


def test_limits_out_of_order_are_a_condition() -> None:
    report = sg.verify(
        Clipped, "n m", "f32[]", assume={"step": "constant"}, suggest=False, timeout=None
    )
    gradient = report.inputs["x"]
    assert str(gradient.verdict) == "PROVED"
    assert "if -1 * step <= 2 * step (demanded in line" in str(report)


class Places(FUNCTION):
    """Numbers from 1.0 to a size; a range takes the rows apart."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.scale = torch.arange(1.0, 1 + x.shape[-1])
        return x[range(x.shape[0]), 0] * ctx.scale.sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        out = g.new_zeros(g.shape[0], ctx.scale.shape[0])
        out[:, 0] = g * ctx.scale.sum()
        return out


def test_ranges_are_indices_and_numbers_count_to_sizes() -> None:
    report = judged(Places)
    assert str(report.verdict) == "PROVED"
    assert "x.shape[0] == 4" in str(report)


class Spiked(FUNCTION):
    """Backward asks for what was not kept, as far as ``x`` has a gradient; forward takes any."""

    @staticmethod
    def forward(ctx: Any, x: Any, alpha: Any) -> Any:
        if x.requires_grad:
            ctx.save_for_backward(x, alpha)
        return (x >= 0).to(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        found = None
        if ctx.needs_input_grad[0]:
            (x, _) = ctx.saved_tensors
            found = g * (ctx.alpha - x.abs())
        return found, None


def test_integers_alone_do_not_hide_that_backward_fails() -> None:
    report = judged(Spiked)
    assert str(report.verdict) == "REFUTED"
    assert "i64 x" not in report.inferred
    assert "has no attribute 'alpha'" in str(report)


class UpperTriangle(FUNCTION):
    """The places of a table by size: as many as the sizes say, so numbers stand for them."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        count, dim = x.shape[0], x.shape[1]
        flat = x.reshape(count, dim * dim)
        places = torch.ones(dim, dim).triu().reshape(dim * dim).nonzero()
        ctx.save_for_backward(x, places)
        return flat[:, places]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, places = ctx.saved_tensors
        found = torch.zeros(x.shape[0], x.shape[1] ** 2)
        found[:, places] = g
        return found.reshape(x.shape)


def test_the_places_of_a_table_by_size_are_known_at_numbers() -> None:
    guess = requested(adapted(UpperTriangle)).guess
    assert guess is not None
    assert guess.text == "x[n, 4, 4]"
    assert str(sg.verify(UpperTriangle, "n 3 3", suggest=False).verdict) == "PROVED"


class Modulus(FUNCTION):
    """Backward is written for two elements along the last axis, of which forward reads two."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        out = (x[..., 0] * x[..., 0] + x[..., 1] * x[..., 1]).sqrt()
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, out = ctx.saved_tensors
        return x * (g / out).unsqueeze(-1)


def test_the_size_for_which_backward_is_right_is_named_beside_kinks() -> None:
    report = judged(Modulus)
    assert str(report.verdict) == "REFUTED"
    assert "PROVED if m == 2" in str(report)


class Configured(FUNCTION):
    """Most shapes do not come as far as to what no argument has."""

    @staticmethod
    def forward(ctx: Any, x: Any, options: Any, mode: Any) -> Any:
        return x.reshape(7, 5).relu() * options["a"].scale

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None, None


class Selected(FUNCTION):
    """As many elements as a mask selects; other shapes end at the same line."""

    @staticmethod
    def forward(ctx: Any, x: Any, mask: Any) -> Any:
        if mask.any():
            return x[mask].flip(0)
        return x.new_zeros(0)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None


class Unfitting(FUNCTION):
    """No shapes fit; the last line is the nearest to an end."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.reshape(7, 5)
        return y.reshape(6, 6)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


@pytest.mark.parametrize(
    ("cls", "line", "said"),
    [
        (Configured, 'options["a"]', "nothing says what options is: forward asks it for 'a'"),
        (Selected, "return x[mask]", "x[mask] has a shape that depends on values"),
        (Unfitting, "reshape(6, 6)", "nearest, x[35]: shape [7, 5] cannot become [6, 6]"),
    ],
)
def test_a_search_that_finds_nothing_says_the_nearest_line(cls: Any, line: str, said: str) -> None:
    with pytest.raises(sg.SymgradError, match=re.escape(said)) as raised:
        judged(cls)
    place = raised.value.location
    assert place is not None
    assert line in linecache.getline(place.file, place.line)
    text, _, _ = str(raised.value).partition("\n  hint:")
    assert "\n" not in text


def test_what_ends_by_its_sizes_does_not_lengthen_a_search(monkeypatch: Any) -> None:
    tried: list[Any] = []
    traced = Search._traced

    def counted(search: Search, trial: Any) -> Any:
        tried.append(trial)
        return traced(search, trial)

    monkeypatch.setattr(Search, "_traced", counted)
    with pytest.raises(sg.SymgradError):
        judged(Configured)
    assert len(tried) < 100


Function: Any = torch.autograd.Function


class Halves(Function):
    """Weights of the same shape, which forward joins, and a bias that may be left out."""

    @staticmethod
    def forward(ctx: Any, x: Any, a: Any, b: Any, bias: Any = None) -> Any:
        ctx.save_for_backward(x, a, b)
        ctx.has_bias = bias is not None
        y = x @ torch.cat([a, b])
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, a, b = ctx.saved_tensors
        half = x.shape[-1] // 2
        weights = x[:, :half].t() @ g, x[:, half:].t() @ g
        return g @ torch.cat([a, b]).t(), *weights, g.sum(0) if ctx.has_bias else None


class SamePadding(Function):
    """Right for windows of three; the window gets no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, kernel: Any) -> Any:
        ctx.save_for_backward(kernel)
        return torch.nn.functional.conv2d(x, kernel, padding=1, groups=x.shape[1])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (kernel,) = ctx.saved_tensors
        flipped = kernel.flip((2, 3))
        return torch.nn.functional.conv2d(g, flipped, padding=1, groups=g.shape[1]), None


def test_tensors_that_are_joined_have_the_shape_that_backward_gives_them() -> None:
    """Also where an optional one is left out."""
    report = sg.verify(Halves)
    assert {str(one.verdict) for one in report.inputs.values()} == {"PROVED"}, str(report)
    assert "a[m, k], b[m, k], bias[k]" in str(report)


def test_a_window_has_the_size_at_which_less_is_wrong() -> None:
    """What is undecided for another size may be wrong for this one."""
    report = sg.verify(SamePadding, suggest=False)
    verdicts = {name: str(one.verdict) for name, one in report.inputs.items()}
    assert verdicts == {"x": "PROVED", "kernel": "REFUTED"}, str(report)


class KeptOrNot(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, save_memory: Any) -> Any:
        ctx.save_memory = save_memory
        y = torch.exp(x)
        if save_memory is False:
            ctx.save_for_backward(x, y)
        else:
            ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        if ctx.save_memory is True:
            return g * ctx.saved_tensors[0].exp(), None
        _, y = ctx.saved_tensors
        return g * y, None


def test_what_is_compared_by_is_with_true_is_a_flag() -> None:
    """A number is neither True nor False, so that forward and backward would part."""
    report = sg.verify(KeptOrNot)
    assert report.verdict == sg.PROVED, str(report)
    assert dict(report.values)["save_memory"] == "True or False"


class Counted(Function):
    """Scatters into as many places as it is told."""

    @staticmethod
    def forward(ctx: Any, x: Any, places: Any, output_size: Any) -> Any:
        ctx.save_for_backward(places)
        return x.new(*x.shape[:-1], output_size).zero_().index_add_(-1, places, x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (places,) = ctx.saved_tensors
        return g.index_select(-1, places), None, None


def test_a_size_by_its_name_is_no_tensor() -> None:
    report = sg.verify(Counted)
    assert report.verdict == sg.PROVED, str(report)
    assert list(report.inputs) == ["x"]
    assert "output_size = 2" in str(report)


class HandsOn(Function):
    """What forward returns as it is has to be a tensor, whatever backward says of it."""

    @staticmethod
    def forward(ctx: Any, x: Any, quantized: Any) -> Any:
        return quantized

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None


class Rebinds(HandsOn):
    @staticmethod
    def forward(ctx: Any, x: Any, alpha: Any) -> Any:
        ctx.alpha = alpha
        alpha = x * alpha
        ctx.shape = alpha.shape
        return alpha


def test_what_forward_returns_as_it_is_is_a_tensor() -> None:
    assert "any number" not in str(sg.verify(HandsOn, suggest=False))
    assert "alpha (any number, without a gradient)" in str(sg.verify(Rebinds, suggest=False))
