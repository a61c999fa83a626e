"""What plain arguments of torch's Functions are taken for, where nothing says what they are."""

from __future__ import annotations

import linecache
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


def _inferred(function: Any) -> tuple[str, str]:
    report = sg.verify(function, suggest=False)
    return str(report.verdict), " ".join(report.notes)


class Steps(Function):
    """The step is a number: the sum over all elements fits no other tensor."""

    @staticmethod
    def forward(ctx, x, s):
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * s, (g * x).sum()


class TwoSteps(Function):
    @staticmethod
    def forward(ctx, x, s, t):
        ctx.save_for_backward(x, s, t)
        return x * s + t

    @staticmethod
    def backward(ctx, g):
        x, s, _ = ctx.saved_tensors
        return g * s, (g * x).sum(), g.sum()


class DoubledStep(Steps):
    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * s, 2 * (g * x).sum()


def test_what_gets_a_number_for_its_gradient_is_a_number() -> None:
    verdict, notes = _inferred(Steps)
    assert verdict == "PROVED", notes
    assert "s[]" in notes
    verdict, notes = _inferred(TwoSteps)
    assert verdict == "PROVED", notes
    assert "s[], t[]" in notes
    assert _inferred(DoubledStep)[0] == "REFUTED"


class Filled(Function):
    """What fills is a number: it gets None, and nothing is asked of it that tensors are asked."""

    @staticmethod
    def forward(ctx, x, dim, fill):
        size = list(x.size())
        size[dim] += 1
        out = x.new(*size).fill_(fill)
        out.narrow(dim, 1, size[dim] - 1).copy_(x)
        ctx.dim = dim
        return out

    @staticmethod
    def backward(ctx, g):
        return g.narrow(ctx.dim, 1, g.size(ctx.dim) - 1), None, None


class FilledWrong(Filled):
    @staticmethod
    def backward(ctx, g):
        return g.narrow(ctx.dim, 0, g.size(ctx.dim) - 1), None, None


def test_what_gets_no_gradient_is_a_number() -> None:
    verdict, notes = _inferred(Filled)
    assert verdict == "PROVED", notes
    assert "fill (any number, without a gradient)" in notes
    assert _inferred(FilledWrong)[0] == "REFUTED"


class Between(Function):
    """Functions of tensors alone take them: the limits are tensors, though they get None."""

    @staticmethod
    def forward(ctx, x, low, high):
        return torch.minimum(torch.maximum(x, low), high)

    @staticmethod
    def backward(ctx, g):
        return g, None, None


class Annotated(Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, y: torch.Tensor):
        return x + y

    @staticmethod
    def backward(ctx, g):
        return g, None


def test_what_only_tensors_are_passed_for_is_a_tensor() -> None:
    verdict, notes = _inferred(Between)
    assert verdict == "SURROGATE?"
    assert "low[n, m]" in notes
    verdict, notes = _inferred(Annotated)
    assert verdict == "REFUTED"
    assert "y[n, m]" in notes


class Added(Function):
    """Without its gradient: what is added may be a tensor, and is one."""

    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, g):
        return g, None


class AddedEps(Function):
    """What is called eps is none."""

    @staticmethod
    def forward(ctx, x, eps):
        y = 1 / (x * x + eps)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return -2 * g * x * y * y, None


def test_what_is_added() -> None:
    assert _inferred(Added)[0] == "REFUTED"
    verdict, notes = _inferred(AddedEps)
    assert verdict == "PROVED", notes
    assert "eps (any number, without a gradient)" in notes


class Repeated(Function):
    """Right for every number of steps from 1 on."""

    @staticmethod
    def forward(ctx, x, count):
        ctx.count = count
        y = x - x.max(-1, keepdim=True).values
        for _ in range(count):
            y = y - y.mean(-1, keepdim=True)
        return y

    @staticmethod
    def backward(ctx, g):
        return g - g.mean(-1, keepdim=True), None


def test_what_is_counted_to_is_positive() -> None:
    verdict, notes = _inferred(Repeated)
    assert verdict == "PROVED", notes
    assert "count = 2" in notes


class Clamped(Function):
    """Compared with None: None and a number."""

    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x)
        ctx.limit = limit
        if limit is not None and limit > 0:
            x = x.clamp(max=limit)
        return 3 * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if ctx.limit is not None and ctx.limit > 0:
            g = g * (x <= ctx.limit)
        return 3 * g, None


class ClampedWrong(Clamped):
    @staticmethod
    def backward(ctx, g):
        return 3 * g, None


def test_what_is_compared_with_none_is_judged_both_ways() -> None:
    verdict, notes = _inferred(Clamped)
    assert verdict == "PROVED", notes
    assert "limit = None" in notes
    assert "limit = 0.5" in notes
    assert _inferred(ClampedWrong)[0] != "PROVED"


class Posterior(Function):
    """Another function than forward's derivative, with what forward does not use."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        return torch.logsumexp(x, -1)

    @staticmethod
    def backward(ctx, g):
        (weight,) = ctx.saved_tensors
        return g.unsqueeze(-1) * weight, None


def test_coefficients_that_forward_does_not_use() -> None:
    report = sg.verify(Posterior)
    assert "weight[n, m]" in " ".join(report.notes)
    assert str(report.verdict) == "SURROGATE?"
    assert "linear in `x`, with coefficients made of `weight`" in report.inputs["x"].surrogate


@torch.compile(backend="eager")
def _swish(x: Any) -> Any:
    return x * torch.sigmoid(x)


class Compiled(Function):
    """A function that torch.compile has wrapped is that function."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return _swish(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        y = torch.sigmoid(x)
        return g * (y + x * y * (1 - y))


def test_compiled_functions_are_followed() -> None:
    assert _inferred(Compiled)[0] == "PROVED"


class AsksOfDefaults(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, alpha: float = 1.5, dim: int = -1) -> Any:
        ctx.alpha = alpha
        return x * alpha

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        assert not ctx.needs_input_grad[1]
        return grad * ctx.alpha, None, None


def test_a_default_has_a_place_in_needs_input_grad() -> None:
    report = sg.verify(AsksOfDefaults, "n m")
    assert report.verdict is sg.PROVED
    (condition,) = report.inputs["x"].conditions
    assert condition.text.startswith("the call passes alpha, if by its default (")


class AsksBeyond(AsksOfDefaults):
    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return (grad * ctx.alpha, *[None] * (2 + ctx.needs_input_grad[3]))


def test_there_is_nothing_beyond_the_parameters() -> None:
    report = sg.verify(AsksBeyond, "n m")
    assert report.verdict is not sg.PROVED
    assert "IndexError" in str(report)


def _written(source: str, name: str) -> Any:
    """The class of a source, whose lines Python finds."""
    path, names = f"<{name}>", dict(globals())
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    exec(compile(source, path, "exec"), names)
    return names[name]


def _kind_of(text: Any) -> int:
    """A helper that tells texts apart."""
    if text in ("sine", "sin"):
        return 0
    if text == "exp":
        return 1
    raise ValueError(text)


TABLE = {"sin": 0, "exp": 1}
WAYS: dict[str, Any] = {
    "compared": lambda kind: 0 if kind == "sin" else 1,
    "helper": _kind_of,
    "key": lambda kind: TABLE[kind],
    "lower": lambda kind: 0 if kind.lower() == "sin" else 1,
    "integer": lambda kind: {7: 0, 9: 1}[7 if kind == 7 else 9 if kind == 9 else kind],
    "not equal": lambda kind: 1 if kind != "sin" else 0,
}


def _by_kind(way: str, wrong: int | None) -> Any:
    """Backward is wrong where the way gives a number."""

    class ByKind(Function):
        @staticmethod
        def forward(ctx, x, kind):
            ctx.kind = WAYS[way](kind) if way != "key" else TABLE[kind]
            ctx.save_for_backward(x)
            return x.sin() if ctx.kind == 0 else x.exp()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            grad = x.cos() if ctx.kind == 0 else x.exp()
            return g * (2 if ctx.kind == wrong else 1) * grad, None

    return ByKind


@pytest.mark.parametrize("way", WAYS)
def test_what_the_code_compares_with_is_judged(way: str) -> None:
    verdict, notes = _inferred(_by_kind(way, None))
    assert verdict == "PROVED"
    for value in ("7", "9") if way == "integer" else ("'sin'",):
        assert f"kind = {value}" in notes
    for wrong in (0, 1):
        assert _inferred(_by_kind(way, wrong))[0] == "REFUTED"


@pytest.mark.parametrize("edges", ["a, b = edges", "a, b = edges[0], edges[1]"])
def test_a_tuple_is_found_where_its_items_are_used(edges: str) -> None:
    source = f"""
class Edged(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, edges):
        {edges}
        ctx.edges = edges
        return torch.nn.functional.pad(x, (a, b))

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.edges
        return g[..., a : g.shape[-1] - b], None
"""
    assert _inferred(_written(source, "Edged"))[0] == "PROVED"
    wrong = source.replace("g.shape[-1] - b", "g.shape[-1] - a")
    assert _inferred(_written(wrong, "Edged"))[0] in ("REFUTED", "UNDECIDED")


ITEMS = {
    "enumerate": ("x.permute(d)", """inv = [0] * len(d)
        for i, p in enumerate(d): inv[p] = i
        return g.permute(inv), None"""),
    "sorted": ("x.permute(*d)", """inv = sorted(range(len(d)), key=lambda i: d[i])
        return g.permute(inv), None"""),
    "for": ("x.mean(d, keepdim=True)", """n = 1
        for one in d: n *= ctx.sh[one]
        return g.expand(ctx.sh) / n, None"""),
    "star": ("x.flip(d)", "return g.flip(*d), None"),
    "comprehension": ("x.flip(d)", "return g.flip([one for one in d]), None"),
    "map": ("x.flip(d)", "return g.flip(list(map(int, d))), None"),
    "subscript": ("x.flip(d)", "return g.flip(d[:1] + d[1:]), None"),
    "helper": ("x.flip(d)", "return g.flip(_all_of(d)), None"),
    "key": ("x * {(5, 9, 1): 1}[d]", "return None if len(d) else g, None"),
    "size": ("x.reshape(d)", """assert g.shape == torch.Size(d)
        return g.reshape(ctx.sh), None"""),
}  # fmt: skip


def _with_items(forward: str, backward: str) -> Any:
    source = f"""
def _all_of(d):
    return [one for one in d]


class Items(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dims):
        d = dims
        ctx.dims, ctx.sh = dims, x.shape
        return {forward}

    @staticmethod
    def backward(ctx, g):
        d = ctx.dims
        {backward}
"""
    return _written(source, "Items")


@pytest.mark.parametrize("way", [name for name in ITEMS if name != "key"])
def test_what_has_items_in_backward_is_no_number(way: str) -> None:
    verdict, notes = _inferred(_with_items(*ITEMS[way]))
    assert verdict == "PROVED", notes
    assert "dims = (" in notes


def test_where_no_items_fit_the_message_asks_for_them() -> None:
    with pytest.raises(sg.SymgradError, match="nothing says what") as raised:
        sg.verify(_with_items(*ITEMS["key"]))
    assert "dims = VALUE" in str(raised.value)


def test_a_permutation_is_judged_where_it_is_not_its_own_inverse() -> None:
    assert _inferred(_with_items("x.permute(d)", "return g.permute(d), None"))[0] == "REFUTED"


CALLS: list[Any] = []


class _Parts(NamedTuple):
    said: str
    body: str


REFUSED = {
    "attribute": _Parts("nothing says what m is: forward asks it for flat", "m.flat.part"),
    "key": _Parts("nothing says what m is: forward asks it for 'scale'", "m['scale'].part"),
    "module": _Parts("No module named 'no_such_extension'", "__import__('no_such_extension')"),
    "name": _Parts("name 'no_such_extension' is not defined", "no_such_extension.forward(x, m)"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_no_argument_changes_is_said_at_once(kind: str) -> None:
    function = _written(
        f"""
class Asks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, z, m):
        CALLS.append(m)
        return x * {REFUSED[kind].body}

    @staticmethod
    def backward(ctx, g):
        return g, None, None, None
""",
        "Asks",
    )
    CALLS.clear()
    with pytest.raises(sg.SymgradError, match=REFUSED[kind].said) as found:
        sg.verify(function)
    assert found.value.location.line == 6
    assert len(CALLS) < 40


class AlongRequired(Function):
    """Its axis has the default None, which forward refuses."""

    @staticmethod
    def forward(ctx, x, dim=None):
        ctx.dim = dim + x.ndim if dim < 0 else dim
        y = x.softmax(ctx.dim)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(ctx.dim, keepdim=True)), None


def test_a_default_that_forward_refuses_is_no_value() -> None:
    verdict, notes = _inferred(AlongRequired)
    assert verdict == "PROVED"
    assert "dim = -1" in notes


class Elastic(Function):
    """Only for 32 bits it does not ask for the value of a tensor."""

    @staticmethod
    def forward(ctx, x, num_bits):
        ctx.num_bits = num_bits
        if num_bits == 32:
            return x
        return 2 * x if x.sum() > 0 else x.sum().reshape(1, 1, 1, 1)

    @staticmethod
    def backward(ctx, g):
        return g, None


def test_values_that_cannot_be_traced_are_not_left_out() -> None:
    with pytest.raises(sg.SymgradError, match=r"cannot branch on a tensor here.*num_bits = 2"):
        sg.verify(Elastic)


class Floored(Function):
    """Asks on which side of a literal a number is that may be a tensor."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(scale)
        return x * 1e-3 if scale < 1e-3 else x * scale

    @staticmethod
    def backward(ctx, g):
        (scale,) = ctx.saved_tensors
        return g * max(scale, 1e-3), None


class FlooredWrong(Floored):
    @staticmethod
    def backward(ctx, g):
        (scale,) = ctx.saved_tensors
        return g * scale, None


class FlooredMean(Function):
    """The scale is made of elements, and depends on them: no side is a condition."""

    @staticmethod
    def forward(ctx, x):
        ctx.scale = max(x.detach().abs().mean(), 1e-3)
        return x * ctx.scale

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale


class Whole(Function):
    """What has to be an integer is judged at some."""

    @staticmethod
    def forward(ctx, x, bits):
        ctx.most = int(2**bits) - 1
        return x * ctx.most

    @staticmethod
    def backward(ctx, g):
        return g * ctx.most, None


def test_a_number_that_python_asks_for_is_judged_on_both_sides() -> None:
    report = sg.verify(Floored, suggest=False)
    assert report.verdict == "PROVED", str(report)
    assert report.quantified == ("all real scale",)
    assert "for scale >= 0.001, scale < 0.001, each judged separately" in report.domain
    report = sg.verify(FlooredWrong, suggest=False)
    assert report.verdict == "REFUTED", str(report)
    assert report.inputs["x"].reason.startswith("where scale < 0.001")
    assert report.inputs["x"].replayed


def test_what_is_made_of_elements_is_not_split() -> None:
    report = sg.verify(FlooredMean)
    assert report.verdict == "REFUTED", str(report)
    assert "each judged separately" not in report.domain
    assert "ctx.scale" not in str(report)  # which is another number on each side


def test_an_integer_that_python_needs_is_judged_at_some() -> None:
    report = sg.verify(Whole, suggest=False)
    assert report.verdict == "PROVED", str(report)
    assert dict(report.values)["bits"] == "1 or 2 or 3 or 5"


class Rescaled(Function):
    """``scale *= 2`` writes into a tensor, and makes another number of a number."""

    @staticmethod
    def forward(ctx, x, scale: float):
        ctx.scale = scale
        if scale > 1:
            scale *= 2
        return x * scale

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale, None


def test_a_number_that_is_multiplied_in_place_is_no_tensor() -> None:
    report = sg.verify(Rescaled)
    assert not report.quantified, str(report)
    assert dict(report.values)["scale"] == "0.5"


class TopOrAll(Function):
    @staticmethod
    def forward(ctx, x, k=None):
        top = x if k is None else x[x > (1 if k >= x.shape[-1] else 2)]  # not traced for numbers
        return 2 * top

    @staticmethod
    def backward(ctx, g):
        return 2 * g, None


def test_none_is_tried_for_what_is_compared_with_sizes() -> None:
    report = sg.verify(TopOrAll, suggest=False, timeout=None)
    assert str(report.verdict) == "PROVED"


FLAGS = {
    "bool": ("(x * x).sum(-1, keepdim=bool(keep))", "g if bool(ctx.keep) else g.unsqueeze(-1)"),
    "not": ("(x * x).sum(-1, keepdim=not not keep)", "g.unsqueeze(-1) if not ctx.keep else g"),
    "if": ("(x * x).sum(-1, keepdim=True if keep else False)",
           "g if ctx.keep else g.unsqueeze(-1)"),
}  # fmt: skip


@pytest.mark.parametrize("default", ["=None", ""])
@pytest.mark.parametrize("way", FLAGS)
def test_what_is_asked_for_its_truth_alone_is_a_flag(way: str, default: str) -> None:
    forward, cotangent = FLAGS[way]

    def judged(factor: str) -> Any:
        source = f"""
class Flagged(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, keep{default}):
        ctx.save_for_backward(x)
        ctx.keep = keep
        return {forward}

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {factor} * x * ({cotangent}), None
"""
        return sg.verify(_written(source, "Flagged"), suggest=False)

    right = judged("2")
    none = "None or " if default else ""
    assert f"for keep = {none}True or False" in str(right)
    assert str(right.verdict) == "PROVED"
    assert "REFUTED for keep = True" in str(judged("(3 if ctx.keep else 2)"))
